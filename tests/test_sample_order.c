/* tests/test_sample_order.c - keys keep the order of candidates, the sort sorts, the heap keeps the best. */
#include "sample/order.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_key_order(void **state) {
    (void)state;
    static const float falling[] = {3.4e38f, 1e10f, 2,  1,  1e-40f,   0,
                                    -1e-40f, -1,    -2, -9, -3.4e38f, -INFINITY};
    for (size_t i = 0; i + 1 < sizeof falling / sizeof *falling; i++) {
        assert_true(nib_sample_order_key(falling[i], 9) < nib_sample_order_key(falling[i + 1], 0));
        assert_true(nib_sample_order_value(nib_sample_order_key(falling[i], 9)) == falling[i]);
    }
    assert_true(nib_sample_order_key(0.0f, 1) == nib_sample_order_key(-0.0f, 1));
    assert_true(nib_sample_order_key(1.5f, 1) < nib_sample_order_key(1.5f, 2));
}

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_sort(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 95, 96, 97, 1000, 70000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int kind = 0; kind < 3; kind++) { /* spread, many equal, all 64 bits */
            size_t n = sizes[s];
            uint64_t *keys = malloc((n + 1) * sizeof *keys), *tmp = malloc((n + 1) * sizeof *tmp),
                     *expected = malloc((n + 1) * sizeof *expected);
            assert_true(keys && tmp && expected);
            for (size_t i = 0; i < n; i++) {
                double u = nib_rng_uniform((uint32_t)n, i, 0);
                if (kind == 2) keys[i] = (uint64_t)(u * 18446744073709551615.0);
                else keys[i] = nib_sample_order_key(kind ? (float)(int)(u * 4) : (float)(u * 8 - 4), (uint32_t)i);
            }
            memcpy(expected, keys, n * sizeof *keys);
            qsort(expected, n, sizeof *keys, by_key);
            nib_sample_order_sort(keys, tmp, n);
            assert_memory_equal(keys, expected, n * sizeof *keys);
            free(keys);
            free(tmp);
            free(expected);
        }
    }
}

static void test_best(void **state) {
    (void)state;
    enum { N = 500 };
    for (size_t k = 0; k <= N + 5; k += k < 5 ? 1 : 50) {
        nib_logprob items[N + 5];
        uint64_t keys[N], tmp[N];
        nib_sample_best best = {items, 0, k};
        for (int i = 0; i < N; i++) {
            float v = (float)(int)(nib_rng_uniform(3, (uint64_t)i, 0) * 40);
            keys[i] = nib_sample_order_key(v, (uint32_t)i);
            if (nib_sample_order_wants(&best, v)) nib_sample_order_push(&best, (nib_logprob){i, v});
        }
        nib_sample_order_finish(&best);
        nib_sample_order_sort(keys, tmp, N);
        assert_int_equal(best.n, k < N ? k : N);
        for (size_t i = 0; i < best.n; i++) assert_int_equal(best.items[i].id, (uint32_t)keys[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_order),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
