/* tests/test_base_json_text.c - steps of reading JSON: what strings stand for, where numbers end, and where faults are. */
#include "base/json_text.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nib_json_cursor cursor(const char *text) {
    return (nib_json_cursor){text, text + strlen(text), NULL};
}

/* Behind the opening quote. */
static void reads(const char *text, const char *wanted, const char *fault, size_t at) {
    nib_json_cursor c = cursor(text);
    size_t len = 0, room = nib_json_string_room(&c);
    char *to = malloc(room);
    assert_int_equal(nib_json_string(&c, to, &len), wanted != NULL);
    if (wanted) {
        assert_null(c.fault);
        assert_int_equal(len, strlen(wanted));
        assert_memory_equal(to, wanted, len);
        assert_in_range(len, 0, room);
    } else {
        assert_non_null(strstr(c.fault, fault));
    }
    assert_int_equal(c.at - text, at);
    free(to);
}

static void test_strings(void **state) {
    (void)state;
    reads("ab\" x", "ab", NULL, 3);
    reads("\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", NULL, 17);
    reads("\\u00e9\\uD83D\\ude00\xC3\xA9\"", "\xC3\xA9\xF0\x9F\x98\x80\xC3\xA9", NULL, 21);
    reads("ab", NULL, "closing quote", 2);
    reads("a\\", NULL, "escape", 2);
    reads("\\x\"", NULL, "escape", 1);
    reads("\\u12g4\"", NULL, "hexadecimal", 4);
    reads("\\ud83d\"", NULL, "surrogate", 6);
    reads("\\ude00\"", NULL, "surrogate", 6);
    reads("\\ud83d\\u0041\"", NULL, "surrogate", 12);
    reads("a\n\"", NULL, "control", 1);
    reads("a\xFF\"", NULL, "UTF-8", 1);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const good[] = {"0", "-1", "10", "1.5", "-0.25", "1e5", "2E-3", "3.5e+10"};
    static const char *const bad[] = {"", "-", "01", "1.", ".5", "1e", "1e+", "+1", "x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        nib_json_cursor c = cursor(good[i]);
        nib_str text;
        assert_true(nib_json_number(&c, &text));
        assert_int_equal(text.len, strlen(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        nib_json_cursor c = cursor(bad[i]);
        nib_str text;
        assert_false(nib_json_number(&c, &text));
        assert_non_null(c.fault);
    }
}

static void test_signs(void **state) {
    (void)state;
    nib_json_cursor c = cursor(" \t\r\n: true");
    assert_false(nib_json_skip(&c, ','));
    assert_true(nib_json_skip(&c, ':'));
    assert_false(nib_json_word(&c, "true"));
    nib_json_blanks(&c);
    assert_true(nib_json_word(&c, "true"));
    assert_false(nib_json_word(&c, "x"));
    assert_false(nib_json_fail(&c, "first") || nib_json_fail(&c, "second"));
    assert_string_equal(c.fault, "first");
}

static void test_characters(void **state) {
    (void)state;
    static const uint32_t all[] = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char bytes[4];
        uint32_t back;
        size_t n = nib_utf8_put(all[i], bytes);
        assert_int_equal(nib_utf8_char(bytes, n, &back), n);
        assert_int_equal(back, all[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
