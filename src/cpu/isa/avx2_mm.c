/* cpu/isa/avx2_mm.c - AVX2: kernels of floating-point weights, and the table of the level.
 *
 * Floats: one fma per column and output, both halves of 16 rows for up to 6 tokens, which fills the registers. */
#include "cpu/isa/avx2_mm.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* ---- floats */

typedef enum float_form { FLOAT_32, FLOAT_16, FLOAT_B16 } float_form;

/* 8 rows of a column. */
INL __m256 column(float_form form, const uint8_t *w, int k, int half) {
    if (form == FLOAT_32) return _mm256_load_ps((const float *)w + 16 * k + 8 * half);
    const uint16_t *h = (const uint16_t *)w + 16 * k;
    return form == FLOAT_16 ? scales_f16(h, half) : scales_bf16(h, half);
}

/* Steps through n columns that are known to be there; x[c] and w move on. */
INL void float_columns(float_form form, int nc, int n, const uint8_t **w, const float *x[6], __m256 acc[6][2]) {
    UNROLL for (int k = 0; k < n; k++) {
        __m256 w0 = column(form, *w, k, 0), w1 = column(form, *w, k, 1);
        UNROLL for (int c = 0; c < nc; c++) {
            __m256 v = _mm256_broadcast_ss(x[c] + k);
            acc[c][0] = _mm256_fmadd_ps(w0, v, acc[c][0]);
            acc[c][1] = _mm256_fmadd_ps(w1, v, acc[c][1]);
        }
    }
    *w += (form == FLOAT_32 ? 64 : 32) * n;
    UNROLL for (int c = 0; c < nc; c++) x[c] += n;
}

INL void float_tile(float_form form, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *tile) {
    const float *x[6];
    __m256 acc[6][2];
    UNROLL for (int c = 0; c < nc; c++) {
        x[c] = act->x + (t0 + (uint32_t)c) * act->stride;
        acc[c][0] = acc[c][1] = _mm256_setzero_ps();
    }
    uint32_t k = 0;
    for (; k + 4 <= act->n_cols; k += 4) {
        prefetch(w + 2048, form == FLOAT_32 ? 4 : 2);
        float_columns(form, nc, 4, &w, x, acc);
    }
    for (; k < act->n_cols; k++) float_columns(form, nc, 1, &w, x, acc);
    UNROLL for (int c = 0; c < nc; c++) {
        _mm256_store_ps(tile + 16 * c, acc[c][0]);
        _mm256_store_ps(tile + 16 * c + 8, acc[c][1]);
    }
}

#define FLOAT_TILE(TYPE, FORM, NC)                                                                                     \
    case NC:                                                                                                           \
        float_tile(FORM, NC, w, act, t0, tile);                                                                        \
        break;
#define FLOAT_KERNEL(TYPE, FORM)                                                                                       \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {                    \
        switch (n) {                                                                                                   \
            FLOAT_TILE(TYPE, FORM, 1)                                                                                  \
            FLOAT_TILE(TYPE, FORM, 2)                                                                                  \
            FLOAT_TILE(TYPE, FORM, 3)                                                                                  \
            FLOAT_TILE(TYPE, FORM, 4)                                                                                  \
            FLOAT_TILE(TYPE, FORM, 5)                                                                                  \
            FLOAT_TILE(TYPE, FORM, 6)                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_avx2_##TYPE = {.max_tok = 6, .mul = TYPE};
FLOAT_KERNEL(F32, FLOAT_32)
FLOAT_KERNEL(F16, FLOAT_16)
FLOAT_KERNEL(BF16, FLOAT_B16)

/* ---- the level */

const nib_cpu_mm nib_cpu_mm_avx2 = {
    .quantize = &nib_cpu_mm_quantize_avx2,
    .peak = &nib_cpu_peak_avx2,
    .kernel =
        {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &nib_cpu_mm_avx2_##name,
#include "quant/types.def"
#undef X
        },
};

#endif
