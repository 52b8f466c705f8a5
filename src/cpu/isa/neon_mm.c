/* cpu/isa/neon_mm.c - NEON: kernels of floating-point weights, and the table of the level.
 *
 * Floats: one fma per column and output, 16 rows in four registers for up to 6 tokens, which fills the registers. */
#include "cpu/isa/neon_mm.h"

typedef enum float_form { FLOAT_32, FLOAT_16, FLOAT_B16 } float_form;

/* Rows 4 i … 4 i + 3 of a column. */
INL float32x4_t column(float_form form, const uint8_t *w, int k, int i) {
    if (form == FLOAT_32) return vld1q_f32((const float *)(const void *)w + 16 * k + 4 * i);
    const uint16_t *h = (const uint16_t *)(const void *)w + 16 * k + 4 * i;
    return form == FLOAT_16 ? from_f16(h) : from_bf16(h);
}

/* Steps through n columns that are known to be there; x[c] and w move on. */
INL void float_columns(float_form form, int nc, int n, const uint8_t **w, const float *x[6], float32x4_t acc[6][4]) {
    UNROLL for (int k = 0; k < n; k++) {
        float32x4_t v[4];
        UNROLL for (int i = 0; i < 4; i++) v[i] = column(form, *w, k, i);
        UNROLL for (int c = 0; c < nc; c++) {
            UNROLL for (int i = 0; i < 4; i++) acc[c][i] = vfmaq_n_f32(acc[c][i], v[i], x[c][k]);
        }
    }
    *w += (form == FLOAT_32 ? 64 : 32) * n;
    UNROLL for (int c = 0; c < nc; c++) x[c] += n;
}

INL void float_tile(float_form form, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    const float *x[6];
    float32x4_t acc[6][4];
    UNROLL for (int c = 0; c < nc; c++) {
        x[c] = act->x + (t0 + (uint32_t)c) * act->stride;
        UNROLL for (int i = 0; i < 4; i++) acc[c][i] = vdupq_n_f32(0);
    }
    uint32_t k = 0;
    for (; k + 4 <= act->n_cols; k += 4) {
        prefetch(w + 2048, form == FLOAT_32 ? 4 : 2);
        float_columns(form, nc, 4, &w, x, acc);
    }
    for (; k < act->n_cols; k++) float_columns(form, nc, 1, &w, x, acc);
    UNROLL for (int c = 0; c < nc; c++) {
        UNROLL for (int i = 0; i < 4; i++) vst1q_f32(out + 16 * c + 4 * i, acc[c][i]);
    }
}

#define FLOAT_TILE(FORM, NC)                                                                                           \
    case NC:                                                                                                           \
        float_tile(FORM, NC, w, act, t0, out);                                                                         \
        break;
#define FLOAT_KERNEL(TYPE, FORM)                                                                                       \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *out) {                     \
        switch (n) {                                                                                                   \
            FLOAT_TILE(FORM, 1)                                                                                        \
            FLOAT_TILE(FORM, 2)                                                                                        \
            FLOAT_TILE(FORM, 3)                                                                                        \
            FLOAT_TILE(FORM, 4)                                                                                        \
            FLOAT_TILE(FORM, 5)                                                                                        \
            FLOAT_TILE(FORM, 6)                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_neon_##TYPE = {.max_tok = 6, .mul = TYPE};
FLOAT_KERNEL(F32, FLOAT_32)
FLOAT_KERNEL(F16, FLOAT_16)
FLOAT_KERNEL(BF16, FLOAT_B16)

const nib_cpu_mm nib_cpu_mm_neon = {
    .quantize = &nib_cpu_mm_quantize_neon,
    .peak = &nib_cpu_peak_neon,
    .kernel =
        {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &nib_cpu_mm_neon_##name,
#include "quant/types.def"
#undef X
        },
};
