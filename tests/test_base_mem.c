/* tests/test_base_mem.c - checked sizes, growing, reserved pages, the arena. */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_sizes(void **state) {
    (void)state;
    size_t n = 1;
    assert_true(nib_mem_size(3, 7, &n));
    assert_int_equal(n, 21);
    assert_true(nib_mem_size(0, SIZE_MAX, &n));
    assert_int_equal(n, 0);
    assert_true(nib_mem_size(PTRDIFF_MAX, 1, &n));
    assert_false(nib_mem_size((size_t)PTRDIFF_MAX + 1, 1, &n));
    assert_false(nib_mem_size(SIZE_MAX / 4 + 2, 4, &n)); /* wraps to 4 */
    assert_int_equal(n, PTRDIFF_MAX);                    /* as it was */
}

static void test_alloc(void **state) {
    (void)state;
    uint64_t before = nib_alloc_count();
    assert_null(nib_alloc(SIZE_MAX / 4 + 2, 4));
    assert_null(nib_calloc(SIZE_MAX / 4 + 2, 4));
    void *empty = nib_alloc(0, 8);
    assert_non_null(empty);
    nib_free(empty);
    unsigned char *p = nib_calloc(1000, 3);
    assert_non_null(p);
    for (size_t i = 0; i < 3000; i++) assert_int_equal(p[i], 0);
    memset(p, 7, 3000);
    assert_null(nib_realloc(p, SIZE_MAX / 4 + 2, 4));
    assert_int_equal(p[2999], 7);
    p = nib_realloc(p, 100000, 1);
    assert_non_null(p);
    assert_int_equal(p[2999], 7);
    nib_free(p);
    nib_free(NULL);
    assert_int_equal(nib_alloc_count() - before, 3);
}

static void test_grow(void **state) {
    (void)state;
    uint64_t *a = NULL;
    size_t cap = 0, n_moves = 0;
    for (size_t n = 1; n <= 10000; n++) {
        size_t old = cap;
        assert_true(nib_grow(&a, &cap, n, sizeof *a));
        assert_true(cap >= n && (cap == old || cap >= 2 * old));
        n_moves += cap != old;
        a[n - 1] = n;
    }
    assert_true(n_moves < 15);
    for (size_t i = 0; i < 10000; i++) assert_true(a[i] == i + 1);
    uint64_t *same = a;
    size_t old = cap;
    assert_false(nib_grow(&a, &cap, SIZE_MAX, sizeof *a));
    assert_false(nib_grow(&a, &cap, SIZE_MAX / 2, sizeof *a));
    assert_ptr_equal(a, same);
    assert_int_equal(cap, old);
    assert_true(nib_grow(&a, &cap, 0, sizeof *a));
    nib_free(a);
}

static void test_pages(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 4095, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 17};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned char *p = nib_pages_new(sizes[k]);
        assert_non_null(p);
        assert_true((uintptr_t)p % 64 == 0);
        for (size_t i = 0; i < sizes[k]; i += 997) assert_int_equal(p[i], 0);
        memset(p, 1, sizes[k]);
        nib_pages_free(p, sizes[k]);
    }
    assert_null(nib_pages_new(0));
    assert_null(nib_pages_new(SIZE_MAX));
    assert_null(nib_pages_new(PTRDIFF_MAX));
    nib_pages_free(NULL, 0);
}

/* Pieces of all sizes: aligned, apart from each other, still there at the end. */
static void test_arena(void **state) {
    (void)state;
    nib_arena arena = {0};
    enum { N = 400 };
    unsigned char *pieces[N];
    size_t sizes[N], total = 0;
    for (size_t i = 0; i < N; i++) {
        sizes[i] = i % 50 == 49 ? 100000 * i : i * i % 700;
        pieces[i] = nib_arena_alloc(&arena, sizes[i]);
        assert_non_null(pieces[i]);
        assert_true((uintptr_t)pieces[i] % 16 == 0);
        memset(pieces[i], (int)(i & 255), sizes[i]);
        total += (sizes[i] + 15) / 16 * 16;
    }
    assert_int_equal(arena.total, total);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < sizes[i]; j += 13) assert_int_equal(pieces[i][j], i & 255);
    char *copy = nib_arena_copy(&arena, "a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(nib_arena_copy(&arena, NULL, 0), "");
    assert_null(nib_arena_alloc(&arena, SIZE_MAX));
    assert_null(nib_arena_copy(&arena, "", SIZE_MAX));
    nib_arena_free(&arena);
    assert_int_equal(arena.total, 0);
    nib_arena_free(&arena);
}

static void test_arena_limit(void **state) {
    (void)state;
    nib_arena arena = {.limit = 1000};
    assert_null(nib_arena_alloc(&arena, 1001));
    assert_non_null(nib_arena_alloc(&arena, 900));
    assert_null(nib_arena_alloc(&arena, 100)); /* 912 + 112 */
    assert_non_null(nib_arena_alloc(&arena, 80));
    assert_null(nib_arena_alloc(&arena, 1));
    nib_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_alloc), cmocka_unit_test(test_grow),
        cmocka_unit_test(test_pages), cmocka_unit_test(test_arena), cmocka_unit_test(test_arena_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
