/* tests/test_base_buf.c - the growable buffer: appending, formatting, and failure that sticks. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_append(void **state) {
    (void)state;
    nib_buf b = {0};
    assert_true(nib_buf_append(&b, NULL, 0));
    assert_int_equal(b.len, 0);
    assert_true(nib_buf_append(&b, "a\0b", 3));
    assert_true(nib_buf_str(&b, "cd"));
    assert_true(nib_buf_char(&b, 'e'));
    assert_int_equal(b.len, 6);
    assert_memory_equal(nib_buf_cstr(&b), "a\0bcde", 7);
    assert_int_equal(b.len, 6);
    assert_true(nib_buf_str(&b, "f")); /* the NUL of cstr is overwritten */
    assert_memory_equal(nib_buf_cstr(&b), "a\0bcdef", 8);
    nib_buf_free(&b);
    assert_null(b.ptr);
    nib_buf_free(&b);
    assert_string_equal(nib_buf_cstr(&b), "");
    nib_buf_free(&b);
}

static void test_growth(void **state) {
    (void)state;
    nib_buf b = {0};
    for (int i = 0; i < 100000; i++) assert_true(nib_buf_char(&b, (char)(i % 251)));
    assert_int_equal(b.len, 100000);
    for (int i = 0; i < 100000; i++) assert_int_equal(b.ptr[i], (char)(i % 251));
    size_t capacity = b.capacity;
    assert_true(nib_buf_reserve(&b, capacity - b.len));
    assert_int_equal(b.capacity, capacity);
    nib_buf_free(&b);
}

static void test_printf(void **state) {
    (void)state;
    nib_buf b = {0};
    char text[5000];
    memset(text, 'z', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_true(nib_buf_printf(&b, "%d-%s", 42, "x"));
    assert_true(nib_buf_printf(&b, "%s", ""));
    assert_true(nib_buf_printf(&b, "<%s>", text));
    assert_int_equal(b.len, 4 + 2 + 4999);
    assert_memory_equal(b.ptr, "42-x<zzz", 8);
    assert_int_equal(b.ptr[b.len - 1], '>');
    nib_buf_free(&b);
}

static void test_failure_sticks(void **state) {
    (void)state;
    nib_buf b = {0};
    assert_true(nib_buf_str(&b, "kept"));
    assert_false(nib_buf_reserve(&b, SIZE_MAX)); /* the sum wraps */
    assert_true(b.failed);
    assert_false(nib_buf_str(&b, "x"));
    assert_false(nib_buf_char(&b, 'x'));
    assert_false(nib_buf_printf(&b, "x"));
    assert_null(nib_buf_cstr(&b));
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.ptr, "kept", 4);
    nib_buf_free(&b);
    assert_false(b.failed);
    assert_false(nib_buf_reserve(&b, PTRDIFF_MAX)); /* doubling passes PTRDIFF_MAX */
    nib_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append), cmocka_unit_test(test_growth),
        cmocka_unit_test(test_printf), cmocka_unit_test(test_failure_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
