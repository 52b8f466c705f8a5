/* cli/span.c - the rest of a line of Markdown in -> its first span out. Called by markdown.c.
 *
 * As CommonMark has it, except where that would swallow what people mean to see: a mark within a word (2**3, snake_case)
 * is a character, and only marks of one length pair up. A mark without its partner is a character, too. */
#include "span.h"

#include <string.h>

enum { MAX_RUN = 3, MAX_DEPTH = 4 };

typedef enum found { ABSENT, PRESENT, UNKNOWN } found;

typedef struct scan {
    nib_str text;
    char prev; /* before the text */
    bool complete;
    bool absent[3][MAX_RUN + 1]; /* [mark][length of the run]: has no partner in the rest of the line */
} scan;

static bool is_mark(char c) {
    return c == '*' || c == '_' || c == '`' || c == '~';
}

static size_t row_of(char mark) {
    return mark == '*' ? 0 : mark == '_' ? 1 : 2;
}

static bool is_word(char c) {
    unsigned char u = (unsigned char)c;
    return (u >= '0' && u <= '9') || ((u | 32) >= 'a' && (u | 32) <= 'z') || u >= 0x80;
}

static bool is_space(char c) {
    return c == 0 || c == ' ' || c == '\t';
}

/* Others stay with their backslash: \( is TeX more often than an escape. */
static bool is_escape(const char *p, size_t n) {
    return n >= 2 && p[0] == '\\' && p[1] && strchr("*_`~#", p[1]);
}

static size_t run_at(nib_str text, size_t at) {
    size_t n = 1;
    while (at + n < text.len && text.ptr[at + n] == text.ptr[at]) n++;
    return n;
}

static char before(const scan *s, size_t at) {
    return at ? s->text.ptr[at - 1] : s->prev;
}

static char after(const scan *s, size_t at, size_t run) {
    return at + run < s->text.len ? s->text.ptr[at + run] : 0;
}

static bool can_open(const scan *s, size_t at, size_t run) {
    char c = s->text.ptr[at], prev = before(s, at);
    if (run > MAX_RUN || (c == '~' && run != 2) || s->absent[row_of(c)][run]) return false;
    /* Languages that put no spaces between words put marks between them. */
    bool in_word = c == '*' ? is_word(prev) && (unsigned char)prev < 0x80 : is_word(prev);
    return !in_word && !is_space(after(s, at, run));
}

static bool can_close(const scan *s, size_t at, size_t run) {
    return !is_space(before(s, at)) && (s->text.ptr[at] != '_' || !is_word(after(s, at, run)));
}

/* The next run of exactly n backticks. */
static found find_backticks(const scan *s, size_t from, size_t n, size_t *at) {
    for (size_t i = from, run; i < s->text.len; i += run) {
        run = s->text.ptr[i] == '`' ? run_at(s->text, i) : 1;
        if (s->text.ptr[i] != '`' || run != n) continue;
        if (i + run == s->text.len && !s->complete) return UNKNOWN;
        *at = i;
        return PRESENT;
    }
    return s->complete ? ABSENT : UNKNOWN;
}

/* The run that closes n marks c which stand before `from`. Spans on the way are passed over. */
static found find_close(scan *s, size_t from, char c, size_t n, int depth, size_t *at) {
    for (size_t i = from, run; i < s->text.len; i += run) {
        char here = s->text.ptr[i];
        size_t end;
        run = is_escape(s->text.ptr + i, s->text.len - i) ? 2 : 1;
        if (run == 2 || !is_mark(here)) continue;
        run = run_at(s->text, i);
        if (i + run == s->text.len && !s->complete) return UNKNOWN;
        if (here == c && (run == n || (run == MAX_RUN && n < run)) && can_close(s, i, run) && i > from) {
            *at = i;
            return PRESENT;
        }
        found inner = ABSENT;
        if (here == '`')
            inner = find_backticks(s, i + run, run, &end);
        else if (depth < MAX_DEPTH && can_open(s, i, run))
            inner = find_close(s, i + run, here, run, depth + 1, &end);
        if (inner == UNKNOWN) return UNKNOWN;
        if (inner == PRESENT) run = end + run - i;
    }
    if (!s->complete) return UNKNOWN;
    s->absent[row_of(c)][n] = true;
    return ABSENT;
}

static nib_cli_span text_of(const scan *s, size_t n) {
    return (nib_cli_span){NIB_CLI_SPAN_TEXT, n, {s->text.ptr, n}, 0};
}

static nib_cli_span code(const scan *s, size_t run) {
    size_t close = 0;
    found end = find_backticks(s, run, run, &close);
    if (end != PRESENT) return end == UNKNOWN ? (nib_cli_span){NIB_CLI_SPAN_MORE, 0, {0}, 0} : text_of(s, run);
    nib_str inner = {s->text.ptr + run, close - run};
    bool padded = inner.len > 2 && inner.ptr[0] == ' ' && inner.ptr[inner.len - 1] == ' ';
    if (padded) inner = (nib_str){inner.ptr + 1, inner.len - 2}; /* `` ` `` */
    return (nib_cli_span){NIB_CLI_SPAN_TEXT, close + run, inner, NIB_CLI_CODE};
}

static nib_cli_span emphasis(scan *s, size_t run) {
    static const unsigned styles[MAX_RUN + 1] = {0, NIB_CLI_ITALIC, NIB_CLI_BOLD, NIB_CLI_BOLD | NIB_CLI_ITALIC};
    char c = s->text.ptr[0];
    size_t close = 0;
    if (!can_open(s, 0, run)) return text_of(s, run);
    found end = find_close(s, run, c, run, 0, &close);
    if (end != PRESENT) return end == UNKNOWN ? (nib_cli_span){NIB_CLI_SPAN_MORE, 0, {0}, 0} : text_of(s, run);
    return (nib_cli_span){NIB_CLI_SPAN_STYLED, close + run, {s->text.ptr + run, close - run},
                          c == '~' ? NIB_CLI_STRUCK : styles[run]};
}

nib_cli_span nib_cli_span_at(nib_str line, char prev, bool complete) {
    scan s = {.text = line, .prev = prev, .complete = complete};
    nib_cli_span more = {NIB_CLI_SPAN_MORE, 0, {0}, 0};
    char c = line.ptr[0];
    if (is_escape(line.ptr, line.len)) return (nib_cli_span){NIB_CLI_SPAN_TEXT, 2, {line.ptr + 1, 1}, 0};
    if (c == '\\') return line.len == 1 && !complete ? more : text_of(&s, 1);
    if (!is_mark(c)) {
        size_t n = 1;
        while (n < line.len && !is_mark(line.ptr[n]) && line.ptr[n] != '\\') n++;
        return text_of(&s, n);
    }
    size_t run = run_at(line, 0);
    if (run == line.len && !complete) return more;
    return c == '`' ? code(&s, run) : emphasis(&s, run);
}
