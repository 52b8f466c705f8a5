/* cli/cost.h - what steps and whole plans cost: rows, bytes to read, multiply-accumulates, and the time that a machine's
 * limits allow for them at best. Used by inspect --plan, trace, bench and plan. */
#ifndef NIB_CLI_COST_H
#define NIB_CLI_COST_H

#include "limits.h"
#include "nib.h"

/* A batch of n_seq sequences, each with as many of the n_tok tokens after `past` cached positions; n_out rows
 * want logits. */
typedef struct nib_cli_batch_shape {
    uint64_t n_tok, n_out, past, n_seq;
} nib_cli_batch_shape;

typedef struct nib_cli_work {
    double bytes;                /* weights and cache, each read once */
    double int8_macs, int16_macs, f32_macs;
} nib_cli_work;

/* A position in the cache of one layer: its bytes, and how much of attention multiplies 16-bit codes and not floats. */
typedef struct nib_cli_cache {
    double bytes, int16_share;
} nib_cli_cache;

uint64_t nib_cli_step_rows(const nib_step_info *step, nib_cli_batch_shape shape);
uint64_t nib_cli_step_macs(const nib_step_info *step, nib_cli_batch_shape shape);
nib_cli_work nib_cli_step_work(const nib_step_info *step, nib_cli_batch_shape shape, nib_cli_cache cache);
/* All steps together. */
nib_status nib_cli_plan_macs(const nib_model *model, nib_cli_batch_shape shape, uint64_t *macs, nib_error *err);
nib_cli_work nib_cli_plan_work(const nib_model *model, nib_cli_batch_shape shape, nib_cli_cache cache);
nib_cli_cache nib_cli_cache_of(const nib_model *model, const char *k_type, const char *v_type);
/* Multiply-accumulates of all kinds. */
double nib_cli_work_macs(const nib_cli_work *work);

/* Seconds below which the work cannot be done: reading and multiplying overlap at best. 0: not known. */
double nib_cli_bound(const nib_cli_work *work, const nib_cli_limit *limit, const char *isa);
/* Whether reading is what takes that long. */
bool nib_cli_bound_is_read(const nib_cli_work *work, const nib_cli_limit *limit, const char *isa);

#endif
