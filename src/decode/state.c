/* decode/state.c - the keys and values of a sequence -> bytes, and back (nib_seq_save, nib_seq_load of nib.h).
 *
 * A head, the ids, then page after page, each with a checksum. Bytes of a page are the same at every instruction set, so a
 * state may move between machines of one byte order. Only whole pages are kept: the unused places of the last one may hold
 * what another sequence left there. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "decode/context.h"
#include "decode/pages.h"

#include <string.h>

#define MAGIC "nib-kv1"

typedef unsigned long long ull;

typedef struct state_head {
    char magic[8];
    uint32_t byte_order, n_tokens;
    char version[16], k_type[8], v_type[8];
    uint64_t model, page_bytes;
    uint64_t ids_sum, sum; /* of the ids; of all above */
} state_head;

_Static_assert(sizeof(state_head) == 80, "a head is written as it lies in memory: no padding");

static uint64_t head_sum(const state_head *head) {
    return nib_hash64(0, head, offsetof(state_head, sum));
}

static uint64_t ids_sum(const state_head *head, const nib_token *ids) {
    return nib_hash64(0, ids, head->n_tokens * sizeof *ids);
}

/* The head of a state of n_tokens; its sums are not set. */
static nib_status make_head(const nib_context *ctx, uint32_t n_tokens, state_head *head, nib_error *err) {
    const char *k_type, *v_type;
    size_t page_bytes;
    nib_cpu_kv_types(ctx->cpu, &k_type, &v_type);
    nib_cpu_page(ctx->cpu, 0, &page_bytes);
    *head = (state_head){.magic = MAGIC, .byte_order = 0x01020304, .n_tokens = n_tokens, .version = NIB_VERSION,
                         .page_bytes = page_bytes};
    memcpy(head->k_type, k_type, strlen(k_type));
    memcpy(head->v_type, v_type, strlen(v_type));
    return nib_model_fingerprint(ctx->model, &head->model, err);
}

nib_status nib_decode_pages_identity(const nib_context *ctx, uint64_t *out, nib_error *err) {
    state_head head;
    NIB_TRY(make_head(ctx, 0, &head, err));
    *out = head_sum(&head);
    return NIB_OK;
}

nib_status nib_seq_save(const nib_context *ctx, uint32_t seq, const nib_token *ids, nib_write_fn write, void *user,
                        nib_error *err) {
    state_head head;
    NIB_TRY(nib_context_check_seq(ctx, seq, err));
    const nib_kv_table *table = &ctx->tables[seq];
    uint32_t n_pages = table->length / NIB_KV_PAGE;
    NIB_TRY(make_head(ctx, n_pages * NIB_KV_PAGE, &head, err));
    head.ids_sum = ids_sum(&head, ids);
    head.sum = head_sum(&head);
    NIB_TRY(write(user, &head, sizeof head, err));
    if (n_pages) NIB_TRY(write(user, ids, head.n_tokens * sizeof *ids, err));
    for (uint32_t i = 0; i < n_pages; i++) {
        size_t n;
        const void *page = nib_cpu_page(ctx->cpu, table->pages[i], &n);
        uint64_t sum = nib_hash64(i, page, n);
        NIB_TRY(write(user, page, n, err));
        NIB_TRY(write(user, &sum, sizeof sum, err));
    }
    return NIB_OK;
}

/* Says what a head has that is not as wanted. */
static nib_status check_head(const state_head *found, const state_head *want, nib_error *err) {
    if (memcmp(found->magic, want->magic, sizeof found->magic) != 0 || found->byte_order != want->byte_order)
        return nib_fail(err, NIB_E_FORMAT, "this is no saved state of this kind of machine");
    if (memcmp(found->version, want->version, sizeof found->version) != 0)
        return nib_fail(err, NIB_E_FORMAT, "the state was saved by version %.15s, this is %s", found->version, want->version);
    if (found->model != want->model)
        return nib_fail(err, NIB_E_FORMAT, "the state was saved with another model, or other options of rope");
    if (memcmp(found->k_type, want->k_type, sizeof found->k_type) != 0 ||
        memcmp(found->v_type, want->v_type, sizeof found->v_type) != 0)
        return nib_fail(err, NIB_E_FORMAT, "the state has a cache of %.7s keys and %.7s values, this context of %s and %s",
                        found->k_type, found->v_type, want->k_type, want->v_type);
    if (found->page_bytes != want->page_bytes || found->n_tokens % NIB_KV_PAGE)
        return nib_fail(err, NIB_E_FORMAT, "the state has pages of another size");
    if (head_sum(found) != found->sum) return nib_fail(err, NIB_E_FORMAT, "the state is damaged in its head");
    return NIB_OK;
}

static nib_status check_ids(const nib_context *ctx, const state_head *head, const nib_token *ids, nib_error *err) {
    if (ids_sum(head, ids) != head->ids_sum) return nib_fail(err, NIB_E_FORMAT, "the state is damaged in its ids");
    for (uint32_t i = 0; i < head->n_tokens; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= nib_model_n_vocab(ctx->model))
            return nib_fail(err, NIB_E_FORMAT, "token %u of the state has the id %d, expected 0 to %u", i, ids[i],
                            nib_model_n_vocab(ctx->model) - 1);
    return NIB_OK;
}

static nib_status read_ids(const nib_context *ctx, const state_head *head, nib_read_fn read, void *user,
                           nib_token_list *ids, nib_error *err) {
    uint32_t n_pages = head->n_tokens / NIB_KV_PAGE;
    if (head->n_tokens > ctx->config.n_ctx || n_pages > ctx->pool.n_free)
        return nib_fail(err, NIB_E_KV_FULL, "the state has %u positions, the context has room for %llu", head->n_tokens,
                        (ull)ctx->pool.n_free * NIB_KV_PAGE < ctx->config.n_ctx ? (ull)ctx->pool.n_free * NIB_KV_PAGE
                                                                                 : ctx->config.n_ctx);
    if (!nib_grow(&ids->ids, &ids->capacity, head->n_tokens, sizeof *ids->ids))
        return nib_fail_nomem(err, head->n_tokens * sizeof *ids->ids, "the ids of a state");
    if (n_pages) NIB_TRY(read(user, ids->ids, head->n_tokens * sizeof *ids->ids, err));
    NIB_TRY(check_ids(ctx, head, ids->ids, err));
    ids->n = head->n_tokens;
    return NIB_OK;
}

static nib_status read_pages(nib_context *ctx, const nib_kv_table *table, nib_read_fn read, void *user, nib_error *err) {
    for (uint32_t i = 0; i < table->n_pages; i++) {
        size_t n;
        uint64_t sum;
        void *page = nib_cpu_page(ctx->cpu, table->pages[i], &n);
        NIB_TRY(read(user, page, n, err));
        NIB_TRY(read(user, &sum, sizeof sum, err));
        if (nib_hash64(i, page, n) != sum)
            return nib_fail(err, NIB_E_FORMAT, "the state is damaged at positions %u to %u", i * NIB_KV_PAGE,
                            (i + 1) * NIB_KV_PAGE - 1);
    }
    return NIB_OK;
}

nib_status nib_seq_load(nib_context *ctx, uint32_t seq, nib_read_fn read, void *user, nib_token_list *ids,
                        nib_error *err) {
    state_head head, want;
    ids->n = 0;
    NIB_TRY(nib_context_check_seq(ctx, seq, err));
    nib_kv_table *table = &ctx->tables[seq];
    nib_kv_table_clear(table, &ctx->pool);
    NIB_TRY(make_head(ctx, 0, &want, err));
    NIB_TRY(read(user, &head, sizeof head, err));
    NIB_TRY(check_head(&head, &want, err));
    nib_status status = read_ids(ctx, &head, read, user, ids, err);
    if (status == NIB_OK) {
        nib_kv_table_append(table, &ctx->pool, head.n_tokens);
        status = read_pages(ctx, table, read, user, err);
    }
    if (status == NIB_OK) return NIB_OK;
    nib_kv_table_clear(table, &ctx->pool);
    ids->n = 0;
    return status;
}
