/* cli/screen.c - a text and a cursor in -> rows and cursor movements of a terminal out. Called by keys.c. */
#include "screen.h"

#include "glyph.h"

#include <string.h>

enum { TAB = 4 /* columns */ };

typedef struct row {
    size_t start, end; /* of the text */
    int columns;       /* with what stands before it */
} row;

static int columns_of(uint32_t c) {
    return c == '\t' ? TAB : nib_cli_glyph_columns(nib_cli_glyph_visible(c));
}

static int before(const nib_cli_text *text, size_t i_row) {
    return i_row ? NIB_CLI_INDENT : (int)strlen(text->prompt);
}

static bool add_row(nib_cli_screen *s, row r) {
    return nib_cli_list_append(&s->cuts, &r, 1, sizeof r);
}

/* Cuts the text into rows. False when memory is out. */
static bool cut(nib_cli_screen *s, const nib_cli_text *text) {
    row r = {0, 0, before(text, 0)};
    s->cuts.n = 0;
    for (size_t i = 0; i < text->n; i++) {
        bool is_newline = text->chars[i] == '\n';
        int width = is_newline ? 0 : columns_of(text->chars[i]);
        if (is_newline || r.columns + width > s->columns) {
            r.end = i;
            if (!add_row(s, r)) return false;
            r = (row){i + is_newline, 0, before(text, 1)};
        }
        r.columns += width;
    }
    r.end = text->n;
    if (!add_row(s, r)) return false;
    bool full = r.columns >= s->columns && text->n; /* the cursor behind the last character has a row of its own */
    return !full || add_row(s, (row){text->n, text->n, before(text, 1)});
}

static void put_row(const nib_cli_screen *s, const nib_cli_text *text, size_t i_row, size_t end, nib_buf *out) {
    const row *r = (const row *)s->cuts.items + i_row;
    if (i_row == 0)
        nib_buf_printf(out, "%s%s%s", text->prompt_style, text->prompt, *text->prompt_style ? "\033[0m" : "");
    else
        nib_buf_printf(out, "%*s", NIB_CLI_INDENT, "");
    for (size_t i = r->start; i < end; i++) {
        if (text->chars[i] == '\t')
            nib_buf_printf(out, "%*s", TAB, "");
        else
            nib_cli_glyph_put(out, nib_cli_glyph_visible(text->chars[i]));
    }
}

static void put_rows(const nib_cli_screen *s, const nib_cli_text *text, size_t from, size_t to, nib_buf *out) {
    for (size_t i = from; i < to; i++) {
        if (i > from) nib_buf_str(out, "\r\n");
        put_row(s, text, i, ((const row *)s->cuts.items)[i].end, out);
    }
}

/* To the first row that was drawn, and clears from there. A terminal that was made narrower has wrapped the rows. */
static void go_back(nib_cli_screen *s, int columns, nib_buf *out) {
    const int *widths = s->above.items;
    int up = 0;
    for (size_t i = 0; i < s->above.n; i++) up += (i > 0) + (widths[i] > columns ? (widths[i] - 1) / columns : 0);
    if (up) nib_buf_printf(out, "\033[%dA", up);
    nib_buf_str(out, "\r\033[J");
}

static size_t row_of_cursor(const nib_cli_screen *s, const nib_cli_text *text) {
    const row *rows = s->cuts.items;
    size_t i = s->cuts.n - 1;
    while (rows[i].start > text->cursor) i--;
    return i;
}

/* Remembers where the cursor is, for go_back. */
static void note_rows(nib_cli_screen *s, const nib_cli_text *text, size_t i_cursor) {
    const row *rows = s->cuts.items;
    s->above.n = 0;
    for (size_t i = s->top; i <= i_cursor; i++) {
        int width = i < i_cursor ? rows[i].columns : before(text, i);
        for (size_t k = rows[i].start; i == i_cursor && k < text->cursor; k++) width += columns_of(text->chars[k]);
        if (!nib_cli_list_append(&s->above, &width, 1, sizeof width)) return;
    }
}

void nib_cli_screen_draw(nib_cli_screen *s, const nib_cli_text *text, int columns, int rows, nib_buf *out) {
    s->columns = columns > 2 * NIB_CLI_INDENT ? columns : 2 * NIB_CLI_INDENT;
    s->rows = rows > 1 ? rows : 1;
    go_back(s, s->columns, out);
    if (!cut(s, text)) return;
    size_t i_cursor = row_of_cursor(s, text), n_shown = (size_t)s->rows;
    if (s->top > i_cursor) s->top = i_cursor;
    if (s->top + n_shown <= i_cursor) s->top = i_cursor + 1 - n_shown;
    if (s->top + n_shown > s->cuts.n) s->top = s->cuts.n > n_shown ? s->cuts.n - n_shown : 0;
    size_t end = s->top + n_shown < s->cuts.n ? s->top + n_shown : s->cuts.n;
    put_rows(s, text, s->top, end, out);
    /* Written again up to the cursor, it stands where the terminal thinks it is: they differ about some emoji. */
    if (end - 1 > i_cursor) nib_buf_printf(out, "\033[%zuA", end - 1 - i_cursor);
    nib_buf_char(out, '\r');
    put_row(s, text, i_cursor, text->cursor, out);
    note_rows(s, text, i_cursor);
}

void nib_cli_screen_finish(nib_cli_screen *s, const nib_cli_text *text, nib_buf *out) {
    go_back(s, s->columns, out);
    if (cut(s, text)) {
        const row *last = (const row *)s->cuts.items + s->cuts.n - 1;
        bool for_cursor = text->n && last->start == text->n && text->chars[text->n - 1] != '\n';
        put_rows(s, text, 0, s->cuts.n - for_cursor, out);
    }
    nib_buf_str(out, "\r\n");
    nib_cli_screen_forget(s);
}

void nib_cli_screen_forget(nib_cli_screen *s) {
    s->above.n = 0;
    s->top = 0;
}

void nib_cli_screen_free(nib_cli_screen *s) {
    nib_cli_list_free(&s->above);
    nib_cli_list_free(&s->cuts);
}
