/* tests/test_base_rng.c - known answers of Philox4x32-10, range and spread of the numbers, the system's source. */
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The known-answer vectors that its authors publish. */
static void test_philox_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        nib_rng_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void test_uniform_is_a_function(void **state) {
    (void)state;
    assert_true(nib_rng_uniform(1, 2, 3) == nib_rng_uniform(1, 2, 3));
    assert_true(nib_rng_uniform(1, 2, 3) != nib_rng_uniform(2, 2, 3));
    assert_true(nib_rng_uniform(1, 2, 3) != nib_rng_uniform(1, 3, 3));
    assert_true(nib_rng_uniform(1, 2, 3) != nib_rng_uniform(1, 2, 4));
    assert_true(nib_rng_uniform(1, 2, 3) != nib_rng_uniform(1, 2 + (UINT64_C(1) << 32), 3));
}

/* 100 equal bins, by position, by seed and by draw: chi-square with 99 degrees of freedom stays below 165 in all but
 * about one of 30000 cases. */
static void test_uniform_is_even(void **state) {
    (void)state;
    enum { N = 100000, BINS = 100 };
    for (int way = 0; way < 3; way++) {
        double count[BINS] = {0}, chi = 0;
        for (uint32_t i = 0; i < N; i++) {
            double u = nib_rng_uniform(way == 1 ? i : 7, way == 0 ? i : 7, way == 2 ? i : 0);
            assert_true(u >= 0 && u < 1);
            count[(int)(u * BINS)]++;
        }
        for (int b = 0; b < BINS; b++) chi += (count[b] - N / BINS) * (count[b] - N / BINS) / (N / BINS);
        assert_true(chi < 165);
    }
}

static void test_system(void **state) {
    (void)state;
    uint32_t a = 0, b = 0, c = 0;
    assert_true(nib_rng_system(&a) && nib_rng_system(&b) && nib_rng_system(&c));
    assert_false(a == b && b == c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_uniform_is_a_function),
        cmocka_unit_test(test_uniform_is_even),
        cmocka_unit_test(test_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
