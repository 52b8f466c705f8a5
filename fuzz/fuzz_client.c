/* fuzz/fuzz_client.c - answers of a server in any bytes and cuts, their bodies read as server-sent events: no memory errors, and
 * the result does not depend on the cuts. */
#include "../cli/http_answer.c" /* the program is no library */
#include "../cli/sse.c"

#include <stdlib.h>

typedef struct result {
    nib_cli_http_answer answer;
    nib_cli_sse sse;
    nib_buf events;
    nib_status status;
} result;

static bool keep(void *user, nib_str data) {
    if (data.ptr[data.len]) abort();
    return nib_buf_append(user, data.ptr, data.len) && nib_buf_char(user, '\n');
}

static bool on_body(void *user, const nib_cli_http_answer *answer, nib_str piece) {
    result *r = user;
    if (answer->status < 100 || answer->status > 999 || !piece.len) abort();
    return nib_cli_sse_feed(&r->sse, piece, keep, &r->events);
}

static void feed(result *r, const char *text, size_t len, size_t step) {
    r->answer.body = on_body;
    r->answer.user = r;
    for (size_t i = 0; i < len && r->status == NIB_OK; i += step)
        r->status = nib_cli_http_answer_feed(&r->answer, (nib_str){text + i, len - i < step ? len - i : step}, NULL);
    if (r->status == NIB_OK) r->status = nib_cli_http_answer_end(&r->answer, NULL);
}

static void free_result(result *r) {
    nib_cli_http_answer_free(&r->answer);
    nib_cli_sse_free(&r->sse);
    nib_buf_free(&r->events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    result whole = {0}, bytes = {0};
    feed(&whole, (const char *)data, size, size ? size : 1);
    feed(&bytes, (const char *)data, size, 1);
    bool is_same = whole.status == bytes.status && whole.answer.status == bytes.answer.status && whole.events.len == bytes.events.len &&
                   (!whole.events.len || memcmp(whole.events.ptr, bytes.events.ptr, whole.events.len) == 0);
    if (!is_same) abort();
    free_result(&whole);
    free_result(&bytes);
    return 0;
}
