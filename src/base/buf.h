/* base/buf.h - a growable byte buffer. Zero-initialise; once an append failed, all later ones fail too, so one check of
 * `failed` at the end is enough. */
#ifndef NIB_BASE_BUF_H
#define NIB_BASE_BUF_H

#include "nib.h"

#include <stdarg.h>

typedef struct nib_buf {
    char *ptr; /* NULL while empty and never reserved */
    size_t len, capacity;
    bool failed;
} nib_buf;

bool nib_buf_reserve(nib_buf *buf, size_t more);
bool nib_buf_append(nib_buf *buf, const void *data, size_t n);
bool nib_buf_str(nib_buf *buf, const char *text);
bool nib_buf_char(nib_buf *buf, char c);
bool nib_buf_utf8(nib_buf *buf, nib_str text); /* U+FFFD for bytes that are not UTF-8 */
bool nib_buf_printf(nib_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool nib_buf_vprintf(nib_buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* Makes the bytes end in a NUL that len does not count; NULL when memory was out. */
char *nib_buf_cstr(nib_buf *buf);
void nib_buf_free(nib_buf *buf);

#endif
