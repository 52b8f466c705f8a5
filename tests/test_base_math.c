/* tests/test_base_math.c - exp, log, sin and cos against libm in double precision, and their edges. */
#include "base/math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_expf(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t i = 0; i < 2000000; i++) {
        float x = NIB_EXPF_LOWEST + (float)i * ((NIB_EXPF_HIGHEST - NIB_EXPF_LOWEST) / 2000000);
        double want = exp((double)x), ulp = ldexp(1, ilogb(want) - 23), error = fabs((double)nib_expf(x) - want) / ulp;
        worst = error > worst ? error : worst;
    }
    if (!(worst < 1.2)) fail_msg("%g ulp", worst);
    assert_true(nib_expf(0.0f) == 1.0f && nib_expf(-0.0f) == 1.0f);
    assert_true(nib_expf(-INFINITY) == 0 && nib_expf(-88.0f) == 0 && nib_expf(-3e38f) == 0);
    assert_true(nib_expf(INFINITY) == INFINITY && nib_expf(88.4f) == INFINITY);
    assert_true(nib_expf(NAN) != nib_expf(NAN));
    assert_true(nib_expf(NIB_EXPF_LOWEST) >= 0x1p-126f && nib_expf(NIB_EXPF_HIGHEST) < INFINITY);
}

/* Weights of a softmax: never above 1. */
static void test_expf_of_negatives(void **state) {
    (void)state;
    for (uint32_t bits = 0x80000000; bits < nib_f32_bits(-100.0f); bits += 37) {
        float y = nib_expf(nib_f32_from_bits(bits));
        assert_true(y >= 0 && y <= 1);
    }
}

static void test_log(void **state) {
    (void)state;
    for (int e = -1000; e <= 1000; e += 7)
        for (double m = 1; m < 2; m += 0.0371) {
            double x = ldexp(m, e), want = log(x);
            assert_true(fabs(nib_log(x) - want) <= 4e-16 * fabs(want) + 2e-16);
        }
    assert_true(nib_log(1) == 0);
    assert_true(nib_log(0) == -INFINITY && nib_log(INFINITY) == INFINITY);
    assert_true(nib_log(-1) != nib_log(-1) && nib_log(NAN) != nib_log(NAN));
    for (float x = 1e-3f; x < 1e6f; x *= 1.1f) assert_true(fabs((double)nib_logf(x) - log((double)x)) <= 6e-8 * fabs(log((double)x)));
}

static void test_exp(void **state) {
    (void)state;
    for (double x = -700; x <= 700; x += 0.01) {
        double want = exp(x);
        assert_true(fabs(nib_exp(x) - want) <= 2e-15 * want);
    }
    assert_true(nib_exp(0) == 1);
}

static void near_sincos(double x, double tolerance) {
    double s, c;
    nib_sincos(x, &s, &c);
    if (!(fabs(s - sin(x)) <= tolerance && fabs(c - cos(x)) <= tolerance))
        fail_msg("%.17g: %.17g and %.17g, expected %.17g and %.17g", x, s, c, sin(x), cos(x));
}

static void test_sincos(void **state) {
    (void)state;
    for (double x = 0; x < 100; x += 0.001) near_sincos(x, 4e-16);
    for (double x = 1; x < 1.6e6; x *= 1.0003) near_sincos(x, 2e-15);
    for (int n = 0; n < 4000; n++) { /* around the borders of the quarters */
        double border = (n + 0.5) * 1.5707963267948966;
        near_sincos(border, 1e-15), near_sincos(nextafter(border, 0), 1e-15), near_sincos(nextafter(border, 1e9), 1e-15);
    }
    for (double x = 1.6e6; x < 0x1p53; x *= 1.01) near_sincos(x, x * 2.3e-16);
    double s, c;
    nib_sincos(0, &s, &c);
    assert_true(s == 0 && c == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expf), cmocka_unit_test(test_expf_of_negatives), cmocka_unit_test(test_log),
        cmocka_unit_test(test_exp),  cmocka_unit_test(test_sincos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
