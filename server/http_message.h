/* server/http_message.h - one HTTP/1.x request: bytes in -> method, target, headers and body out. No I/O.
 *
 * Strict where leniency lets two readers of the same bytes disagree: a second Content-Length, one beside Transfer-Encoding,
 * folded headers, blanks before a colon and control characters are faults. What a client may make us keep is limited.
 * Fuzzed by fuzz/fuzz_server_http.c; used by http.c. */
#ifndef NIB_SERVER_HTTP_MESSAGE_H
#define NIB_SERVER_HTTP_MESSAGE_H

#include "base/buf.h"

#define NIB_SERVER_MAX_HEADERS 100

typedef enum nib_server_stage {
    NIB_SERVER_HEAD = 0, /* request line and headers */
    NIB_SERVER_BODY,
    NIB_SERVER_COMPLETE,
    NIB_SERVER_BAD,      /* status and fault say why; nothing more is read */
} nib_server_stage;

typedef struct nib_server_header {
    nib_str name, value;
} nib_server_header;

/* Zero-initialise, and set the limits. */
typedef struct nib_server_message {
    size_t max_head, max_body;

    nib_server_stage stage;
    int status;        /* of a fault */
    const char *fault; /* a constant sentence */

    nib_str method, path, query; /* query: without its '?' */
    nib_server_header headers[NIB_SERVER_MAX_HEADERS];
    size_t n_headers;
    bool keeps_alive, expects_continue;
    bool is_old; /* HTTP/1.0: answers are not chunked */
    nib_buf body;

    /* How far it is read. */
    nib_buf head;       /* the strings above point into it */
    size_t left;        /* bytes of the body, or of its chunk, that are to come */
    bool is_chunked;
    uint8_t chunk_part; /* what comes next of a chunk */
    bool has_size;      /* its line has a digit */
    size_t n_line_bytes; /* of the lines between two chunks */
} nib_server_message;

/* Takes bytes and returns how many: not all when the head is complete (the caller looks at it, and feeds the rest), when the
 * request is, and after a fault. */
size_t nib_server_message_feed(nib_server_message *m, const char *bytes, size_t n);
/* The value of a header, NULL pointer when there is none; names are compared without case. */
nib_str nib_server_message_header(const nib_server_message *m, const char *name);
/* Ready for the next request; memory is kept up to 64 KiB. */
void nib_server_message_reset(nib_server_message *m);
void nib_server_message_free(nib_server_message *m);

#endif
