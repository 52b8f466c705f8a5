/* tests/test_cli_view.c - an answer on the terminal: parts, thoughts shown and hidden, calls, blank lines. */
#include "../cli/glyph.c" /* the program is no library */
#include "../cli/list.c"
#include "../cli/markdown.c"
#include "../cli/span.c"
#include "../cli/view.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- in place of term.c: what is written is kept */

static nib_buf written;
static double now_ms;

void nib_cli_out_open(nib_cli_out *out) {
    *out = (nib_cli_out){0};
}

void nib_cli_out_flush(nib_cli_out *out) {
    nib_buf_append(&written, out->buf.ptr, out->buf.len);
    out->buf.len = 0;
}

void nib_cli_out_puts(nib_cli_out *out, const char *text) {
    nib_buf_str(&out->buf, text);
}

void nib_cli_out_printf(nib_cli_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    nib_buf_vprintf(&out->buf, format, args);
    va_end(args);
}

void nib_cli_warning(const nib_cli_term *term, const char *format, ...) {
    va_list args;
    (void)term;
    va_start(args, format);
    nib_buf_str(&written, "warning: ");
    nib_buf_vprintf(&written, format, args);
    nib_buf_str(&written, "\n");
    va_end(args);
}

double nib_cli_now_ms(void) {
    return now_ms += 60;
}

/* ---- */

static nib_chat_event event(nib_chat_event_kind kind, const char *text) {
    return (nib_chat_event){.kind = kind, .text = {text, strlen(text)}, .name = {"now", 3}};
}

static const char *shown(const nib_cli_options *opt, bool color, const nib_chat_event *events, size_t n) {
    nib_cli_term term = {.out_is_terminal = true, .out_color = color};
    nib_cli_view view;
    size_t n_thoughts = 0;
    written.len = 0;
    now_ms = 0;
    nib_cli_view_begin(&view, &term, opt, &n_thoughts);
    for (size_t i = 0; i < n; i++) {
        n_thoughts += events[i].kind == NIB_CHAT_REASONING;
        assert_true(nib_cli_view_event(&view, &events[i]));
    }
    nib_cli_view_end(&view);
    return nib_buf_cstr(&written);
}

static void test_parts(void **state) {
    (void)state;
    const nib_chat_event events[] = {
        event(NIB_CHAT_REASONING, "\n\nhm"),       event(NIB_CHAT_REASONING, " …\n\nyes\n"), event(NIB_CHAT_CONTENT, "\n"),
        event(NIB_CHAT_CONTENT, "**so**\n"),       event(NIB_CHAT_CONTENT, "\n"),            event(NIB_CHAT_CONTENT, "it is\n\n"),
        event(NIB_CHAT_TOOL_CALL, "{\"a\":1}"),    event(NIB_CHAT_WARNING, "odd"),
    };
    enum { N = sizeof events / sizeof events[0] };
    nib_cli_options opt = {.reasoning = NIB_CLI_REASONING_SHOW};
    assert_string_equal(shown(&opt, true, events, N),
                        "\033[2mhm …\n\nyes\033[0m\n\n\033[0;1mso\033[0m\n\nit is\n\033[2m→ now {\"a\":1}\033[0m\nwarning: odd\n");
    assert_string_equal(shown(&opt, false, events, N), "hm …\n\nyes\n\n**so**\n\nit is\n→ now {\"a\":1}\nwarning: odd\n");
    opt.reasoning = NIB_CLI_REASONING_HIDE;
    assert_string_equal(shown(&opt, false, events, 5),
                        "\r\033[Kthinking … 0.1 s, 1 token\r\033[Kthought for 0.2 s, 2 tokens\n**so**\n"); /* not drawn for each */
    opt.plain = true;
    assert_string_equal(shown(&opt, true, events + 3, 3), "**so**\n\nit is\n");
}

static void test_nothing_is_obeyed(void **state) {
    (void)state;
    const nib_chat_event events[] = {event(NIB_CHAT_REASONING, "\033[2J\x9b"), event(NIB_CHAT_CONTENT, "\033]0;x\a"),
                                     event(NIB_CHAT_TOOL_CALL, "{\"a\":\"\033[m\"}")};
    nib_cli_options opt = {.reasoning = NIB_CLI_REASONING_SHOW, .plain = true};
    assert_string_equal(shown(&opt, false, events, 3), "␛[2J�\n\n␛]0;x␇\n→ now {\"a\":\"␛[m\"}\n");
}

static void test_empty(void **state) {
    (void)state;
    const nib_chat_event events[] = {event(NIB_CHAT_CONTENT, "\n\n")};
    nib_cli_options opt = {0};
    assert_string_equal(shown(&opt, false, events, 0), "");
    assert_string_equal(shown(&opt, false, events, 1), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_nothing_is_obeyed),
                                       cmocka_unit_test(test_empty)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nib_buf_free(&written);
    return failed;
}
