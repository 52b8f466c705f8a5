/* server/internal.h - private to server/: what everything in it hangs off. */
#ifndef NIB_SERVER_INTERNAL_H
#define NIB_SERVER_INTERNAL_H

#include "engine_view.h"
#include "generation.h"
#include "http.h"
#include "metrics.h"
#include "server.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct nib_server_errand nib_server_errand;

typedef enum nib_server_state { NIB_SERVER_LOADING = 0, NIB_SERVER_READY, NIB_SERVER_DRAINING } nib_server_state;

struct nib_server {
    nib_server_config config;
    nib_server_http *http;
    nib_server_work *work;
    pthread_t loop;
    bool has_loop;
    int64_t started;           /* seconds since 1970 */
    uint64_t secret;           /* of this process: seed of salts and ids */

    /* Set before the state is READY, unchanged afterwards. */
    nib_server_model model;
    nib_grammar_vocab *vocab;
    nib_grammar_cache *grammars;

    atomic_int state;          /* nib_server_state */
    nib_server_task drain, cut, stop;
    atomic_bool is_idle;

    /* The loop. */
    nib_server_metrics metrics;
    nib_server_answer *answers;
    size_t n_answers, n_made;
    nib_server_errand *errands;
    size_t n_errands;
    nib_server_engine_view *engine_view; /* NULL until somebody looks */
};

/* The name that the model goes by. */
static inline nib_str nib_server_model_name(const nib_server *server) {
    return server->config.models[0];
}

#endif
