/* tests/test_kv_pool.c - pages with reference counts: against a naive model, and the order in which memory is touched. */
#include "kv/pool.h"

#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N 37

static void test_lowest_first(void **state) {
    (void)state;
    nib_kv_pool pool;
    assert_int_equal(nib_kv_pool_init(&pool, N, NULL), NIB_OK);
    assert_int_equal(pool.n_pages, N);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(pool.n_free, N - i);
        assert_int_equal(nib_kv_pool_take(&pool), i);
    }
    assert_int_equal(pool.n_free, 0);
    nib_kv_pool_unref(&pool, 5);
    nib_kv_pool_unref(&pool, 30);
    assert_int_equal(nib_kv_pool_take(&pool), 30); /* the one used last: its memory is warm */
    nib_kv_pool_fini(&pool);
    nib_kv_pool_fini(&pool);
}

static void test_random(void **state) {
    (void)state;
    nib_kv_pool pool;
    uint32_t refs[N] = {0}, n_used = 0;
    uint64_t rng = 7;
    assert_int_equal(nib_kv_pool_init(&pool, N, NULL), NIB_OK);
    for (int step = 0; step < 100000; step++) {
        uint32_t what = (uint32_t)(blocks_random(&rng) % 4), page = (uint32_t)(blocks_random(&rng) % N);
        if (what == 0 && n_used < N) {
            page = nib_kv_pool_take(&pool);
            assert_true(page < N && refs[page] == 0);
            refs[page] = 1, n_used++;
        } else if (what == 1 && refs[page]) {
            nib_kv_pool_ref(&pool, page);
            refs[page]++;
        } else if (what > 1 && refs[page]) {
            nib_kv_pool_unref(&pool, page);
            n_used -= --refs[page] == 0;
        }
        assert_int_equal(pool.n_free, N - n_used);
        assert_int_equal(pool.refs[page], refs[page]);
    }
    uint32_t seen[N] = {0};
    for (uint32_t i = 0; i < pool.n_free; i++) assert_int_equal(seen[pool.free[i]]++, 0);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(seen[i], refs[i] == 0);
    nib_kv_pool_fini(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_first),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
