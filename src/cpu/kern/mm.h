/* cpu/kern/mm.h - the table of matrix kernels of a level.
 *
 * One kernel call multiplies a group of 16 packed rows by up to max_tok tokens over all columns and leaves a tile of
 * sums; cpu/matrix.c does the loops around it. */
#ifndef NIB_CPU_KERN_MM_H
#define NIB_CPU_KERN_MM_H

#include "cpu/act.h"
#include "cpu/kern/peak.h"
#include "quant/type.h"

#define NIB_MM_WIDE 128

typedef struct nib_cpu_mm_kernel {
    uint32_t
        max_tok; /* at most NIB_ACT_PANEL; divides it where activations are quantised, so that panels end with calls */
    /* tile[16 * c + r] = row r times token t0 + c, for c < n (more may be written, up to max_tok). t0 is a multiple of
     * max_tok; w and tile are 64-byte aligned. */
    void (*mul)(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile);
    /* The same for n_wide groups that stand one after the other and up to wide_tok tokens, n a multiple of max_tok and more than it:
     * tiles[(g * wide_tok + c) * 16 + r]. NULL: no faster way for many tokens. */
    void (*mul_wide)(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tiles);
    uint32_t n_wide, wide_tok; /* n_wide * wide_tok is at most NIB_MM_WIDE */
} nib_cpu_mm_kernel;

/* Where a product stands: n tokens from t0 (a multiple of max_tok), columns k0 … k1-1 (multiples of a unit's). */
typedef struct nib_cpu_mm_range {
    uint32_t t0, n;
    size_t k0, k1;
} nib_cpu_mm_range;

/* The way of a matrix unit, for many tokens: units of a group are spread once into a form that the unit reads, which then
 * meets every panel. begin and end set the unit up for the calling thread. */
typedef struct nib_cpu_mm_spread {
    uint32_t min_tok; /* fewer tokens go through the kernel */
    uint32_t max_tok; /* of a call of mul: 16 or 32 */
    size_t (*bytes)(size_t n_cols);
    void (*begin)(void);
    void (*spread)(const void *w, size_t n_cols, void *out);
    /* Adds columns k0 … k1-1 to tile[16 * c + r], which counts as zeros when k0 is 0; c < max_tok may be written. */
    void (*mul)(const void *spread, const nib_cpu_act *act, nib_cpu_mm_range range, float *tile);
    void (*end)(void);
} nib_cpu_mm_spread;

/* Fill columns of a form of token t: codes, scales, side arrays. The scalar ones define the bits. */
typedef struct nib_cpu_mm_quantize {
    void (*q32)(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part);
    void (*q256)(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part);
} nib_cpu_mm_quantize;

typedef struct nib_cpu_mm {
    const nib_cpu_mm_quantize *quantize;
    const nib_cpu_mm_kernel *kernel[NIB_QUANT_COUNT];
    const nib_cpu_mm_spread *const *spread; /* by type, NULL where kernel serves all; NULL without a matrix unit */
    const nib_cpu_peak *peak;
} nib_cpu_mm;

extern const nib_cpu_mm nib_cpu_mm_scalar, nib_cpu_mm_avx2, nib_cpu_mm_avxvnni, nib_cpu_mm_avx512,
    nib_cpu_mm_amx, nib_cpu_mm_neon, nib_cpu_mm_neon_i8mm;

/* What tables of levels are made of, and may take over from a lower one. */
extern const nib_cpu_mm_quantize nib_cpu_mm_quantize_scalar, nib_cpu_mm_quantize_avx2, nib_cpu_mm_quantize_neon;
#define X(name, gguf, block, bytes)                                                                                    \
    extern const nib_cpu_mm_kernel nib_cpu_mm_avx2_##name, nib_cpu_mm_avxvnni_##name, nib_cpu_mm_avx512_##name;        \
    extern const nib_cpu_mm_kernel nib_cpu_mm_neon_##name, nib_cpu_mm_neon_i8mm_##name;
#include "quant/types.def"
#undef X

#endif
