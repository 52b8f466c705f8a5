/* server/server.h - the HTTP server of one model: made before the model is loaded, so that probes are answered meanwhile.
 *
 *     nib_server_new      listens; /live says 200, /health 503
 *     nib_server_open     the model is loaded: requests are taken
 *     nib_server_drain    takes no more; /health says 503, /live 200, what runs ends
 *     nib_server_cut      what runs ends with an error
 *     nib_server_free     what is left is cut off
 *
 * All are called by one thread, which is not the server's. */
#ifndef NIB_SERVER_SERVER_H
#define NIB_SERVER_SERVER_H

#include "nib.h"

typedef struct nib_server nib_server;

/* Most memory of compiled grammars that are kept. */
#define NIB_SERVER_GRAMMAR_BYTES (64u << 20)

typedef struct nib_server_config {
    const char *host;
    uint16_t port;                   /* 0: any; nib_server_port tells */
    const char *tls_cert, *tls_key;  /* NULL: no TLS */
    const nib_str *models;           /* names of the model, the first of which it goes by; at least one */
    size_t n_models;
    const nib_str *keys;             /* API keys; none: everybody may ask */
    size_t n_keys;
    const char *cors_origin;         /* of pages whose scripts may ask; "*": all; NULL: none */
    uint32_t max_connections, max_requests;
    size_t max_body;                 /* bytes */
    double timeout_s;                /* for a request's body, and without progress in sending */
    double queue_s, request_s;       /* how long a request may wait to begin, and take in all; 0: for ever */
    bool strict_fields;              /* refuse fields that are not known */
    bool isolate_keys;               /* requests of one key use no cached pages of another's */
    bool log_text;                   /* of requests and answers, too */
    void (*log)(void *user, const char *line); /* called by the loop; NULL: no log */
    void *user;
} nib_server_config;

/* What is served. All of it must outlive the server; chat may be NULL: then there are only completions. */
typedef struct nib_server_model {
    const nib_model *model;
    const nib_tokenizer *tok;
    const nib_chat *chat;
    const char *chat_missing; /* why chat is NULL */
    nib_engine *engine;
    uint32_t max_context;     /* positions of a request */
    uint32_t n_kv;            /* positions of all */
    uint32_t n_seq;           /* requests that run at once */
} nib_server_model;

/* The config is copied; its strings are not. */
nib_status nib_server_new(nib_server **out, const nib_server_config *config, nib_error *err);
uint16_t nib_server_port(const nib_server *server);
nib_status nib_server_open(nib_server *server, const nib_server_model *model, nib_error *err);
void nib_server_drain(nib_server *server);
/* After nib_server_drain: what still runs ends with an error. */
void nib_server_cut(nib_server *server);
/* Whether all requests are answered, after nib_server_drain. */
bool nib_server_is_idle(const nib_server *server);
void nib_server_free(nib_server *server);

#endif
