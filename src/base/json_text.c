/* base/json_text.c - see json_text.h. */
#include "base/json_text.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <string.h>

void nib_json_blanks(nib_json_cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

bool nib_json_skip(nib_json_cursor *c, char sign) {
    nib_json_blanks(c);
    if (c->at >= c->end || *c->at != sign) return false;
    c->at++;
    return true;
}

bool nib_json_word(nib_json_cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

bool nib_json_fail(nib_json_cursor *c, const char *fault) {
    if (!c->fault) c->fault = fault;
    return false;
}

static bool read_hex(nib_json_cursor *c, uint32_t *x) {
    *x = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        char d = c->at < c->end ? *c->at : 0;
        int digit = nib_hex_digit(d);
        if (digit < 0) return nib_json_fail(c, "four hexadecimal digits were expected");
        *x = *x << 4 | (uint32_t)digit;
    }
    return true;
}

/* Behind a backslash. */
static bool read_escape(nib_json_cursor *c, char **to) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = c->at < c->end && *c->at ? strchr(letters, *c->at) : NULL;
    uint32_t x, low;
    if (letter) {
        *(*to)++ = values[letter - letters];
        c->at++;
        return true;
    }
    if (c->at >= c->end || *c->at != 'u') return nib_json_fail(c, "an unknown escape");
    c->at++;
    if (!read_hex(c, &x)) return false;
    if (x >= 0xD800 && x < 0xE000) {
        if (x >= 0xDC00 || !nib_json_word(c, "\\u")) return nib_json_fail(c, "half of a surrogate pair");
        if (!read_hex(c, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return nib_json_fail(c, "half of a surrogate pair");
        x = 0x10000 + ((x - 0xD800) << 10 | (low - 0xDC00));
    }
    *to += nib_utf8_put(x, *to);
    return true;
}

size_t nib_json_string_room(const nib_json_cursor *c) {
    const char *close = c->at;
    while (close < c->end && *close != '"') close += *close == '\\' && close + 1 < c->end ? 2 : 1;
    return (size_t)(close - c->at) + 4;
}

bool nib_json_string(nib_json_cursor *c, char *to, size_t *len) {
    const char *start = to;
    for (;;) {
        uint32_t x;
        if (c->at >= c->end) return nib_json_fail(c, "a string without its closing quote");
        size_t n = nib_utf8_char(c->at, (size_t)(c->end - c->at), &x);
        if (!n) return nib_json_fail(c, "bytes that are not UTF-8");
        if (x < 0x20) return nib_json_fail(c, "a control character in a string");
        if (x == '"') break;
        if (x == '\\') {
            c->at++;
            if (!read_escape(c, &to)) return false;
            continue;
        }
        memcpy(to, c->at, n);
        to += n;
        c->at += n;
    }
    c->at++;
    *len = (size_t)(to - start);
    return true;
}

static size_t skip_digits(nib_json_cursor *c) {
    const char *begin = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
    return (size_t)(c->at - begin);
}

bool nib_json_number(nib_json_cursor *c, nib_str *text) {
    const char *begin = c->at;
    if (c->at < c->end && *c->at == '-') c->at++;
    const char *first = c->at;
    size_t n = skip_digits(c);
    bool ok = n == 1 || (n > 1 && *first != '0');
    if (ok && c->at < c->end && *c->at == '.') c->at++, ok = skip_digits(c) > 0;
    if (ok && c->at < c->end && (*c->at | 32) == 'e') {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        ok = skip_digits(c) > 0;
    }
    *text = (nib_str){begin, (size_t)(c->at - begin)};
    return ok || nib_json_fail(c, "a malformed number");
}
