/* tests/test_model_rope.c - frequencies of rotary embeddings against the formulas of the papers in double precision:
 * plain, linear scaling, YaRN (arXiv 2309.00071, sections 3.2 to 3.4), divisors of Llama 3.1. */
#include "model/rope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_HALF 128

static nib_model_hparams hparams(uint32_t n_rot, float base) {
    return (nib_model_hparams){.n_rot = n_rot, .rope_base = base, .rope_factor = 1, .rope_attn_factor = 1,
                               .yarn_ext_factor = 1, .yarn_attn_factor = 1, .yarn_beta_fast = 32, .yarn_beta_slow = 1,
                               .rope_orig_ctx = 4096, .scaling = NIB_ROPE_SCALE_NONE};
}

/* Within a rounding to float. */
static void same(float found, double wanted) {
    if (!(fabs((double)found - wanted) <= 0x1p-24 * fabs(wanted) * 1.001)) fail_msg("%.9g, expected %.9g", (double)found, wanted);
}

static double theta(const nib_model_hparams *hp, uint32_t i) {
    return pow((double)hp->rope_base, -2.0 * i / hp->n_rot);
}

static void test_plain(void **state) {
    (void)state;
    static const float bases[] = {10000, 100000, 500000, 1e6f, 5e6f};
    float f[MAX_HALF], g[MAX_HALF], mscale;
    for (uint32_t n_rot = 2; n_rot <= 256; n_rot += 2)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            nib_model_hparams hp = hparams(n_rot, bases[b]);
            nib_model_rope_plain(bases[b], n_rot, f);
            nib_model_rope_scaled(&hp, NULL, g, &mscale);
            assert_true(mscale == 1);
            assert_memory_equal(f, g, n_rot / 2 * sizeof *f);
            for (uint32_t i = 0; i < n_rot / 2; i++) same(f[i], theta(&hp, i));
        }
}

static void test_linear(void **state) {
    (void)state;
    float f[MAX_HALF], mscale;
    nib_model_hparams hp = hparams(128, 10000);
    hp.scaling = NIB_ROPE_SCALE_LINEAR;
    for (float factor = 0.25f; factor < 40; factor *= 1.7f) {
        hp.rope_factor = factor;
        nib_model_rope_scaled(&hp, NULL, f, &mscale);
        assert_true(mscale == 1); /* only YaRN corrects the magnitude */
        for (uint32_t i = 0; i < 64; i++) same(f[i], theta(&hp, i) / (double)factor);
    }
}

/* Llama 3.1: wavelengths beyond old / low are stretched by the factor, those below old / high stay, smooth between. */
static void test_factors(void **state) {
    (void)state;
    float f[64], divisors[64], mscale;
    nib_model_hparams hp = hparams(128, 500000);
    for (uint32_t i = 0; i < 64; i++) {
        double wave = 2 * acos(-1.0) / theta(&hp, i), smooth = (8192 / wave - 1) / (4 - 1);
        divisors[i] = wave < 8192.0 / 4 ? 1 : wave > 8192.0 / 1 ? 8 : (float)(1 / ((1 - smooth) / 8 + smooth));
    }
    nib_model_rope_scaled(&hp, divisors, f, &mscale);
    for (uint32_t i = 0; i < 64; i++) same(f[i], theta(&hp, i) / (double)divisors[i]);
    assert_true(f[0] == 1 && divisors[0] == 1 && divisors[63] == 8);
    hp.scaling = NIB_ROPE_SCALE_LINEAR, hp.rope_factor = 2; /* both at once */
    nib_model_rope_scaled(&hp, divisors, f, &mscale);
    for (uint32_t i = 0; i < 64; i++) same(f[i], theta(&hp, i) / (double)divisors[i] / 2);
}

/* NTK-by-parts: dimensions that turn more than beta_fast times over the old context keep their frequency, those that turn
 * less than beta_slow times are interpolated, between them a ramp over whole dimensions. */
static void yarn(const nib_model_hparams *hp, const float *divisors, double *out) {
    double pi = acos(-1.0), log_base = log((double)hp->rope_base);
    double from = floor(hp->n_rot * log(hp->rope_orig_ctx / ((double)hp->yarn_beta_fast * 2 * pi)) / (2 * log_base));
    double to = ceil(hp->n_rot * log(hp->rope_orig_ctx / ((double)hp->yarn_beta_slow * 2 * pi)) / (2 * log_base));
    from = fmax(from, 0), to = fmin(to, hp->n_rot - 1);
    for (uint32_t i = 0; i < hp->n_rot / 2; i++) {
        double gamma = 1 - fmin(fmax((i - from) / fmax(to - from, 0.001), 0), 1), f = theta(hp, i);
        if (divisors) f /= (double)divisors[i];
        gamma *= (double)hp->yarn_ext_factor;
        out[i] = (1 - gamma) * f / (double)hp->rope_factor + gamma * f;
    }
}

static void check_yarn(const nib_model_hparams *hp, const float *divisors, double wanted_mscale) {
    float f[MAX_HALF], mscale;
    double want[MAX_HALF];
    nib_model_rope_scaled(hp, divisors, f, &mscale);
    yarn(hp, divisors, want);
    for (uint32_t i = 0; i < hp->n_rot / 2; i++) same(f[i], want[i]);
    if (!(fabs((double)mscale - wanted_mscale) < 2e-7 * wanted_mscale))
        fail_msg("mscale %.9g, expected %.9g", (double)mscale, wanted_mscale);
}

static void test_yarn(void **state) {
    (void)state;
    for (uint32_t n_rot = 32; n_rot <= 256; n_rot *= 2)
        for (float base = 10000; base < 2e6f; base *= 10)
            for (float factor = 1; factor < 70; factor *= 2)
                for (uint32_t context = 2048; context <= 32768; context *= 4) {
                    nib_model_hparams hp = hparams(n_rot, base);
                    hp.scaling = NIB_ROPE_SCALE_YARN, hp.rope_factor = factor, hp.rope_orig_ctx = context;
                    check_yarn(&hp, NULL, 1 + 0.1 * log((double)factor)); /* sqrt(1/t) of the paper */
                }
}

static void test_yarn_edges(void **state) {
    (void)state;
    nib_model_hparams hp = hparams(64, 10000);
    hp.scaling = NIB_ROPE_SCALE_YARN, hp.rope_factor = 4;
    double m = 1 + 0.1 * log(4.0);
    float f[32], g[32], divisors[32], mscale;
    nib_model_rope_scaled(&hp, NULL, f, &mscale);
    assert_true(f[0] == 1);               /* the fastest stays */
    same(f[31], theta(&hp, 31) / 4);      /* the slowest is stretched */
    hp.yarn_beta_fast = 64, hp.yarn_beta_slow = 2, check_yarn(&hp, NULL, m);
    hp.yarn_beta_fast = hp.yarn_beta_slow = 8, check_yarn(&hp, NULL, m);   /* one step between two dimensions or none */
    hp.yarn_beta_fast = 1, hp.yarn_beta_slow = 32, check_yarn(&hp, NULL, m); /* the wrong way round */
    hp.rope_orig_ctx = 1, check_yarn(&hp, NULL, m);
    hp.rope_orig_ctx = 1 << 28, check_yarn(&hp, NULL, m);
    hp = hparams(64, 10000), hp.scaling = NIB_ROPE_SCALE_YARN, hp.rope_factor = 4;
    for (uint32_t i = 0; i < 32; i++) divisors[i] = 1 + (float)i / 7;
    check_yarn(&hp, divisors, m);
    hp.yarn_ext_factor = 0.5f, check_yarn(&hp, NULL, m);
    hp.yarn_ext_factor = 0, check_yarn(&hp, NULL, 1); /* off: plain interpolation, no correction */
    nib_model_hparams linear = hp;
    linear.scaling = NIB_ROPE_SCALE_LINEAR;
    nib_model_rope_scaled(&hp, NULL, f, &mscale);
    nib_model_rope_scaled(&linear, NULL, g, &mscale);
    assert_memory_equal(f, g, sizeof f);
}

static void test_magnitudes(void **state) {
    (void)state;
    nib_model_hparams hp = hparams(64, 10000);
    hp.scaling = NIB_ROPE_SCALE_YARN, hp.rope_factor = 8;
    hp.rope_attn_factor = 1.5f, check_yarn(&hp, NULL, 1.5 * (1 + 0.1 * log(8.0))); /* on top of it */
    hp.rope_attn_factor = 1, hp.yarn_attn_factor = 1.25f, check_yarn(&hp, NULL, 1.25); /* instead of it */
    hp.yarn_ext_factor = 0, check_yarn(&hp, NULL, 1.25);
    hp = hparams(64, 10000), hp.scaling = NIB_ROPE_SCALE_YARN, hp.rope_factor = 0.5f;
    check_yarn(&hp, NULL, 1); /* a shorter context is not corrected */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_linear),     cmocka_unit_test(test_factors),
        cmocka_unit_test(test_yarn),  cmocka_unit_test(test_yarn_edges), cmocka_unit_test(test_magnitudes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
