/* cpu/isa/avx512_mm.c - AVX-512: kernels of floating-point weights, and the table of the level.
 *
 * Floats: one fma per column and output, 16 rows in a register for up to 8 tokens. Two groups side by side share the
 * broadcast activations: with one, loading them takes longer than the fma. A conversion to float32 takes as long as two or
 * three fma, so a slice of columns is converted once for 64 tokens. */
#include "cpu/isa/avx512_mm.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

typedef enum float_form { FLOAT_32, FLOAT_16, FLOAT_B16 } float_form;

/* 16 rows of a column. */
INL __m512 column(float_form form, const uint8_t *w, int k) {
    if (form == FLOAT_32) return _mm512_load_ps((const float *)w + 16 * k);
    const uint16_t *h = (const uint16_t *)w + 16 * k;
    return form == FLOAT_16 ? scales_f16(h) : scales_bf16(h);
}

/* Steps through n columns that are known to be there; x[c] and w move on. */
INL void float_columns(float_form form, int nc, int n, const uint8_t **w, const float *x[8], __m512 acc[8]) {
    UNROLL for (int k = 0; k < n; k++) {
        __m512 v = column(form, *w, k);
        UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm512_fmadd_ps(v, _mm512_set1_ps(x[c][k]), acc[c]);
    }
    *w += (form == FLOAT_32 ? 64 : 32) * n;
    UNROLL for (int c = 0; c < nc; c++) x[c] += n;
}

INL void float_tile(float_form form, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    const float *x[8];
    __m512 acc[8];
    UNROLL for (int c = 0; c < nc; c++) {
        x[c] = act->x + (t0 + (uint32_t)c) * act->stride;
        acc[c] = _mm512_setzero_ps();
    }
    uint32_t k = 0;
    for (; k + 4 <= act->n_cols; k += 4) {
        prefetch(w + 2048, form == FLOAT_32 ? 4 : 2);
        float_columns(form, nc, 4, &w, x, acc);
    }
    for (; k < act->n_cols; k++) float_columns(form, nc, 1, &w, x, acc);
    UNROLL for (int c = 0; c < nc; c++) _mm512_store_ps(out + 16 * c, acc[c]);
}

enum { WIDE = 2, WIDE_TOK = 64, SLICE = 128 };

/* Columns k … k+n-1 of the slice. */
INL void wide_columns(const float *w, size_t stride, int n, const float *const x[8], uint32_t k, __m512 acc[WIDE][8]) {
    UNROLL for (int i = 0; i < n; i++) {
        UNROLL for (int c = 0; c < 8; c++) {
            __m512 v = _mm512_set1_ps(x[c][k + (uint32_t)i]);
            UNROLL for (int g = 0; g < WIDE; g++)
                acc[g][c] = _mm512_fmadd_ps(_mm512_load_ps(w + g * stride + 16 * i), v, acc[g][c]);
        }
    }
}

/* Adds n columns of WIDE groups, stride floats apart, to the sums of 8 tokens from t0 on. */
INL void wide_tile(const float *w, size_t stride, const nib_cpu_act *act, uint32_t t0, uint32_t k0, uint32_t n, float *tiles) {
    const float *x[8];
    __m512 acc[WIDE][8];
    UNROLL for (int c = 0; c < 8; c++) {
        x[c] = act->x + (t0 + (uint32_t)c) * act->stride + k0;
        UNROLL for (int g = 0; g < WIDE; g++)
            acc[g][c] = k0 ? _mm512_load_ps(tiles + 16 * (WIDE_TOK * g + c)) : _mm512_setzero_ps();
    }
    uint32_t k = 0;
    for (; k + 4 <= n; k += 4) wide_columns(w + 16 * k, stride, 4, x, k, acc);
    for (; k < n; k++) wide_columns(w + 16 * k, stride, 1, x, k, acc);
    UNROLL for (int c = 0; c < 8; c++) {
        UNROLL for (int g = 0; g < WIDE; g++) _mm512_store_ps(tiles + 16 * (WIDE_TOK * g + c), acc[g][c]);
    }
}

INL void float_wide(float_form form, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tiles) {
    const uint32_t size = form == FLOAT_32 ? 4 : 2, unit = 64 / size;
    const size_t group = (act->n_cols + unit - 1) / unit * unit * 16 * size;
    _Alignas(64) float slice[WIDE][16 * SLICE];
    for (uint32_t k0 = 0; k0 < act->n_cols; k0 += SLICE, w += 16 * SLICE * size) {
        uint32_t n_cols = act->n_cols - k0 < SLICE ? act->n_cols - k0 : SLICE;
        for (uint32_t g = 0; g < WIDE && form != FLOAT_32; g++)
            for (uint32_t k = 0; k < n_cols; k++) _mm512_store_ps(slice[g] + 16 * k, column(form, w + g * group, (int)k));
        const float *first = form == FLOAT_32 ? (const float *)(const void *)w : slice[0];
        for (uint32_t c = 0; c < n; c += 8)
            wide_tile(first, form == FLOAT_32 ? group / 4 : 16 * SLICE, act, t0 + c, k0, n_cols, tiles + 16 * c);
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
            FLOAT_TILE(FORM, 7)                                                                                        \
            FLOAT_TILE(FORM, 8)                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void TYPE##_wide(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tiles) {            \
        float_wide(FORM, w, act, t0, n, tiles);                                                                        \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_avx512_##TYPE = {8, TYPE, TYPE##_wide, WIDE, WIDE_TOK};
FLOAT_KERNEL(F32, FLOAT_32)
FLOAT_KERNEL(F16, FLOAT_16)
FLOAT_KERNEL(BF16, FLOAT_B16)

const nib_cpu_mm nib_cpu_mm_avx512 = {
    .quantize = &nib_cpu_mm_quantize_avx2,
    .peak = &nib_cpu_peak_avx512,
    .kernel =
        {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &nib_cpu_mm_avx512_##name,
#include "quant/types.def"
#undef X
        },
};

#endif
