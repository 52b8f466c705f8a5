/* tests/test_base_json.c - numbers of JSON texts: with as few digits as say the same, and no larger than others read. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void becomes(const char *text, const char *wanted) {
    char copy[256];
    strcpy(copy, text);
    nib_json_shorten(copy);
    assert_string_equal(copy, wanted);
}

static void test_numbers(void **state) {
    (void)state;
    becomes("[0.10000000000000001,-1.1000000000000001e-7]", "[0.1,-1.1e-07]");
    becomes("{\"a\":0.30000000000000004}", "{\"a\":0.30000000000000004}"); /* there is no shorter one */
    becomes("0.29999999999999999", "0.3");
    becomes("[1.0,12345678901234567890123,1234567890123456.0]", "[1.0,12345678901234567890123,1234567890123456.0]");
}

static void test_all_else_stays(void **state) {
    (void)state;
    becomes("", "");
    becomes("{\"0.10000000000000001\":\"\\\"0.10000000000000001\",\"b\":[true,null,\"e\"]}",
            "{\"0.10000000000000001\":\"\\\"0.10000000000000001\",\"b\":[true,null,\"e\"]}");
    becomes("\"\\\\\",0.10000000000000001", "\"\\\\\",0.1");
}

static void fits(const char *text, const char *wanted) {
    nib_buf out = {0};
    nib_json_fit((nib_str){text, strlen(text)}, &out);
    assert_string_equal(nib_buf_cstr(&out), wanted);
    nib_buf_free(&out);
}

static void test_large(void **state) {
    (void)state;
    fits("[9223372036854775807,-9223372036854775808]", "[9223372036854775807,-9223372036854775808]");
    fits("[9223372036854775808,-9223372036854775809 ]", "[9223372036854775808e0,-9223372036854775809e0 ]");
    fits("{\"a\":1e999,\"b\":-1E+4000}", "{\"a\":1.7976931348623157e+308,\"b\":-1.7976931348623157e+308}");
    fits("[1e308,1e-999,0.5]", "[1e308,1e-999,0.5]");
    fits("{\"1e999\":\"\\\"1e999\\\\\",\"e\":true}", "{\"1e999\":\"\\\"1e999\\\\\",\"e\":true}");
    fits("[1e,--1,12345678901234567890e", "[1e,--1,12345678901234567890e"); /* faults are left */
    fits("[1e999.5,-1e999e1,1e999-1]", "[1e999.5,-1e999e1,1e999-1]");
    fits("\"a\\", "\"a\\");
    char text[1000], wanted[] = "-1.7976931348623157e+308";
    memset(text, '9', sizeof text);
    text[0] = '-', text[999] = 0;
    fits(text, wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_all_else_stays),
                                        cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
