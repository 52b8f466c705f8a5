/* base/status.c - texts of the status codes and the formatting of error messages. */
#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(name, value, text) _Static_assert(NIB_##name == (value), "status.def and nib.h differ");
#include "base/status.def"
#undef X

const char *nib_status_text(nib_status status) {
    switch (status) {
#define X(name, value, text)                                                                                           \
    case NIB_##name: return text;
#include "base/status.def"
#undef X
    }
    return "unknown status";
}

const char *nib_version(void) {
    return NIB_VERSION;
}

void nib_clean_line(char *text) {
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        uint32_t cp;
        n = nib_utf8_char(text, left, &cp);
        if (n && !nib_utf8_is_control(cp)) continue;
        if (!n) n = 1;
        memset(text, '?', n);
    }
}

static nib_status fail_v(nib_error *err, nib_status code, uint64_t offset, const char *format, va_list args) {
    if (!err) return code;
    err->code = code;
    err->offset = offset;
    vsnprintf(err->message, sizeof err->message, format, args);
    nib_clean_line(err->message);
    return code;
}

nib_status nib_fail(nib_error *err, nib_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(err, code, NIB_NO_OFFSET, format, args);
    va_end(args);
    return code;
}

nib_status nib_fail_at(nib_error *err, nib_status code, uint64_t offset, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(err, code, offset, format, args);
    va_end(args);
    return code;
}

nib_status nib_fail_nomem(nib_error *err, uint64_t n_bytes, const char *what) {
    if (n_bytes == 0) return nib_fail(err, NIB_E_NOMEM, "out of memory for %s", what);
    return nib_fail(err, NIB_E_NOMEM, "out of memory: %llu bytes for %s", (unsigned long long)n_bytes, what);
}

nib_status nib_fail_errno(nib_error *err, int error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(err, NIB_E_IO, NIB_NO_OFFSET, format, args);
    va_end(args);
    if (!err) return NIB_E_IO;
    char text[80];
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, ": %s", text);
    return NIB_E_IO;
}

void nib_error_prefix(nib_error *err, const char *format, ...) {
    if (!err) return;
    char prefix[200];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix - 2, format, args);
    va_end(args);
    nib_clean_line(prefix);
    strcat(prefix, ": ");
    size_t n = strlen(prefix), kept = strlen(err->message), room = sizeof err->message - 1 - n;
    if (kept > room) kept = room;
    memmove(err->message + n, err->message, kept);
    memcpy(err->message, prefix, n);
    err->message[n + kept] = 0;
}
