/* tests/test_gguf_value.c - metadata values: bytes to numbers, walks over arrays. */
#include "gguf/value.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static nib_gguf_value load(nib_gguf_type type, const char *bytes) {
    nib_gguf_value v;
    nib_gguf_value_load(&v, type, bytes);
    assert_int_equal(v.type, type);
    return v;
}

static void numbers(void **state) {
    (void)state;
    assert_int_equal(load(NIB_GGUF_U8, "\xff").as.u64, 255);
    assert_int_equal(load(NIB_GGUF_I8, "\x80").as.i64, -128);
    assert_int_equal(load(NIB_GGUF_I8, "\x7f").as.i64, 127);
    assert_int_equal(load(NIB_GGUF_U16, "\x34\xff").as.u64, 0xff34);
    assert_int_equal(load(NIB_GGUF_I16, "\xff\xff").as.i64, -1);
    assert_int_equal(load(NIB_GGUF_U32, "\1\2\3\xf4").as.u64, 0xf4030201);
    assert_int_equal(load(NIB_GGUF_I32, "\0\0\0\x80").as.i64, INT32_MIN);
    assert_true(load(NIB_GGUF_U64, "\xff\xff\xff\xff\xff\xff\xff\xff").as.u64 == UINT64_MAX);
    assert_true(load(NIB_GGUF_I64, "\0\0\0\0\0\0\0\x80").as.i64 == INT64_MIN);
    assert_true(load(NIB_GGUF_F32, "\0\0\xc0\x3f").as.f64 == 1.5);
    assert_true(isnan(load(NIB_GGUF_F32, "\0\0\xc0\x7f").as.f64));
    assert_true(load(NIB_GGUF_F64, "\0\0\0\0\0\0\x04\xc0").as.f64 == -2.5);
    assert_true(load(NIB_GGUF_BOOL, "\1").as.b);
    assert_false(load(NIB_GGUF_BOOL, "\0").as.b);
}

static void names_and_sizes(void **state) {
    (void)state;
    assert_string_equal(nib_gguf_type_name(NIB_GGUF_U8), "u8");
    assert_string_equal(nib_gguf_type_name(NIB_GGUF_STRING), "string");
    assert_string_equal(nib_gguf_type_name(NIB_GGUF_F64), "f64");
    assert_string_equal(nib_gguf_type_name((nib_gguf_type)13), "unknown");
    assert_int_equal(nib_gguf_value_size(NIB_GGUF_STRING), 0);
    assert_int_equal(nib_gguf_value_size(NIB_GGUF_ARRAY), 0);
    assert_int_equal(nib_gguf_value_size(NIB_GGUF_I64), 8);
    assert_int_equal(nib_gguf_value_size(13), 0);
    assert_int_equal(nib_gguf_value_size(UINT32_MAX), 0);
}

static void whole_numbers(void **state) {
    (void)state;
    uint64_t n = 1;
    nib_gguf_value v = {.type = NIB_GGUF_I16, .as.i64 = 7};
    assert_true(nib_gguf_value_u64(&v, &n) && n == 7);
    v = (nib_gguf_value){.type = NIB_GGUF_U64, .as.u64 = UINT64_MAX};
    assert_true(nib_gguf_value_u64(&v, &n) && n == UINT64_MAX);
    n = 5;
    v = (nib_gguf_value){.type = NIB_GGUF_I32, .as.i64 = -1};
    assert_false(nib_gguf_value_u64(&v, &n));
    v = (nib_gguf_value){.type = NIB_GGUF_F32, .as.f64 = 2};
    assert_false(nib_gguf_value_u64(&v, &n));
    v = (nib_gguf_value){.type = NIB_GGUF_BOOL, .as.b = true};
    assert_false(nib_gguf_value_u64(&v, &n));
    v = (nib_gguf_value){.type = NIB_GGUF_STRING};
    assert_false(nib_gguf_value_u64(&v, &n));
    assert_int_equal(n, 5);
}

static nib_gguf_value array(nib_gguf_type elem, uint64_t n, const char *raw, size_t len) {
    return (nib_gguf_value){.type = NIB_GGUF_ARRAY, .elem = elem, .n = n, .as.raw = {raw, len}};
}

static void number_at(void **state) {
    (void)state;
    nib_gguf_value v = array(NIB_GGUF_I16, 2, "\xff\xff\x02\x01", 4);
    assert_true(nib_gguf_number_at(&v, 0) == -1 && nib_gguf_number_at(&v, 1) == 258);
    assert_true(nib_gguf_number_at(&v, 2) == 0 && nib_gguf_number_at(&v, UINT64_MAX) == 0);
    v = array(NIB_GGUF_F32, 1, "\0\0\x80\xbf", 4);
    assert_true(nib_gguf_number_at(&v, 0) == -1);
    v = array(NIB_GGUF_BOOL, 2, "\0\1", 2);
    assert_true(nib_gguf_number_at(&v, 0) == 0 && nib_gguf_number_at(&v, 1) == 1);
    v = array(NIB_GGUF_U64, 1, "\0\0\0\0\0\0\x20\0", 8);
    assert_true(nib_gguf_number_at(&v, 0) == 0x1p53);
    v = array(NIB_GGUF_STRING, 1, "\0\0\0\0\0\0\0\0", 8);
    assert_true(nib_gguf_number_at(&v, 0) == 0);
    v = (nib_gguf_value){.type = NIB_GGUF_U32, .as.u64 = 3};
    assert_true(nib_gguf_number_at(&v, 0) == 0);
}

static void strings(void **state) {
    (void)state;
    static const char raw[] = "\3\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0";
    nib_str left = {raw, sizeof raw - 1}, s;
    assert_true(nib_gguf_next_string(&left, &s));
    assert_true(s.len == 3 && memcmp(s.ptr, "abc", 3) == 0);
    assert_true(nib_gguf_next_string(&left, &s) && s.len == 0);
    assert_true(nib_gguf_next_string(&left, &s) && s.len == 1 && s.ptr[0] == 0);
    assert_false(nib_gguf_next_string(&left, &s));
    left = (nib_str){"\4\0\0\0\0\0\0\0abc", 11}; /* longer than what is left */
    assert_false(nib_gguf_next_string(&left, &s));
    left = (nib_str){"\xff\xff\xff\xff\xff\xff\xff\xff", 8};
    assert_false(nib_gguf_next_string(&left, &s));
    left = (nib_str){"\0\0\0", 3};
    assert_false(nib_gguf_next_string(&left, &s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),   cmocka_unit_test(names_and_sizes), cmocka_unit_test(whole_numbers),
        cmocka_unit_test(number_at), cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
