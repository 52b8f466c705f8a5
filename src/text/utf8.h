/* text/utf8.h - UTF-8 one character at a time. Used by everything in text/.
 *
 * "Lenient" means that overlong forms and surrogates are read as what they say: only a missing continuation byte, a
 * stray one, a lead byte above F7 or a value above U+10FFFF is an error. */
#ifndef NIB_TEXT_UTF8_H
#define NIB_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NIB_TEXT_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define NIB_TEXT_SPACE "\xE2\x96\x81"       /* U+2581, how SentencePiece writes a space */

static inline bool nib_text_utf8_is_tail(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The length that a first byte announces, 1 to 4; a stray continuation byte counts 1. */
static inline size_t nib_text_utf8_len(char lead) {
    unsigned char c = (unsigned char)lead;
    return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* Reads the character at p, n > 0 bytes at hand. Returns its length, or 0 for an error (lenient, see above). */
static inline size_t nib_text_utf8_get(const char *p, size_t n, uint32_t *cp) {
    unsigned char c = (unsigned char)*p;
    size_t len = nib_text_utf8_len(*p);
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    if (c < 0xC0 || c > 0xF7 || len > n) return 0;
    uint32_t v = c & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (!nib_text_utf8_is_tail(p[i])) return 0;
        v = v << 6 | ((unsigned char)p[i] & 0x3F);
    }
    if (v > 0x10FFFF) return 0;
    *cp = v;
    return len;
}

/* Writes cp (at most U+10FFFF; surrogates too) to out, at most 4 bytes. Returns how many. */
static inline size_t nib_text_utf8_put(uint32_t cp, char *out) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)((0xF00u >> len & 0xFF) | cp);
    return len;
}

#endif
