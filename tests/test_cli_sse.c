/* tests/test_cli_sse.c - server-sent events: lines of all kinds, cut anywhere. */
#include "../cli/sse.c" /* the program is no library */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bool keep(void *user, nib_str data) {
    assert_int_equal(data.ptr[data.len], 0);
    return nib_buf_append(user, data.ptr, data.len) && nib_buf_char(user, '|');
}

static void test_events(void **state) {
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"data: a\n\ndata:b\n\n", "a|b|"},
        {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "a|b|c|"},
        {": comment\nevent: x\nid: 1\ndata: a\nretry: 5\n\n\n\n", "a|"},
        {"data: a\ndata:  b\n\n", "a\n b|"},
        {"data\n\ndata: not ended\n", ""},
        {"data:\n\n", "|"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t n = 1, len = strlen(cases[i].text); n <= len; n++) {
            nib_cli_sse sse = {0};
            nib_buf got = {0};
            for (size_t at = 0; at < len; at += n)
                assert_true(nib_cli_sse_feed(&sse, (nib_str){cases[i].text + at, n < len - at ? n : len - at}, keep, &got));
            assert_string_equal(nib_buf_cstr(&got), cases[i].want);
            nib_buf_free(&got);
            nib_cli_sse_free(&sse);
        }
}

static bool refuse(void *user, nib_str data) {
    (void)data;
    return ++*(int *)user < 2;
}

static void test_stops(void **state) {
    static const char text[] = "data: a\n\ndata: b\n\ndata: c\n\n";
    nib_cli_sse sse = {0};
    int n = 0;
    (void)state;
    assert_false(nib_cli_sse_feed(&sse, (nib_str){text, sizeof text - 1}, refuse, &n));
    assert_int_equal(n, 2);
    nib_cli_sse_free(&sse);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events), cmocka_unit_test(test_stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
