/* tests/test_text_normalize.c - malformed text, composition, spaces that show. */
#include "text/normalize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct text_pair {
    const char *in, *out;
} text_pair;

static void check(nib_str (*fn)(nib_str, nib_buf *), const text_pair *pairs, size_t n) {
    nib_buf scratch = {0};
    for (size_t i = 0; i < n; i++) {
        nib_str in = {pairs[i].in, strlen(pairs[i].in)}, out = fn(in, &scratch);
        assert_int_equal(out.len, strlen(pairs[i].out));
        assert_memory_equal(out.ptr, pairs[i].out, out.len);
        if (strcmp(pairs[i].in, pairs[i].out) == 0) assert_ptr_equal(out.ptr, in.ptr); /* nothing was copied */
    }
    nib_buf_free(&scratch);
}

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static void test_well_formed(void **state) {
    (void)state;
    static const text_pair pairs[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xE4\xBD\xA0 \xF0\x9F\x98\x80", "\xE4\xBD\xA0 \xF0\x9F\x98\x80"},
        {"a\x80" "b", "a" BAD "b"},
        {"\xE2\x82", BAD BAD}, /* each byte of a cut character */
        {"\xE2(\xA1", BAD "(" BAD},
        {"\xC0\xAF", "/"},
        {"\xE0\x80\xAF", "/"},
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
        {"\xFE\xFF", BAD BAD},
    };
    check(nib_text_well_formed, pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_nfc(void **state) {
    (void)state;
    static const text_pair pairs[] = {
        {"", ""},
        {"plain", "plain"},
        {"e\xCC\x81", "\xC3\xA9"},                                             /* e acute */
        {"q\xCC\x81", "q\xCC\x81"},                                          /* composes with nothing */
        {"d\xCC\x87\xCC\xA3", "\xE1\xB8\x8D\xCC\x87"},                         /* marks change places */
        {"\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"},              /* a Korean syllable */
        {"\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"},                          /* excluded from composition */
        {"\xEF\xA4\x80", "\xE8\xB1\x88"},                                      /* one character for another */
        {"a\xCC\x80 b\xCC\x80", "\xC3\xA0 b\xCC\x80"},
    };
    nib_buf scratch = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        nib_str out = nib_text_nfc((nib_str){pairs[i].in, strlen(pairs[i].in)}, &scratch);
        assert_int_equal(out.len, strlen(pairs[i].out));
        assert_memory_equal(out.ptr, pairs[i].out, out.len);
    }
    nib_buf_free(&scratch);
}

/* A letter under half a million marks of two classes: they are sorted, and not in quadratic time. */
static void test_many_marks(void **state) {
    (void)state;
    enum { N = 500000 };
    static const char above[] = "\xCC\x87", below[] = "\xCC\xA3";
    char *text = malloc(1 + 2 * N);
    nib_buf scratch = {0};
    assert_non_null(text);
    text[0] = 'q';
    for (size_t i = 0; i < N; i++) memcpy(text + 1 + 2 * i, i % 2 ? below : above, 2);
    nib_str out = nib_text_nfc((nib_str){text, 1 + 2 * N}, &scratch);
    assert_int_equal(out.len, 1 + 2 * N);
    for (size_t i = 0; i < N; i++) assert_memory_equal(out.ptr + 1 + 2 * i, i < N / 2 ? below : above, 2);
    nib_buf_free(&scratch);
    free(text);
}

static void test_escape(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
        bool with_prefix;
    } cases[] = {
        {"", "", false}, {"", "\xE2\x96\x81", true}, {"a b", "a\xE2\x96\x81" "b", false},
        {" a  ", "\xE2\x96\x81\xE2\x96\x81" "a\xE2\x96\x81\xE2\x96\x81", true},
    };
    nib_buf scratch = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_str out = nib_text_escape((nib_str){cases[i].in, strlen(cases[i].in)}, cases[i].with_prefix, &scratch);
        assert_int_equal(out.len, strlen(cases[i].out));
        assert_memory_equal(out.ptr, cases[i].out, out.len);
    }
    nib_buf_free(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed),
        cmocka_unit_test(test_nfc),
        cmocka_unit_test(test_many_marks),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
