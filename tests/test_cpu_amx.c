/* tests/test_cpu_amx.c - the test of AMX tiles: refuses wrong sums. */
#include "cpu/amx_test.h"

#include "nib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void right(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out) {
    memset(out, 0, sizeof *out);
    for (int t = 0; t < 16; t++)
        for (int r = 0; r < 16; r++)
            for (int k = 0; k < n_cols; k++) {
                int8_t w = b[k / 4 * 64 + 4 * r + k % 4];
                out->both_signed[t][r] += a[64 * t + k] * w;
                out->b_unsigned[t][r] += a[64 * t + k] * (uint8_t)w;
            }
}

static void nothing(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out) {
    (void)n_cols, (void)a, (void)b;
    memset(out, 0, sizeof *out);
}

static void one_wrong(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out) {
    right(n_cols, a, b, out);
    if (n_cols == 64) out->b_unsigned[15][15]++;
}

static void test_products_are_compared(void **unused) {
    (void)unused;
    assert_true(nib_cpu_amx_test(right));
    assert_false(nib_cpu_amx_test(nothing));
    assert_false(nib_cpu_amx_test(one_wrong));
}

static void test_says_what_the_machine_has(void **unused) {
    (void)unused;
    print_message("amx is %s here\n", nib_isa_usable("amx") ? "usable" : "not usable");
    assert_true(nib_isa_trouble() == NULL || !nib_isa_usable("amx"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_compared),
        cmocka_unit_test(test_says_what_the_machine_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
