/* tests/test_sample_params.c - which parameters are refused, what the message says, and how chains are read. */
#include "sample/params.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_VOCAB 100

/* What nib_sampler_new says about p; checks that a refusal names `field` and gives nothing. */
static nib_status try_params(const nib_sampler_params *p, const char *field) {
    nib_sampler *s = (nib_sampler *)1;
    nib_error err = {NIB_OK, 0, ""};
    nib_status status = nib_sampler_new(&s, p, N_VOCAB, &err);
    if (status == NIB_OK) {
        nib_sampler_free(s);
        return status;
    }
    assert_null(s);
    assert_int_equal(err.code, status);
    if (!strstr(err.message, field)) fail_msg("'%s' does not name %s", err.message, field);
    return status;
}

static nib_sampler_params defaults(void) {
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1;
    return p;
}

static void test_defaults(void **state) {
    (void)state;
    nib_sampler_params p = defaults();
    assert_int_equal(try_params(&p, ""), NIB_OK);
    assert_int_equal(try_params(NULL, ""), NIB_OK);
}

typedef struct float_case {
    const char *name;
    size_t offset;
    float good[4], bad[4]; /* repeated to fill */
} float_case;

#define F(field, g0, g1, g2, g3, b0, b1)                                                                               \
    {#field, offsetof(nib_sampler_params, field), {g0, g1, g2, g3}, {b0, b1, NAN, INFINITY}}

static void test_float_ranges(void **state) {
    (void)state;
    static const float_case cases[] = {
        F(temp, -1, 0, 1e-30f, 1e30f, NAN, -INFINITY),
        F(dynatemp_range, 0, 1, 1e30f, 5, -0.1f, -INFINITY),
        F(dynatemp_exponent, 0, 1, 1e30f, 5, -0.1f, -INFINITY),
        F(top_p, 0, 0.5f, 1, 2, -0.1f, -INFINITY),
        F(min_p, -1, 0, 0.5f, 1, 1.1f, -INFINITY),
        F(typical_p, 0, 0.5f, 1, 2, -0.1f, -INFINITY),
        F(top_n_sigma, -1, 0, 1, 1e30f, NAN, -INFINITY),
        F(xtc_probability, -1, 0, 0.5f, 1, 1.1f, -INFINITY),
        F(xtc_threshold, 0, 0.1f, 0.5f, 1, -0.1f, -INFINITY),
        F(penalty_repeat, 1e-30f, 0.5f, 1, 1e30f, 0, -1),
        F(penalty_frequency, -2, 0, 2, 1e30f, NAN, -INFINITY),
        F(penalty_presence, -2, 0, 2, 1e30f, NAN, -INFINITY),
        F(dry_multiplier, 0, 0.8f, 2, 1e30f, -0.1f, -INFINITY),
        F(dry_base, 1, 1.75f, 2, 1e30f, 0.9f, -INFINITY),
        F(mirostat_tau, 0, 5, 10, 1e30f, -0.1f, -INFINITY),
        F(mirostat_eta, 0, 0.1f, 1, 1e30f, -0.1f, -INFINITY),
        F(adaptive_target, -1, 0, 0.5f, 1, 1.1f, -INFINITY),
        F(adaptive_decay, 0, 0.5f, 0.9f, 0.99f, 1, -0.1f),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int j = 0; j < 4; j++) {
            nib_sampler_params p = defaults();
            memcpy((char *)&p + cases[i].offset, &cases[i].good[j], sizeof(float));
            assert_int_equal(try_params(&p, ""), NIB_OK);
            memcpy((char *)&p + cases[i].offset, &cases[i].bad[j], sizeof(float));
            assert_int_equal(try_params(&p, cases[i].name), NIB_E_ARG);
        }
    }
}

static void test_integer_ranges(void **state) {
    (void)state;
    nib_sampler_params p = defaults();
    p.top_k = INT32_MIN, p.min_keep = UINT32_MAX, p.penalty_last_n = INT32_MAX, p.penalty_repeat = 2;
    p.dry_penalty_last_n = INT32_MAX, p.dry_multiplier = 1, p.dry_allowed_length = INT32_MAX;
    assert_int_equal(try_params(&p, ""), NIB_OK);
    p.penalty_last_n = -2;
    assert_int_equal(try_params(&p, "penalty_last_n is -2"), NIB_E_ARG);
    p.penalty_last_n = -1, p.dry_penalty_last_n = -2;
    assert_int_equal(try_params(&p, "dry_penalty_last_n is -2"), NIB_E_ARG);
    p.dry_penalty_last_n = -1, p.dry_allowed_length = -1;
    assert_int_equal(try_params(&p, "dry_allowed_length is -1"), NIB_E_ARG);
    p.dry_allowed_length = 0, p.mirostat = 3;
    assert_int_equal(try_params(&p, "mirostat is 3; allowed: 0 (off), 1 or 2"), NIB_E_ARG);
    p.mirostat = -1;
    assert_int_equal(try_params(&p, "mirostat is -1"), NIB_E_ARG);
    nib_sampler *s;
    p = defaults();
    assert_int_equal(nib_sampler_new(&s, &p, 0, NULL), NIB_E_ARG);
    assert_int_equal(nib_sampler_new(&s, &p, UINT32_MAX, NULL), NIB_E_ARG);
}

static void test_ids(void **state) {
    (void)state;
    nib_logit_bias bias[2] = {{0, -INFINITY}, {N_VOCAB - 1, 5}};
    nib_sampler_params p = defaults();
    p.bias = bias, p.n_bias = 2;
    assert_int_equal(try_params(&p, ""), NIB_OK);
    bias[1].id = 99999999;
    assert_int_equal(try_params(&p, "bias for token 99999999; allowed: ids from 0 to 99"), NIB_E_ARG);
    bias[1].id = -1;
    assert_int_equal(try_params(&p, "token -1"), NIB_E_ARG);
    bias[1] = (nib_logit_bias){3, INFINITY};
    assert_int_equal(try_params(&p, "bias of token 3 is inf"), NIB_E_ARG);
    bias[1].bias = NAN;
    assert_int_equal(try_params(&p, "bias of token 3 is "), NIB_E_ARG);
    p.bias = NULL;
    assert_int_equal(try_params(&p, "n_bias is 2"), NIB_E_ARG);

    p = defaults();
    nib_token ids[3] = {1, 2, 3};
    uint32_t lengths[2] = {1, 2};
    p.dry_multiplier = 1, p.dry_breakers = ids, p.dry_breaker_lengths = lengths, p.n_dry_breakers = 2;
    assert_int_equal(try_params(&p, ""), NIB_OK);
    ids[2] = N_VOCAB;
    assert_int_equal(try_params(&p, "dry_breakers has token 100"), NIB_E_ARG);
    lengths[1] = 0;
    assert_int_equal(try_params(&p, "dry_breaker_lengths[1] is 0"), NIB_E_ARG);
    p.dry_breakers = NULL;
    assert_int_equal(try_params(&p, "n_dry_breakers"), NIB_E_ARG);
}

static void test_size(void **state) {
    (void)state;
    nib_sampler_params p = defaults();
    p.size = 0;
    assert_int_equal(try_params(&p, "size"), NIB_E_ARG);
    p.size = sizeof p + 8;
    assert_int_equal(try_params(&p, "size"), NIB_E_ARG);
    /* A caller of an older header knows fewer fields; the others keep their defaults. */
    p = defaults();
    p.size = offsetof(nib_sampler_params, top_k);
    p.top_k = -5, p.mirostat = 77;
    nib_sampler_params read;
    assert_int_equal(nib_sample_params_read(&read, &p, N_VOCAB, NULL), NIB_OK);
    assert_int_equal(read.top_k, 40);
    assert_int_equal(read.mirostat, 0);
    assert_true(read.temp == p.temp);
}

static void expect_chain(const char *text, const char *expected) {
    nib_sample_chain chain;
    nib_error err;
    if (nib_sample_params_chain(text, &chain, &err) != NIB_OK) fail_msg("%s", err.message);
    char letters[NIB_SAMPLE_CHAIN_MAX + 1] = "";
    for (uint32_t i = 0; i < chain.n; i++) {
        letters[i] = nib_sample_kinds[chain.ids[i]].letter;
        assert_true(chain.has[chain.ids[i]]);
    }
    assert_string_equal(letters, expected);
}

static void test_chains(void **state) {
    (void)state;
    expect_chain(NULL, "edskypmxt");
    expect_chain("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature", "edskypmxt");
    expect_chain("", "");
    expect_chain("top_k", "k");
    expect_chain("top-k;typical-p;nucleus;temp;", "kypt");
    expect_chain("t;e;k;k", "tekk");
    expect_chain("adaptive_p;top_k;a;temperature", "kta"); /* chooses, so it comes last, once */
}

static void test_chain_refusals(void **state) {
    (void)state;
    static const char *const bad[] = {"top_kk",      "top", "top_k; min_p", ";",          "top_k;;",
                                      "top_k;;temp", "K",   "i",            "infill",     "top_k,min_p"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        nib_sampler_params p = defaults();
        p.chain = bad[i];
        assert_int_equal(try_params(&p, "there are (with their letters) penalties(e) dry(d)"), NIB_E_ARG);
        assert_int_equal(try_params(&p, "adaptive_p(a)"), NIB_E_ARG);
    }
    char longest[2 * 32 + 1] = "", too_long[2 * 32 + 3] = "";
    for (int i = 0; i < 31; i++) strcat(longest, i % 2 ? "k;" : "p;");
    snprintf(too_long, sizeof too_long, "%st", longest);
    nib_sampler_params p = defaults();
    p.chain = longest;
    assert_int_equal(try_params(&p, ""), NIB_OK);
    p.chain = too_long;
    assert_int_equal(try_params(&p, "more than 31 samplers"), NIB_E_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_float_ranges),
        cmocka_unit_test(test_integer_ranges), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_size),           cmocka_unit_test(test_chains),
        cmocka_unit_test(test_chain_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
