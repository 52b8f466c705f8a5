/* tests/test_decode_embed.c - the vector of a text is what its rows of hidden states make, with the same bits whatever the batch,
 * the number of threads and the level; and hidden states leave logits as they are. */
#include "nib.h"

#include "support/engine.h"
#include "support/level.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_TOK = 90, MAX_EMBD = 512 };

static const nib_pooling poolings[] = {NIB_POOLING_MEAN, NIB_POOLING_CLS, NIB_POOLING_LAST};

static nib_context *open_context(const nib_model *model, uint32_t n_ubatch, int n_threads) {
    nib_error err;
    nib_context *ctx;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 128, c.n_ubatch = n_ubatch, c.n_threads = n_threads;
    assert_int_equal(nib_context_new(&ctx, model, &c, &err), NIB_OK);
    return ctx;
}

static void make_ids(const engine_fixture *f, nib_token *ids) {
    for (uint32_t i = 0; i < N_TOK; i++) ids[i] = (nib_token)((i * 7919u + i * i) % f->n_vocab);
}

static void embed(nib_context *ctx, const nib_token *ids, nib_pooling pooling, float *out) {
    nib_error err;
    nib_status status = nib_embed(ctx, ids, N_TOK, pooling, out, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    assert_int_equal(nib_seq_length(ctx, 0), 0);
    assert_int_equal(nib_context_pages_used(ctx), 0);
}

/* Token by token, summed up here. */
static void compute(const engine_fixture *f, const nib_token *ids, float want[3][MAX_EMBD]) {
    nib_error err;
    nib_batch *batch;
    uint32_t n_embd = nib_model_n_embd(f->model);
    double sum[MAX_EMBD] = {0};
    nib_context *ctx = open_context(f->model, 1, 1);
    assert_int_equal(nib_batch_new(&batch, 1, &err), NIB_OK);
    for (uint32_t i = 0; i < N_TOK; i++) {
        nib_batch_clear(batch);
        nib_batch_want_hidden(batch);
        assert_int_equal(nib_batch_add(batch, ids[i], NIB_POS_NEXT, 0, true, &err), NIB_OK);
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
        const float *row = nib_hidden(ctx, 0);
        for (uint32_t j = 0; j < n_embd; j++) sum[j] += (double)row[j];
        if (i == 0) memcpy(want[1], row, n_embd * sizeof *row);
        memcpy(want[2], row, n_embd * sizeof *row);
    }
    for (uint32_t j = 0; j < n_embd; j++) want[0][j] = (float)(sum[j] / N_TOK);
    nib_batch_free(batch);
    nib_context_free(ctx);
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "gemma3"};
    for (size_t a = 0; a < 2; a++) {
        engine_fixture f;
        nib_token ids[N_TOK];
        float want[3][MAX_EMBD], got[MAX_EMBD];
        engine_open_model(&f, archs[a]);
        size_t n_bytes = nib_model_n_embd(f.model) * sizeof *got;
        make_ids(&f, ids);
        compute(&f, ids, want);
        assert_memory_not_equal(want[1], want[2], n_bytes);
        for (const char *const *isa = nib_isa_names(); *isa; isa++) {
            if (!IS_WANTED(*isa) || !nib_isa_usable(*isa)) continue;
            nib_error err;
            nib_model *model;
            nib_model_config config = NIB_MODEL_CONFIG_INIT;
            config.isa = *isa;
            assert_int_equal(nib_model_open(&model, f.file, &config, &err), NIB_OK);
            for (int n_threads = 1; n_threads <= 2; n_threads++)
                for (uint32_t n_ubatch = 1; n_ubatch <= 128; n_ubatch = n_ubatch * 5 + 2) {
                    nib_context *ctx = open_context(model, n_ubatch, n_threads);
                    for (int p = 0; p < 3; p++) {
                        embed(ctx, ids, poolings[p], got);
                        if (memcmp(got, want[p], n_bytes) != 0)
                            fail_msg("%s, %s, %d threads, %u at once, pooling %d", archs[a], *isa, n_threads, n_ubatch, p);
                    }
                    nib_context_free(ctx);
                }
            nib_model_close(model);
        }
        engine_close_model(&f);
    }
}

/* One sequence, logits before and after a batch of hidden states. */
static void test_logits_stay(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_batch *batch;
    nib_token ids[N_TOK];
    uint64_t hash[2] = {0};
    engine_open_model(&f, "llama");
    make_ids(&f, ids);
    nib_context *ctx = open_context(f.model, 128, 2);
    assert_int_equal(nib_batch_new(&batch, N_TOK, &err), NIB_OK);
    for (int k = 0; k < 2; k++) {
        nib_seq_free(ctx, 0);
        nib_batch_clear(batch);
        if (k) nib_batch_want_hidden(batch);
        for (int i = 0; i < N_TOK - 1; i++)
            assert_int_equal(nib_batch_add(batch, ids[i], NIB_POS_NEXT, 0, i == 3 || i == 7, &err), NIB_OK);
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
        assert_int_equal(nib_n_logits(ctx), k ? 0 : 2);
        assert_int_equal(nib_logits(ctx, 1) != NULL, !k);
        assert_int_equal(nib_hidden(ctx, 1) != NULL, k);
        assert_null(nib_hidden(ctx, 2));
        nib_batch_clear(batch); /* clearing takes the wish back */
        assert_int_equal(nib_batch_add(batch, ids[N_TOK - 1], NIB_POS_NEXT, 0, true, &err), NIB_OK);
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
        assert_null(nib_hidden(ctx, 0));
        hash[k] = nib_logits_hash(ctx, 0);
    }
    assert_true(hash[0] == hash[1]);
    nib_batch_free(batch);
    nib_context_free(ctx);
    engine_close_model(&f);
}

static void test_refusals(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_batch *batch;
    float out[MAX_EMBD];
    nib_token ids[129] = {1, 2, 3};
    engine_open_model(&f, "llama");
    assert_int_equal(nib_model_pooling(f.model), NIB_POOLING_MEAN);
    nib_context *ctx = open_context(f.model, 16, 1);
    assert_int_equal(nib_embed(ctx, ids, 0, NIB_POOLING_MEAN, out, &err), NIB_E_ARG);
    assert_int_equal(nib_embed(ctx, ids, 3, NIB_POOLING_NONE, out, &err), NIB_E_ARG);
    assert_int_equal(nib_embed(ctx, ids, 3, (nib_pooling)4, out, &err), NIB_E_ARG);
    assert_int_equal(nib_embed(ctx, ids, 129, NIB_POOLING_MEAN, out, &err), NIB_E_KV_FULL);
    ids[2] = -1;
    assert_int_equal(nib_embed(ctx, ids, 3, NIB_POOLING_MEAN, out, &err), NIB_E_ARG);
    assert_int_equal(nib_context_pages_used(ctx), 0);
    assert_int_equal(nib_batch_new(&batch, 17, &err), NIB_OK);
    nib_batch_want_hidden(batch);
    for (int i = 0; i < 17; i++) assert_int_equal(nib_batch_add(batch, 1, NIB_POS_NEXT, 0, false, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, batch, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "n_ubatch"));
    nib_batch_free(batch);
    nib_context_free(ctx);
    engine_close_model(&f);
}

static void test_normalise(void **state) {
    (void)state;
    float v[] = {3, 0, -4}, zeros[2] = {0, 0}, large[] = {3e38f, 3e38f};
    nib_normalise(v, 3);
    assert_true(v[0] == 0.6f && v[1] == 0 && v[2] == -0.8f);
    nib_normalise(zeros, 2);
    assert_true(zeros[0] == 0 && zeros[1] == 0);
    nib_normalise(large, 2);
    assert_true(fabsf(large[0] - 0.70710678f) < 1e-6f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_logits_stay),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_normalise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
