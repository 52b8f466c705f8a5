/* base/buf.c - a growable byte buffer. */
#include "base/buf.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool nib_buf_reserve(nib_buf *buf, size_t more) {
    if (buf->failed || more > SIZE_MAX - buf->len || !nib_grow(&buf->ptr, &buf->capacity, buf->len + more, 1))
        buf->failed = true;
    return !buf->failed;
}

bool nib_buf_append(nib_buf *buf, const void *data, size_t n) {
    if (!nib_buf_reserve(buf, n)) return false;
    if (n) memcpy(buf->ptr + buf->len, data, n);
    buf->len += n;
    return true;
}

bool nib_buf_str(nib_buf *buf, const char *text) {
    return nib_buf_append(buf, text, strlen(text));
}

bool nib_buf_char(nib_buf *buf, char c) {
    return nib_buf_append(buf, &c, 1);
}

bool nib_buf_utf8(nib_buf *buf, nib_str text) {
    uint32_t cp;
    for (size_t i = 0; i < text.len;) {
        size_t n = nib_utf8_char(text.ptr + i, text.len - i, &cp);
        nib_buf_append(buf, n ? text.ptr + i : "\xef\xbf\xbd", n ? n : 3);
        i += n ? n : 1;
    }
    return !buf->failed;
}

bool nib_buf_vprintf(nib_buf *buf, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    bool ok = n >= 0 && nib_buf_reserve(buf, (size_t)n + 1);
    if (ok) {
        vsnprintf(buf->ptr + buf->len, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
    return ok;
}

bool nib_buf_printf(nib_buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool ok = nib_buf_vprintf(buf, format, args);
    va_end(args);
    return ok;
}

char *nib_buf_cstr(nib_buf *buf) {
    if (!nib_buf_reserve(buf, 1)) return NULL;
    buf->ptr[buf->len] = 0;
    return buf->ptr;
}

void nib_buf_free(nib_buf *buf) {
    nib_free(buf->ptr);
    *buf = (nib_buf){0};
}
