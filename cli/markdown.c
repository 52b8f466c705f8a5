/* cli/markdown.c - pieces of Markdown in -> text with styles for a terminal out. Called by view.c.
 *
 * A line's beginning decides its kind (the functions *_line), then its text is cut into spans (span.c). Each function
 * takes what it can from `held` and says whether it could take anything; it decides only what no further byte can change,
 * which makes the output independent of the cuts. */
#include "markdown.h"

#include "glyph.h"
#include "span.h"

#include <string.h>

enum {
    MAX_SPAN = 400,  /* bytes from a mark to its partner */
    MAX_BEGIN = 200, /* bytes of a line that may be a rule or begin or end a code block */
    MAX_LINE = 4096, /* bytes looked at at once, more than the others */
    FRAME = 40,      /* columns of rules and frames */
};

static int first_place(const nib_cli_markdown *md) {
    return md->mode == NIB_CLI_MARKDOWN_RAW ? NIB_CLI_LINE_TEXT : NIB_CLI_LINE_BEGIN;
}

void nib_cli_markdown_init(nib_cli_markdown *md, nib_cli_markdown_mode mode, int columns) {
    *md = (nib_cli_markdown){.mode = mode, .columns = columns < 8 ? 8 : columns};
    md->place = first_place(md);
}

void nib_cli_markdown_free(nib_cli_markdown *md) {
    nib_buf_free(&md->held);
}

/* ---- output */

static void set_style(nib_cli_markdown *md, unsigned style, nib_buf *out) {
    static const struct {
        unsigned style;
        const char *code;
    } codes[] = {{NIB_CLI_BOLD, ";1"},       {NIB_CLI_DIM, ";2"},    {NIB_CLI_ITALIC, ";3"},
                 {NIB_CLI_UNDERLINED, ";4"}, {NIB_CLI_STRUCK, ";9"}, {NIB_CLI_CODE, ";36"}};
    if (md->mode != NIB_CLI_MARKDOWN_FULL || style == md->shown) return;
    md->shown = style;
    nib_buf_str(out, "\033[0");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (style & codes[i].style) nib_buf_str(out, codes[i].code);
    nib_buf_char(out, 'm');
}

static void put(nib_cli_markdown *md, nib_str text, unsigned style, nib_buf *out) {
    if (!text.len) return;
    set_style(md, style, out);
    nib_cli_glyph_show(out, text);
    md->last = text.ptr[text.len - 1];
}

/* Signs of ours. */
static void put_sign(nib_cli_markdown *md, const char *sign, nib_buf *out) {
    set_style(md, NIB_CLI_DIM, out);
    nib_buf_str(out, sign);
    set_style(md, md->base, out);
}

static void end_line(nib_cli_markdown *md, nib_buf *out) {
    set_style(md, 0, out);
    nib_buf_char(out, '\n');
    md->base = 0;
    md->last = 0;
    md->in_quote = false;
}

/* A horizontal line as wide as the terminal, FRAME at most, of which `used` columns are taken. */
static void put_rule(nib_cli_markdown *md, int used, nib_buf *out) {
    int columns = md->columns < FRAME ? md->columns : FRAME;
    for (int i = used; i < columns; i++) nib_buf_str(out, "─");
}

static void end_frame(nib_cli_markdown *md, nib_buf *out) {
    set_style(md, NIB_CLI_DIM, out);
    nib_buf_str(out, "└");
    put_rule(md, 1, out);
}

/* ---- input */

/* The held part of the current line, without its newline; *complete when that has come. Of a long line a part that is
 * longer than what anything is held back for. */
static nib_str line_of(const nib_cli_markdown *md, bool at_end, bool *complete) {
    size_t held = md->held.len - md->taken, n = held < MAX_LINE ? held : MAX_LINE;
    const char *start = md->held.ptr + md->taken, *newline = memchr(start, '\n', n);
    *complete = newline || (at_end && n == held);
    return (nib_str){start, newline ? (size_t)(newline - start) : n};
}

/* The same for what only a line's beginning decides. A longer line is never complete and *too_long: else the answer
 * would depend on how much of it is there. */
static nib_str beginning_of(const nib_cli_markdown *md, bool at_end, bool *complete, bool *too_long) {
    nib_str line = line_of(md, at_end, complete);
    *too_long = line.len > MAX_BEGIN;
    if (*too_long) line.len = MAX_BEGIN + 1;
    *complete = *complete && !*too_long;
    return line;
}

static void take(nib_cli_markdown *md, size_t n) {
    md->taken += n;
}

/* The rest of the line, whose marks were shown in another way; its newline stays. */
static void take_line(nib_cli_markdown *md, nib_str line) {
    take(md, line.len);
    md->place = NIB_CLI_LINE_TEXT;
}

static size_t count(nib_str text, size_t at, char c) {
    size_t n = 0;
    while (at + n < text.len && text.ptr[at + n] == c) n++;
    return n;
}

/* Bytes at the end of a text that may be the beginning of a character. */
static size_t cut_character(nib_str text) {
    for (size_t n = 1; n <= 3 && n <= text.len; n++) {
        unsigned char c = (unsigned char)text.ptr[text.len - n];
        if (c >= 0xC0) return n < (c < 0xE0 ? 2u : c < 0xF0 ? 3u : 4u) ? n : 0;
        if (c < 0x80) return 0;
    }
    return 0;
}

/* ---- the text of a line */

static void put_spans(nib_cli_markdown *md, nib_str line, unsigned style, int depth, nib_buf *out) {
    for (char prev = '*'; line.len;) { /* a mark stands before it */
        nib_cli_span span = nib_cli_span_at(line, prev, true);
        if (span.kind == NIB_CLI_SPAN_STYLED && depth > 0)
            put_spans(md, span.inner, style | span.style, depth - 1, out);
        else
            put(md, span.inner, style | span.style, out);
        prev = line.ptr[span.len - 1];
        line = (nib_str){line.ptr + span.len, line.len - span.len};
    }
}

static bool text_step(nib_cli_markdown *md, bool at_end, nib_buf *out) {
    bool complete;
    nib_str line = line_of(md, at_end, &complete);
    if (!line.len) {
        end_line(md, out);
        md->place = first_place(md);
        take(md, 1);
        return true;
    }
    nib_str window = {line.ptr, line.len < MAX_SPAN ? line.len : MAX_SPAN};
    nib_cli_span span = {NIB_CLI_SPAN_TEXT, line.len, line, 0};
    if (md->mode == NIB_CLI_MARKDOWN_FULL) span = nib_cli_span_at(window, md->last, complete || line.len >= MAX_SPAN);
    if (span.kind == NIB_CLI_SPAN_MORE) return false;
    if (span.kind == NIB_CLI_SPAN_STYLED) {
        put_spans(md, span.inner, md->base | span.style, 4, out);
        md->last = '*';
    } else {
        size_t cut = complete || span.len < line.len ? 0 : cut_character(span.inner);
        if (span.len == cut) return false;
        span.len -= cut;
        span.inner.len -= cut;
        put(md, span.inner, md->base | span.style, out);
    }
    take(md, span.len);
    return true;
}

/* ---- the beginning of a line */

typedef enum verdict { NO, YES, PERHAPS } verdict;

/* A line of three or more of one mark: a rule. */
static verdict rule_line(nib_cli_markdown *md, nib_str line, size_t at, bool complete, nib_buf *out) {
    size_t n = 0;
    if (!strchr("-*_", line.ptr[at])) return NO;
    for (size_t i = at; i < line.len; i++) {
        if (line.ptr[i] != line.ptr[at] && line.ptr[i] != ' ') return NO;
        n += line.ptr[i] != ' ';
    }
    if (!complete) return PERHAPS;
    if (n < 3) return NO;
    set_style(md, NIB_CLI_DIM, out);
    put_rule(md, 0, out);
    take_line(md, line);
    return YES;
}

static verdict fence_line(nib_cli_markdown *md, nib_str line, size_t at, bool complete, nib_buf *out) {
    char c = line.ptr[at];
    size_t n = count(line, at, c);
    if ((c != '`' && c != '~') || md->in_quote) return NO;
    if (n < 3) return at + n == line.len && !complete ? PERHAPS : NO;
    nib_str info = {line.ptr + at + n, line.len - at - n};
    if (c == '`' && memchr(info.ptr, '`', info.len)) return NO;
    if (!complete) return PERHAPS;
    while (info.len && *info.ptr == ' ') info.ptr++, info.len--;
    const char *space = memchr(info.ptr, ' ', info.len); /* what follows the language is for programs */
    if (space) info.len = (size_t)(space - info.ptr);
    set_style(md, NIB_CLI_DIM, out);
    nib_buf_str(out, "┌─");
    int used = 2;
    if (info.len) {
        nib_buf_char(out, ' ');
        nib_cli_glyph_show(out, info);
        nib_buf_char(out, ' ');
        used += 2 + (int)info.len;
    }
    put_rule(md, used, out);
    md->fence = c;
    md->n_fence = n;
    md->indent = at;
    end_line(md, out);
    md->place = NIB_CLI_CODE_BEGIN;
    take(md, line.len);
    take(md, md->taken < md->held.len); /* the newline, unless the text ends here */
    return YES;
}

static verdict heading_line(nib_cli_markdown *md, nib_str line, size_t at, bool complete) {
    size_t n = count(line, at, '#'), text = at + n;
    if (!n || n > 6) return NO;
    if (text == line.len) return complete ? NO : PERHAPS;
    if (line.ptr[text] != ' ') return NO;
    if (md->mode != NIB_CLI_MARKDOWN_FULL) return NO; /* only its marks show it then */
    md->base = NIB_CLI_BOLD | (n == 1 ? NIB_CLI_UNDERLINED : 0);
    take(md, text + 1);
    md->place = NIB_CLI_LINE_TEXT;
    return YES;
}

static verdict item_line(nib_cli_markdown *md, nib_str line, size_t at, bool complete, nib_buf *out) {
    if (!strchr("-*+", line.ptr[at])) return NO;
    if (at + 1 == line.len) return complete ? NO : PERHAPS;
    if (line.ptr[at + 1] != ' ') return NO;
    put(md, (nib_str){line.ptr, at}, 0, out);
    put_sign(md, "•", out);
    take(md, at + 1);
    md->place = NIB_CLI_LINE_TEXT;
    return YES;
}

static verdict quote_line(nib_cli_markdown *md, nib_str line, size_t at, bool complete, nib_buf *out) {
    if (line.ptr[at] != '>') return NO;
    if (at + 1 == line.len && !complete) return PERHAPS;
    size_t len = at + 1 + (at + 1 < line.len && line.ptr[at + 1] == ' ');
    put_sign(md, "│ ", out);
    take(md, len);
    md->in_quote = true;
    return YES;
}

static bool begin_step(nib_cli_markdown *md, bool at_end, nib_buf *out) {
    bool complete, too_long;
    nib_str line = beginning_of(md, at_end, &complete, &too_long);
    size_t at = count(line, 0, ' ');
    verdict is = at < line.len || complete ? NO : PERHAPS;
    if (at < line.len) {
        is = rule_line(md, line, at, complete, out);
        if (is == NO) is = fence_line(md, line, at, complete, out);
        if (is == NO) is = heading_line(md, line, at, complete);
        if (is == NO) is = item_line(md, line, at, complete, out);
        if (is == NO) is = quote_line(md, line, at, complete, out);
    }
    if (is == PERHAPS && !too_long) return false;
    if (is != YES) md->place = NIB_CLI_LINE_TEXT;
    return true;
}

/* ---- code blocks */

static bool code_begin_step(nib_cli_markdown *md, bool at_end, nib_buf *out) {
    bool complete, too_long;
    nib_str line = beginning_of(md, at_end, &complete, &too_long);
    size_t at = count(line, 0, ' '), n = count(line, at, md->fence);
    bool is_fence = at + n + count(line, at + n, ' ') == line.len; /* or spaces, or not yet more */
    if (is_fence && !complete && !too_long) return false;
    if (is_fence && complete && n >= md->n_fence) {
        end_frame(md, out);
        take_line(md, line);
        return true;
    }
    take(md, at < md->indent ? at : md->indent); /* a block in a list is indented as the list is */
    md->place = NIB_CLI_CODE_TEXT;
    return true;
}

static bool code_text_step(nib_cli_markdown *md, bool at_end, nib_buf *out) {
    bool complete;
    nib_str line = line_of(md, at_end, &complete);
    if (!line.len) {
        end_line(md, out);
        md->place = NIB_CLI_CODE_BEGIN;
        take(md, 1);
        return true;
    }
    size_t cut = complete ? 0 : cut_character(line);
    put(md, (nib_str){line.ptr, line.len - cut}, 0, out);
    take(md, line.len - cut);
    return line.len > cut;
}

/* ---- the stream */

static void run(nib_cli_markdown *md, bool at_end, nib_buf *out) {
    static bool (*const steps[])(nib_cli_markdown *, bool, nib_buf *) = {
        [NIB_CLI_LINE_BEGIN] = begin_step,
        [NIB_CLI_LINE_TEXT] = text_step,
        [NIB_CLI_CODE_BEGIN] = code_begin_step,
        [NIB_CLI_CODE_TEXT] = code_text_step,
    };
    while (md->taken < md->held.len && steps[md->place](md, at_end, out)) {
    }
    if (md->taken) memmove(md->held.ptr, md->held.ptr + md->taken, md->held.len - md->taken);
    md->held.len -= md->taken;
    md->taken = 0;
}

void nib_cli_markdown_push(nib_cli_markdown *md, nib_str text, nib_buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        if (md->was_return && text.ptr[i] != '\n') nib_buf_char(&md->held, '\r');
        md->was_return = text.ptr[i] == '\r';
        if (!md->was_return) nib_buf_char(&md->held, text.ptr[i]);
    }
    run(md, false, out);
}

void nib_cli_markdown_finish(nib_cli_markdown *md, nib_buf *out) {
    if (md->was_return) nib_buf_char(&md->held, '\r');
    run(md, true, out);
    if (md->place == NIB_CLI_CODE_BEGIN || md->place == NIB_CLI_CODE_TEXT) {
        if (md->place == NIB_CLI_CODE_TEXT && md->last) end_line(md, out);
        end_frame(md, out);
    }
    set_style(md, 0, out);
    nib_buf_free(&md->held);
    nib_cli_markdown_init(md, md->mode, md->columns);
}
