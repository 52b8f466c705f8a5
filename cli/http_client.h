/* cli/http_client.h - HTTP/1.1 over plain sockets: a request out, its answer in as it comes. One connection, which is kept
 * for the next request where the server allows. There is no TLS: https is refused. Ctrl-C ends every wait. */
#ifndef NIB_CLI_HTTP_CLIENT_H
#define NIB_CLI_HTTP_CLIENT_H

#include "http_answer.h"

typedef struct nib_cli_http {
    char host[256], port[8], path[512]; /* path: of the URL, with no slash at its end */
    const char *key;     /* borrowed; NULL: none */
    int timeout_ms;      /* without a byte from the server */
    int fd;              /* -1: no connection */
    bool was_used;       /* by an earlier request */
} nib_cli_http;

/* Takes the URL apart; nothing is sent. NIB_E_ARG: it is none, or not http. */
nib_status nib_cli_http_init(nib_cli_http *http, const char *url, nib_error *err);
/* Sends a request, GET when body.ptr is NULL, to the path of the URL with `path` after it; reads the answer to its end. Only
 * errors of the transport are errors here. NIB_E_CANCELLED: Ctrl-C, or answer->body wanted no more. After any error there is no
 * connection. Of *answer body and user are set; free it in any case. */
nib_status nib_cli_http_send(nib_cli_http *http, const char *path, nib_str body, nib_cli_http_answer *answer, nib_error *err);
void nib_cli_http_close(nib_cli_http *http);

#endif
