/* tests/test_decode_limits.c - contexts of odd sizes, and configurations that are refused: with which message. The logits
 * never depend on the sizes. */
#include "nib.h"

#include "base/sys.h"
#include "support/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_TOK 100

typedef struct fixture {
    nib_gguf *file;
    nib_model *model;
    uint64_t want[N_TOK]; /* hash of the logits after each token */
} fixture;

static nib_token token(uint32_t i) {
    return (nib_token)(i * 7919u % 300);
}

static nib_context *open_context(const fixture *f, const nib_context_config *c) {
    nib_error err;
    nib_context *ctx;
    if (nib_context_new(&ctx, f->model, c, &err) != NIB_OK) fail_msg("%s", err.message);
    return ctx;
}

/* Tokens from … to-1 into a sequence, at most `chunk` at a time; only the last of a chunk asks for logits. */
static nib_status feed(const fixture *f, nib_context *ctx, uint32_t seq, uint32_t from, uint32_t to, uint32_t chunk, nib_error *err) {
    nib_batch *b;
    nib_status status = NIB_OK;
    assert_int_equal(nib_batch_new(&b, chunk, err), NIB_OK);
    for (uint32_t i = from, n; i < to && status == NIB_OK; i += n) {
        n = to - i < chunk ? to - i : chunk;
        nib_batch_clear(b);
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(nib_batch_add(b, token(i + j), (int32_t)(i + j), seq, j == n - 1, err), NIB_OK);
        status = nib_decode(ctx, b, err);
        if (status == NIB_OK && f->want[i + n - 1]) assert_true(nib_logits_hash(ctx, 0) == f->want[i + n - 1]);
    }
    nib_batch_free(b);
    return status;
}

static int set_up(void **state) {
    static fixture f;
    nib_error err;
    tiny_model m = TINY_MODEL_INIT;
    m.arch = "gemma3", m.head_dim = 32, m.sliding_window = 24;
    f.file = edit_open(edit_new(&m));
    assert_int_equal(nib_model_open(&f.model, f.file, NULL, &err), NIB_OK);
    nib_context *ctx = open_context(&f, NULL);
    for (uint32_t i = 0; i < N_TOK; i++) {
        assert_int_equal(feed(&f, ctx, 0, i, i + 1, 1, &err), NIB_OK);
        f.want[i] = nib_logits_hash(ctx, 0);
    }
    nib_context_free(ctx);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    nib_model_close(f->model);
    nib_gguf_close(f->file);
    return 0;
}

static void test_defaults(void **state) {
    fixture *f = *state;
    nib_context *ctx = open_context(f, NULL);
    assert_int_equal(nib_context_n_ctx(ctx), 512); /* what the model was trained for */
    assert_int_equal(nib_context_n_batch(ctx), 2048);
    assert_int_equal(nib_context_n_logits(ctx), 32);
    assert_int_equal(nib_context_n_pages(ctx), 16);
    assert_int_equal(nib_context_pages_used(ctx), 0);
    assert_int_equal(nib_context_n_threads(ctx), nib_cpu_count(NULL));
    assert_int_equal(nib_context_kv_bytes(ctx), 512 * nib_model_kv_bytes_per_token(f->model, NULL, NULL));
    assert_true(nib_context_buffer_bytes(ctx) > 0);
    assert_int_equal(nib_n_logits(ctx), 0);
    assert_null(nib_logits(ctx, 0));
    nib_context_free(ctx);
    nib_context_free(NULL);
}

/* A sequence takes n_ctx positions, whether that is a multiple of the page or not, and not one more. */
static void test_every_length_of_context(void **state) {
    fixture *f = *state;
    nib_error err;
    static const uint32_t sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 95, 99};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t n_seq = 1; n_seq <= 3; n_seq += 2) {
            nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
            c.n_ctx = sizes[i], c.n_seq = n_seq, c.n_threads = 2;
            nib_context *ctx = open_context(f, &c);
            assert_int_equal(nib_context_n_ctx(ctx), sizes[i]);
            assert_int_equal(nib_context_n_pages(ctx), (sizes[i] + 31) / 32 + n_seq - 1);
            assert_int_equal(feed(f, ctx, n_seq - 1, 0, sizes[i], 40, &err), NIB_OK);
            assert_int_equal(feed(f, ctx, n_seq - 1, sizes[i], sizes[i] + 1, 1, &err), NIB_E_KV_FULL);
            assert_int_equal(nib_seq_length(ctx, n_seq - 1), sizes[i]);
            assert_int_equal(nib_seq_truncate(ctx, n_seq - 1, sizes[i] / 2, &err), NIB_OK);
            assert_int_equal(feed(f, ctx, n_seq - 1, sizes[i] / 2, sizes[i], 7, &err), NIB_OK);
            nib_context_free(ctx);
        }
}

static void test_small_batches(void **state) {
    fixture *f = *state;
    nib_error err;
    for (uint32_t n_batch = 1; n_batch <= 40; n_batch += 13)
        for (uint32_t n_ubatch = 1; n_ubatch <= 64; n_ubatch *= 4) {
            nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
            c.n_batch = n_batch, c.n_ubatch = n_ubatch, c.n_logits = 1, c.n_ctx = 128;
            nib_context *ctx = open_context(f, &c);
            assert_int_equal(nib_context_n_logits(ctx), 1);
            assert_int_equal(feed(f, ctx, 0, 0, N_TOK, n_batch, &err), NIB_OK);
            if (n_batch < N_TOK) {
                nib_seq_free(ctx, 0);
                assert_int_equal(feed(f, ctx, 0, 0, N_TOK, n_batch + 1, &err), NIB_E_LIMIT);
                char want[80];
                snprintf(want, sizeof want, "the batch has %u tokens, the context takes %u (n_batch)", n_batch + 1, n_batch);
                assert_string_equal(err.message, want);
            }
            nib_context_free(ctx);
        }
}

/* More sequences than a batch has room for; a row of logits for each all the same. */
static void test_more_sequences_than_batch(void **state) {
    fixture *f = *state;
    nib_error err;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_seq = 9, c.n_batch = 4, c.n_ubatch = 3, c.n_logits = 0, c.n_ctx = 9 * 40;
    nib_context *ctx = open_context(f, &c);
    assert_int_equal(nib_context_n_logits(ctx), 9);
    for (uint32_t seq = 0; seq < 9; seq++) assert_int_equal(feed(f, ctx, seq, 0, 40, 1 + seq % 4, &err), NIB_OK);
    for (uint32_t seq = 0; seq < 9; seq++) assert_int_equal(nib_seq_length(ctx, seq), 40);
    assert_int_equal(nib_seq_length(ctx, 9), 0);
    assert_int_equal(nib_seq_fork(ctx, 0, 9, &err), NIB_E_ARG);
    assert_int_equal(nib_seq_truncate(ctx, 9, 0, &err), NIB_E_ARG);
    assert_string_equal(err.message, "sequence 9: the context has 0 to 8");
    assert_int_equal(nib_seq_truncate(ctx, 8, 41, &err), NIB_E_ARG);
    assert_string_equal(err.message, "sequence 8 holds 40 positions: it cannot keep 41");
    nib_seq_free(ctx, 9);
    nib_context_free(ctx);
}

static void test_rows_of_logits(void **state) {
    fixture *f = *state;
    nib_error err;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_logits = 1;
    nib_context *ctx = open_context(f, &c);
    nib_batch *b;
    assert_int_equal(nib_batch_new(&b, 4, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, b, &err), NIB_OK); /* an empty batch is fine */
    assert_int_equal(nib_n_logits(ctx), 0);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(nib_batch_add(b, token(i), NIB_POS_NEXT, 0, i > 0, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, b, &err), NIB_E_LIMIT);
    assert_string_equal(err.message, "2 tokens of the batch want logits, the context has room for 1 (n_logits)");
    nib_batch_clear(b);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(nib_batch_add(b, token(i), NIB_POS_NEXT, 0, i == 1, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, b, &err), NIB_OK);
    assert_true(nib_logits_hash(ctx, 0) == f->want[1]); /* of the middle token */
    assert_null(nib_logits(ctx, 1));
    nib_batch_clear(b); /* nobody wants logits */
    assert_int_equal(nib_batch_add(b, token(3), NIB_POS_NEXT, 0, false, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, b, &err), NIB_OK);
    assert_int_equal(nib_n_logits(ctx), 0);
    assert_int_equal(feed(f, ctx, 0, 4, 5, 1, &err), NIB_OK);
    nib_batch_free(b);
    nib_context_free(ctx);
}

/* Two sequences share their pages and a third has the rest: cutting into a shared page has to wait. */
static void test_truncate_needs_a_page(void **state) {
    fixture *f = *state;
    nib_error err;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 64, c.n_seq = 3;
    nib_context *ctx = open_context(f, &c);
    assert_int_equal(feed(f, ctx, 0, 0, 64, 64, &err), NIB_OK);
    assert_int_equal(nib_seq_fork(ctx, 0, 1, &err), NIB_OK);
    assert_int_equal(nib_context_pages_used(ctx), 2);
    assert_int_equal(feed(f, ctx, 2, 0, 64, 64, &err), NIB_OK);
    assert_int_equal(nib_context_pages_used(ctx), nib_context_n_pages(ctx));
    assert_int_equal(nib_seq_truncate(ctx, 1, 40, &err), NIB_E_KV_FULL);
    assert_int_equal(nib_seq_length(ctx, 1), 64);
    nib_seq_free(ctx, 2);
    assert_int_equal(nib_seq_truncate(ctx, 1, 40, &err), NIB_OK);
    assert_int_equal(feed(f, ctx, 1, 40, 64, 5, &err), NIB_OK);
    assert_int_equal(nib_seq_truncate(ctx, 0, 50, &err), NIB_OK); /* its page is its own now */
    assert_int_equal(feed(f, ctx, 0, 50, 64, 3, &err), NIB_OK);
    nib_context_free(ctx);
}

static void refuses(const nib_model *model, const nib_context_config *c, nib_status code, const char *message) {
    nib_error err;
    nib_context *ctx = (nib_context *)&err;
    nib_status status = nib_context_new(&ctx, model, c, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d \"%s\", expected %d \"%s\"", (int)status, err.message, (int)code, message);
    assert_null(ctx);
    assert_int_equal(nib_context_new(&ctx, model, c, NULL), code);
}

static void test_refused(void **state) {
    fixture *f = *state;
    const nib_context_config init = NIB_CONTEXT_CONFIG_INIT;
    nib_context_config c = init;
    c.size = 1, refuses(f->model, &c, NIB_E_ARG, "nib_context_config is 1 bytes, this library expects");
    c = init, c.n_seq = 0, refuses(f->model, &c, NIB_E_ARG, "n_seq is 0, expected 1 to 4096");
    c = init, c.n_seq = 4097, refuses(f->model, &c, NIB_E_ARG, "n_seq is 4097");
    c = init, c.n_batch = 0, refuses(f->model, &c, NIB_E_ARG, "n_batch is 0, expected 1 to 16777216");
    c = init, c.n_ubatch = 0, refuses(f->model, &c, NIB_E_ARG, "n_ubatch is 0, expected 1 to 65536");
    c = init, c.n_ctx = (1u << 28) + 1, refuses(f->model, &c, NIB_E_ARG, "n_ctx is 268435457, expected at most 268435456");
    c = init, c.n_threads = -1, refuses(f->model, &c, NIB_E_ARG, "n_threads is -1, expected 0 to 1024");
    c = init, c.k_type = "q4_0", refuses(f->model, &c, NIB_E_ARG, "KV cache type \"q4_0\": nib knows f16, f32, q8_0 and q16");
    c = init, c.n_ctx = 64, c.v_type = "", refuses(f->model, &c, NIB_E_ARG, "KV cache type \"\"");
}

/* A cache or buffers beyond the memory of the machine: with what is needed and what there is. */
static void test_more_than_the_memory(void **state) {
    (void)state;
    nib_error err;
    nib_model *model;
    tiny_model m = TINY_MODEL_INIT;
    m.n_head = m.n_kv = 16, m.head_dim = 256, m.n_layer = 4, m.n_embd = 32;
    nib_gguf *file = edit_open(edit_new(&m));
    assert_int_equal(nib_model_open(&model, file, NULL, &err), NIB_OK);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 1 << 28, c.k_type = c.v_type = "f32"; /* 128 KiB a token: 32 TiB */
    char want[200];
    snprintf(want, sizeof want, "a KV cache of 268435456 tokens needs 33554432 MiB, this machine has %llu MiB of memory: ask for a "
             "smaller context", (unsigned long long)nib_sys_total_memory() >> 20);
    refuses(model, &c, NIB_E_NOMEM, want);
    uint64_t n_pages = nib_sys_total_memory() >> 22; /* of 4 MiB: the cache alone fits, with the buffers it does not */
    if (n_pages < 1 << 23) {
        c.n_ctx = (uint32_t)n_pages * 32;
        snprintf(want, sizeof want, "a context of %u tokens needs %llu MiB for the KV cache, ", c.n_ctx, (unsigned long long)n_pages << 2);
        refuses(model, &c, NIB_E_NOMEM, want);
    }
    c = (nib_context_config)NIB_CONTEXT_CONFIG_INIT, c.n_ctx = 64;
    c.n_batch = c.n_logits = 1 << 24; /* 300 floats a row: 18.75 GiB */
    if (nib_sys_total_memory() < (uint64_t)18 << 30) refuses(model, &c, NIB_E_NOMEM, "activations and logits");
    nib_model_close(model);
    nib_gguf_close(file);
}

static void test_head_sizes_of_q8_0(void **state) {
    (void)state;
    nib_error err;
    nib_model *model;
    tiny_model m = TINY_MODEL_INIT; /* heads of 16 */
    nib_gguf *file = edit_open(edit_new(&m));
    assert_int_equal(nib_model_open(&model, file, NULL, &err), NIB_OK);
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.k_type = "q8_0";
    refuses(model, &c, NIB_E_UNSUPPORTED, "KV cache type q8_0 needs head sizes that are multiples of 32, the model has 16 and 16");
    c.n_ctx = 100;
    refuses(model, &c, NIB_E_UNSUPPORTED, "KV cache type q8_0 needs head sizes that are multiples of 32");
    nib_model_close(model);
    nib_gguf_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_length_of_context),
        cmocka_unit_test(test_small_batches),
        cmocka_unit_test(test_more_sequences_than_batch),
        cmocka_unit_test(test_rows_of_logits),
        cmocka_unit_test(test_truncate_needs_a_page),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_more_than_the_memory),
        cmocka_unit_test(test_head_sizes_of_q8_0),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
