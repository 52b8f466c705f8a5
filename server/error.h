/* server/error.h - why a request is refused: a status of HTTP, and OpenAI's {"error": {message, type, param, code}}. */
#ifndef NIB_SERVER_ERROR_H
#define NIB_SERVER_ERROR_H

#include "base/buf.h"

typedef struct nib_server_fault {
    int status;        /* 400 … 503 */
    const char *code;  /* "context_length_exceeded"; NULL: none */
    unsigned retry_s;  /* Retry-After; 0: not sent */
    char param[96];    /* the field; "": none */
    char message[496];
} nib_server_fault;

/* Fill *fault and return NIB_E_ARG, so that `return nib_server_refuse(…)` reads like nib_fail. */
nib_status nib_server_refuse(nib_server_fault *fault, const char *param, const char *format, ...) __attribute__((format(printf, 3, 4)));
nib_status nib_server_fail(nib_server_fault *fault, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What the library says about a request, in these terms; returns err->code. param: what it was said about; a path at the
 * beginning of the message ("messages[3].content: …") goes before it. */
nib_status nib_server_fault_of(nib_server_fault *fault, const nib_error *err, const char *param);

/* The error type that belongs to a status: "invalid_request_error", … */
const char *nib_server_error_type(int status);
/* Appends OpenAI's object. */
void nib_server_error_json(const nib_server_fault *fault, nib_buf *out);

#endif
