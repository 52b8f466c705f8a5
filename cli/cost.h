/* cli/cost.h - what a step of the plan costs: rows, multiply-accumulates. Used by inspect --plan, trace and bench. */
#ifndef NIB_CLI_COST_H
#define NIB_CLI_COST_H

#include "nib.h"

/* A batch of one sequence: n_tok tokens after `past` cached positions, n_out of which want logits. */
typedef struct nib_cli_batch_shape {
    uint64_t n_tok, n_out, past;
} nib_cli_batch_shape;

uint64_t nib_cli_step_rows(const nib_step_info *step, nib_cli_batch_shape shape);
uint64_t nib_cli_step_macs(const nib_step_info *step, nib_cli_batch_shape shape);
/* All steps together. */
nib_status nib_cli_plan_macs(const nib_model *model, nib_cli_batch_shape shape, uint64_t *macs, nib_error *err);

#endif
