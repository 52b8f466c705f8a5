/* cpu/act.h - activations as the matrix kernels read them: panels of NP tokens, quantised per 32 and per 256 values.
 *
 * Floats of n tokens in, panels out: 64 values of one token are one 64-byte line, [k/64][NP][64]; scales and half sums
 * stand beside them. The form does not depend on the instruction set. Quantising: amax / 127 by IEEE division, codes
 * rounded to nearest even and clamped to +-127. Called by cpu/op_quant, split over threads by tokens. */
#ifndef NIB_CPU_ACT_H
#define NIB_CPU_ACT_H

#include "cpu/isa.h"

enum { /* what a consumer reads; a buffer may hold several */
    NIB_ACT_F32 = 1,  /* the floats themselves: F32, F16, BF16 weights */
    NIB_ACT_Q32 = 2,  /* int8 with a scale per 32: types of 32 weights a block */
    NIB_ACT_Q256 = 4, /* int8 with a scale per 256: types of 256 weights a block */
};

/* Memory for up to n_tok tokens of n_cols values in these forms. */
size_t nib_cpu_act_bytes(uint32_t n_tok, uint32_t n_cols, unsigned forms);

typedef struct nib_cpu_act nib_cpu_act; /* the struct is below: kernels read it, others only pass it on */

/* Lays the forms of n_tok tokens out in `memory` (64-byte aligned, nib_cpu_act_bytes) for the rows x + t * stride.
 * The floats are not copied: NIB_ACT_F32 reads them in place. Touches no data; every thread may do it for itself. */
void nib_cpu_act_bind(nib_cpu_act *act, void *memory, const float *x, size_t stride, uint32_t n_tok, uint32_t n_cols,
                      unsigned forms);
/* Fills the forms of tokens t0 … t1-1. Different tokens may be filled by different threads. Unused tokens of the last
 * panel are zeroed by the call that fills its last used token. */
void nib_cpu_act_quantize(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t0, uint32_t t1);

struct nib_cpu_act {
    const float *x; /* the source rows */
    size_t stride;
    uint32_t n_tok, n_cols, n_pad; /* n_pad: n_cols rounded up to 64 (Q32) or 256 (Q256) */
    uint32_t np;                   /* tokens in a panel: 1 when n_tok is 1, else 8 or 16 */
    unsigned forms;
    /* more fields: see matrix.h's kernels */
};

#endif
