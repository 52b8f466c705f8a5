/* jinja/chars.h - characters as Python sees them: blanks, digits, escapes, case. Text is UTF-8 that was checked. */
#ifndef NIB_JINJA_CHARS_H
#define NIB_JINJA_CHARS_H

#include "base/buf.h"
#include "base/utf8.h"

static inline bool nib_jinja_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool nib_jinja_is_word(char c) {
    return nib_jinja_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The value of a digit, also of a letter as digit; -1: none. */
static inline int nib_jinja_digit(char c) {
    if (nib_jinja_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : -1;
}

/* Length of the character at p: of a byte that is none, 1. n > 0 bytes at hand. */
static inline size_t nib_jinja_char(const char *p, size_t n, uint32_t *cp) {
    size_t len = nib_utf8_char(p, n, cp);
    if (len) return len;
    *cp = (unsigned char)*p;
    return 1;
}

/* Where the character before the end of n > 0 bytes begins. */
static inline size_t nib_jinja_char_before(const char *p, size_t n) {
    size_t i = n - 1;
    while (i > 0 && n - i < 4 && ((unsigned char)p[i] & 0xC0) == 0x80) i--;
    return i;
}

bool nib_jinja_is_space(uint32_t cp);
/* Length of the blank at p, 0: there is none. */
size_t nib_jinja_space(const char *p, size_t n);
/* Length without the blanks at the end. */
size_t nib_jinja_rstrip(const char *p, size_t n);
size_t nib_jinja_count(const char *p, size_t n); /* characters */
/* The bytes of the first n_chars characters. */
size_t nib_jinja_offset(const char *p, size_t n, size_t n_chars);
bool nib_jinja_is_printable(uint32_t cp);
/* Undoes the escapes of Python's string literals in place; returns the new length. Unknown ones stay. */
size_t nib_jinja_unescape(char *text, size_t n);
/* Writes the character in UTF-8; returns its length. A surrogate becomes U+FFFD. */
size_t nib_jinja_encode(uint32_t cp, char out[4]);

/* str.splitlines ends lines at these. */
bool nib_jinja_is_line_end(uint32_t cp);
bool nib_jinja_is_upper(uint32_t cp);
bool nib_jinja_is_lower(uint32_t cp);
bool nib_jinja_is_alpha(uint32_t cp);
bool nib_jinja_is_decimal(uint32_t cp);

#endif
