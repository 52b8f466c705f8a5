/* fuzz/fuzz_server_http.c - requests of HTTP/1.x in any bytes and cuts: no memory errors, limits are kept, and the result does
 * not depend on the cuts. */
#include "server/http_message.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HEAD = 512, MAX_BODY = 256 };

/* Feeds in pieces of `step` bytes. */
static void feed(nib_server_message *m, const char *text, size_t len, size_t step) {
    for (size_t i = 0; i < len && m->stage < NIB_SERVER_COMPLETE;) {
        size_t n = len - i < step ? len - i : step, used = nib_server_message_feed(m, text + i, n);
        if (used > n) abort();
        i += used;
    }
    if (m->head.len > MAX_HEAD || m->body.len > MAX_BODY) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    nib_server_message whole = {.max_head = MAX_HEAD, .max_body = MAX_BODY}, bytes = whole;
    feed(&whole, (const char *)data, size, size ? size : 1);
    feed(&bytes, (const char *)data, size, 1);
    bool is_same = whole.stage == bytes.stage && whole.status == bytes.status && whole.n_headers == bytes.n_headers &&
                   whole.body.len == bytes.body.len && (!whole.body.len || memcmp(whole.body.ptr, bytes.body.ptr, whole.body.len) == 0);
    if (!is_same) abort();
    nib_server_message_free(&whole);
    nib_server_message_free(&bytes);
    return 0;
}
