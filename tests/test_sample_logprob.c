/* tests/test_sample_logprob.c - nib_logprobs against sums in double with libm; its refusals. */
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX_VOCAB 50000

static float g_logits[MAX_VOCAB];
static nib_logprob g_top[MAX_VOCAB];
static naive_cand g_items[MAX_VOCAB];

static void test_against_double(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 31, 32, 33, 257, 1000, MAX_VOCAB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t round = 0; round < 6; round++) {
            size_t n = sizes[i];
            naive_logits(g_logits, n, round, round % 2 ? 3 : 20, round == 2);
            if (round == 3)
                for (size_t j = 0; j < n; j++) g_logits[j] += 1e4f;
            naive_list list = {g_items, 0, false};
            naive_begin(&list, g_logits, NULL, n);
            naive_softmax(&list);
            double sum = 0;
            for (size_t j = 0; j < n; j++) sum += exp(list.items[j].logit - list.items[0].logit);
            uint32_t k = n < 100 ? (uint32_t)n : 100;
            float logprob;
            nib_token id = (nib_token)(n / 2);
            assert_int_equal(nib_logprobs(g_logits, (uint32_t)n, id, &logprob, g_top, k, NULL), NIB_OK);
            double expected = (double)g_logits[id] - list.items[0].logit - log(sum);
            assert_true(fabs((double)logprob - expected) <= 1e-6 * (1 + fabs(expected)));
            for (uint32_t j = 0; j < k; j++) {
                expected = list.items[j].logit - list.items[0].logit - log(sum);
                assert_int_equal(g_top[j].id, list.items[j].id);
                assert_true(fabs((double)g_top[j].logprob - expected) <= 1e-6 * (1 + fabs(expected)));
            }
        }
    }
}

static void test_all_add_up_to_one(void **state) {
    (void)state;
    naive_logits(g_logits, 5000, 1, 4, false);
    assert_int_equal(nib_logprobs(g_logits, 5000, NIB_TOKEN_NONE, NULL, g_top, 5000, NULL), NIB_OK);
    double sum = 0;
    for (size_t i = 0; i < 5000; i++) sum += exp((double)g_top[i].logprob);
    assert_true(fabs(sum - 1) < 1e-5);
}

/* Forbidden tokens have -inf and come last; a caller that writes JSON must not write it as a number. */
static void test_forbidden(void **state) {
    (void)state;
    static const float logits[] = {1, -INFINITY, 2, -INFINITY};
    nib_logprob top[4];
    float logprob;
    assert_int_equal(nib_logprobs(logits, 4, 1, &logprob, top, 4, NULL), NIB_OK);
    assert_true(logprob == -INFINITY);
    static const nib_token ids[] = {2, 0, 1, 3};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(top[i].id, ids[i]);
        assert_true((top[i].logprob == -INFINITY) == (i >= 2));
    }
}

static void test_refusals(void **state) {
    (void)state;
    float logits[70] = {0}, logprob;
    nib_logprob top[70];
    nib_error err;
    assert_int_equal(nib_logprobs(NULL, 70, 0, &logprob, NULL, 0, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 0, 0, &logprob, NULL, 0, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, 70, &logprob, NULL, 0, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, -2, &logprob, NULL, 0, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, 1, NULL, NULL, 0, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, 1, &logprob, top, 71, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, 1, &logprob, NULL, 1, &err), NIB_E_ARG);
    assert_int_equal(nib_logprobs(logits, 70, NIB_TOKEN_NONE, NULL, NULL, 0, &err), NIB_OK);
    static const size_t places[] = {0, 31, 32, 63, 64, 69};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        static const float bad[] = {NAN, -NAN, INFINITY};
        for (int b = 0; b < 3; b++) {
            logits[places[i]] = bad[b];
            assert_int_equal(nib_logprobs(logits, 70, 1, &logprob, top, 5, &err), NIB_E_NUMERIC);
            char name[32];
            snprintf(name, sizeof name, "token %zu ", places[i]);
            assert_non_null(strstr(err.message, name));
            logits[places[i]] = 0;
        }
    }
    for (int i = 0; i < 70; i++) logits[i] = -INFINITY;
    assert_int_equal(nib_logprobs(logits, 70, 1, &logprob, top, 5, &err), NIB_E_NUMERIC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double),
        cmocka_unit_test(test_all_add_up_to_one),
        cmocka_unit_test(test_forbidden),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
