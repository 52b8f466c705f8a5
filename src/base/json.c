/* base/json.c - how deep JSON nests, and how large and how long its numbers are. */
#include "base/json.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 17, NUMBER_SIZE = 32 };

bool nib_json_is_deeper(nib_str text, int most) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && ++depth > most)
            return true;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
    }
    return false;
}

/* The last number of a buffer, from `start` on: it is made to fit. */
static void fit(nib_buf *out, size_t start) {
    char *end;
    if (!nib_buf_cstr(out)) return;
    errno = 0;
    (void)strtoll(out->ptr + start, NULL, 10);
    bool is_long = errno == ERANGE && !strpbrk(out->ptr + start, ".eE");
    if (isinf(strtod(out->ptr + start, &end)) && !*end) {
        out->len = start + (out->ptr[start] == '-');
        nib_buf_printf(out, "%.17g", DBL_MAX);
    } else if (is_long) {
        nib_buf_str(out, "e0");
    }
}

void nib_json_fit(nib_str text, nib_buf *out) {
    bool in_string = false;
    for (size_t i = 0, n; i < text.len; i += n) {
        char c = text.ptr[i];
        bool is_number = !in_string && (c == '-' || (c >= '0' && c <= '9'));
        if (c == '"') in_string = !in_string;
        n = in_string && c == '\\' && i + 1 < text.len ? 2 : 1;
        while (is_number && i + n < text.len && text.ptr[i + n] && strchr("+-.0123456789eE", text.ptr[i + n])) n++;
        nib_buf_append(out, text.ptr + i, n);
        if (is_number && n > 3) fit(out, out->len - n);
    }
}

/* A number of `len` characters -> how many of `shorter` stand for the same; 0: it is as short as can be. */
static size_t shorten(const char *number, size_t len, char shorter[NUMBER_SIZE]) {
    if (len < MOST_DIGITS || len >= NUMBER_SIZE) return 0;
    memcpy(shorter, number, len);
    shorter[len] = 0;
    if (!strpbrk(shorter, ".eE")) return 0;
    double x = strtod(shorter, NULL);
    for (int digits = MOST_DIGITS - 2; digits < MOST_DIGITS; digits++) {
        size_t n = (size_t)snprintf(shorter, NUMBER_SIZE, "%.*g", digits, x);
        if (n < len && strtod(shorter, NULL) == x) return strpbrk(shorter, ".e") ? n : 0;
    }
    return 0;
}

void nib_json_shorten(char *text) {
    char *to = text, shorter[NUMBER_SIZE];
    bool in_string = false;
    for (const char *from = text; *from;) {
        size_t len = in_string ? 0 : strspn(from, "+-.0123456789eE"), n = len ? shorten(from, len, shorter) : 0;
        const char *piece = n ? shorter : from;
        if (*from == '"') in_string = !in_string;
        if (in_string && *from == '\\' && from[1]) len = 2;
        if (!len) len = 1;
        if (!n) n = len;
        memmove(to, piece, n);
        to += n;
        from += len;
    }
    *to = 0;
}
