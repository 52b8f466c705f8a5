/* cli/calibrate.h - how long the steps of a plan take on this machine, from what their kernels were seen to reach.
 *
 * Every kind of step that a model has (product with a type of weights, attention over heads of a shape, steps by row) is
 * measured once for a few seconds, alone and on other weights than the model's, and kept with the limits. A step of
 * another size follows from these: its bytes and multiply-accumulates decide, no model is ever run. */
#ifndef NIB_CLI_CALIBRATE_H
#define NIB_CLI_CALIBRATE_H

#include "cost.h"
#include "limits.h"

typedef struct nib_cli_calibration nib_cli_calibration;

typedef struct nib_cli_calibration_config {
    const nib_model *model; /* plan_only will do; must outlive the calibration */
    int n_threads;
    const char *k_type, *v_type;
    const nib_cli_term *term; /* for the note that something is measured */
} nib_cli_calibration_config;

/* Measures what `limits` does not know yet, adds it there and saves it. Free *out with nib_cli_calibration_free. */
nib_status nib_cli_calibration_new(nib_cli_calibration **out, nib_cli_limits *limits,
                                   const nib_cli_calibration_config *config, nib_error *err);
void nib_cli_calibration_free(nib_cli_calibration *calibration);
/* Seconds that a batch of this shape takes. */
double nib_cli_calibration_seconds(const nib_cli_calibration *calibration, nib_cli_batch_shape shape);
/* The same in milliseconds by kind of step: {"matmul Q4_K": 12.3, …}. */
json_t *nib_cli_calibration_json(const nib_cli_calibration *calibration, nib_cli_batch_shape shape);

#endif
