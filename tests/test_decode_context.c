/* tests/test_decode_context.c - the promise of nib_decode: the same bits whatever the batch, chunk, thread count and
 * level, after fork and truncate; errors that leave every sequence as it was; no allocation. */
#include "nib.h"

#include "base/mem.h"
#include "support/files.h"
#include "support/level.h"
#include "support/slow.h"
#include "support/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_TOK (IS_SLOW ? 40 : 90) /* nearly three pages */

typedef struct fixture {
    nib_gguf *file;
    nib_model *model;
    uint32_t n_vocab;
} fixture;

static void open_model(fixture *f, const tiny_model *m, const char *isa) {
    nib_error err;
    char *folder = files_folder(), *path = files_path(folder, "tiny.gguf");
    assert_int_equal(tiny_write(m, path, &err), NIB_OK);
    assert_int_equal(nib_gguf_open(&f->file, path, NULL, &err), NIB_OK);
    nib_model_config config = NIB_MODEL_CONFIG_INIT;
    config.isa = isa;
    config.n_threads = 2;
    nib_status status = nib_model_open(&f->model, f->file, &config, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    f->n_vocab = nib_model_n_vocab(f->model);
    free(path);
    files_remove(folder); /* the open file lives on */
}

static void close_model(fixture *f) {
    nib_model_close(f->model);
    nib_gguf_close(f->file);
}

static nib_context *context(const fixture *f, nib_context_config c) {
    nib_error err;
    nib_context *ctx;
    if (c.n_ctx == 0) c.n_ctx = 512;
    if (c.n_threads == 0) c.n_threads = 1;
    nib_status status = nib_context_new(&ctx, f->model, &c, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return ctx;
}

static nib_token token(const fixture *f, uint32_t seq, uint32_t i) {
    return (nib_token)((i * 7919u + seq * 104729u + i * i) % f->n_vocab);
}

static void check_best(const fixture *f, const nib_context *ctx, uint32_t row) {
    const float *logits = nib_logits(ctx, row), *best = nib_logits_best(ctx, row);
    float want = -INFINITY;
    for (uint32_t i = 0, n = f->n_vocab; i < n; i++) {
        if (logits[i] > want) want = logits[i];
        if (i % 32 != 31 && i + 1 < n) continue;
        assert_true(best[i / 32] == want);
        want = -INFINITY;
    }
}

/* Feeds tokens from … to-1 of sequence `as` into sequence seq, `chunk` a call, with a token of each of n_others other
 * sequences before and after them; hashes of all rows of seq go to hash[i]. */
static void feed_among(const fixture *f, nib_context *ctx, uint32_t n_others, uint32_t seq, uint32_t as, uint32_t from,
                       uint32_t to, uint32_t chunk, uint64_t *hash) {
    nib_error err;
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, chunk + n_others, &err), NIB_OK);
    for (uint32_t i = from; i < to;) {
        uint32_t n = to - i < chunk ? to - i : chunk;
        nib_batch_clear(batch);
        for (uint32_t s = 1; s <= n_others; s += 2)
            assert_int_equal(nib_batch_add(batch, token(f, as + s, i), NIB_POS_NEXT, seq + s, false, &err), NIB_OK);
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(nib_batch_add(batch, token(f, as, i + j), NIB_POS_NEXT, seq, true, &err), NIB_OK);
        for (uint32_t s = 2; s <= n_others; s += 2)
            assert_int_equal(nib_batch_add(batch, token(f, as + s, i), NIB_POS_NEXT, seq + s, false, &err), NIB_OK);
        nib_status status = nib_decode(ctx, batch, &err);
        if (status != NIB_OK) print_error("%s\n", err.message);
        assert_int_equal(status, NIB_OK);
        assert_int_equal(nib_n_logits(ctx), n);
        for (uint32_t j = 0; j < n; j++) {
            hash[i + j] = nib_logits_hash(ctx, j);
            check_best(f, ctx, j);
        }
        i += n;
    }
    nib_batch_free(batch);
}

static void feed(const fixture *f, nib_context *ctx, uint32_t seq, uint32_t as, uint32_t from, uint32_t to,
                 uint32_t chunk, uint64_t *hash) {
    feed_among(f, ctx, 0, seq, as, from, to, chunk, hash);
}

static void assert_same(const uint64_t *a, const uint64_t *b, uint32_t n, const char *what) {
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i]) fail_msg("%s: row %u differs", what, i);
}

static const char *const arch_names[] = {"llama", "qwen2", "qwen3", "gemma3"};
static const char *const kv_types[] = {"f16", "f32", "q16", "q8_0"};

static tiny_model model_of(const char *arch, const char *type) {
    tiny_model m = TINY_MODEL_INIT;
    m.arch = arch;
    m.type = type;
    m.n_layer = 3;
    m.head_dim = 32;
    m.n_embd = 128;
    m.n_ff = 256;
    m.sliding_window = strcmp(arch, "gemma3") == 0 ? 20 : 0;
    return m;
}

static uint32_t n_compared;

/* One row at a time on one scalar thread is the reference of everything else. */
static void compare_all(const tiny_model *m, const char *kv) {
    fixture scalar, f;
    uint64_t want[N_TOK], got[N_TOK];
    open_model(&scalar, m, "scalar");
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.k_type = c.v_type = kv;
    c.n_logits = N_TOK;
    nib_context *ctx = context(&scalar, c);
    feed(&scalar, ctx, 0, 0, 0, N_TOK, 1, want);
    nib_context_free(ctx);
    close_model(&scalar);
    for (uint32_t i = 1; i < N_TOK; i++) assert_true(want[i] != want[i - 1]);
    for (const char *const *isa = nib_isa_names(); *isa; isa++) {
        if (!IS_WANTED(*isa) || !nib_isa_usable(*isa)) continue;
        open_model(&f, m, *isa);
        static const struct {
            uint32_t chunk, n_ubatch;
            int threads;
            uint32_t others; /* sequences in the same batch */
        } ways[] = {{1, 512, 2, 0}, {7, 512, 1, 0}, {33, 512, 3, 0}, {N_TOK, 25, 2, 0}, /* that is cut again inside */
                    {1, 512, 1, 1}, {1, 512, 2, 7}, {30, 512, 2, 3}};
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k += IS_SANITIZED ? 2 : 1) {
            char what[100];
            c.n_threads = ways[k].threads;
            c.n_ubatch = ways[k].n_ubatch;
            c.n_seq = ways[k].others + 1;
            c.n_ctx = c.n_seq * 96;
            ctx = context(&f, c);
            feed_among(&f, ctx, ways[k].others, 0, 0, 0, N_TOK, ways[k].chunk, got);
            snprintf(what, sizeof what, "%s %s %s kv %s chunk %u threads %d others %u", m->arch, m->type, *isa,
                     kv ? kv : "f16", ways[k].chunk, ways[k].threads, ways[k].others);
            assert_same(want, got, N_TOK, what);
            n_compared++;
            nib_context_free(ctx);
        }
        close_model(&f);
    }
}

static void test_same_bits(void **state) {
    (void)state;
    for (size_t a = 0; a < 4; a++)
        for (size_t k = 0; k < sizeof kv_types / sizeof *kv_types; k += IS_EMULATED ? 2 : 1) {
            if (IS_SANITIZED && k != a) continue;
            tiny_model m = model_of(arch_names[a], a % 2 ? "Q4_0" : "Q8_0");
            compare_all(&m, kv_types[k]);
        }
    static const char *const types[] = {"F16",  "Q4_1", "Q4_K", "Q6_K", "F32",    "BF16",   "Q5_0",
                                        "Q5_1", "Q2_K", "Q3_K", "Q5_K", "IQ4_NL", "IQ4_XS", "MXFP4"};
    for (size_t t = 0; t < (IS_SLOW ? 4 : sizeof types / sizeof *types); t++) {
        tiny_model m = model_of("llama", types[t]);
        m.n_embd = m.n_ff = 256;
        m.n_layer = 2;
        compare_all(&m, NULL);
    }
    for (const char *const *isa = nib_isa_names(); *isa; isa++)
        if (!nib_isa_usable(*isa)) print_message("%s: not on this machine\n", *isa);
    print_message("%u runs of %d rows compared\n", n_compared, N_TOK);
}

/* Beyond one segment of 512 positions: split over threads in decode, whole in prefill; window and none. */
static void test_long_context(void **state) {
    (void)state;
    enum { N = IS_SLOW ? 600 : 1200 };
    static uint64_t want[N], got[N];
    for (size_t a = IS_EMULATED ? 3 : 0; a < 4; a += 3) {
        fixture f;
        tiny_model m = model_of(arch_names[a], "Q8_0");
        m.n_layer = 6; /* gemma3: five of them have windows */
        m.sliding_window = a ? N / 2 : 0;
        open_model(&f, &m, NULL);
        nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
        c.n_ctx = N, c.n_logits = N;
        nib_context *ctx = context(&f, c);
        feed(&f, ctx, 0, 0, 0, N, 1, want);
        nib_context_free(ctx);
        for (int threads = 1; threads <= 3; threads++) {
            c.n_threads = threads;
            ctx = context(&f, c);
            feed(&f, ctx, 0, 0, 0, N - 60, 500, got);
            feed(&f, ctx, 0, 0, N - 60, N, 1, got);
            assert_same(want, got, N, "a long context");
            nib_context_free(ctx);
        }
        close_model(&f);
    }
}

/* Eight sequences in one batch, interleaved, against each of them alone; with another level of chunking. */
static void test_batch_of_sequences(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    tiny_model m = model_of("gemma3", "Q4_0");
    open_model(&f, &m, NULL);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_seq = 8, c.n_logits = N_TOK, c.n_threads = 2, c.n_ctx = 8 * 96;
    uint64_t alone[8][N_TOK], together[8][N_TOK];
    nib_context *ctx = context(&f, c);
    for (uint32_t s = 0; s < 8; s++) {
        feed(&f, ctx, 0, s, 0, N_TOK, N_TOK, alone[s]);
        nib_seq_free(ctx, 0);
    }
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, 64, &err), NIB_OK);
    uint32_t at[8] = {0};
    for (uint32_t turn = 0;; turn++) { /* sequence s brings 1 … 5 tokens a turn */
        nib_batch_clear(batch);
        uint32_t where[64][2], n = 0;
        for (uint32_t s = 0; s < 8; s++)
            for (uint32_t j = 0; j < 1 + (s + turn) % 5 && at[s] < N_TOK; j++, at[s]++, n++) {
                assert_int_equal(nib_batch_add(batch, token(&f, s, at[s]), (int32_t)at[s], s, true, &err), NIB_OK);
                where[n][0] = s, where[n][1] = at[s];
            }
        if (n == 0) break;
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
        for (uint32_t i = 0; i < n; i++) together[where[i][0]][where[i][1]] = nib_logits_hash(ctx, i);
    }
    for (uint32_t s = 0; s < 8; s++) assert_same(alone[s], together[s], N_TOK, "in a batch with 7 others");
    nib_batch_free(batch);
    nib_context_free(ctx);
    close_model(&f);
}

static void test_fork_and_truncate(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    tiny_model m = model_of("qwen3", "Q8_0");
    open_model(&f, &m, NULL);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_seq = 3, c.n_logits = N_TOK;
    nib_context *ctx = context(&f, c);
    uint64_t want[N_TOK], other[N_TOK], got[N_TOK];
    feed(&f, ctx, 0, 0, 0, N_TOK, N_TOK, want);
    feed(&f, ctx, 2, 5, 0, N_TOK, N_TOK, other);
    nib_seq_free(ctx, 2);
    for (uint32_t cut = 0; cut <= N_TOK; cut += 9) {
        assert_int_equal(nib_seq_fork(ctx, 0, 1, &err), NIB_OK);
        assert_int_equal(nib_seq_truncate(ctx, 1, cut, &err), NIB_OK);
        assert_int_equal(nib_seq_length(ctx, 1), cut);
        memcpy(got, want, sizeof got);
        feed(&f, ctx, 1, 5, cut, N_TOK, 11, got); /* writes other tokens where sequence 0 has its own */
        assert_int_equal(nib_seq_truncate(ctx, 1, cut, &err), NIB_OK);
        feed(&f, ctx, 1, 0, cut, N_TOK, 4, got);
        assert_same(want, got, N_TOK, "truncated fork, redone");
        if (cut == 0) {
            assert_int_equal(nib_seq_truncate(ctx, 1, 0, &err), NIB_OK);
            feed(&f, ctx, 1, 5, 0, N_TOK, 90, got);
            assert_same(other, got, N_TOK, "another sequence in the pages");
            memcpy(got, want, sizeof got);
        }
        assert_int_equal(nib_seq_truncate(ctx, 0, N_TOK - 1, &err), NIB_OK); /* the fork shares its pages */
        feed(&f, ctx, 0, 0, N_TOK - 1, N_TOK, 1, got);
        assert_same(want, got, N_TOK, "the source after its fork was written");
    }
    nib_seq_free(ctx, 0), nib_seq_free(ctx, 1);
    assert_int_equal(nib_context_pages_used(ctx), 0);
    nib_context_free(ctx);
    close_model(&f);
}

static nib_status decode_one(nib_context *ctx, nib_token id, int32_t pos, uint32_t seq, nib_error *err) {
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, 4, err), NIB_OK);
    assert_int_equal(nib_batch_add(batch, 1, NIB_POS_NEXT, 0, true, err), NIB_OK);
    assert_int_equal(nib_batch_add(batch, id, pos, seq, true, err), NIB_OK);
    nib_status status = nib_decode(ctx, batch, err);
    nib_batch_free(batch);
    return status;
}

static void test_errors_change_nothing(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    tiny_model m = model_of("llama", "Q8_0");
    open_model(&f, &m, NULL);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 64, c.n_seq = 2, c.n_logits = 40;
    nib_context *ctx = context(&f, c);
    uint64_t hash[128], again[128];
    feed(&f, ctx, 0, 0, 0, 40, 40, hash);
    uint32_t used = nib_context_pages_used(ctx);
    assert_int_equal(decode_one(ctx, (nib_token)f.n_vocab, NIB_POS_NEXT, 0, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "expected 0 to 299"));
    assert_int_equal(decode_one(ctx, -1, NIB_POS_NEXT, 0, &err), NIB_E_ARG);
    assert_int_equal(decode_one(ctx, 1, NIB_POS_NEXT, 2, &err), NIB_E_ARG);
    assert_int_equal(decode_one(ctx, 1, 43, 0, &err), NIB_E_ARG); /* 41 is next */
    assert_non_null(strstr(err.message, "expected 41"));
    assert_int_equal(decode_one(ctx, 1, 1, 1, &err), NIB_E_ARG);
    nib_batch *big;
    assert_int_equal(nib_batch_new(&big, 64, &err), NIB_OK);
    for (int i = 0; i < 25; i++) assert_int_equal(nib_batch_add(big, 1, NIB_POS_NEXT, 0, false, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, big, &err), NIB_E_KV_FULL);
    assert_non_null(strstr(err.message, "the context has 64"));
    nib_batch_clear(big);
    for (int i = 0; i < 64; i++) assert_int_equal(nib_batch_add(big, 1, NIB_POS_NEXT, 1, false, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, big, &err), NIB_E_KV_FULL);
    assert_non_null(strstr(err.message, "1 are missing"));
    nib_batch_clear(big);
    for (int i = 0; i < 41; i++) assert_int_equal(nib_batch_add(big, 1, NIB_POS_NEXT, 1, true, &err), i < 64 ? NIB_OK : NIB_E_LIMIT);
    assert_int_equal(nib_decode(ctx, big, &err), NIB_E_LIMIT);
    nib_batch_free(big);
    assert_int_equal(nib_seq_length(ctx, 0), 40);
    assert_int_equal(nib_seq_length(ctx, 1), 0);
    assert_int_equal(nib_context_pages_used(ctx), used);
    feed(&f, ctx, 0, 0, 40, 64, 24, hash); /* exactly full is fine */
    nib_seq_free(ctx, 0);
    feed(&f, ctx, 0, 0, 0, 64, 32, again);
    assert_same(hash, again, 64, "after refused batches");
    nib_context_free(ctx);
    close_model(&f);
}

static bool stop_after(void *user) {
    int *left = user;
    return (*left)-- <= 0;
}

static void test_abort_rolls_back(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    tiny_model m = model_of("gemma3", "Q8_0");
    open_model(&f, &m, NULL);
    int left = 1 << 30;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.abort = stop_after, c.user = &left, c.n_threads = 2, c.n_logits = N_TOK, c.n_ubatch = 16;
    nib_context *ctx = context(&f, c);
    uint64_t want[N_TOK], got[N_TOK];
    feed(&f, ctx, 0, 0, 0, N_TOK, N_TOK, want);
    nib_seq_free(ctx, 0);
    feed(&f, ctx, 0, 0, 0, 20, 20, got);
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, N_TOK, &err), NIB_OK);
    for (uint32_t i = 20; i < N_TOK; i++) assert_int_equal(nib_batch_add(batch, 3, NIB_POS_NEXT, 0, false, &err), NIB_OK);
    left = 1 << 30;
    assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
    int n_asked = (1 << 30) - left;
    assert_true(n_asked > 20);
    assert_int_equal(nib_seq_truncate(ctx, 0, 20, &err), NIB_OK);
    for (int at = 0; at < n_asked; at += 3) {
        left = at;
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_E_CANCELLED);
        assert_int_equal(nib_seq_length(ctx, 0), 20);
        assert_int_equal(nib_context_pages_used(ctx), 1);
    }
    left = 1 << 30;
    feed(&f, ctx, 0, 0, 20, N_TOK, 13, got);
    assert_same(want, got, N_TOK, "after an abort");
    nib_batch_free(batch);
    nib_context_free(ctx);
    close_model(&f);
}

static void test_decode_allocates_nothing(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    tiny_model m = model_of("llama", "Q4_K");
    m.n_embd = m.n_ff = 256;
    m.is_tied = false; /* embedding rows come from the file */
    open_model(&f, &m, NULL);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_threads = 2;
    nib_context *ctx = context(&f, c);
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, 32, &err), NIB_OK);
    uint64_t before = nib_alloc_count();
    for (uint32_t i = 0; i < 40; i++) {
        nib_batch_clear(batch);
        for (uint32_t j = 0; j <= i % 8; j++)
            assert_int_equal(nib_batch_add(batch, token(&f, 0, i + j), NIB_POS_NEXT, 0, j == i % 8, &err), NIB_OK);
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
    }
    assert_int_equal(nib_alloc_count(), before);
    nib_batch_free(batch);
    nib_context_free(ctx);
    close_model(&f);
}

/* Two contexts of two models in one process, used in turn: nothing is shared. */
static void test_two_contexts(void **state) {
    (void)state;
    fixture a, b;
    tiny_model ma = model_of("llama", "Q8_0"), mb = model_of("gemma3", "Q4_0");
    open_model(&a, &ma, NULL), open_model(&b, &mb, "scalar");
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_logits = N_TOK;
    nib_context *x = context(&a, c), *y = context(&b, c);
    uint64_t wx[N_TOK], wy[N_TOK], gx[N_TOK], gy[N_TOK];
    feed(&a, x, 0, 0, 0, N_TOK, N_TOK, wx), feed(&b, y, 0, 0, 0, N_TOK, N_TOK, wy);
    nib_seq_free(x, 0), nib_seq_free(y, 0);
    for (uint32_t i = 0; i < N_TOK; i += 10) feed(&a, x, 0, 0, i, i + 10, 10, gx), feed(&b, y, 0, 0, i, i + 10, 10, gy);
    assert_same(wx, gx, N_TOK, "model a"), assert_same(wy, gy, N_TOK, "model b");
    nib_context_free(x), nib_context_free(y);
    close_model(&a), close_model(&b);
}

/* Threads may be left out between any two batches. */
static void test_limit_threads(void **state) {
    (void)state;
    tiny_model m = model_of("llama", "Q8_0");
    fixture f;
    uint64_t want[N_TOK], got[N_TOK];
    open_model(&f, &m, NULL);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_logits = N_TOK;
    nib_context *ctx = context(&f, c);
    feed(&f, ctx, 0, 0, 0, N_TOK, 5, want);
    nib_context_free(ctx);
    c.n_threads = 3;
    ctx = context(&f, c);
    for (uint32_t i = 0, n = 0; i < N_TOK; i += 5, n++) {
        nib_context_limit_threads(ctx, (int)(n % 5)); /* 0 and 4: all */
        feed(&f, ctx, 0, 0, i, i + 5, 1 + n % 5, got);
    }
    assert_same(want, got, N_TOK, "threads left out");
    nib_context_free(ctx);
    close_model(&f);
}

/* A model without its weights answers the same questions, and so do its contexts; it computes nothing. */
static void test_plan_only(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    fixture f;
    nib_error err;
    nib_model *plan;
    nib_model_config config = NIB_MODEL_CONFIG_INIT;
    config.plan_only = config.mlock = true;
    m.is_tied = false;
    open_model(&f, &m, NULL);
    assert_int_equal(nib_model_open(&plan, f.file, &config, &err), NIB_OK);
    assert_true(nib_model_weight_bytes(plan) == nib_model_weight_bytes(f.model));
    assert_true(nib_model_bytes_per_token(plan) == nib_model_bytes_per_token(f.model));
    assert_true(nib_model_n_steps(plan) == nib_model_n_steps(f.model));
    fixture g = f;
    g.model = plan;
    nib_context *full = context(&f, (nib_context_config)NIB_CONTEXT_CONFIG_INIT);
    nib_context *empty = context(&g, (nib_context_config)NIB_CONTEXT_CONFIG_INIT);
    assert_true(nib_context_kv_bytes(empty) == nib_context_kv_bytes(full));
    assert_true(nib_context_buffer_bytes(empty) == nib_context_buffer_bytes(full));
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, 1, &err), NIB_OK);
    assert_int_equal(nib_batch_add(batch, 1, NIB_POS_NEXT, 0, true, &err), NIB_OK);
    assert_int_equal(nib_decode(full, batch, &err), NIB_OK);
    assert_int_equal(nib_decode(empty, batch, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "without its weights"));
    nib_batch_free(batch);
    nib_context_free(empty);
    nib_context_free(full);
    nib_model_close(plan);
    close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_long_context),
        cmocka_unit_test(test_batch_of_sequences),
        cmocka_unit_test(test_fork_and_truncate),
        cmocka_unit_test(test_errors_change_nothing),
        cmocka_unit_test(test_abort_rolls_back),
        cmocka_unit_test(test_decode_allocates_nothing),
        cmocka_unit_test(test_two_contexts),
        cmocka_unit_test(test_plan_only),
        cmocka_unit_test(test_limit_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
