/* model/pieces.h - work cut into pieces that the threads of a team claim, with progress and the first error: loading
 * weights, and reading and writing their packed form. */
#ifndef NIB_MODEL_PIECES_H
#define NIB_MODEL_PIECES_H

#include "base/team.h"

typedef struct nib_model_pieces {
    size_t n;
    /* Does piece i on thread `thread` of the team, and says how many bytes that was. */
    nib_status (*run)(void *arg, size_t i, int thread, uint64_t *n_bytes, nib_error *err);
    void *arg;
    nib_progress_fn progress; /* NULL: none */
    void *user;
    uint64_t done, total; /* bytes before the first piece, and in all; done goes on counting */
} nib_model_pieces;

/* All pieces, or up to the first error. NIB_E_CANCELLED when progress said so. */
nib_status nib_model_pieces_run(nib_model_pieces *pieces, nib_team *team, nib_error *err);

#endif
