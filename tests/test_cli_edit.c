/* tests/test_cli_edit.c - which texts go on in the next line, and what is taken off them. */
#define _XOPEN_SOURCE 700 /* replace.c */
#include "../cli/edit.c" /* the program is no library */
#include "../cli/history.c"
#include "../cli/list.c"
#include "../cli/replace.c"
#include "../cli/signals.c"
#include "../cli/xdg.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_continues(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool continues;
        const char *after;
    } cases[] = {
        {"", false, ""},
        {"one", false, "one"},
        {"one\\", true, "one"},
        {"one\ntwo\\", true, "one\ntwo"},
        {"a\\ ", false, "a\\ "},
        {"\"\"\"", true, "\"\"\""},
        {"\"\"\"one\\", true, "\"\"\"one\\"},
        {"\"\"\"one\"\"\"", false, "\"\"\"one\"\"\""},
        {"say \"\"\"", false, "say \"\"\""},
        {"\"\"\"\"\"\"", false, "\"\"\"\"\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_buf text = {0};
        nib_buf_str(&text, cases[i].text);
        assert_int_equal(nib_cli_edit_continues(&text), cases[i].continues);
        assert_string_equal(nib_buf_cstr(&text), cases[i].after);
        nib_buf_free(&text);
    }
}

static void test_unquote(void **state) {
    (void)state;
    static const struct {
        const char *text, *after;
    } cases[] = {
        {"", ""},
        {"\"\"\"", "\"\"\""},
        {"\"\"\"\"\"\"", ""},
        {"\"\"\"\none\n two\n\"\"\"", "one\n two"},
        {"\"\"\"one\"\"\" \n", "one"},
        {"\"\"\"doc\"\"\"\nx = 1", "\"\"\"doc\"\"\"\nx = 1"},
        {"\"\"\"\n\"\"\"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_buf text = {0};
        nib_buf_str(&text, cases[i].text);
        nib_cli_edit_unquote(&text);
        assert_string_equal(nib_buf_cstr(&text), cases[i].after);
        nib_buf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_continues), cmocka_unit_test(test_unquote)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
