/* tests/test_base_json.c - numbers of JSON texts with as few digits as say the same. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_all_else_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
