/* plan/batch.h - what one run of a plan computes: tokens, where they stand, and which rows are wanted.
 * Made by decode/context, read by the backend. Arrays are borrowed for the run. */
#ifndef NIB_PLAN_BATCH_H
#define NIB_PLAN_BATCH_H

#include "nib.h"

typedef struct nib_plan_batch {
    uint32_t n_tok;
    const nib_token *token;
    const uint32_t *pos;          /* in the token's sequence */
    const uint32_t *const *pages; /* of the token's sequence: page pages[t][p / 32] holds position p */
    uint32_t n_out;
    const uint32_t *out;          /* rows that are wanted, ascending */
    uint32_t logits_row;          /* where the first of them goes */
    bool wants_hidden;            /* of the rows the plan's hidden states, not logits: the last step is left out */
} nib_plan_batch;

#endif
