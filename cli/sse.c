/* cli/sse.c - see sse.h: lines end in \n, \r or both; "data:" lines make an event, an empty line ends it, others are not for us. */
#include "sse.h"

#include <string.h>

enum { MAX_EVENT = 64 << 20 };

static bool end_line(nib_cli_sse *sse, bool (*event)(void *user, nib_str data), void *user) {
    nib_str line = {sse->line.ptr, sse->line.len};
    sse->line.len = 0;
    if (!line.len) {
        if (!sse->data.len) return true;
        nib_str data = {nib_buf_cstr(&sse->data), sse->data.len - 1}; /* without the newline of its last line */
        if (!data.ptr) return false;
        sse->data.ptr[data.len] = 0;
        sse->data.len = 0;
        return event(user, data);
    }
    if (line.len < 5 || memcmp(line.ptr, "data:", 5) != 0) return true;
    size_t skip = line.len > 5 && line.ptr[5] == ' ' ? 6 : 5;
    return nib_buf_append(&sse->data, line.ptr + skip, line.len - skip) && nib_buf_char(&sse->data, '\n');
}

bool nib_cli_sse_feed(nib_cli_sse *sse, nib_str bytes, bool (*event)(void *user, nib_str data), void *user) {
    size_t start = 0;
    if (sse->line.len + sse->data.len > MAX_EVENT) return false;
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        bool is_second = c == '\n' && sse->after_cr;
        sse->after_cr = c == '\r';
        if (c != '\n' && c != '\r') continue;
        if (!is_second && (!nib_buf_append(&sse->line, bytes.ptr + start, i - start) || !end_line(sse, event, user))) return false;
        start = i + 1;
    }
    return nib_buf_append(&sse->line, bytes.ptr + start, bytes.len - start);
}

void nib_cli_sse_free(nib_cli_sse *sse) {
    nib_buf_free(&sse->line);
    nib_buf_free(&sse->data);
}
