/* tests/test_sample_filter.c - every filter, alone and in chains of any order, leaves what the naive one leaves. */
#include "sample/filter.h"

#include "sample/sampler.h"
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX_VOCAB 5000

static float g_logits[MAX_VOCAB];
static naive_cand g_items[MAX_VOCAB];

static double pick(uint32_t seed, uint32_t draw, double low, double high) {
    return low + (high - low) * nib_rng_uniform(seed, 1000, draw);
}

/* Random parameters of which about half are off. */
static nib_sampler_params random_params(uint32_t seed) {
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = seed;
    p.temp = (float)pick(seed, 1, 0.1, 3);
    if (pick(seed, 2, 0, 1) < 0.4) p.dynatemp_range = (float)pick(seed, 3, 0.1, 2);
    p.dynatemp_exponent = (float)pick(seed, 4, 0, 3);
    p.top_k = pick(seed, 5, 0, 1) < 0.5 ? 0 : (int32_t)pick(seed, 6, 1, pick(seed, 7, 0, 1) < 0.5 ? 60 : MAX_VOCAB);
    p.top_p = pick(seed, 8, 0, 1) < 0.4 ? 1 : (float)pick(seed, 9, 0, 1);
    p.min_p = pick(seed, 10, 0, 1) < 0.4 ? 0 : (float)pick(seed, 11, 0, 0.3);
    p.typical_p = pick(seed, 12, 0, 1) < 0.4 ? 1 : (float)pick(seed, 13, 0, 1);
    p.top_n_sigma = pick(seed, 14, 0, 1) < 0.4 ? -1 : (float)pick(seed, 15, 0, 4);
    p.xtc_probability = pick(seed, 16, 0, 1) < 0.4 ? 0 : (float)pick(seed, 17, 0.3, 1);
    p.xtc_threshold = (float)pick(seed, 18, 0, 0.2);
    p.min_keep = pick(seed, 19, 0, 1) < 0.5 ? 0 : (uint32_t)pick(seed, 20, 1, 40);
    return p;
}

static void run_naive(naive_list *list, const nib_sampler_params *p, const nib_sample_chain *chain, uint64_t pos) {
    uint32_t n_draws = 0;
    for (uint32_t i = 0; i < chain->n; i++) {
        switch (chain->ids[i]) {
        case NIB_SAMPLE_TOP_N_SIGMA: naive_top_n_sigma(list, p); break;
        case NIB_SAMPLE_TOP_K: naive_top_k(list, p); break;
        case NIB_SAMPLE_TYP_P: naive_typical(list, p); break;
        case NIB_SAMPLE_TOP_P: naive_top_p(list, p); break;
        case NIB_SAMPLE_MIN_P: naive_min_p(list, p); break;
        case NIB_SAMPLE_TEMPERATURE: naive_temperature(list, p); break;
        case NIB_SAMPLE_XTC:
            if (p->xtc_probability > 0 && p->xtc_threshold <= 0.5f)
                naive_xtc(list, p, nib_rng_uniform(p->seed, pos, ++n_draws));
            break;
        default: fail();
        }
    }
    naive_softmax(list);
}

static void run_nib(nib_sampler *s, const float *logits, const uint32_t *mask, uint64_t pos) {
    float best[MAX_VOCAB / 32 + 1];
    s->pos = pos;
    s->n_draws = 0;
    naive_best(logits, s->n_vocab, best);
    nib_sample_set_begin(&s->set, logits, pos % 3 ? NULL : best, mask);
    for (uint32_t i = 0; i < s->chain.n; i++) nib_sample_kinds[s->chain.ids[i]].apply(s);
    nib_sample_set_sort(&s->set);
}

/* Returns false when the case is ambiguous. */
static bool compare(const nib_sampler_params *p, size_t n_vocab, const uint32_t *mask, uint64_t pos) {
    nib_sampler *s;
    nib_error err;
    assert_int_equal(nib_sampler_new(&s, p, (uint32_t)n_vocab, &err), NIB_OK);
    naive_list list = {g_items, 0, false};
    naive_begin(&list, g_logits, mask, n_vocab);
    run_naive(&list, p, &s->chain, pos);
    run_nib(s, g_logits, mask, pos);
    if (!list.is_ambiguous) {
        assert_int_equal(s->set.n, list.n);
        for (size_t i = 0; i < list.n; i++) {
            /* Scaling may have made equals of neighbours, or unequals that the double tells apart. */
            assert_true(fabs((double)s->set.own[i] - list.items[i].logit) <= 1e-5 * (1 + fabs(list.items[i].logit)));
            if (i && list.items[i - 1].logit - list.items[i].logit < 1e-5) continue;
            if (i + 1 < list.n && list.items[i].logit - list.items[i + 1].logit < 1e-5) continue;
            assert_int_equal(s->set.ids[i], list.items[i].id);
        }
    }
    nib_sampler_free(s);
    return !list.is_ambiguous;
}

static const size_t sizes[] = {1, 2, 5, 31, 32, 33, 100, 1000, 1025, MAX_VOCAB};

static void compare_all(const char *chain, uint32_t n_rounds) {
    size_t n_proved = 0, n_all = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t round = 0; round < n_rounds; round++) {
            uint32_t seed = round * 31 + (uint32_t)i;
            naive_logits(g_logits, sizes[i], seed, pick(seed, 30, 0.1, 6), round % 3 == 0);
            uint32_t mask[MAX_VOCAB / 32 + 1];
            for (size_t w = 0; w < sizeof mask / sizeof *mask; w++)
                mask[w] = w % 7 == 3 ? UINT32_MAX : (uint32_t)(nib_rng_uniform(seed, w, 31) * 4294967295.0);
            mask[0] |= 1;
            if (round % 4 == 1) g_logits[sizes[i] / 2] = -INFINITY;
            if (sizes[i] == 1) g_logits[0] = 0.5f;
            nib_sampler_params p = random_params(seed);
            p.chain = chain;
            n_all++;
            if (compare(&p, sizes[i], round % 2 ? mask : NULL, round)) n_proved++;
        }
    }
    assert_true(n_proved * 10 > n_all * 7);
}

static void test_top_n_sigma(void **state) { (void)state; compare_all("top_n_sigma", 60); }
static void test_top_k(void **state) { (void)state; compare_all("top_k", 60); }
static void test_typical(void **state) { (void)state; compare_all("typ_p", 60); }
static void test_top_p(void **state) { (void)state; compare_all("top_p", 60); }
static void test_min_p(void **state) { (void)state; compare_all("min_p", 60); }
static void test_xtc(void **state) { (void)state; compare_all("xtc", 60); }
static void test_temperature(void **state) { (void)state; compare_all("temperature", 60); }

static void test_chains(void **state) {
    (void)state;
    compare_all("top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature", 100);
    compare_all("temperature;xtc;min_p;top_p;typ_p;top_k;top_n_sigma", 100);
    compare_all("top_p;temperature;typ_p;min_p", 60);
    compare_all("xtc;temperature;top_k;xtc;top_p", 60);
    compare_all("min_p;typical;temp;nucleus", 60);
}

/* Candidates left by one chain on one row. */
static size_t n_left(nib_sampler_params p, const char *chain, size_t n_vocab) {
    nib_sampler *s;
    p.chain = chain;
    p.seed = 1;
    assert_int_equal(nib_sampler_new(&s, &p, (uint32_t)n_vocab, NULL), NIB_OK);
    run_nib(s, g_logits, NULL, 0);
    size_t n = s->set.n;
    nib_sampler_free(s);
    return n;
}

static void test_off_values(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 5, 3, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.temp = 1, p.top_k = 0, p.top_p = 1, p.min_p = 0, p.xtc_probability = 0;
    const char *all = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p";
    assert_int_equal(n_left(p, all, 1000), 1000);
    p.top_k = -1000000000, p.top_p = 5, p.min_p = -1, p.xtc_probability = 1, p.xtc_threshold = 0.51f, p.top_n_sigma = 0;
    assert_int_equal(n_left(p, all, 1000), 1000);
    p.top_k = 1000;
    assert_int_equal(n_left(p, all, 1000), 1000);
    p.top_k = INT32_MAX;
    assert_int_equal(n_left(p, all, 1000), 1000);
}

static void test_order_matters(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 5, 2, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.temp = 5, p.top_k = 0, p.top_p = 0.5f, p.min_p = 0;
    assert_true(n_left(p, "temperature;top_p", 1000) > 2 * n_left(p, "top_p;temperature", 1000));
}

static void test_min_keep(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 5, 3, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.top_p = 0, p.min_p = 1, p.typical_p = 0, p.xtc_probability = 1, p.xtc_threshold = 0;
    assert_int_equal(n_left(p, "top_p", 1000), 1);
    assert_int_equal(n_left(p, "min_p", 1000), 1);
    assert_int_equal(n_left(p, "typ_p", 1000), 1);
    assert_int_equal(n_left(p, "xtc", 1000), 1);
    p.min_keep = 7;
    assert_int_equal(n_left(p, "top_p", 1000), 7);
    assert_int_equal(n_left(p, "min_p", 1000), 7);
    assert_int_equal(n_left(p, "typ_p", 1000), 7);
    assert_int_equal(n_left(p, "xtc", 1000), 1000);
    p.min_keep = 1000000000;
    assert_int_equal(n_left(p, "top_p;min_p;typ_p;xtc", 1000), 1000);
}

/* Four equal tokens, and cuts that fall exactly on their probabilities. */
static void test_exact_cuts(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) g_logits[i] = 3;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.top_p = 0.5f, p.typical_p = 0.5f, p.min_p = 1, p.xtc_probability = 1, p.xtc_threshold = 0.25f, p.top_n_sigma = 1;
    assert_int_equal(n_left(p, "top_p", 4), 2); /* until the mass reaches p */
    assert_int_equal(n_left(p, "typ_p", 4), 3); /* until it exceeds p */
    assert_int_equal(n_left(p, "min_p", 4), 4);
    assert_int_equal(n_left(p, "xtc", 4), 1);
    assert_int_equal(n_left(p, "top_n_sigma", 4), 4);
}

/* Equal logits: the lowest ids stay. */
static void test_ties(void **state) {
    (void)state;
    for (size_t i = 0; i < 1000; i++) g_logits[i] = i % 2 ? 1.0f : -0.0f;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.top_k = 501, p.seed = 1, p.chain = "top_k";
    nib_sampler *s;
    assert_int_equal(nib_sampler_new(&s, &p, 1000, NULL), NIB_OK);
    run_nib(s, g_logits, NULL, 0);
    assert_int_equal(s->set.n, 501);
    for (int i = 0; i < 500; i++) assert_int_equal(s->set.ids[i], 2 * i + 1);
    assert_int_equal(s->set.ids[500], 0);
    nib_sampler_free(s);
}

static void test_extreme_temperatures(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 5, 3, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.chain = "temperature", p.seed = 1;
    static const float temps[] = {1e-45f, 1e-38f, 1e-30f, 1e30f, 3e38f};
    for (size_t t = 0; t < sizeof temps / sizeof *temps; t++) {
        nib_sampler *s;
        p.temp = temps[t];
        assert_int_equal(nib_sampler_new(&s, &p, 1000, NULL), NIB_OK);
        run_nib(s, g_logits, NULL, 0);
        assert_int_equal(s->set.n, 1000);
        for (size_t i = 0; i < 1000; i++) assert_true(isfinite(s->set.own[i]));
        nib_sample_mass mass = nib_sample_set_mass(&s->set, -FLT_MAX);
        if (temps[t] < 1) assert_true(mass.z == 1);
        else assert_true(fabs(mass.z - 1000) < 1e-3);
        nib_sampler_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_n_sigma), cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_typical),     cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_min_p),       cmocka_unit_test(test_xtc),
        cmocka_unit_test(test_temperature), cmocka_unit_test(test_chains),
        cmocka_unit_test(test_off_values),  cmocka_unit_test(test_order_matters),
        cmocka_unit_test(test_min_keep),    cmocka_unit_test(test_exact_cuts),
        cmocka_unit_test(test_ties),        cmocka_unit_test(test_extreme_temperatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
