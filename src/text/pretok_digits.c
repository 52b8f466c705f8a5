/* text/pretok_digits.c - the pre-tokenizer rules that are not run as patterns, because PCRE2 needs quadratic time: digits in
 * groups of three counted from the right, and white space at the end. Called by text/pretok.c.
 *
 * A group that follows a digit was begun by the call before, which has counted the run: it need not be counted again. */
#include "text/pretok.h"
#include "text/utf8.h"

#include <utf8proc.h>

static utf8proc_category_t category_at(nib_str text, size_t at, size_t *len) {
    uint32_t cp = 0;
    *len = nib_text_utf8_get(text.ptr + at, text.len - at, &cp);
    if (!*len) *len = 1;
    return utf8proc_category((utf8proc_int32_t)cp);
}

static bool is_digit(utf8proc_category_t c) {
    return c == UTF8PROC_CATEGORY_ND;
}

static bool is_number(utf8proc_category_t c) {
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

static bool is_word(utf8proc_category_t c) { /* \w */
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC;
}

typedef bool (*is_fn)(utf8proc_category_t c);

static size_t step_back(nib_str text, size_t at) {
    do at--;
    while (at > 0 && nib_text_utf8_is_tail(text.ptr[at]));
    return at;
}

static bool follows(nib_str text, size_t at, is_fn is) {
    size_t len;
    return at > 0 && is(category_at(text, step_back(text, at), &len));
}

/* Steps over at most n characters of a kind from `at` on. */
static size_t skip(nib_str text, size_t at, size_t n, is_fn is) {
    for (size_t len; n > 0 && at < text.len && is(category_at(text, at, &len)); n--) at += len;
    return at;
}

static size_t skip_to(nib_str text, size_t at, is_fn is) {
    for (size_t len; at < text.len && !is(category_at(text, at, &len));) at += len;
    return at;
}

/* The number of characters of a kind from `at` on; *end is behind them. */
static size_t count(nib_str text, size_t at, is_fn is, size_t *end) {
    size_t n = 0;
    for (size_t len; at < text.len && is(category_at(text, at, &len)); n++) at += len;
    *end = at;
    return n;
}

/* The first group of a run of n, so that the others have three. */
static size_t first_group(size_t n) {
    return n % 3 ? n % 3 : 3;
}

bool nib_text_find_thousands(nib_str text, size_t from, size_t *start, size_t *end) {
    size_t at = skip_to(text, from, is_number), run_end;
    if (at == text.len) return false;
    size_t group = at == from && follows(text, at, is_number) ? 3 : first_group(count(text, at, is_number, &run_end));
    *start = at;
    *end = skip(text, at, group, is_number);
    return true;
}

/* \d{1,3}(?=(?:\d{3})*\b): only runs that no other word character follows. */
bool nib_text_find_thousands_of_word(nib_str text, size_t from, size_t *start, size_t *end) {
    size_t at = from, run_end, len, group = 3;
    if (at < text.len && !(follows(text, at, is_digit) && is_digit(category_at(text, at, &len)))) {
        for (;; at = run_end) {
            at = skip_to(text, at, is_digit);
            if (at == text.len) return false;
            group = first_group(count(text, at, is_digit, &run_end));
            if (run_end == text.len || !is_word(category_at(text, run_end, &len))) break;
        }
    }
    *start = at;
    *end = skip(text, at, group, is_digit);
    return at < text.len;
}

/* (?=(\d{3})+(?!\d)): a cut before each group of three, and nowhere else; the piece from `from` to the next cut. */
bool nib_text_find_before_thousands(nib_str text, size_t from, size_t *start, size_t *end) {
    size_t at = from, run_end;
    *start = from;
    if (follows(text, from, is_digit)) at = skip(text, from, 3, is_digit); /* `from` is a cut inside a run */
    if (at > from && at < skip(text, at, 1, is_digit)) {
        *end = at;
        return true;
    }
    for (;;) {
        at = skip_to(text, at, is_digit);
        size_t n = count(text, at, is_digit, &run_end), group = n % 3;
        if (group == 0 && at == from && n > 3) group = 3; /* the cut at `from` is the one we come from */
        if (n > group && (group || at > from)) {
            *end = skip(text, at, group, is_digit);
            return true;
        }
        if (n == 0) break;
        at = run_end;
    }
    *end = text.len;
    return from < text.len;
}

bool nib_text_find_trailing_space(nib_str text, size_t from, size_t *start, size_t *end) {
    size_t at = text.len;
    while (at > from) {
        size_t before = step_back(text, at), len;
        uint32_t cp = 0;
        utf8proc_category_t c = category_at(text, before, &len);
        nib_text_utf8_get(text.ptr + before, text.len - before, &cp);
        bool is_space = (cp >= '\t' && cp <= '\r') || cp == 0x85 || (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP);
        if (!is_space) break;
        at = before;
    }
    *start = at;
    *end = text.len;
    return at < text.len;
}
