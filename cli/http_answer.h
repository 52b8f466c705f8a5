/* cli/http_answer.h - the answer to an HTTP/1.1 request, read piece by piece: bytes in -> status, head, and the body as it
 * comes. No I/O. */
#ifndef NIB_CLI_HTTP_ANSWER_H
#define NIB_CLI_HTTP_ANSWER_H

#include "base/buf.h"

typedef struct nib_cli_http_answer nib_cli_http_answer;

/* Gets a piece of the body; false: no more of it is wanted. */
typedef bool (*nib_cli_http_body_fn)(void *user, const nib_cli_http_answer *answer, nib_str piece);

/* Zero-initialise but for body and user; free with nib_cli_http_answer_free. */
struct nib_cli_http_answer {
    nib_cli_http_body_fn body;
    void *user;
    /* The head, from the first piece of the body on. */
    int status;
    char type[64];        /* of the body, in lower case and without parameters */
    uint32_t retry_s;     /* Retry-After, 0: none */
    bool closes;          /* the server closes the connection after it */
    /* Private. */
    int state;
    bool is_chunked, has_length;
    uint64_t left;        /* bytes of the body or the chunk */
    size_t n_head;
    nib_buf line;         /* that is not complete yet */
};

/* Takes bytes. NIB_E_FORMAT: this is not HTTP/1.1; NIB_E_CANCELLED: the body is not wanted. */
nib_status nib_cli_http_answer_feed(nib_cli_http_answer *answer, nib_str bytes, nib_error *err);
/* The connection was closed. NIB_E_IO: something is missing. */
nib_status nib_cli_http_answer_end(nib_cli_http_answer *answer, nib_error *err);
bool nib_cli_http_answer_is_complete(const nib_cli_http_answer *answer);
void nib_cli_http_answer_free(nib_cli_http_answer *answer);

#endif
