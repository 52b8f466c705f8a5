/* tests/test_base_status.c - errors as values: texts, cutting, cleaning, prefixes. */
#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_texts(void **state) {
    (void)state;
    assert_string_equal(nib_status_text(NIB_OK), "ok");
    assert_string_equal(nib_status_text(NIB_E_CANCELLED), "cancelled");
    for (int i = 0; i >= -11; i--) {
        assert_string_not_equal(nib_status_text((nib_status)i), "unknown status");
        for (int j = 0; j > i; j--) assert_string_not_equal(nib_status_text((nib_status)i), nib_status_text((nib_status)j));
    }
    assert_string_equal(nib_status_text((nib_status)-12), "unknown status");
    assert_string_equal(nib_status_text((nib_status)1), "unknown status");
    assert_string_equal(nib_version(), NIB_VERSION);
}

static void test_fail(void **state) {
    (void)state;
    nib_error err;
    assert_int_equal(nib_fail(NULL, NIB_E_ARG, "no place for it"), NIB_E_ARG);
    assert_int_equal(nib_fail(&err, NIB_E_ARG, "%s is %d", "n", 3), NIB_E_ARG);
    assert_int_equal(err.code, NIB_E_ARG);
    assert_true(err.offset == NIB_NO_OFFSET);
    assert_string_equal(err.message, "n is 3");
    assert_int_equal(nib_fail_at(&err, NIB_E_FORMAT, 77, "bad"), NIB_E_FORMAT);
    assert_true(err.offset == 77);
    assert_int_equal(nib_fail_nomem(&err, 12, "a cat"), NIB_E_NOMEM);
    assert_string_equal(err.message, "out of memory: 12 bytes for a cat");
    nib_fail_nomem(&err, 0, "a cat");
    assert_string_equal(err.message, "out of memory for a cat");
    assert_int_equal(nib_fail_errno(&err, ENOENT, "cannot open %s", "x"), NIB_E_IO);
    assert_string_equal(err.message, "cannot open x: No such file or directory");
    assert_int_equal(nib_fail_errno(NULL, ENOENT, "cannot open"), NIB_E_IO);
}

/* Names come from files: a terminal must not obey them, and none may break the line. */
static void test_control_characters(void **state) {
    (void)state;
    nib_error err;
    nib_fail(&err, NIB_E_FORMAT, "key '%s'", "a\x1b[31m\n\tb\x7f é");
    assert_string_equal(err.message, "key 'a?[31m??b? é'");
    nib_error_prefix(&err, "dir\n/%s", "f");
    assert_string_equal(err.message, "dir?/f: key 'a?[31m??b? é'");
    nib_fail(&err, NIB_E_FORMAT, "%s", "C1 \xc2\x9b[31m, cut \xe2\x96, overlong \xc0\x8a, stray \x80, surrogate \xed\xa0\x80, ▁ 😀");
    assert_string_equal(err.message, "C1 ??[31m, cut ??, overlong ??, stray ?, surrogate ???, ▁ 😀");
}

static void test_long_messages_are_cut(void **state) {
    (void)state;
    nib_error err;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    nib_fail(&err, NIB_E_FORMAT, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    nib_fail(&err, NIB_E_FORMAT, "%.*s%s", (int)sizeof err.message - 2, text, "é"); /* no half of a character stays */
    assert_string_equal(err.message + sizeof err.message - 3, "x?");
    nib_fail_errno(&err, ENOENT, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    nib_error_prefix(&err, "path");
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "path: xxx", 9);
    nib_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message + 197, ": path: xxx", 11);
}

/* A prefix costs the old message only what does not fit. */
static void test_prefix_keeps_the_message(void **state) {
    (void)state;
    nib_error err;
    char text[400], want[420];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = 0;
    nib_fail(&err, NIB_E_IO, "%s", text);
    nib_error_prefix(&err, "m.gguf");
    strcpy(want, "m.gguf: ");
    strcat(want, text);
    assert_string_equal(err.message, want);
    assert_int_equal(err.code, NIB_E_IO);
    nib_error_prefix(NULL, "nothing");
}

static nib_status passes(nib_status s, int *ran) {
    NIB_TRY(s);
    *ran += 1;
    return NIB_OK;
}

static nib_status passes_out(nib_status s, int *freed) {
    nib_status status = NIB_E_ARG;
    NIB_TRY_OUT(s);
out:
    *freed += 1;
    return status;
}

static void test_try(void **state) {
    (void)state;
    int n = 0;
    assert_int_equal(passes(NIB_OK, &n), NIB_OK);
    assert_int_equal(passes(NIB_E_LIMIT, &n), NIB_E_LIMIT);
    assert_int_equal(n, 1);
    assert_int_equal(passes_out(NIB_OK, &n), NIB_OK);
    assert_int_equal(passes_out(NIB_E_IO, &n), NIB_E_IO);
    assert_int_equal(n, 3);
    nib_str none = {0}, s = {"abcdef", 3};
    nib_error err;
    nib_fail(&err, NIB_E_ARG, "[%.*s][%.*s]", NIB_STR_ARG(none), NIB_STR_ARG(s));
    assert_string_equal(err.message, "[][abc]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_prefix_keeps_the_message),
        cmocka_unit_test(test_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
