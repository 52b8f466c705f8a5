/* base/utf8.h - strict UTF-8, for what leaves the engine: messages, JSON. (text/utf8.h reads what models are fed, and is
 * lenient.) */
#ifndef NIB_BASE_UTF8_H
#define NIB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the character at p, n > 0 bytes at hand, and the character in *cp. 0 when it is not UTF-8: cut, overlong,
 * a surrogate or beyond U+10FFFF. */
static inline size_t nib_utf8_char(const char *p, size_t n, uint32_t *cp) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)*p;
    size_t len = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
    if (len == 0 || len > n) return 0;
    *cp = len == 1 ? lead : lead & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)p[i] & 0xC0) != 0x80) return 0;
        *cp = *cp << 6 | ((unsigned char)p[i] & 0x3F);
    }
    bool is_surrogate = *cp >= 0xD800 && *cp <= 0xDFFF;
    return *cp < lowest[len] || is_surrogate || *cp > 0x10FFFF ? 0 : len;
}

/* Its bytes, at most 4, to `to`: how many. */
static inline size_t nib_utf8_put(uint32_t cp, char *to) {
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) to[i] = (char)(0x80 | (cp & 0x3F));
    *to = (char)(n == 1 ? cp : (0xF00u >> n & 0xFF) | cp);
    return n;
}

/* A character that a terminal obeys instead of showing: C0, DEL, C1. */
static inline bool nib_utf8_is_control(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0);
}

#endif
