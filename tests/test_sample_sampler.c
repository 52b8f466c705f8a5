/* tests/test_sample_sampler.c - the sampler as its users see it: draws, greedy, bias, mask, NaN, trace, seeds, and that
 * it allocates nothing. */
#include "base/mem.h"
#include "support/sample_naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX_VOCAB 40000

static float g_logits[MAX_VOCAB];

static nib_sampler_params params(const char *chain) {
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.seed = 1234, p.temp = 1, p.chain = chain;
    return p;
}

static nib_sampler *new_sampler(const nib_sampler_params *p, size_t n_vocab) {
    nib_sampler *s;
    nib_error err;
    if (nib_sampler_new(&s, p, (uint32_t)n_vocab, &err) != NIB_OK) fail_msg("%s", err.message);
    return s;
}

static nib_token draw(nib_sampler *s, const uint32_t *mask, uint64_t pos) {
    nib_token id;
    nib_error err;
    if (nib_sampler_sample(s, g_logits, mask, pos, &id, &err) != NIB_OK) fail_msg("%s", err.message);
    return id;
}

/* 100000 draws against the probabilities: chi-square with 49 degrees of freedom exceeds 100 once in 40000 cases. */
static void test_distribution(void **state) {
    (void)state;
    enum { N = 50, DRAWS = 100000 };
    for (int with_list = 0; with_list < 2; with_list++) {
        naive_logits(g_logits, N, 5, 1, false);
        double p[N], sum = 0, count[N] = {0}, chi = 0;
        for (int i = 0; i < N; i++) sum += p[i] = exp((double)g_logits[i]);
        nib_sampler_params par = params(with_list ? "min_p" : "");
        par.min_p = 1e-6f;
        nib_sampler *s = new_sampler(&par, N);
        for (uint64_t pos = 0; pos < DRAWS; pos++) count[draw(s, NULL, pos)]++;
        for (int i = 0; i < N; i++) chi += pow(count[i] - DRAWS * p[i] / sum, 2) / (DRAWS * p[i] / sum);
        assert_true(chi < 100);
        nib_sampler_free(s);
    }
}

/* A large vocabulary: what is drawn is where the naive cumulated sum, best first, passes u. */
static void test_draw_is_by_rank(void **state) {
    (void)state;
    static naive_cand items[MAX_VOCAB];
    for (uint32_t round = 0; round < 12; round++) {
        size_t n = round % 3 ? MAX_VOCAB : 700;
        naive_logits(g_logits, n, round, 0.2 + round % 4, false);
        naive_list list = {items, 0, false};
        naive_begin(&list, g_logits, NULL, n);
        naive_softmax(&list);
        nib_sampler_params par = params("");
        nib_sampler *s = new_sampler(&par, n);
        for (uint64_t pos = 0; pos < 50; pos++) {
            double u = nib_rng_uniform(1234, pos, 0), sum = 0;
            size_t i = 0;
            while (i + 1 < n && (sum += list.items[i].p) <= u) i++;
            nib_token id = draw(s, NULL, pos);
            if (id == list.items[i].id) continue;
            bool is_neighbour = (i && id == list.items[i - 1].id) || (i + 1 < n && id == list.items[i + 1].id);
            double upper = fabs(sum - u), lower = fabs(sum - list.items[i].p - u);
            assert_true(is_neighbour && (upper < 1e-6 || lower < 1e-6)); /* rounding decides */
        }
        nib_sampler_free(s);
    }
}

/* Position 7 gives the same token whatever was sampled before, in any order, by any sampler with the seed. */
static void test_random_by_position(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 1, 2, false);
    nib_sampler_params p = params("xtc;top_k;top_p;temperature");
    p.xtc_probability = 0.5f, p.temp = 2, p.xtc_threshold = 0.01f;
    nib_sampler *a = new_sampler(&p, 1000), *b = new_sampler(&p, 1000);
    nib_token ids[100];
    size_t n_distinct = 0;
    for (uint64_t pos = 0; pos < 100; pos++) ids[pos] = draw(a, NULL, pos);
    for (uint64_t pos = 100; pos-- > 0;) assert_int_equal(draw(b, NULL, pos), ids[pos]);
    for (int i = 1; i < 100; i++) n_distinct += ids[i] != ids[0];
    assert_true(n_distinct > 50);
    assert_int_equal(draw(a, NULL, 7), ids[7]);
    draw(a, NULL, UINT64_MAX);
    nib_sampler_free(b);
    p.seed = 4321;
    b = new_sampler(&p, 1000);
    size_t n_equal = 0;
    for (uint64_t pos = 0; pos < 100; pos++) n_equal += draw(b, NULL, pos) == ids[pos];
    assert_true(n_equal < 50);
    nib_sampler_free(a);
    nib_sampler_free(b);
}

static void test_seed(void **state) {
    (void)state;
    nib_sampler_params p = params(NULL);
    nib_sampler *s = new_sampler(&p, 10);
    assert_int_equal(nib_sampler_seed(s), 1234);
    nib_sampler_free(s);
    p.seed = UINT32_MAX;
    uint32_t seeds[3];
    for (int i = 0; i < 3; i++) {
        s = new_sampler(&p, 10);
        seeds[i] = nib_sampler_seed(s);
        assert_true(seeds[i] != UINT32_MAX);
        nib_sampler_free(s);
    }
    assert_false(seeds[0] == seeds[1] && seeds[1] == seeds[2]);
}

/* temp <= 0, top_k = 1 and a tiny temperature choose the best, the lowest id among equals, wherever it stands. */
static void test_greedy(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 33, 1000, MAX_VOCAB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t round = 0; round < 10; round++) {
            size_t n = sizes[i], best = 0;
            naive_logits(g_logits, n, round, 3, round % 2);
            for (size_t j = 1; j < n; j++)
                if (g_logits[j] > g_logits[best]) best = j;
            for (int way = 0; way < 8; way++) {
                static const char *const chains[] = {NULL, NULL, NULL, NULL, "", "temp;top_k", "min_p", "top_k;xtc"};
                nib_sampler_params p = params(chains[way]);
                if (way == 1) p.top_k = 1, p.temp = 5;
                else if (way == 2) p.temp = -3;
                else p.temp = 0;
                if (way == 3) p.top_k = 0, p.top_p = 1, p.min_p = 0, p.dynatemp_range = 2;
                nib_sampler *s = new_sampler(&p, n);
                assert_int_equal(draw(s, NULL, round), best);
                nib_sampler_free(s);
            }
        }
    }
}

static void test_bias(void **state) {
    (void)state;
    naive_logits(g_logits, 1000, 1, 3, false);
    nib_sampler_params p = params(NULL);
    p.temp = 0;
    nib_sampler *s = new_sampler(&p, 1000);
    nib_token best = draw(s, NULL, 0);
    nib_sampler_free(s);
    nib_logit_bias bias[] = {{best, -INFINITY}, {500, 60}, {500, 40}, {7, 60}};
    p.bias = bias, p.n_bias = 1;
    s = new_sampler(&p, 1000);
    bias[0].id = 3; /* the sampler keeps a copy */
    assert_int_not_equal(draw(s, NULL, 0), best);
    nib_sampler_free(s);
    p.n_bias = 4;
    s = new_sampler(&p, 1000);
    assert_int_equal(draw(s, NULL, 0), 500); /* biases of one token add up */
    nib_sampler_free(s);
    bias[0] = (nib_logit_bias){9, 3.4e38f};
    g_logits[9] = 3.4e38f; /* does not become infinite */
    s = new_sampler(&p, 1000);
    assert_int_equal(draw(s, NULL, 0), 9);
    nib_sampler_free(s);
}

static void test_mask(void **state) {
    (void)state;
    size_t n = 1003;
    uint32_t mask[1003 / 32 + 1];
    static const char *const chains[] = {NULL, "", "temperature", "top_p", "top_n_sigma;xtc", "min_p;adaptive_p"};
    for (uint32_t round = 0; round < 60; round++) {
        naive_logits(g_logits, n, round, 1, false);
        memset(mask, 0, sizeof mask);
        for (size_t i = 0; i < n; i++)
            if (i == 1002 || nib_rng_uniform(round, i, 50) < (round % 3 ? 0.002 : 0.5)) mask[i / 32] |= 1u << i % 32;
        mask[n / 32] |= ~((1u << n % 32) - 1); /* bits past the vocabulary mean nothing */
        nib_sampler_params p = params(chains[round % 6]);
        p.temp = 3, p.mirostat = (int32_t)(round / 6 % 3);
        p.penalty_repeat = 1.5f;
        nib_logit_bias bias = {1002, 1};
        p.bias = &bias, p.n_bias = 1;
        nib_sampler *s = new_sampler(&p, n);
        for (uint64_t pos = 0; pos < 40; pos++) {
            nib_token id = draw(s, mask, pos);
            assert_true(id >= 0 && (size_t)id < n && mask[id / 32] >> id % 32 & 1);
            nib_sampler_accept(s, id, NULL);
        }
        nib_sampler_free(s);
    }
}

static void test_nothing_allowed(void **state) {
    (void)state;
    naive_logits(g_logits, 70, 1, 3, false);
    static const char *const chains[] = {NULL, "", "temperature", "top_p;typ_p", "top_n_sigma;xtc", "min_p;adaptive_p"};
    uint32_t none[3] = {0};
    float hopeless[70];
    for (int i = 0; i < 70; i++) hopeless[i] = -INFINITY;
    for (int c = 0; c < 6 * 3; c++) {
        nib_sampler_params p = params(chains[c % 6]);
        p.mirostat = c / 6, p.adaptive_target = 0.5f, p.xtc_probability = 1, p.top_n_sigma = 1, p.typical_p = 0.5f;
        p.dynatemp_range = 0.5f, p.penalty_repeat = 2;
        nib_sampler *s = new_sampler(&p, 70);
        nib_sampler_accept(s, 3, NULL);
        nib_token id;
        nib_error err;
        assert_int_equal(nib_sampler_sample(s, g_logits, none, 0, &id, &err), NIB_E_ARG);
        assert_int_equal(id, NIB_TOKEN_NONE);
        assert_non_null(strstr(err.message, "mask and bias"));
        assert_int_equal(nib_sampler_sample(s, hopeless, NULL, 0, &id, &err), NIB_E_NUMERIC);
        nib_sampler_hint(s, hopeless);
        assert_int_equal(nib_sampler_sample(s, NULL, NULL, 0, &id, &err), NIB_E_ARG);
        draw(s, NULL, 0); /* and it goes on working */
        nib_sampler_free(s);
    }
}

/* Found in masked and penalised tokens too, by every chain, and named. */
static void test_nan_and_infinity(void **state) {
    (void)state;
    static const char *const chains[] = {NULL, "", "temperature", "top_p;typ_p", "dry;top_k", "xtc;adaptive_p"};
    static const float bad[] = {NAN, -NAN, INFINITY};
    static const int places[] = {0, 31, 32, 63, 64, 69};
    uint32_t mask[3] = {2, 0, 0};
    for (int c = 0; c < 6 * 3 * 3 * 6 * 2; c++) {
        naive_logits(g_logits, 70, 1, 3, false);
        int place = places[c / 6 % 6];
        g_logits[place] = bad[c / 36 % 3];
        nib_sampler_params p = params(chains[c % 6]);
        p.mirostat = c / 108 % 3, p.adaptive_target = 0.5f, p.xtc_probability = 1, p.penalty_repeat = 2;
        nib_sampler *s = new_sampler(&p, 70);
        nib_sampler_accept(s, place, NULL);
        nib_token id;
        nib_error err;
        float best[3];
        naive_best(g_logits, 70, best);
        if (c / 2 % 2) nib_sampler_hint(s, best);
        assert_int_equal(nib_sampler_sample(s, g_logits, c % 2 ? mask : NULL, 0, &id, &err), NIB_E_NUMERIC);
        char name[40];
        snprintf(name, sizeof name, "token %d is %s", place, bad[c / 36 % 3] > 0 ? "+inf" : "NaN");
        if (!strstr(err.message, name)) fail_msg("%s", err.message);
        nib_sampler_free(s);
    }
}

static void test_accept_refuses(void **state) {
    (void)state;
    nib_sampler_params p = params(NULL);
    nib_sampler *s = new_sampler(&p, 70);
    nib_error err;
    assert_int_equal(nib_sampler_accept(s, 70, &err), NIB_E_ARG);
    assert_int_equal(nib_sampler_accept(s, -1, &err), NIB_E_ARG);
    assert_int_equal(nib_sampler_accept(s, 69, &err), NIB_OK);
    nib_sampler_free(s);
    nib_sampler_free(NULL);
}

typedef struct trace_log {
    char names[200];
    uint32_t n_last;
    double sum;
} trace_log;

static void on_trace(void *user, const char *sampler, uint32_t n_before, uint32_t n_after,
                     const nib_logprob *candidates, uint32_t n) {
    trace_log *log = user;
    if (log->n_last) assert_int_equal(n_before, log->n_last);
    assert_true(n_after <= n_before && n == (n_after < 16 ? n_after : 16));
    strcat(log->names, sampler);
    strcat(log->names, " ");
    log->n_last = n_after;
    log->sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i) assert_true(candidates[i].logprob <= candidates[i - 1].logprob);
        log->sum += exp((double)candidates[i].logprob);
    }
    assert_true(log->sum < 1 + 1e-5);
    if (n_after <= 16) assert_true(log->sum > 1 - 1e-5);
}

static void test_trace(void **state) {
    (void)state;
    static const struct {
        int mirostat;
        bool has_bias;
        const char *names;
    } cases[] = {
        {0, false, "penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature "},
        {0, true, "logit_bias penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature "},
        {2, true, "logit_bias temperature mirostat "},
    };
    for (int c = 0; c < 3; c++) {
        nib_sampler_params p = params(NULL);
        nib_logit_bias bias = {5, -INFINITY};
        p.mirostat = cases[c].mirostat, p.bias = &bias, p.n_bias = cases[c].has_bias;
        p.penalty_repeat = 1.2f, p.dry_multiplier = 1, p.xtc_probability = 0.5f;
        nib_sampler *traced = new_sampler(&p, 1000), *plain = new_sampler(&p, 1000);
        for (uint64_t pos = 0; pos < 100; pos++) {
            naive_logits(g_logits, 1000, (uint32_t)pos, 2, false);
            trace_log log = {"", 0, 0};
            nib_sampler_trace(traced, on_trace, &log);
            nib_token id = draw(traced, NULL, pos);
            assert_int_equal(id, draw(plain, NULL, pos)); /* looking changes nothing */
            nib_sampler_accept(traced, id, NULL);
            nib_sampler_accept(plain, id, NULL);
            assert_string_equal(log.names, cases[c].names);
        }
        nib_sampler_free(traced);
        nib_sampler_free(plain);
    }
}

/* Greedy sampling leaves out the end of a chain; under the eyes of a trace function it does not, and finds the same. */
static void test_greedy_leaves_out_what_does_not_matter(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        char chain[] = "e;d;s;k;y;p;m;x;t";
        for (size_t i = sizeof chain / 2 - 1; i > 0; i--) {
            size_t j = (size_t)(nib_rng_uniform(round, i, 0) * (double)(i + 1));
            char c = chain[2 * i];
            chain[2 * i] = chain[2 * j], chain[2 * j] = c;
        }
        nib_sampler_params p = params(chain);
        p.temp = round % 7 == 0 ? -1 : 0, p.top_k = (int32_t)(round % 4), p.top_p = 0.6f, p.min_p = 0.2f, p.top_n_sigma = round % 5 ? 0 : 1;
        p.penalty_last_n = (int32_t)(round % 3) - 1, p.penalty_repeat = 2, p.penalty_presence = 1;
        p.dry_multiplier = round % 2 ? 2 : 0, p.typical_p = round % 3 ? 1 : 0.5f, p.xtc_probability = round % 4 == 1 ? 0.5f : 0;
        nib_sampler *traced = new_sampler(&p, 300), *plain = new_sampler(&p, 300);
        for (uint64_t pos = 0; pos < 30; pos++) {
            naive_logits(g_logits, 300, round * 100 + (uint32_t)pos / 3, 2, false);
            trace_log log = {"", 0, 0};
            nib_sampler_trace(traced, on_trace, &log);
            nib_token id = draw(traced, NULL, pos);
            assert_int_equal(id, draw(plain, NULL, pos));
            nib_sampler_accept(traced, id, NULL);
            nib_sampler_accept(plain, id, NULL);
        }
        nib_sampler_free(traced);
        nib_sampler_free(plain);
    }
}

/* Logits that cannot be told apart: candidates of the same logit are drawn in the order of their ids. */
static void test_draw_among_equals(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        nib_sampler_params p = params("");
        nib_sampler *s = new_sampler(&p, MAX_VOCAB);
        size_t n_upper = way < 2 ? MAX_VOCAB : MAX_VOCAB / 2; /* the others have none, or half of the probability */
        for (size_t i = 0; i < MAX_VOCAB; i++)
            g_logits[i] = i < n_upper ? (float)(way % 2) : way == 2 ? -INFINITY : (float)(way % 2) - 0.6931472f;
        for (uint64_t pos = 0; pos < 40; pos++) {
            double share = way == 3 ? 1.5 : 1, at = nib_rng_uniform(1234, pos, 0) * share * (double)n_upper;
            double want = at < (double)n_upper ? at : (double)n_upper + 2 * (at - (double)n_upper);
            assert_true(fabs((double)draw(s, NULL, pos) - want) < 2);
        }
        nib_sampler_free(s);
    }
}

/* Everything switched on, windows that are bounded: no allocation after construction. */
static void test_no_allocation(void **state) {
    (void)state;
    static const nib_token breakers[] = {1, 2, 3};
    static const uint32_t lengths[] = {1, 2};
    for (int way = 0; way < 5; way++) {
        nib_sampler_params p = params(way == 3 ? "" : NULL);
        nib_logit_bias bias = {5, 1};
        p.bias = &bias, p.n_bias = 1;
        p.temp = 0.7f, p.dynatemp_range = 0.3f, p.typical_p = 0.9f, p.top_n_sigma = 3, p.xtc_probability = 0.5f;
        p.penalty_repeat = 1.1f, p.penalty_last_n = way == 1 ? -1 : 65536, p.dry_multiplier = 0.5f;
        p.dry_breakers = breakers, p.dry_breaker_lengths = lengths, p.n_dry_breakers = 2;
        p.adaptive_target = 0.4f, p.mirostat = way == 2 ? 2 : way == 4 ? 1 : 0;
        if (way == 0) p.chain = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p";
        nib_sampler *s = new_sampler(&p, 5000);
        uint64_t before = nib_alloc_count();
        for (uint64_t pos = 0; pos < 300; pos++) {
            naive_logits(g_logits, 5000, (uint32_t)pos, 2, false);
            assert_int_equal(nib_sampler_accept(s, draw(s, NULL, pos), NULL), NIB_OK);
        }
        nib_sampler_reset(s);
        assert_int_equal(nib_alloc_count(), before);
        nib_sampler_free(s);
    }
}

/* A window longer than 65536 grows with the history, by doubling. */
static void test_growth(void **state) {
    (void)state;
    nib_sampler_params p = params(NULL);
    p.penalty_repeat = 1.1f, p.penalty_last_n = 1000000000, p.dry_multiplier = 0.5f, p.dry_penalty_last_n = -1;
    nib_sampler *s = new_sampler(&p, 100);
    uint64_t before = nib_alloc_count();
    for (int i = 0; i < 300000; i++) assert_int_equal(nib_sampler_accept(s, i * 7 % 100, NULL), NIB_OK);
    assert_true(nib_alloc_count() - before <= 9);
    naive_logits(g_logits, 100, 1, 2, false);
    draw(s, NULL, 0);
    nib_sampler_free(s);
}

/* Parameters at the ends of their ranges, all at once: a token comes out, and nothing else happens. */
static void test_extremes(void **state) {
    (void)state;
    naive_logits(g_logits, 500, 1, 3, false);
    g_logits[3] = 3.4e38f, g_logits[4] = -3.4e38f, g_logits[5] = -INFINITY, g_logits[6] = 1e-45f;
    for (uint32_t round = 0; round < 400; round++) {
#define PICK(i, a, b, c) (nib_rng_uniform(round, i, 60) < 0.33 ? (a) : nib_rng_uniform(round, i, 61) < 0.5 ? (b) : (c))
        nib_sampler_params p = params(PICK(0, NULL, "t;x;m;p;y;k;s;d;e;a", ""));
        p.temp = PICK(1, 1e-30f, 1e30f, 1.0f), p.dynatemp_range = PICK(2, 0.0f, 1e30f, 1e-30f);
        p.dynatemp_exponent = PICK(3, 0.0f, 3e38f, 1.0f), p.top_k = PICK(4, -1000000000, 1, INT32_MAX);
        p.top_p = PICK(5, 0.0f, 1e-30f, 0.99999f), p.min_p = PICK(6, 1e-45f, 1.0f, -3e38f);
        p.typical_p = PICK(7, 0.0f, 0.99999f, 1.0f), p.top_n_sigma = PICK(8, 1e-30f, 3e38f, -1.0f);
        p.xtc_probability = PICK(9, 1.0f, 0.0f, 0.5f), p.xtc_threshold = PICK(10, 0.0f, 0.5f, 1e-30f);
        p.penalty_last_n = PICK(11, 1000000000, -1, 1), p.penalty_repeat = PICK(12, 1e-30f, 1e30f, 1.0f);
        p.penalty_frequency = PICK(13, -3e38f, 3e38f, 0.0f), p.penalty_presence = PICK(14, -3e38f, 3e38f, 0.0f);
        p.dry_multiplier = PICK(15, 0.0f, 3e38f, 1.0f), p.dry_base = PICK(16, 1.0f, 3e38f, 1.75f);
        p.dry_allowed_length = PICK(17, 0, INT32_MAX, 2), p.dry_penalty_last_n = PICK(18, 1000000000, -1, 1);
        p.mirostat = PICK(19, 0, 1, 2), p.mirostat_tau = PICK(20, 0.0f, 3e38f, 5.0f);
        p.mirostat_eta = PICK(21, 0.0f, 3e38f, 0.1f), p.adaptive_target = PICK(22, 0.0f, 1.0f, -1.0f);
        p.adaptive_decay = PICK(23, 0.0f, 0.99f, 0.9f), p.min_keep = PICK(24, 0u, 1000000000u, UINT32_MAX);
        nib_sampler *s = new_sampler(&p, 500);
        for (uint64_t pos = 0; pos < 12; pos++) {
            nib_token id = draw(s, NULL, pos << 60);
            assert_true(id >= 0 && id < 500 && id != 5);
            assert_int_equal(nib_sampler_accept(s, id, NULL), NIB_OK);
        }
        nib_sampler_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distribution),     cmocka_unit_test(test_draw_is_by_rank),
        cmocka_unit_test(test_random_by_position), cmocka_unit_test(test_seed),
        cmocka_unit_test(test_greedy),           cmocka_unit_test(test_bias),
        cmocka_unit_test(test_mask),             cmocka_unit_test(test_nothing_allowed),
        cmocka_unit_test(test_nan_and_infinity), cmocka_unit_test(test_accept_refuses),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_greedy_leaves_out_what_does_not_matter),
        cmocka_unit_test(test_draw_among_equals), cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_growth),           cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
