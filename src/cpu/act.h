/* cpu/act.h - activations as the matrix kernels read them: panels of NP tokens, quantised per 32 and per 256 values.
 *
 * Floats of n tokens in, panels out: 64 values of one token are one 64-byte line, [k/64][NP][64]; scales and sums of
 * codes stand beside them. The form does not depend on the instruction set.
 *
 * Quantising a block: d = amax / 127 (IEEE division), code = x * (1 / d) rounded to nearest even. The roundings are
 * worth less than 2^-15 of a code, so that no code exceeds +-127. When d would be subnormal (amax below 1.5e-36, or
 * zero) the block counts as zeros with d = 0. When a value is infinite or NaN, d is NaN and the codes are zero: every
 * product with that block is NaN, so that a broken activation stays visible in the logits.
 *
 * Called by cpu/op_quant, split over threads by tokens. */
#ifndef NIB_CPU_ACT_H
#define NIB_CPU_ACT_H

#include "cpu/isa.h"

#include <string.h>

enum {                   /* what a consumer reads; a buffer may hold several */
       NIB_ACT_F32 = 1,  /* the floats themselves: F32, F16, BF16 weights */
       NIB_ACT_Q32 = 2,  /* int8 with a scale per 32: types of 32 weights a block */
       NIB_ACT_Q256 = 4, /* int8 with a scale per 256: types of 256 weights a block */
};

#define NIB_ACT_PANEL 16 /* tokens of a panel, unless there is only one token in all */

typedef struct nib_cpu_act nib_cpu_act; /* the struct is below: kernels read it, others only pass it on */

/* Memory for up to n_tok tokens of n_cols values in these forms; SIZE_MAX when that is beyond any machine. */
size_t nib_cpu_act_bytes(uint32_t n_tok, uint32_t n_cols, unsigned forms);

/* Lays the forms of n_tok tokens out in `memory` (64-byte aligned, nib_cpu_act_bytes) for the rows x + t * stride.
 * The floats are not copied: NIB_ACT_F32 reads them in place. Touches no data; every thread may do it for itself. */
void nib_cpu_act_bind(nib_cpu_act *act, void *memory, const float *x, size_t stride, uint32_t n_tok, uint32_t n_cols,
                      unsigned forms);
/* Fills the forms of tokens t0 … t1-1. Different tokens may be filled by different threads. The call that fills the
 * last token also zeroes the up to three after it that kernels of four tokens may read. */
void nib_cpu_act_quantize(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t0, uint32_t t1);
/* The same for columns k0 … k1-1 of token t alone (multiples of the forms' blocks, or the end of the row), whose floats
 * stand at x. Different columns may be filled by different threads. */
void nib_cpu_act_quantize_part(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t, const float *x, uint32_t k0,
                               uint32_t k1);

/* ---- for kernels */

/* Side arrays are [panel][columns / step][NP], the step standing behind the name. A *start* array holds -N times sums
 * of codes: a kernel whose weights are stored with an offset of N starts its integer sum from there. *Half* sums come
 * in pairs (int16): codes k with k % 4 < 2, then the others, as the two int16 sums of a 32-bit lane see them. */
typedef struct nib_cpu_act_q32 {
    int8_t *q;         /* 64: [n_pad / 64][NP][64] codes */
    float *d;          /* 32: scales */
    float *sum;        /* 32: sums, exact */
    int32_t *start8;   /* 32 */
    int32_t *start16;  /* 32 */
    int32_t *start128; /* 32 */
    int16_t *half16;   /* 32: pairs, start values of 16 */
    uint32_t n_pad;    /* n_cols rounded up to 64 */
} nib_cpu_act_q32;

typedef struct nib_cpu_act_q256 {
    int8_t *q;        /* 64 */
    float *d;         /* 256 */
    int16_t *sum16;   /* 32: pairs, the sums of two 16 columns */
    int16_t *sum32;   /* 64: pairs, the sums of two 32 columns */
    int32_t *start8;  /* 32 */
    int32_t *start16; /* 16 */
    int32_t *start32; /* 8 */
    int16_t *half32;  /* 16: pairs, start values of 32 */
    uint32_t n_pad;   /* n_cols rounded up to 256 */
} nib_cpu_act_q256;

struct nib_cpu_act {
    const float *x; /* the source rows */
    size_t stride;
    uint32_t n_tok, n_cols;
    uint32_t np; /* NP: 1 when n_tok is 1, else NIB_ACT_PANEL */
    unsigned forms;
    nib_cpu_act_q32 q32;
    nib_cpu_act_q256 q256;
};

/* Index of the first element of token t in an array with n steps a row and `width` elements a step: the next step is
 * np * width elements on. */
static inline size_t nib_cpu_act_at(const nib_cpu_act *act, uint32_t t, size_t n, size_t width) {
    return ((size_t)(t / act->np) * n * act->np + t % act->np) * width;
}

/* Columns k0 … k1-1 of a row, multiples of the form's block; x[0] is column k0. */
typedef struct nib_cpu_act_part {
    const float *x;
    size_t k0, k1;
} nib_cpu_act_part;

/* Columns k … k+n-1: in place, or in buf with zeros where the row has ended. */
static inline const float *nib_cpu_act_columns(const nib_cpu_act *act, nib_cpu_act_part part, size_t k, size_t n, float *buf) {
    if (k + n <= act->n_cols) return part.x + (k - part.k0);
    memset(buf, 0, n * sizeof *buf);
    if (k < act->n_cols) memcpy(buf, part.x + (k - part.k0), (act->n_cols - k) * sizeof *buf);
    return buf;
}

#endif
