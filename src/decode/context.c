/* decode/context.c - nib_decode: a batch of tokens in, rows of logits out; and the sequences it works on.
 *
 * A batch is checked wholly before anything changes: tokens, sequences, positions, rows, pages. Then pages are taken,
 * the batch runs in parts of n_ubatch tokens, and any failure on the way cuts every sequence back to what it was.
 * Thanks to the numerics contract the parts do not show in the bits. */
#include "decode/context.h"

#include "base/half.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "cpu/kv.h"
#include "decode/batch.h"
#include "decode/pages.h"

#include <string.h>

typedef unsigned long long ull;

#define MAX_CTX (1u << 28)

_Static_assert(NIB_KV_PAGE == NIB_PAGE_POS, "kv/ and cpu/ count pages of the same size");

static nib_status check_config(const nib_context_config *c, nib_error *err) {
    if (c->size != sizeof *c)
        return nib_fail(err, NIB_E_ARG, "nib_context_config is %zu bytes, this library expects %zu", c->size, sizeof *c);
    if (c->n_seq < 1 || c->n_seq > 4096)
        return nib_fail(err, NIB_E_ARG, "n_seq is %u, expected 1 to 4096", c->n_seq);
    if (c->n_batch < 1 || c->n_batch > 1u << 24)
        return nib_fail(err, NIB_E_ARG, "n_batch is %u, expected 1 to %u", c->n_batch, 1u << 24);
    if (c->n_ubatch < 1 || c->n_ubatch > 1u << 16)
        return nib_fail(err, NIB_E_ARG, "n_ubatch is %u, expected 1 to %u", c->n_ubatch, 1u << 16);
    if (c->n_ctx > MAX_CTX) return nib_fail(err, NIB_E_ARG, "n_ctx is %u, expected at most %u", c->n_ctx, MAX_CTX);
    if (c->n_threads < 0 || c->n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "n_threads is %d, expected 0 to 1024", c->n_threads);
    return NIB_OK;
}

/* What the model was trained for, for each sequence, or what half of the free memory holds, whichever is less. */
static nib_status default_n_ctx(nib_context *ctx, nib_error *err) {
    const nib_cpu_kv_type *k, *v;
    size_t page;
    NIB_TRY(nib_cpu_kv_type_find(&k, ctx->config.k_type, err));
    NIB_TRY(nib_cpu_kv_type_find(&v, ctx->config.v_type, err));
    NIB_TRY(nib_cpu_kv_page_bytes(&ctx->model->plan, k, v, &page, err));
    uint64_t fits = nib_sys_free_memory() / 2 / page * NIB_KV_PAGE, most = MAX_CTX;
    uint64_t n = (uint64_t)nib_model_n_ctx_train(ctx->model) * ctx->config.n_seq;
    if (fits < most) most = fits;
    ctx->config.n_ctx = (uint32_t)(most < n ? most : n);
    if (ctx->config.n_ctx < NIB_KV_PAGE) ctx->config.n_ctx = NIB_KV_PAGE;
    return NIB_OK;
}

static nib_status make_tables(nib_context *ctx, nib_error *err) {
    const nib_context_config *c = &ctx->config;
    ctx->tables = nib_calloc(c->n_seq, sizeof *ctx->tables);
    ctx->added = nib_calloc(c->n_seq, sizeof *ctx->added);
    ctx->kept = nib_calloc(c->n_seq, sizeof *ctx->kept);
    ctx->token = nib_calloc(c->n_ubatch, sizeof *ctx->token);
    ctx->pos = nib_calloc(c->n_ubatch, sizeof *ctx->pos);
    ctx->out = nib_calloc(c->n_ubatch, sizeof *ctx->out);
    ctx->pages = nib_calloc(c->n_ubatch, sizeof *ctx->pages);
    if (!ctx->tables || !ctx->added || !ctx->kept || !ctx->token || !ctx->pos || !ctx->out || !ctx->pages)
        return nib_fail_nomem(err, 0, "the tables of a context");
    for (uint32_t i = 0; i < c->n_seq; i++) NIB_TRY(nib_kv_table_init(&ctx->tables[i], &ctx->pool, err));
    return NIB_OK;
}

/* Memory is touched as it is used: what cannot fit even when nothing else runs is refused now, not killed later. */
static nib_status check_memory(const nib_context *ctx, nib_error *err) {
    uint64_t kv = nib_context_kv_bytes(ctx), buffers = nib_context_buffer_bytes(ctx);
    uint64_t weights = nib_model_weight_bytes(ctx->model), total = nib_sys_total_memory();
    if (kv + buffers + weights <= total) return NIB_OK;
    return nib_fail(err, NIB_E_NOMEM,
                    "a context of %u tokens needs %llu MiB for the KV cache, %llu for buffers and %llu for the model, this machine "
                    "has %llu MiB of memory: ask for a smaller context",
                    ctx->config.n_ctx, (ull)kv >> 20, (ull)buffers >> 20, (ull)weights >> 20, (ull)total >> 20);
}

nib_status nib_context_new(nib_context **out, const nib_model *model, const nib_context_config *config,
                           nib_error *err) {
    static const nib_context_config defaults = NIB_CONTEXT_CONFIG_INIT;
    *out = NULL;
    if (!config) config = &defaults;
    NIB_TRY(check_config(config, err));
    nib_context *ctx = nib_calloc(1, sizeof *ctx);
    if (!ctx) return nib_fail_nomem(err, sizeof *ctx, "a context");
    ctx->model = model;
    ctx->config = *config;
    nib_context_config *c = &ctx->config;
    nib_status status = NIB_OK;
    if (c->n_ctx == 0) NIB_TRY_OUT(default_n_ctx(ctx, err));
    if (c->n_threads == 0) c->n_threads = nib_cpu_count(NULL);
    if (c->n_ubatch > c->n_batch) c->n_ubatch = c->n_batch;
    if (c->n_logits < c->n_seq) c->n_logits = c->n_seq;
    if (c->n_logits > c->n_batch && c->n_batch >= c->n_seq) c->n_logits = c->n_batch;
    /* Every sequence may leave its last page partly empty: one page more for each but the first. */
    uint32_t n_pages = (c->n_ctx + NIB_KV_PAGE - 1) / NIB_KV_PAGE + c->n_seq - 1;
    NIB_TRY_OUT(nib_kv_pool_init(&ctx->pool, n_pages, err));
    NIB_TRY_OUT(make_tables(ctx, err));
    nib_cpu_config cpu = {
        .isa = model->isa, .weights = model->weights, .n_threads = c->n_threads, .n_tok = c->n_ubatch,
        .n_logits = c->n_logits, .n_pages = n_pages, .k_type = c->k_type, .v_type = c->v_type,
        .profile = c->profile, .adapts = true, .abort = c->abort, .user = c->user,
    };
    NIB_TRY_OUT(nib_cpu_new(&ctx->cpu, &model->plan, &cpu, err));
    NIB_TRY_OUT(check_memory(ctx, err));
    c->k_type = c->v_type = NULL; /* the caller's strings are not kept */
    *out = ctx;
    ctx = NULL;
out:
    nib_context_free(ctx);
    return status;
}

void nib_context_free(nib_context *ctx) {
    if (!ctx) return;
    nib_cpu_free(ctx->cpu);
    for (uint32_t i = 0; ctx->tables && i < ctx->config.n_seq; i++) nib_kv_table_fini(&ctx->tables[i]);
    nib_kv_pool_fini(&ctx->pool);
    nib_free(ctx->tables);
    nib_free(ctx->added);
    nib_free(ctx->kept);
    nib_free(ctx->token);
    nib_free(ctx->pos);
    nib_free(ctx->out);
    nib_free(ctx->pages);
    nib_free(ctx);
}

/* Checks every token and counts what the batch adds to each sequence. */
static nib_status check_entries(nib_context *ctx, const nib_batch *batch, uint32_t *n_rows, nib_error *err) {
    memset(ctx->added, 0, ctx->config.n_seq * sizeof *ctx->added);
    *n_rows = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        const nib_batch_entry *e = &batch->entries[i];
        uint32_t n_vocab = nib_model_n_vocab(ctx->model);
        if (e->token < 0 || (uint32_t)e->token >= n_vocab)
            return nib_fail(err, NIB_E_ARG, "token %u of the batch has the id %d, expected 0 to %u", i, e->token, n_vocab - 1);
        if (e->seq >= ctx->config.n_seq)
            return nib_fail(err, NIB_E_ARG, "token %u of the batch belongs to sequence %u, expected 0 to %u", i, e->seq,
                            ctx->config.n_seq - 1);
        uint32_t next = ctx->tables[e->seq].length + ctx->added[e->seq];
        if (e->pos != NIB_POS_NEXT && (uint32_t)e->pos != next)
            return nib_fail(err, NIB_E_ARG, "token %u of the batch stands at position %d of sequence %u, expected %u", i,
                            e->pos, e->seq, next);
        ctx->added[e->seq]++;
        *n_rows += e->want_logits;
    }
    return NIB_OK;
}

static nib_status check_room(const nib_context *ctx, const nib_batch *batch, uint32_t n_rows, nib_error *err) {
    if (batch->wants_hidden && batch->n > ctx->config.n_ubatch)
        return nib_fail(err, NIB_E_LIMIT, "a batch of %u tokens wants hidden states, the context keeps those of %u (n_ubatch)",
                        batch->n, ctx->config.n_ubatch);
    if (!batch->wants_hidden && n_rows > ctx->config.n_logits)
        return nib_fail(err, NIB_E_LIMIT, "%u tokens of the batch want logits, the context has room for %u (n_logits)", n_rows,
                        ctx->config.n_logits);
    uint64_t need = 0;
    for (uint32_t i = 0; i < ctx->config.n_seq; i++) {
        if (!ctx->added[i]) continue;
        const nib_kv_table *t = &ctx->tables[i];
        if (ctx->added[i] > ctx->config.n_ctx - t->length)
            return nib_fail(err, NIB_E_KV_FULL, "sequence %u holds %u positions and the batch adds %u: the context has %u", i,
                            t->length, ctx->added[i], ctx->config.n_ctx);
        need += nib_kv_table_pages_for(t, ctx->added[i]);
    }
    if (need > ctx->pool.n_free)
        return nib_fail(err, NIB_E_KV_FULL, "KV cache full: the batch needs %llu pages of %u positions, %llu are missing (%u in all)",
                        (ull)need, NIB_KV_PAGE, (ull)(need - ctx->pool.n_free), ctx->pool.n_pages);
    return NIB_OK;
}

/* Tokens first … first+n-1 of the batch. ctx->added counts down to where each sequence stands. */
static nib_status run_part(nib_context *ctx, const nib_batch *batch, uint32_t first, uint32_t n, nib_error *err) {
    nib_plan_batch part = {.n_tok = n, .token = ctx->token, .pos = ctx->pos, .pages = ctx->pages, .out = ctx->out,
                           .logits_row = ctx->n_rows, .wants_hidden = batch->wants_hidden};
    for (uint32_t i = 0; i < n; i++) {
        const nib_batch_entry *e = &batch->entries[first + i];
        const nib_kv_table *t = &ctx->tables[e->seq];
        ctx->token[i] = e->token;
        ctx->pos[i] = t->length - ctx->added[e->seq]--;
        ctx->pages[i] = t->pages;
        if (e->want_logits) ctx->out[part.n_out++] = i;
    }
    NIB_TRY(nib_cpu_run(ctx->cpu, &part, err));
    ctx->n_rows += part.n_out;
    return NIB_OK;
}

static void roll_back(nib_context *ctx) {
    nib_kv_copy copy;
    for (uint32_t i = 0; i < ctx->config.n_seq; i++) /* pages that this batch took are shared with nobody: no copy */
        (void)nib_kv_table_truncate(&ctx->tables[i], &ctx->pool, ctx->kept[i], &copy, NULL);
    ctx->n_rows = 0;
}

nib_status nib_decode(nib_context *ctx, const nib_batch *batch, nib_error *err) {
    uint32_t n_rows;
    if (!ctx->model->memory) return nib_fail(err, NIB_E_ARG, "the model was opened without its weights (plan_only)");
    if (batch->n > ctx->config.n_batch)
        return nib_fail(err, NIB_E_LIMIT, "the batch has %u tokens, the context takes %u (n_batch)", batch->n, ctx->config.n_batch);
    NIB_TRY(check_entries(ctx, batch, &n_rows, err));
    NIB_TRY(check_room(ctx, batch, n_rows, err));
    ctx->n_rows = 0;
    ctx->has_hidden = batch->wants_hidden;
    for (uint32_t i = 0; i < ctx->config.n_seq; i++) {
        ctx->kept[i] = ctx->tables[i].length;
        if (ctx->added[i]) nib_kv_table_append(&ctx->tables[i], &ctx->pool, ctx->added[i]);
    }
    nib_cpu_reset_times(ctx->cpu);
    for (uint32_t first = 0; first < batch->n; first += ctx->config.n_ubatch) {
        uint32_t left = batch->n - first, n = left < ctx->config.n_ubatch ? left : ctx->config.n_ubatch;
        nib_status status = run_part(ctx, batch, first, n, err);
        if (status != NIB_OK) {
            roll_back(ctx);
            return status;
        }
    }
    return NIB_OK;
}

const float *nib_logits(const nib_context *ctx, uint32_t i) {
    return i < nib_n_logits(ctx) ? nib_cpu_logits(ctx->cpu, i) : NULL;
}

const float *nib_logits_best(const nib_context *ctx, uint32_t i) {
    return i < nib_n_logits(ctx) ? nib_cpu_best_logits(ctx->cpu, i) : NULL;
}

uint32_t nib_n_logits(const nib_context *ctx) {
    return ctx->has_hidden ? 0 : ctx->n_rows;
}

const float *nib_hidden(const nib_context *ctx, uint32_t i) {
    return ctx->has_hidden && i < ctx->n_rows ? nib_cpu_hidden(ctx->cpu, i) : NULL;
}

uint64_t nib_logits_hash(const nib_context *ctx, uint32_t i) {
    const float *row = nib_logits(ctx, i);
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a, a word at a time */
    for (uint32_t j = 0, n = row ? nib_model_n_vocab(ctx->model) : 0; j < n; j++)
        h = (h ^ nib_f32_bits(row[j])) * UINT64_C(0x100000001b3);
    return h;
}

nib_status nib_context_check_seq(const nib_context *ctx, uint32_t seq, nib_error *err) {
    if (seq < ctx->config.n_seq) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "sequence %u: the context has 0 to %u", seq, ctx->config.n_seq - 1);
}

nib_kv_pool *nib_decode_pages_pool(nib_context *ctx) {
    return &ctx->pool;
}

nib_kv_table *nib_decode_pages_table(nib_context *ctx, uint32_t seq) {
    return &ctx->tables[seq];
}

void *nib_decode_pages_bytes(const nib_context *ctx, uint32_t page, size_t *n_bytes) {
    return nib_cpu_page(ctx->cpu, page, n_bytes);
}

void nib_decode_pages_copy(nib_context *ctx, uint32_t from, uint32_t to) {
    nib_cpu_copy_page(ctx->cpu, from, to);
}

uint32_t nib_seq_length(const nib_context *ctx, uint32_t seq) {
    return seq < ctx->config.n_seq ? ctx->tables[seq].length : 0;
}

nib_status nib_seq_fork(nib_context *ctx, uint32_t src, uint32_t dst, nib_error *err) {
    nib_kv_copy copy;
    NIB_TRY(nib_context_check_seq(ctx, src, err));
    NIB_TRY(nib_context_check_seq(ctx, dst, err));
    if (src == dst) return NIB_OK;
    NIB_TRY(nib_kv_table_fork(&ctx->tables[src], &ctx->tables[dst], &ctx->pool, &copy, err));
    if (copy.is_needed) nib_cpu_copy_page(ctx->cpu, copy.from, copy.to);
    return NIB_OK;
}

nib_status nib_seq_truncate(nib_context *ctx, uint32_t seq, uint32_t n, nib_error *err) {
    nib_kv_copy copy;
    NIB_TRY(nib_context_check_seq(ctx, seq, err));
    if (n > ctx->tables[seq].length)
        return nib_fail(err, NIB_E_ARG, "sequence %u holds %u positions: it cannot keep %u", seq, ctx->tables[seq].length, n);
    NIB_TRY(nib_kv_table_truncate(&ctx->tables[seq], &ctx->pool, n, &copy, err));
    if (copy.is_needed) nib_cpu_copy_page(ctx->cpu, copy.from, copy.to);
    return NIB_OK;
}

void nib_seq_free(nib_context *ctx, uint32_t seq) {
    if (seq < ctx->config.n_seq) nib_kv_table_clear(&ctx->tables[seq], &ctx->pool);
}

uint32_t nib_context_n_ctx(const nib_context *ctx) {
    return ctx->config.n_ctx;
}

uint32_t nib_context_n_batch(const nib_context *ctx) {
    return ctx->config.n_batch;
}

uint32_t nib_context_n_logits(const nib_context *ctx) {
    return ctx->config.n_logits;
}

int nib_context_n_threads(const nib_context *ctx) {
    return ctx->config.n_threads;
}

void nib_context_limit_threads(nib_context *ctx, int n_threads) {
    int most = ctx->config.n_threads;
    nib_cpu_limit_threads(ctx->cpu, n_threads < 1 || n_threads > most ? most : n_threads);
}

uint64_t nib_context_kv_bytes(const nib_context *ctx) {
    return nib_cpu_kv_total_bytes(ctx->cpu);
}

uint64_t nib_context_buffer_bytes(const nib_context *ctx) {
    return nib_cpu_buffer_bytes(ctx->cpu);
}

uint32_t nib_context_n_pages(const nib_context *ctx) {
    return ctx->pool.n_pages;
}

uint32_t nib_context_pages_used(const nib_context *ctx) {
    return ctx->pool.n_pages - ctx->pool.n_free;
}

double nib_context_step_ms(const nib_context *ctx, size_t i) {
    return nib_cpu_step_ms(ctx->cpu, i);
}

double nib_context_wait_ms(const nib_context *ctx, size_t i) {
    return nib_cpu_wait_ms(ctx->cpu, i);
}
