/* cpu/kern/mm_ref.c - the scalar matrix kernels: these define the bits that every level must give.
 *
 * Integer sums are exact. Bounds, with codes a of activations within +-127:
 *   32 weights   |q| <= 128            32 * 128 * 127            =     520 192
 *   Q2_K   q <= 3,  scale, min <= 15   16 * 15 * 16 * 3 * 127    =   1 463 040    minima 16 * 15 * 16 * 127 = 487 680
 *   Q3_K   |q| <= 4,  |scale| <= 32    16 * 32 * 16 * 4 * 127    =   4 161 536
 *   Q4_K   q <= 15, scale, min <= 63   8 * 63 * 32 * 15 * 127    =  30 723 840    minima 8 * 63 * 32 * 127 = 2 048 256
 *   Q5_K   q <= 31                     8 * 63 * 32 * 31 * 127    =  63 495 936    minima as Q4_K
 *   Q6_K   |q| <= 32, |scale| <= 128   16 * 128 * 16 * 32 * 127  = 133 169 152
 *   IQ4_XS |q| <= 127, |scale| <= 32   8 * 32 * 32 * 127 * 127   = 132 128 768
 * all below 2^31. Conversion to float rounds to nearest even. */
#include "cpu/kern/mm.h"

#include "base/half.h"
#include "cpu/pack.h"

#include <math.h>

static int dot(const int8_t *q, const int8_t *a, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) sum += q[k] * a[k];
    return sum;
}

static int sum_of(const int8_t *a, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) sum += a[k];
    return sum;
}

/* Unit u of 64 columns: a and da as in the panel, two blocks. */
static float add_32(float acc, const nib_cpu_pack_row *w, const int8_t *a, const float da[2]) {
    for (int b = 0; b < 2; b++) acc = fmaf((float)dot(w->code + 32 * b, a + 32 * b, 32), w->d[b] * da[b], acc);
    return acc;
}

static float add_32_min(float acc, const nib_cpu_pack_row *w, const int8_t *a, const float da[2]) {
    for (int b = 0; b < 2; b++) {
        int i = dot(w->code + 32 * b, a + 32 * b, 32), s = sum_of(a + 32 * b, 32);
        acc = fmaf(fmaf((float)s, w->m[b], (float)i * w->d[b]), da[b], acc);
    }
    return acc;
}

/* A unit of 256 columns; a holds them in a row. */
static float add_256(float acc, const nib_cpu_pack_row *w, const int8_t *a, float da) {
    int i = 0;
    for (int g = 0; g < 16; g++) i += w->scale[g] * dot(w->code + 16 * g, a + 16 * g, 16);
    return fmaf((float)i, w->d[0] * da, acc);
}

static float add_256_min(float acc, const nib_cpu_pack_row *w, const int8_t *a, float da) {
    int i = 0, m = 0;
    for (int g = 0; g < 16; g++) {
        i += w->scale[g] * dot(w->code + 16 * g, a + 16 * g, 16);
        m += w->min[g] * sum_of(a + 16 * g, 16);
    }
    return fmaf(fmaf(-(float)m, w->m[0], (float)i * w->d[0]), da, acc);
}

typedef float (*add32_fn)(float acc, const nib_cpu_pack_row *w, const int8_t *a, const float da[2]);
typedef float (*add256_fn)(float acc, const nib_cpu_pack_row *w, const int8_t *a, float da);

static void mul32(const nib_cpu_pack_form *form, add32_fn add, const void *w, const nib_cpu_act *act, uint32_t t0,
                  uint32_t n, float *tile) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n_units = a->n_pad / 64, np = act->np;
    memset(tile, 0, n * NIB_GROUP_ROWS * sizeof *tile);
    for (size_t u = 0; u < n_units; u++)
        for (unsigned r = 0; r < NIB_GROUP_ROWS; r++) {
            nib_cpu_pack_row row;
            form->get((const uint8_t *)w + u * form->unit_bytes, r, &row);
            for (uint32_t c = 0; c < n; c++) {
                const int8_t *q = a->q + nib_cpu_act_at(act, t0 + c, n_units, 64) + u * np * 64;
                const float *d = a->d + nib_cpu_act_at(act, t0 + c, 2 * n_units, 1) + 2 * u * np;
                float da[2] = {d[0], d[np]}, *acc = tile + NIB_GROUP_ROWS * c + r;
                *acc = add(*acc, &row, q, da);
            }
        }
}

static void mul256(const nib_cpu_pack_form *form, add256_fn add, const void *w, const nib_cpu_act *act, uint32_t t0,
                   uint32_t n, float *tile) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n_units = a->n_pad / 256, np = act->np;
    memset(tile, 0, n * NIB_GROUP_ROWS * sizeof *tile);
    for (size_t u = 0; u < n_units; u++)
        for (unsigned r = 0; r < NIB_GROUP_ROWS; r++) {
            nib_cpu_pack_row row;
            form->get((const uint8_t *)w + u * form->unit_bytes, r, &row);
            for (uint32_t c = 0; c < n; c++) {
                const int8_t *line = a->q + nib_cpu_act_at(act, t0 + c, 4 * n_units, 64) + 4 * u * np * 64;
                int8_t q[256];
                for (size_t i = 0; i < 4; i++) memcpy(q + 64 * i, line + i * np * 64, 64);
                float *acc = tile + NIB_GROUP_ROWS * c + r;
                *acc = add(*acc, &row, q, a->d[nib_cpu_act_at(act, t0 + c, n_units, 1) + u * np]);
            }
        }
}

#define KERNEL_32(NAME, ADD)                                                                                           \
    static void mul_##NAME(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {              \
        mul32(&nib_cpu_pack_form_##NAME, ADD, w, act, t0, n, tile);                                                    \
    }
#define KERNEL_256(NAME, ADD)                                                                                          \
    static void mul_##NAME(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {              \
        mul256(&nib_cpu_pack_form_##NAME, ADD, w, act, t0, n, tile);                                                   \
    }
KERNEL_32(Q4_0, add_32)
KERNEL_32(Q4_1, add_32_min)
KERNEL_32(Q5_0, add_32)
KERNEL_32(Q5_1, add_32_min)
KERNEL_32(Q8_0, add_32)
KERNEL_32(IQ4_NL, add_32)
KERNEL_32(MXFP4, add_32)
KERNEL_256(Q2_K, add_256_min)
KERNEL_256(Q3_K, add_256)
KERNEL_256(Q4_K, add_256_min)
KERNEL_256(Q5_K, add_256_min)
KERNEL_256(Q6_K, add_256)
KERNEL_256(IQ4_XS, add_256)

/* Floats: one fma per column, ascending, from +0. */
#define KERNEL_FLOAT(NAME, TYPE, VALUE)                                                                                \
    static void mul_##NAME(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {              \
        const TYPE *v = w;                                                                                             \
        for (uint32_t c = 0; c < n; c++) {                                                                             \
            const float *x = act->x + (size_t)(t0 + c) * act->stride;                                                  \
            float acc[NIB_GROUP_ROWS] = {0};                                                                           \
            for (size_t k = 0; k < act->n_cols; k++)                                                                   \
                for (size_t r = 0; r < NIB_GROUP_ROWS; r++)                                                            \
                    acc[r] = fmaf(VALUE(v[NIB_GROUP_ROWS * k + r]), x[k], acc[r]);                                     \
            memcpy(tile + NIB_GROUP_ROWS * c, acc, sizeof acc);                                                        \
        }                                                                                                              \
    }
KERNEL_FLOAT(F32, float, )
KERNEL_FLOAT(F16, uint16_t, nib_f16_to_f32)
KERNEL_FLOAT(BF16, uint16_t, nib_bf16_to_f32)

/* 16 tokens a call: a row is unpacked once for all of them. */
#define X(name, gguf, block, bytes) static const nib_cpu_mm_kernel kernel_##name = {.max_tok = NIB_ACT_PANEL, .mul = mul_##name};
#include "quant/types.def"
#undef X

const nib_cpu_mm nib_cpu_mm_scalar = {
    .quantize = &nib_cpu_mm_quantize_scalar,
    .peak = &nib_cpu_peak_scalar,
    .kernel =
        {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &kernel_##name,
#include "quant/types.def"
#undef X
        },
};
