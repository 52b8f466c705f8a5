/* tests/test_sample_dry.c - DRY against a search that compares every pair of places, with breakers; and its speed. */
#include "sample/sampler.h"
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N_VOCAB 40
#define MAX_HISTORY 2000

static nib_token g_history[MAX_HISTORY];

static nib_sampler *new_sampler(const nib_sampler_params *p, uint32_t n_vocab) {
    nib_sampler *s;
    nib_error err;
    if (nib_sampler_new(&s, p, n_vocab, &err) != NIB_OK) fail_msg("%s", err.message);
    return s;
}

/* Tokens behind the breaker that begins last in the window h of n; of those that begin there, the longest. */
static size_t naive_limit(const nib_sampler_params *p, const nib_token *h, size_t n) {
    for (size_t start = n; start-- > 0;) {
        size_t longest = 0;
        const nib_token *ids = p->dry_breakers;
        for (uint32_t b = 0; b < p->n_dry_breakers; ids += p->dry_breaker_lengths[b++]) {
            size_t length = p->dry_breaker_lengths[b];
            if (start + length > n || length <= longest) continue;
            if (memcmp(h + start, ids, length * sizeof *h) == 0) longest = length;
        }
        if (longest) return n - start - longest;
    }
    return n;
}

static bool is_single_breaker(const nib_sampler_params *p, nib_token id) {
    const nib_token *ids = p->dry_breakers;
    for (uint32_t b = 0; b < p->n_dry_breakers; ids += p->dry_breaker_lengths[b++])
        if (p->dry_breaker_lengths[b] == 1 && *ids == id) return true;
    return false;
}

static void naive_dry(const nib_sampler_params *p, size_t n_history, double *logits) {
    size_t n = n_history;
    if (p->dry_penalty_last_n >= 0 && (size_t)p->dry_penalty_last_n < n) n = (size_t)p->dry_penalty_last_n;
    const nib_token *h = g_history + (n_history - n);
    size_t allowed = (size_t)p->dry_allowed_length, limit = naive_limit(p, h, n);
    if (p->dry_multiplier == 0 || n <= allowed || limit < allowed) return;
    for (nib_token id = 0; id < N_VOCAB; id++) {
        bool is_repeat = false;
        size_t longest = 0;
        for (size_t at = 1; at < n; at++) { /* id stands at `at`; how much before it equals the end? */
            if (h[at] != id) continue;
            size_t length = 0;
            while (length < at && length < limit && h[at - 1 - length] == h[n - 1 - length]) length++;
            if (length >= allowed) is_repeat = true;
            if (length > longest) longest = length;
        }
        if (!is_repeat || is_single_breaker(p, id)) continue;
        logits[id] -= (double)p->dry_multiplier * pow((double)p->dry_base, (double)(longest - allowed));
    }
}

static size_t compare(const nib_sampler_params *p, uint32_t seed, size_t n_history, bool with_list) {
    float logits[N_VOCAB];
    naive_logits(logits, N_VOCAB, seed, 3, false);
    nib_sampler *s = new_sampler(p, N_VOCAB);
    size_t n_penalised = 0;
    for (size_t n = 0; n <= n_history; n++) {
        double expected[N_VOCAB];
        for (int id = 0; id < N_VOCAB; id++) expected[id] = (double)logits[id];
        naive_dry(p, n, expected);
        nib_sample_set_begin(&s->set, logits, NULL, NULL);
        if (with_list) nib_sample_set_sort(&s->set);
        nib_sample_dry_apply(s);
        nib_sample_set_sort(&s->set);
        assert_int_equal(s->set.n, N_VOCAB);
        for (size_t i = 0; i < N_VOCAB; i++) {
            double e = fmax(expected[s->set.ids[i]], -(double)FLT_MAX), got = (double)s->set.own[i];
            assert_true(fabs(got - e) <= 1e-5 * (1 + fabs(e)));
            n_penalised += e != (double)logits[s->set.ids[i]];
        }
        if (n < n_history) assert_int_equal(nib_sampler_accept(s, g_history[n], NULL), NIB_OK);
    }
    nib_sampler_free(s);
    return n_penalised;
}

/* Tokens 0 … range-1 with copied passages. */
static void make_history(uint32_t seed, size_t n, int range) {
    for (size_t i = 0; i < n; i++) {
        if (i > 30 && nib_rng_uniform(seed, i, 0) < 0.1) {
            size_t length = (size_t)(nib_rng_uniform(seed, i, 1) * 20);
            size_t from = (size_t)(nib_rng_uniform(seed, i, 2) * (double)(i - 20));
            for (size_t j = 0; j < length && i < n; j++) g_history[i++] = g_history[from + j];
            if (i == n) break;
        }
        g_history[i] = (nib_token)(nib_rng_uniform(seed, i, 3) * range);
    }
}

static void test_against_search(void **state) {
    (void)state;
    static const int32_t last_n[] = {0, 1, 5, 64, 150, 1000000000, -1};
    static const nib_token breakers[] = {0, 1, 2, 1, 3, 4, 1, 2, 5, 6, 7};
    static const uint32_t lengths[] = {1, 2, 3, 1, 1, 3};
    size_t n_penalised = 0;
    for (uint32_t round = 0; round < 84; round++) {
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = 1, p.dry_multiplier = 0.8f, p.dry_penalty_last_n = last_n[round % 7];
        p.dry_allowed_length = (int32_t)(round / 7 % 4), p.dry_base = round % 3 ? 1.75f : 1.0f;
        if (round % 2) p.dry_breakers = breakers, p.dry_breaker_lengths = lengths, p.n_dry_breakers = 6;
        make_history(round, 250, round % 5 == 0 ? 2 : round % 5 == 1 ? 5 : N_VOCAB);
        n_penalised += compare(&p, round, 250, round % 4 == 3);
    }
    assert_true(n_penalised > 10000);
}

/* "a b c … a b" makes c unlikely by the multiplier, and more with each further token repeated. */
static void test_example(void **state) {
    (void)state;
    static const nib_token history[] = {9, 1, 2, 3, 4, 5, 8, 1, 2, 3, 4};
    float logits[N_VOCAB] = {0};
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.dry_multiplier = 0.5f, p.dry_base = 2, p.dry_allowed_length = 2;
    static const double expected[] = {0, 0.5, 1, 2}; /* before 2, 3, 4, 5 */
    for (size_t n = 8; n <= 11; n++) {
        nib_sampler *s = new_sampler(&p, N_VOCAB);
        for (size_t i = 0; i < n; i++) nib_sampler_accept(s, history[i], NULL);
        nib_sample_set_begin(&s->set, logits, NULL, NULL);
        nib_sample_dry_apply(s);
        nib_sample_set_sort(&s->set);
        assert_true((double)s->set.own[N_VOCAB - 1] == -expected[n - 8]);
        if (n > 8) assert_int_equal(s->set.ids[N_VOCAB - 1], history[n - 6]);
        nib_sampler_free(s);
    }
}

static void test_reset_and_huge_penalties(void **state) {
    (void)state;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.dry_multiplier = 3e38f, p.dry_base = 3e38f, p.dry_penalty_last_n = -1;
    float logits[N_VOCAB] = {0};
    logits[3] = 1;
    nib_sampler *s = new_sampler(&p, N_VOCAB);
    for (int i = 0; i < 1000; i++) nib_sampler_accept(s, 3, NULL);
    nib_token id;
    assert_int_equal(nib_sampler_sample(s, logits, NULL, 5, &id, NULL), NIB_OK);
    assert_int_not_equal(id, 3);
    uint32_t only_3 = 1u << 3, mask[2] = {only_3, 0}; /* unlikely, but not forbidden */
    assert_int_equal(nib_sampler_sample(s, logits, mask, 5, &id, NULL), NIB_OK);
    assert_int_equal(id, 3);
    nib_sampler_reset(s);
    nib_sample_set_begin(&s->set, logits, NULL, NULL);
    nib_sample_dry_apply(s);
    nib_sample_set_sort(&s->set);
    assert_int_equal(s->set.ids[0], 3);
    nib_sampler_free(s);
}

/* 200000 times the same token: a quadratic search would compare 2 * 10^10 pairs per sample. */
static void test_linear_time(void **state) {
    (void)state;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.dry_multiplier = 1, p.dry_penalty_last_n = -1;
    float logits[N_VOCAB] = {0};
    nib_sampler *s = new_sampler(&p, N_VOCAB);
    for (int i = 0; i < 200000; i++) assert_int_equal(nib_sampler_accept(s, 3, NULL), NIB_OK);
    nib_token id;
    for (int i = 0; i < 20; i++) assert_int_equal(nib_sampler_sample(s, logits, NULL, 5, &id, NULL), NIB_OK);
    nib_sampler_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_reset_and_huge_penalties),
        cmocka_unit_test(test_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
