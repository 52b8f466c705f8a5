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
