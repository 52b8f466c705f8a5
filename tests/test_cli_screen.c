/* tests/test_cli_screen.c - a text that is edited, on a small terminal in memory: what is seen, where the cursor is, and
 * that nothing of what was drawn before stays. */
#include "../cli/glyph.c" /* the program is no library */
#include "../cli/list.c"
#include "../cli/screen.c"

#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX_ROWS = 400, MAX_COLUMNS = 80, N_TEXT = 120 };

/* A terminal without an upper end: `rows` are those that have ever been. 0xFFFE: the second half of a wide character. */
typedef struct terminal {
    uint32_t cells[MAX_ROWS][MAX_COLUMNS];
    int columns, height, y, x, bottom; /* x == columns: the next character goes to the next row */
} terminal;

static void down(terminal *t) {
    t->y++;
    if (t->y > t->bottom) t->bottom = t->y;
    assert_true(t->y < MAX_ROWS);
}

static void show_char(terminal *t, uint32_t c) {
    int width = nib_cli_glyph_columns(c);
    if (width == 0) return;
    if (t->x + width > t->columns) {
        t->x = 0;
        down(t);
    }
    t->cells[t->y][t->x] = c;
    if (width == 2) t->cells[t->y][t->x + 1] = 0xFFFE;
    t->x += width;
}

static void clear_below(terminal *t) {
    for (int x = t->x; x < t->columns; x++) t->cells[t->y][x] = 0;
    for (int y = t->y + 1; y < MAX_ROWS; y++) memset(t->cells[y], 0, sizeof t->cells[y]);
}

static void obey(terminal *t, const nib_buf *out) {
    for (size_t i = 0, len; i < out->len; i += len) {
        nib_str rest = {out->ptr + i, out->len - i};
        uint32_t c = nib_cli_glyph_decode(rest, &len);
        if (c == 27) {
            char *end;
            long n = strtol(rest.ptr + 2, &end, 10);
            len = (size_t)(end - rest.ptr) + 1;
            int top = t->bottom - t->height + 1;
            if (*end == 'A') t->y -= (int)n;
            if (*end == 'A' && top > 0) assert_true(t->y >= top); /* the cursor cannot leave the window */
            if (*end == 'J') clear_below(t);
            assert_non_null(strchr("AJm", *end));
        } else if (c == '\r') {
            t->x = 0;
        } else if (c == '\n') {
            down(t);
        } else {
            show_char(t, c);
        }
    }
}

static nib_cli_text utf8(const char *text, size_t cursor) {
    static uint32_t chars[N_TEXT];
    nib_str rest = {text, strlen(text)};
    size_t n = 0;
    for (size_t len; rest.len; rest.ptr += len, rest.len -= len) chars[n++] = nib_cli_glyph_decode(rest, &len);
    return (nib_cli_text){"> ", "", chars, n, cursor < n ? cursor : n};
}

/* Rows from `first` on as text with '|' between them, without spaces at the ends. */
static const char *seen(const terminal *t, int first) {
    static nib_buf out;
    out.len = 0;
    for (int y = first; y <= t->bottom; y++) {
        int n = t->columns;
        while (n && (t->cells[y][n - 1] == 0 || t->cells[y][n - 1] == ' ')) n--;
        if (y > first) nib_buf_char(&out, '|');
        for (int x = 0; x < n; x++)
            if (t->cells[y][x] != 0xFFFE) nib_cli_glyph_put(&out, t->cells[y][x] ? t->cells[y][x] : ' ');
    }
    return nib_buf_cstr(&out);
}

static void draw_on(terminal *t, nib_cli_screen *s, const nib_cli_text *text) {
    nib_buf out = {0};
    nib_cli_screen_draw(s, text, t->columns, t->height, &out);
    obey(t, &out);
    nib_buf_free(&out);
}

static void test_cases(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t cursor;
        int columns;
        const char *seen;
        int y, x;
    } cases[] = {
        {"", 0, 10, ">", 0, 2},
        {"hello", 2, 10, "> hello", 0, 4},
        {"abcdefgh", 8, 10, "> abcdefgh|", 1, 2}, /* a full row: the cursor is on the next one */
        {"abcdefgh", 7, 10, "> abcdefgh|", 0, 9},
        {"abcdefghij", 9, 10, "> abcdefgh|  ij", 1, 3},
        {"abc中文字", 6, 10, "> abc中文|  字", 1, 4},
        {"abcdefg中文字", 7, 10, "> abcdefg|  中文字", 1, 2}, /* no room for half a character */
        {"e\xcc\x81x", 2, 10, "> ex", 0, 3},
        {"a\nb\n", 4, 10, "> a|  b|", 2, 2},
        {"a\tb", 3, 10, "> a    b", 0, 8},
        {"\x1b[m", 3, 10, "> ␛[m", 0, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static terminal t;
        nib_cli_screen s = {0};
        nib_cli_text text = utf8(cases[i].text, cases[i].cursor);
        t = (terminal){.columns = cases[i].columns, .height = 10};
        draw_on(&t, &s, &text);
        assert_string_equal(seen(&t, 0), cases[i].seen);
        assert_int_equal(t.y, cases[i].y);
        assert_int_equal(t.x, cases[i].x);
        nib_cli_screen_free(&s);
    }
}

/* However a text came about, the screen shows it as if it had been drawn at once. */
static void test_nothing_stays(void **state) {
    (void)state;
    static const uint32_t alphabet[] = {'a', 'b', ' ', '\n', '\t', 0x4E2D, 0x1F600, 0x301, 27};
    static terminal t, fresh;
    uint64_t random = 7;
    for (int round = 0; round < 60; round++) {
        nib_cli_screen s = {0};
        uint32_t chars[N_TEXT];
        size_t n = 0, cursor = 0;
        t = (terminal){.columns = 7 + round % 20, .height = 3 + round % 5};
        for (int step = 0; step < 40; step++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t r = random >> 33;
            size_t more = r % 7;
            if (r % 3 == 0) n = n > more ? n - more : 0;
            else
                for (size_t i = 0; i < more && n < N_TEXT; i++) chars[n++] = alphabet[(r >> (3 * i)) % 9];
            cursor = n ? r % (n + 1) : 0;
            nib_cli_text text = {"> ", "", chars, n, cursor};
            draw_on(&t, &s, &text);
            nib_cli_screen once = {.top = s.top};
            fresh = (terminal){.columns = t.columns, .height = t.height};
            draw_on(&fresh, &once, &text);
            int first = t.y - fresh.y;
            assert_true(first >= 0);
            fresh.bottom = t.bottom - first; /* rows below were used before */
            char *want = strdup(seen(&fresh, 0));
            assert_string_equal(seen(&t, first), want);
            assert_int_equal(t.x, fresh.x);
            free(want);
            nib_cli_screen_free(&once);
        }
        nib_cli_screen_free(&s);
    }
}

static void test_finish(void **state) {
    (void)state;
    static terminal t;
    nib_cli_screen s = {0};
    nib_buf out = {0};
    nib_cli_text text = utf8("one\ntwo\nthree\nfour\nfive", 2);
    t = (terminal){.columns = 10, .height = 3};
    draw_on(&t, &s, &text);
    assert_string_equal(seen(&t, 0), "> one|  two|  three");
    nib_cli_screen_finish(&s, &text, &out);
    obey(&t, &out);
    assert_string_equal(seen(&t, 0), "> one|  two|  three|  four|  five|");
    assert_int_equal(t.x, 0);
    out.len = 0;
    text = utf8("full row", 0);
    draw_on(&t, &s, &text);
    nib_cli_screen_finish(&s, &text, &out);
    obey(&t, &out);
    assert_string_equal(seen(&t, 5), "> full row|");
    nib_buf_free(&out);
    nib_cli_screen_free(&s);
}

/* A narrower terminal wraps what was drawn: the text is drawn over all of it. */
static void test_resize(void **state) {
    (void)state;
    static terminal t;
    nib_cli_screen s = {0};
    nib_cli_text text = utf8("0123456789 0123456789", 21);
    t = (terminal){.columns = 30, .height = 10};
    draw_on(&t, &s, &text);
    assert_int_equal(t.y, 0);
    t = (terminal){.columns = 10, .height = 10, .y = 2, .bottom = 2, .x = 3}; /* as a terminal reflows 23 columns */
    memset(t.cells[0], 'o', 40);
    memset(t.cells[1], 'o', 40);
    draw_on(&t, &s, &text);
    assert_string_equal(seen(&t, 0), "> 01234567|  89 01234|  56789");
    t.columns = 40;
    draw_on(&t, &s, &text);
    t.bottom = 0;
    assert_string_equal(seen(&t, 0), "> 0123456789 0123456789");
    nib_cli_screen_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_nothing_stays),
                                       cmocka_unit_test(test_finish), cmocka_unit_test(test_resize)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
