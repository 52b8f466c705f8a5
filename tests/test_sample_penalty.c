/* tests/test_sample_penalty.c - repeat, frequency and presence penalties against a recount of the history. */
#include "sample/sampler.h"
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N_VOCAB 300

static nib_sampler *new_sampler(const nib_sampler_params *p) {
    nib_sampler *s;
    nib_error err;
    if (nib_sampler_new(&s, p, N_VOCAB, &err) != NIB_OK) fail_msg("%s", err.message);
    return s;
}

/* A history in which some tokens are frequent. */
static nib_token token_at(uint32_t seed, size_t i) {
    return (nib_token)(pow(nib_rng_uniform(seed, i, 0), 3) * N_VOCAB);
}

static void naive_penalties(const nib_sampler_params *p, uint32_t seed, size_t n, float *logits) {
    size_t last_n = p->penalty_last_n < 0 || (size_t)p->penalty_last_n > n ? n : (size_t)p->penalty_last_n;
    int count[N_VOCAB] = {0};
    for (size_t i = n - last_n; i < n; i++) count[token_at(seed, i)]++;
    for (int id = 0; id < N_VOCAB; id++) {
        if (!count[id]) continue;
        logits[id] = logits[id] <= 0 ? logits[id] * p->penalty_repeat : logits[id] / p->penalty_repeat;
        logits[id] -= (float)count[id] * p->penalty_frequency + p->penalty_presence;
    }
}

static void apply(nib_sampler *s, const float *logits, float *out) {
    nib_sample_set_begin(&s->set, logits, NULL, NULL);
    nib_sample_penalty_apply(s);
    nib_sample_set_sort(&s->set);
    for (size_t i = 0; i < s->set.n; i++) out[s->set.ids[i]] = s->set.own[i];
}

static void compare(const nib_sampler_params *p, uint32_t seed, size_t n_history) {
    float logits[N_VOCAB], expected[N_VOCAB], got[N_VOCAB];
    naive_logits(logits, N_VOCAB, seed, 4, false);
    nib_sampler *s = new_sampler(p);
    for (size_t n = 0; n <= n_history; n++) {
        if (n % 17 == 0 || n == n_history) {
            memcpy(expected, logits, sizeof expected);
            naive_penalties(p, seed, n, expected);
            apply(s, logits, got);
            for (int id = 0; id < N_VOCAB; id++)
                assert_true(fabsf(got[id] - expected[id]) <= 1e-5f * (1 + fabsf(expected[id])));
        }
        assert_int_equal(nib_sampler_accept(s, token_at(seed, n), NULL), NIB_OK);
    }
    nib_sampler_free(s);
}

static void test_against_recount(void **state) {
    (void)state;
    static const int32_t last_n[] = {0, 1, 2, 63, 64, 65, 200, 1000000000, -1};
    for (size_t i = 0; i < sizeof last_n / sizeof *last_n; i++) {
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = 1, p.penalty_last_n = last_n[i];
        p.penalty_repeat = 1.3f;
        compare(&p, 1, 300);
        p.penalty_frequency = 0.5f, p.penalty_presence = -0.25f;
        compare(&p, 2, 300);
        p.penalty_repeat = 1;
        compare(&p, 3, 300);
    }
}

/* Past the size that is allocated at once, the ring grows and keeps its order. */
static void test_long_window(void **state) {
    (void)state;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.penalty_last_n = 70000, p.penalty_frequency = 0.125f;
    float logits[N_VOCAB], expected[N_VOCAB], got[N_VOCAB];
    naive_logits(logits, N_VOCAB, 1, 4, false);
    nib_sampler *s = new_sampler(&p);
    for (size_t n = 0; n < 220000; n++) {
        if (n % 20000 == 19999) {
            memcpy(expected, logits, sizeof expected);
            naive_penalties(&p, 1, n, expected);
            apply(s, logits, got);
            for (int id = 0; id < N_VOCAB; id++) assert_true(fabsf(got[id] - expected[id]) < 0.01f);
        }
        assert_int_equal(nib_sampler_accept(s, token_at(1, n), NULL), NIB_OK);
    }
    nib_sampler_free(s);
}

static nib_token sample(const nib_sampler_params *p, size_t n_history, const float *logits) {
    nib_sampler *s = new_sampler(p);
    for (size_t i = 0; i < n_history; i++) assert_int_equal(nib_sampler_accept(s, token_at(9, i), NULL), NIB_OK);
    nib_token id;
    assert_int_equal(nib_sampler_sample(s, logits, NULL, n_history, &id, NULL), NIB_OK);
    nib_sampler_free(s);
    return id;
}

/* -1 is the whole history, as any number that is as large; 0 is off. Others crashed on 0 and ignored -1. */
static void test_last_n_means_what_it_says(void **state) {
    (void)state;
    size_t n_differ = 0;
    for (uint32_t round = 0; round < 50; round++) {
        float logits[N_VOCAB];
        naive_logits(logits, N_VOCAB, round, 1, false);
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = round, p.penalty_repeat = 1.5f;
        p.penalty_last_n = -1;
        nib_token all = sample(&p, 500, logits);
        p.penalty_last_n = 100000;
        assert_int_equal(sample(&p, 500, logits), all);
        p.penalty_last_n = 0;
        nib_token off = sample(&p, 500, logits);
        p.penalty_last_n = 64, p.penalty_repeat = 1;
        assert_int_equal(sample(&p, 500, logits), off);
        n_differ += all != off;
    }
    assert_true(n_differ > 10);
}

static void test_reset_forgets(void **state) {
    (void)state;
    float logits[N_VOCAB], got[N_VOCAB];
    naive_logits(logits, N_VOCAB, 4, 3, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.penalty_repeat = 2, p.penalty_last_n = 8;
    nib_sampler *s = new_sampler(&p);
    for (size_t i = 0; i < 100; i++) nib_sampler_accept(s, token_at(1, i), NULL);
    nib_sampler_reset(s);
    apply(s, logits, got);
    for (int id = 0; id < N_VOCAB; id++) assert_true(got[id] == logits[id]);
    nib_sampler_accept(s, 5, NULL);
    apply(s, logits, got);
    for (int id = 0; id < N_VOCAB; id++) assert_true((got[id] == logits[id]) == (id != 5));
    nib_sampler_free(s);
}

/* Penalties after a cut see the list, before it the whole vocabulary: the place in the chain counts. */
static void test_place_in_chain(void **state) {
    (void)state;
    float logits[N_VOCAB] = {0};
    logits[7] = 10, logits[8] = 9.5f;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.temp = 0, p.penalty_repeat = 4, p.top_k = 1;
    nib_token id;
    static const struct {
        const char *chain;
        nib_token id;
    } cases[] = {{"penalties;top_k;temperature", 8}, {"top_k;penalties;temperature", 7}, {"top_k;temperature", 7}};
    for (size_t i = 0; i < 3; i++) {
        p.chain = cases[i].chain;
        nib_sampler *s = new_sampler(&p);
        nib_sampler_accept(s, 7, NULL);
        assert_int_equal(nib_sampler_sample(s, logits, NULL, 1, &id, NULL), NIB_OK);
        assert_int_equal(id, cases[i].id);
        nib_sampler_free(s);
    }
    p.chain = "top_k;penalties;temperature", p.top_k = 2;
    nib_sampler *s = new_sampler(&p);
    nib_sampler_accept(s, 7, NULL);
    assert_int_equal(nib_sampler_sample(s, logits, NULL, 1, &id, NULL), NIB_OK);
    assert_int_equal(id, 8); /* the list is in a new order */
    nib_sampler_free(s);
}

static void test_extremes_stay_finite(void **state) {
    (void)state;
    float logits[N_VOCAB], got[N_VOCAB];
    naive_logits(logits, N_VOCAB, 4, 3, false);
    logits[1] = 3e38f, logits[2] = -3e38f;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    static const float extremes[] = {1.2e-38f, 1, 3e38f};
    for (size_t i = 0; i < 27; i++) {
        p.seed = 1, p.penalty_repeat = extremes[i % 3];
        p.penalty_frequency = (extremes[i / 3 % 3] - 1), p.penalty_presence = -(extremes[i / 9] - 1);
        nib_sampler *s = new_sampler(&p);
        for (nib_token id = 0; id < 60; id++) nib_sampler_accept(s, id / 2, NULL);
        apply(s, logits, got);
        for (int id = 0; id < N_VOCAB; id++) assert_true(isfinite(got[id]));
        nib_token id;
        assert_int_equal(nib_sampler_sample(s, logits, NULL, 1, &id, NULL), NIB_OK);
        nib_sampler_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_recount), cmocka_unit_test(test_last_n_means_what_it_says),
        cmocka_unit_test(test_reset_forgets),   cmocka_unit_test(test_place_in_chain),
        cmocka_unit_test(test_extremes_stay_finite), cmocka_unit_test(test_long_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
