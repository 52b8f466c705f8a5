/* sample/dry.h - DRY ("don't repeat yourself"): the longer the passage that a token would repeat, the less likely.
 *
 * If the last r >= allowed_length tokens occurred before and t followed them there, the logit of t falls by
 * multiplier * base^(r - allowed_length). Repeats do not reach across a breaker. Time is linear in the window. */
#ifndef NIB_SAMPLE_DRY_H
#define NIB_SAMPLE_DRY_H

#include "sample/history.h"

typedef struct nib_sample_dry {
    size_t last_n; /* 0: off; NIB_SAMPLE_HISTORY_ALL */
    size_t allowed_length;
    double multiplier, base;
    /* Breakers of one token, as bits; and the longer ones: a flat list, where each begins, ordered by first token. */
    uint32_t *single, *is_head;
    nib_token *ids;
    struct nib_sample_dry_breaker {
        uint32_t first, length;
    } *breakers;
    size_t n_breakers;
    /* Scratch: match[k] of the window seen backwards, and by id the longest repeat that the token would continue. */
    uint32_t *match;
    nib_token *touched;
    size_t match_capacity, touched_capacity, n_touched;
    uint32_t *longest;
} nib_sample_dry;

nib_status nib_sample_dry_init(nib_sample_dry *dry, const nib_sampler_params *params, uint32_t n_vocab,
                               nib_error *err);
void nib_sample_dry_fini(nib_sample_dry *dry);
/* Makes room for a window of n tokens; called when the history grows. */
nib_status nib_sample_dry_reserve(nib_sample_dry *dry, size_t n, nib_error *err);
void nib_sample_dry_apply(nib_sampler *s);

#endif
