/* text/pretok_digits.c - the pre-tokenizer rules that are not run as patterns, because PCRE2 needs quadratic time:
 * digits in groups of three counted from the right, and white space at the end. Called by text/pretok.c.
 *
 * A group that follows a digit was begun by the call before, which has counted the run: it is not counted again. */
#include "text/pretok.h"
#include "text/utf8.h"

#include <utf8proc.h>

static uint32_t char_at(nib_str text, size_t at, size_t *len) {
    uint32_t cp = 0xFFFD;
    *len = nib_text_utf8_get(text.ptr + at, text.len - at, &cp);
    if (!*len) *len = 1;
    return cp;
}

static utf8proc_category_t category(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp);
}

static bool is_digit(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

static bool is_number(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

/* \w, as Oniguruma has it, which the original runs on: letters in circles and squares too, and of the numbers that are
 * no digits only those of Latin-1. */
static bool is_word(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    bool is_framed = (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
                     (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
           (c == UTF8PROC_CATEGORY_NO && cp < 0x100) || is_framed;
}

static bool is_space(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return (cp >= '\t' && cp <= '\r') || cp == 0x85 || (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP);
}

typedef bool (*is_fn)(uint32_t cp);

static size_t step_back(nib_str text, size_t at) {
    do at--;
    while (at > 0 && nib_text_utf8_is_tail(text.ptr[at]));
    return at;
}

static bool follows(nib_str text, size_t at, is_fn is) {
    size_t len;
    return at > 0 && is(char_at(text, step_back(text, at), &len));
}

/* Steps over at most n characters of a kind from `at` on. */
static size_t skip(nib_str text, size_t at, size_t n, is_fn is) {
    for (size_t len; n > 0 && at < text.len && is(char_at(text, at, &len)); n--) at += len;
    return at;
}

static size_t skip_to(nib_str text, size_t at, is_fn is) {
    for (size_t len; at < text.len && !is(char_at(text, at, &len));) at += len;
    return at;
}

/* The number of characters of a kind from `at` on; *end is behind them. */
static size_t count(nib_str text, size_t at, is_fn is, size_t *end) {
    size_t n = 0;
    for (size_t len; at < text.len && is(char_at(text, at, &len)); n++) at += len;
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
    if (at < text.len && !(follows(text, at, is_digit) && is_digit(char_at(text, at, &len)))) {
        for (;; at = run_end) {
            at = skip_to(text, at, is_digit);
            if (at == text.len) return false;
            group = first_group(count(text, at, is_digit, &run_end));
            if (run_end == text.len || !is_word(char_at(text, run_end, &len))) break;
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
    size_t at = text.len, before, len;
    while (at > from && is_space(char_at(text, before = step_back(text, at), &len))) at = before;
    *start = at;
    *end = text.len;
    return at < text.len;
}
