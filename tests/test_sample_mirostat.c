/* tests/test_sample_mirostat.c - Mirostat 1 and 2 and adaptive_p step by step against plain formulas, and over long
 * runs against what they promise. */
#include "sample/sampler.h"
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N_VOCAB 2000

static float g_logits[N_VOCAB];
static naive_cand g_items[N_VOCAB];

static nib_sampler *new_sampler(const nib_sampler_params *p) {
    nib_sampler *s;
    nib_error err;
    if (nib_sampler_new(&s, p, N_VOCAB, &err) != NIB_OK) fail_msg("%s", err.message);
    return s;
}

/* Log-probabilities that fall with the rank as in natural text. */
static void zipf_logits(double exponent) {
    for (size_t i = 0; i < N_VOCAB; i++) g_logits[i * 7 % N_VOCAB] = (float)(-exponent * log((double)i + 1));
}

static void naive_cut(naive_list *list, const nib_sampler_params *p, double mu) {
    naive_softmax(list);
    if (p->mirostat == 2) {
        size_t n = 0;
        while (n < list->n && -log2(list->items[n].p) <= mu) naive_near(list, -log2(list->items[n++].p), mu);
        list->n = n ? n : 1;
    } else {
        double tb = 0, tt = 0;
        for (size_t i = 0; i < 99 && i + 1 < list->n; i++) {
            double t = log((double)(i + 2) / (double)(i + 1));
            tb += t * log(list->items[i].p / list->items[i + 1].p);
            tt += t * t;
        }
        double s = tb / tt, e = s - 1;
        double k = pow(e * pow(2, mu) / (1 - pow(N_VOCAB, -e)), 1 / s);
        naive_near(list, k, rint(k));
        size_t n = k < 1 ? 1 : k > N_VOCAB ? N_VOCAB : (size_t)k;
        if (n < list->n) list->n = n;
    }
    naive_softmax(list);
}

static void run_steps(int mirostat, float temp, float tau) {
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 3, p.temp = temp, p.mirostat = mirostat, p.mirostat_tau = tau;
    nib_sampler *s = new_sampler(&p);
    double mu = 2 * (double)tau;
    for (uint64_t pos = 0; pos < 60; pos++) {
        naive_logits(g_logits, N_VOCAB, (uint32_t)pos, 1 + (double)(pos % 5), false);
        naive_list list = {g_items, 0, false};
        naive_begin(&list, g_logits, NULL, N_VOCAB);
        naive_temperature(&list, &p);
        naive_cut(&list, &p, mu);
        nib_token id;
        assert_int_equal(nib_sampler_sample(s, g_logits, NULL, pos, &id, NULL), NIB_OK);
        if (list.is_ambiguous) break;
        double u = nib_rng_uniform(3, pos, 0), sum = 0;
        size_t i = 0;
        while (i + 1 < list.n && (sum += list.items[i].p) <= u) i++;
        if (fabs(sum - u) > 1e-5) assert_int_equal(id, list.items[i].id);
        for (i = 0; list.items[i].id != id; i++) assert_true(i + 1 < list.n);
        mu -= (double)p.mirostat_eta * (-log2(list.items[i].p) - (double)tau);
        assert_int_equal(nib_sampler_accept(s, id, NULL), NIB_OK);
        assert_true(fabs((double)s->mirostat.mu - mu) < 3e-5);
    }
    nib_sampler_free(s);
}

static void test_steps(void **state) {
    (void)state;
    for (int mirostat = 1; mirostat <= 2; mirostat++) {
        run_steps(mirostat, 0.8f, 5);
        run_steps(mirostat, 1, 3);
        run_steps(mirostat, 2, 7);
        run_steps(mirostat, 1.5f, 9);
    }
}

/* The mean surprise comes to tau. */
static void test_surprise_converges(void **state) {
    (void)state;
    zipf_logits(1.1);
    for (int mirostat = 1; mirostat <= 2; mirostat++) {
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = 1, p.temp = 1, p.mirostat = mirostat, p.mirostat_tau = 4;
        nib_sampler *s = new_sampler(&p);
        double surprise = 0;
        for (uint64_t pos = 0; pos < 4000; pos++) {
            nib_token id;
            assert_int_equal(nib_sampler_sample(s, g_logits, NULL, pos, &id, NULL), NIB_OK);
            if (pos >= 1000) surprise += (double)-s->drawn_logprob / log(2) / 3000;
            assert_int_equal(nib_sampler_accept(s, id, NULL), NIB_OK);
        }
        assert_true(fabs(surprise - 4) < 0.15);
        nib_sampler_free(s);
    }
}

/* Sampling alone changes nothing; neither does a token that was not drawn. */
static void test_learns_in_accept_only(void **state) {
    (void)state;
    naive_logits(g_logits, N_VOCAB, 1, 3, false);
    for (int mirostat = 1; mirostat <= 2; mirostat++) {
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = 1, p.mirostat = mirostat;
        nib_sampler *s = new_sampler(&p);
        nib_token a, b;
        assert_int_equal(nib_sampler_sample(s, g_logits, NULL, 0, &a, NULL), NIB_OK);
        assert_int_equal(nib_sampler_sample(s, g_logits, NULL, 0, &b, NULL), NIB_OK);
        assert_int_equal(a, b);
        assert_true(s->mirostat.mu == 10);
        nib_sampler_accept(s, a ? 0 : 1, NULL);
        assert_true(s->mirostat.mu == 10);
        nib_sampler_accept(s, a, NULL); /* no sample came since */
        assert_true(s->mirostat.mu == 10);
        nib_sampler_sample(s, g_logits, NULL, 0, &a, NULL);
        nib_sampler_accept(s, a, NULL);
        assert_true(s->mirostat.mu != 10);
        nib_sampler_reset(s);
        assert_true(s->mirostat.mu == 10);
        nib_sampler_free(s);
    }
}

static void test_degenerate_rows(void **state) {
    (void)state;
    static const double exponents[] = {0, 1, 1e-9, 30, 1e30};
    for (int mirostat = 1; mirostat <= 2; mirostat++) {
        for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
            zipf_logits(exponents[e]);
            nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
            p.seed = 1, p.temp = 1, p.mirostat = mirostat;
            p.mirostat_eta = e % 2 ? 0.1f : 3e38f;
            nib_sampler *s = new_sampler(&p);
            for (uint64_t pos = 0; pos < 20; pos++) {
                nib_token id;
                assert_int_equal(nib_sampler_sample(s, g_logits, NULL, pos, &id, NULL), NIB_OK);
                assert_int_equal(nib_sampler_accept(s, id, NULL), NIB_OK);
                assert_true(isfinite(s->mirostat.mu));
            }
            uint32_t mask[N_VOCAB / 32 + 1] = {0};
            mask[1] = 1;
            nib_token id;
            assert_int_equal(nib_sampler_sample(s, g_logits, mask, 0, &id, NULL), NIB_OK);
            assert_int_equal(id, 32);
            nib_sampler_free(s);
        }
    }
}

static void test_greedy_wins(void **state) {
    (void)state;
    naive_logits(g_logits, N_VOCAB, 1, 3, false);
    g_logits[77] = 50;
    for (int mirostat = 0; mirostat <= 2; mirostat++) {
        nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
        p.seed = 1, p.temp = 0, p.mirostat = mirostat, p.adaptive_target = 0.1f, p.chain = "adaptive_p";
        nib_sampler *s = new_sampler(&p);
        nib_token id;
        assert_int_equal(nib_sampler_sample(s, g_logits, NULL, 0, &id, NULL), NIB_OK);
        assert_int_equal(id, 77);
        nib_sampler_free(s);
    }
}

static void test_adaptive_steps(void **state) {
    (void)state;
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 5, p.adaptive_target = 0.3f, p.chain = "adaptive_p;top_k;temperature"; /* moves to the end */
    nib_sampler *s = new_sampler(&p);
    double weight = 1 / (1 - (double)p.adaptive_decay), sum = weight * (double)p.adaptive_target;
    for (uint64_t pos = 0; pos < 200; pos++) {
        naive_logits(g_logits, N_VOCAB, (uint32_t)pos, 1 + (double)(pos % 4), false);
        naive_list list = {g_items, 0, false};
        naive_begin(&list, g_logits, NULL, N_VOCAB);
        naive_top_k(&list, &p);
        naive_temperature(&list, &p);
        naive_softmax(&list);
        double target = fmin(1, fmax(0, 2 * (double)p.adaptive_target - sum / weight)), prob[N_VOCAB];
        for (size_t i = 0; i < list.n; i++) {
            prob[list.items[i].id] = list.items[i].p;
            double x = fabs(list.items[i].p - target) / 0.3;
            list.items[i].logit = 5 - 10 * x * x / (1 + x);
        }
        naive_softmax(&list);
        double u = nib_rng_uniform(5, pos, 0), cumulated = 0;
        size_t i = 0;
        while (i + 1 < list.n && (cumulated += list.items[i].p) <= u) i++;
        nib_token id;
        assert_int_equal(nib_sampler_sample(s, g_logits, NULL, pos, &id, NULL), NIB_OK);
        if (fabs(cumulated - u) > 1e-4) assert_int_equal(id, list.items[i].id);
        sum = prob[id] + (double)p.adaptive_decay * sum;
        weight = 1 + (double)p.adaptive_decay * weight;
        assert_int_equal(nib_sampler_accept(s, id, NULL), NIB_OK);
        assert_true(fabs(s->adaptive.weighted_sum - sum) < 1e-4 && fabs(s->adaptive.total_weight - weight) < 1e-9);
    }
    nib_sampler_free(s);
}

/* A negative target is off: the chain draws as if adaptive_p were not there. */
static void test_adaptive_off(void **state) {
    (void)state;
    naive_logits(g_logits, N_VOCAB, 1, 3, false);
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1, p.chain = "top_k;temperature";
    nib_sampler *without = new_sampler(&p);
    p.chain = "top_k;temperature;adaptive_p";
    nib_sampler *with = new_sampler(&p);
    for (uint64_t pos = 0; pos < 100; pos++) {
        nib_token a, b;
        assert_int_equal(nib_sampler_sample(without, g_logits, NULL, pos, &a, NULL), NIB_OK);
        assert_int_equal(nib_sampler_sample(with, g_logits, NULL, pos, &b, NULL), NIB_OK);
        assert_int_equal(a, b);
        nib_sampler_accept(with, b, NULL);
    }
    nib_sampler_free(without);
    nib_sampler_free(with);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_surprise_converges),
        cmocka_unit_test(test_learns_in_accept_only),
        cmocka_unit_test(test_degenerate_rows),
        cmocka_unit_test(test_greedy_wins),
        cmocka_unit_test(test_adaptive_steps),
        cmocka_unit_test(test_adaptive_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
