/* model/pieces.c - work cut into pieces that the threads of a team claim. */
#include "model/pieces.h"

#include "base/status.h"

#include <stdatomic.h>

typedef struct claims {
    const nib_model_pieces *pieces;
    atomic_size_t next;
    atomic_ullong done;
    atomic_bool failed;
    nib_error error;
} claims;

static void fail_once(claims *c, const nib_error *error) {
    if (!atomic_exchange(&c->failed, true)) c->error = *error;
}

static void claim(void *arg, int index, int n_threads) {
    (void)n_threads;
    claims *c = arg;
    const nib_model_pieces *p = c->pieces;
    for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < p->n && !atomic_load(&c->failed);) {
        nib_error error;
        uint64_t n_bytes = 0;
        if (p->run(p->arg, i, index, &n_bytes, &error) != NIB_OK) fail_once(c, &error);
        uint64_t done = atomic_fetch_add(&c->done, n_bytes) + n_bytes;
        if (index == 0 && p->progress && !p->progress(p->user, done, p->total)) {
            nib_fail(&error, NIB_E_CANCELLED, "loading was stopped by the caller");
            fail_once(c, &error);
        }
    }
}

nib_status nib_model_pieces_run(nib_model_pieces *pieces, nib_team *team, nib_error *err) {
    claims c = {.pieces = pieces};
    atomic_init(&c.done, pieces->done);
    nib_team_run(team, claim, &c);
    pieces->done = atomic_load(&c.done);
    if (!atomic_load(&c.failed)) return NIB_OK;
    if (err) *err = c.error;
    return c.error.code;
}
