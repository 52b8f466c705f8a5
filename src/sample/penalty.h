/* sample/penalty.h - repeat, frequency and presence penalties over the last tokens.
 *
 * Keeps how often each token occurs in the window, so that a sample costs the distinct tokens in it, however long it
 * is. last_n = -1 is the whole history: counts only, nothing ever leaves. */
#ifndef NIB_SAMPLE_PENALTY_H
#define NIB_SAMPLE_PENALTY_H

#include "sample/history.h"

typedef struct nib_sample_penalty {
    size_t last_n;        /* 0: off; NIB_SAMPLE_HISTORY_ALL */
    float repeat, frequency, presence;
    uint32_t *count;      /* by id */
    uint32_t *place;      /* by id, in distinct; valid where count > 0 */
    nib_token *distinct;  /* tokens with count > 0 */
    size_t n_distinct;
} nib_sample_penalty;

nib_status nib_sample_penalty_init(nib_sample_penalty *penalty, const nib_sampler_params *params, uint32_t n_vocab,
                                   nib_error *err);
void nib_sample_penalty_fini(nib_sample_penalty *penalty);
void nib_sample_penalty_reset(nib_sample_penalty *penalty);
/* How far back it reads the history: last_n, and 0 when it is off or never forgets. */
size_t nib_sample_penalty_window(const nib_sample_penalty *penalty);
/* Counts id; history is as it was before id. */
void nib_sample_penalty_accept(nib_sample_penalty *penalty, const nib_sample_history *history, nib_token id);
void nib_sample_penalty_apply(nib_sampler *s);

#endif
