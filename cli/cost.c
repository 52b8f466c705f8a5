/* cli/cost.c - plan steps and the shape of a batch in -> operations out. */
#include "cost.h"

#include "base/status.h"

#include <string.h>

uint64_t nib_cli_step_rows(const nib_step_info *step, nib_cli_batch_shape shape) {
    return strcmp(step->rows, "OUT") ? shape.n_tok : shape.n_out;
}

uint64_t nib_cli_step_macs(const nib_step_info *step, nib_cli_batch_shape shape) {
    if (strcmp(step->op, "attention")) return step->macs * nib_cli_step_rows(step, shape);
    /* Row i sees past + i + 1 positions. A sliding window may see fewer: this is the upper bound. */
    return step->macs * (shape.n_tok * shape.past + shape.n_tok * (shape.n_tok + 1) / 2);
}

nib_status nib_cli_plan_macs(const nib_model *model, nib_cli_batch_shape shape, uint64_t *macs, nib_error *err) {
    *macs = 0;
    for (size_t i = 0; i < nib_model_n_steps(model); i++) {
        nib_step_info step;
        if (nib_model_step(model, i, &step) != NIB_OK) return nib_fail(err, NIB_E_ARG, "no step %zu in the plan", i);
        *macs += nib_cli_step_macs(&step, shape);
    }
    return NIB_OK;
}
