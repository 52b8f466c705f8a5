/* server/http.h - HTTP/1.1 over libevent: requests come in, answers go out whole or as a stream.
 *
 * The only header of the server that stands for libevent. Its bufferevents and loop are used, not its evhttp: that answers a
 * malformed request with a page of HTML, reads nothing while a request is worked on, so that it does not see the client go,
 * and ends the process when bytes come where it expects none.
 *
 * One thread, the loop, calls back and may call these functions, but for nib_server_http_post, which any thread may. Every
 * connection is read all the time: a client that goes away is noticed at once, whatever its request is waiting for. What a
 * client may make us keep is bounded: connections, heads, bodies (each and all together), bytes that it does not read; and so
 * is the time it may take for each. */
#ifndef NIB_SERVER_HTTP_H
#define NIB_SERVER_HTTP_H

#include "base/buf.h"

typedef struct nib_server_http nib_server_http;
typedef struct nib_server_exchange nib_server_exchange; /* a request, and the answer to it */

typedef struct nib_server_http_config {
    const char *host; /* a name or an address */
    uint16_t port;    /* 0: any that is free */
    const char *tls_cert, *tls_key; /* files in PEM; NULL: no TLS */
    uint32_t max_connections;
    size_t max_head, max_body, max_bodies, max_unsent; /* bytes; bodies: of all connections */
    double head_s, body_s, idle_s, write_s; /* seconds for a head, a body, between requests, without progress in sending */
    /* The head has come, the body may not have: false when it was answered, and the body is not wanted. */
    bool (*head)(void *user, nib_server_exchange *x);
    /* A request is complete. */
    void (*request)(void *user, nib_server_exchange *x);
    /* An answer is complete or, with status 0, its client is gone. */
    void (*done)(void *user, nib_server_exchange *x, int status);
    /* A request that is no HTTP: the body of the answer to it, JSON. */
    void (*fault)(void *user, int status, const char *text, nib_buf *body);
    void *user;
} nib_server_http_config;

/* Binds and listens. The config is copied, its strings are not kept. */
nib_status nib_server_http_new(nib_server_http **out, const nib_server_http_config *config, nib_error *err);
uint16_t nib_server_http_port(const nib_server_http *http);
/* Runs the loop until nib_server_http_stop. */
void nib_server_http_run(nib_server_http *http);
/* On the loop: it ends after this callback. */
void nib_server_http_stop(nib_server_http *http);
/* On the loop: answers say from now on that their connection will be closed. New ones are still taken, for probes. */
void nib_server_http_drain(nib_server_http *http);
/* On the loop: connections that wait for an answer or its last bytes. */
size_t nib_server_http_n_busy(const nib_server_http *http);
/* After the loop. Connections that are left are closed, with the callbacks for that. */
void nib_server_http_free(nib_server_http *http);

/* Something to run on the loop. Belongs to the caller, zero-initialised. */
typedef struct nib_server_task {
    void (*run)(struct nib_server_task *task);
    struct nib_server_task *next, *prev; /* of those that wait */
    bool is_posted;
} nib_server_task;

/* From any thread, and cheap: task->run(task) on the loop, soon; at once when it hurries, or when no other thread wants the CPU. A
 * task that waits already is not posted again. */
void nib_server_http_post(nib_server_http *http, nib_server_task *task, bool hurries);
/* On the loop: takes back a task that waits. */
void nib_server_http_unpost(nib_server_http *http, nib_server_task *task);
/* On the loop: calls fn(user) every `seconds`, as long as the loop runs. */
nib_status nib_server_http_every(nib_server_http *http, double seconds, void (*fn)(void *user), void *user, nib_error *err);

/* ---- an exchange: valid from the head or request callback until the answer is ended or the closed callback was called */
nib_str nib_server_http_method(const nib_server_exchange *x);
nib_str nib_server_http_path(const nib_server_exchange *x); /* as it was sent */
nib_str nib_server_http_query(const nib_server_exchange *x);
nib_str nib_server_http_header(const nib_server_exchange *x, const char *name); /* ptr NULL: there is none */
nib_str nib_server_http_body(const nib_server_exchange *x);
/* The body, which from now on is the caller's. */
nib_buf nib_server_http_take_body(nib_server_exchange *x);
const char *nib_server_http_peer(const nib_server_exchange *x);
double nib_server_http_age(const nib_server_exchange *x); /* seconds since the request was complete; 0: it never was */
/* A line about it for the log, to be written and read; "" at first. */
#define NIB_SERVER_NOTE 192
char *nib_server_http_note(nib_server_exchange *x);

/* Calls closed(user), once, when the client went away before the answer ended. NULL: nobody wants to know. */
void nib_server_http_on_closed(nib_server_exchange *x, void (*closed)(void *user), void *user);

/* Adds a line to the head of the answer. */
void nib_server_http_set(nib_server_exchange *x, const char *name, const char *value);
/* The whole answer; type NULL: no body. To HEAD the body is left out. */
void nib_server_http_reply(nib_server_exchange *x, int status, const char *type, nib_str body);
/* An answer that comes in parts. write: false when the client reads too slowly, so that more than max_unsent and one part wait
 * for it; it is gone then, and closed was called. */
void nib_server_http_begin(nib_server_exchange *x, int status, const char *type);
bool nib_server_http_write(nib_server_exchange *x, nib_str bytes);
void nib_server_http_end(nib_server_exchange *x);
/* Something of the answer was told, and what comes now, to its end, may wait for a CPU. The engine's threads wait for each
 * other: when one has to make place for the loop, all do nothing meanwhile. So the loop takes no CPU from them while nobody
 * waits for the beginning of an answer, nor is likely to ask; a new request and a first token are worth it. */
void nib_server_http_flow(nib_server_exchange *x);

#endif
