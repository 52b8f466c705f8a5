/* jinja/chars.c - characters as Python sees them; properties are utf8proc's. */
#include "jinja/chars.h"

#include <string.h>
#include <utf8proc.h>

bool nib_jinja_is_space(uint32_t cp) {
    if (cp < 0x80) return (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x20);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

size_t nib_jinja_space(const char *p, size_t n) {
    uint32_t cp;
    size_t len = nib_jinja_char(p, n, &cp);
    return nib_jinja_is_space(cp) && (len > 1 || cp < 0x80) ? len : 0;
}

size_t nib_jinja_rstrip(const char *p, size_t n) {
    while (n > 0) {
        size_t at = nib_jinja_char_before(p, n);
        if (nib_jinja_space(p + at, n - at) != n - at) break;
        n = at;
    }
    return n;
}

size_t nib_jinja_count(const char *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)p[i] & 0xC0) != 0x80;
    return count;
}

size_t nib_jinja_offset(const char *p, size_t n, size_t n_chars) {
    size_t i = 0;
    for (; i < n; i++)
        if (((unsigned char)p[i] & 0xC0) != 0x80 && n_chars-- == 0) break;
    return i;
}

bool nib_jinja_is_printable(uint32_t cp) {
    if (cp < 0x7F) return cp >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

bool nib_jinja_is_line_end(uint32_t cp) {
    return (cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

bool nib_jinja_is_upper(uint32_t cp) {
    return utf8proc_isupper((utf8proc_int32_t)cp);
}

bool nib_jinja_is_lower(uint32_t cp) {
    return utf8proc_islower((utf8proc_int32_t)cp);
}

bool nib_jinja_is_alpha(uint32_t cp) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool nib_jinja_is_decimal(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

size_t nib_jinja_encode(uint32_t cp, char out[4]) {
    if ((cp >= 0xD800 && cp <= 0xDFFF) || cp > 0x10FFFF) cp = 0xFFFD;
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)out);
}

/* Digits of an escape at p: their number, exactly n unless is_up_to; 0: not so many. */
static size_t number(const char *p, size_t left, size_t n, int base, uint32_t *x) {
    size_t i = 0;
    *x = 0;
    for (; i < n && i < left; i++) {
        int digit = (unsigned char)p[i] < 0x80 ? (p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10) : 99;
        if (digit < 0 || digit >= base) break;
        *x = *x * (uint32_t)base + (uint32_t)digit;
    }
    return base == 8 || i == n ? i : 0;
}

/* The escape at p, behind its backslash -> how long it is, 0: none; and its character, 0xFFFFFFFF: nothing at all. */
static size_t escape(const char *p, size_t left, uint32_t *cp) {
    static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    if (left == 0) return 0;
    const char *letter = *p ? strchr(letters, *p) : NULL;
    if (letter) {
        *cp = (unsigned char)values[letter - letters];
        return 1;
    }
    *cp = UINT32_MAX;
    if (*p == '\n') return 1;
    if (*p >= '0' && *p <= '7') return number(p, left, 3, 8, cp);
    size_t n = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    return n && number(p + 1, left - 1, n, 16, cp) ? n + 1 : 0;
}

size_t nib_jinja_unescape(char *text, size_t n) {
    size_t to = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = text[i] == '\\' ? escape(text + i + 1, n - i - 1, &cp) : 0;
        if (len == 0) {
            text[to++] = text[i++];
            continue;
        }
        i += len + 1;
        char bytes[4]; /* never longer than the escape was */
        size_t n_bytes = cp == UINT32_MAX ? 0 : nib_jinja_encode(cp, bytes);
        memcpy(text + to, bytes, n_bytes);
        to += n_bytes;
    }
    return to;
}
