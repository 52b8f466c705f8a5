/* tests/test_base_half.c - 16-bit floats against their definition: every half, every border between two of them. */
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

/* A finite half by the formula of IEEE 754. */
static double value_of(uint32_t h) {
    int exp = h >> 10 & 31, man = h & 0x3ff;
    double v = exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24);
    return h & 0x8000 ? -v : v;
}

static bool is_nan(uint32_t h) {
    return (h & 0x7fff) > 0x7c00;
}

static void test_widening(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = nib_f16_to_f32((uint16_t)h);
        if (is_nan(h)) {
            assert_true(f != f);
            assert_true(nib_f32_bits(f) >> 22 & 1); /* quiet */
            assert_int_equal(nib_f32_bits(f) >> 31, h >> 15);
        } else if ((h & 0x7fff) == 0x7c00) {
            assert_true(f == (h & 0x8000 ? -INFINITY : INFINITY));
        } else {
            assert_true((double)f == value_of(h));
            assert_int_equal(nib_f32_bits(f) >> 31, h >> 15); /* also of -0 */
        }
    }
}

static void test_narrowing_is_exact(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++)
        if (!is_nan(h)) assert_int_equal(nib_f16_from_f32(nib_f16_to_f32((uint16_t)h)), h);
        else assert_true(is_nan(nib_f16_from_f32(nib_f16_to_f32((uint16_t)h))));
    assert_true(is_nan(nib_f16_from_f32(nib_f32_from_bits(0x7f800001)))); /* the payload's high bits are zero */
    assert_int_equal(nib_f16_from_f32(nib_f32_from_bits(0xffffffff)) >> 15, 1);
}

/* Between h and h + 1: the middle goes to the even one, its neighbours to the nearer one. */
static void test_narrowing_rounds_to_nearest_even(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double next = h + 1 == 0x7c00 ? 65536 : value_of(h + 1); /* what rounds to infinity starts at the middle to 2^16 */
        float middle = (float)((value_of(h) + next) / 2);
        assert_true((double)middle == (value_of(h) + next) / 2);
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            float m = sign ? -middle : middle;
            assert_int_equal(nib_f16_from_f32(m), sign | (h % 2 ? h + 1 : h));
            assert_int_equal(nib_f16_from_f32(nextafterf(m, 0)), sign | h);
            assert_int_equal(nib_f16_from_f32(nextafterf(m, m * 2)), sign | (h + 1));
        }
    }
    assert_int_equal(nib_f16_from_f32(3.4e38f), 0x7c00);
    assert_int_equal(nib_f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(nib_f16_from_f32(1e-45f), 0);
    assert_int_equal(nib_f16_from_f32(-1e-45f), 0x8000);
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) assert_int_equal(nib_f32_bits(nib_bf16_to_f32((uint16_t)h)), h << 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widening),
        cmocka_unit_test(test_narrowing_is_exact),
        cmocka_unit_test(test_narrowing_rounds_to_nearest_even),
        cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
