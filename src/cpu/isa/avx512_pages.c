/* cpu/isa/avx512_pages.c - AVX-512: attention over pages of 32 positions, read as the cache holds them (cpu/kv.h).
 *
 * Scores: lanes are positions, two registers a query; up to eight queries share every load and its conversion. Values:
 * lanes are dimensions, four registers a query; up to six share them. */
#include "cpu/isa/pages.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

enum { W = 16, MAX_Q = 8, MAX_SUMS = 6 };

/* 16 numbers from element i on, of which those in m are there; those of Q8_0 without their scale. */
INL __m512 lanes(nib_cpu_kv_form form, const void *page, size_t i, __mmask16 m) {
    if (form == NIB_CPU_KV_F32) return _mm512_maskz_loadu_ps(m, (const float *)page + i);
    if (form == NIB_CPU_KV_F16) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, (const uint16_t *)page + i));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, (const int8_t *)page + i)));
}

INL __m512 scale16(const uint16_t *d) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)d));
}

INL void scores_n(nib_cpu_kv_form form, int n, const void *k, const nib_cpu_page_queries *queries, size_t j0,
                  size_t head_dim, float *s) {
    const float *const *q = queries->q + j0;
    const uint16_t *scales = scales_of(k, head_dim);
    __m512 a[MAX_Q], b[MAX_Q], d0 = _mm512_setzero_ps(), d1 = d0;
    UNROLL for (int j = 0; j < n; j++) a[j] = b[j] = _mm512_setzero_ps();
    for (size_t d = 0; d < head_dim; d++) {
        if (size_of(form) * POS >= 64 || d % 2 == 0) fetch(queries->next, size_of(form) * POS * d, size_of(form) * POS);
        __m512 k0 = lanes(form, k, d * POS, 0xffff), k1 = lanes(form, k, d * POS + W, 0xffff);
        if (form == NIB_CPU_KV_Q8_0) {
            if (d % Q8_BLOCK == 0) {
                d0 = scale16(scales + d / Q8_BLOCK * POS);
                d1 = scale16(scales + d / Q8_BLOCK * POS + W);
            }
            k0 = _mm512_mul_ps(k0, d0);
            k1 = _mm512_mul_ps(k1, d1);
        }
        UNROLL for (int j = 0; j < n; j++) {
            __m512 x = _mm512_set1_ps(q[j][d]);
            a[j] = _mm512_fmadd_ps(x, k0, a[j]);
            b[j] = _mm512_fmadd_ps(x, k1, b[j]);
        }
    }
    UNROLL for (int j = 0; j < n; j++) {
        _mm512_storeu_ps(s + j * POS, a[j]);
        _mm512_storeu_ps(s + j * POS + W, b[j]);
    }
}

INL void scores(nib_cpu_kv_form form, const void *k, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    size_t j = 0, n = queries->n;
    for (; n - j >= MAX_Q; j += MAX_Q) scores_n(form, MAX_Q, k, queries, j, head_dim, s + j * POS);
    for (; n - j >= 4; j += 4) scores_n(form, 4, k, queries, j, head_dim, s + j * POS);
    if (n - j == 3) scores_n(form, 3, k, queries, j, head_dim, s + j * POS);
    if (n - j == 2) scores_n(form, 2, k, queries, j, head_dim, s + j * POS);
    if (n - j == 1) scores_n(form, 1, k, queries, j, head_dim, s + j * POS);
}

/* n_reg registers of dimensions from d on (the last one with the lanes m), for n queries from j on. */
INL void values_n(nib_cpu_kv_form form, int n, int n_reg, const void *v, const nib_cpu_page_sums *sums, size_t j,
                  size_t d, __mmask16 m, size_t head_dim) {
    const uint16_t *scales = scales_of(v, head_dim);
    const float *p = sums->p + j * POS;
    __m512 a[MAX_SUMS][4];
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++) {
            __m512 x = _mm512_maskz_loadu_ps(n_reg == 1 ? m : 0xffff, sums->acc[j + (size_t)q] + d + W * e);
            a[q][e] = _mm512_mul_ps(x, _mm512_set1_ps(sums->corr[j + (size_t)q]));
        }
    }
    for (size_t i = sums->first; i < sums->last; i++) {
        fetch(sums->next, (i * head_dim + d) * size_of(form), (size_t)(W * n_reg) * size_of(form));
        __m512 x[4];
        UNROLL for (int e = 0; e < n_reg; e++) {
            x[e] = lanes(form, v, i * head_dim + d + (size_t)(W * e), n_reg == 1 ? m : 0xffff);
            if (form == NIB_CPU_KV_Q8_0) {
                const uint16_t *h = scales + i * (head_dim / Q8_BLOCK) + (d + (size_t)(W * e)) / Q8_BLOCK;
                x[e] = _mm512_mul_ps(x[e], _mm512_cvtph_ps(_mm256_set1_epi16((short)*h)));
            }
        }
        UNROLL for (int q = 0; q < n; q++) {
            __m512 w = _mm512_set1_ps(p[(size_t)(q * POS) + i]);
            UNROLL for (int e = 0; e < n_reg; e++) a[q][e] = _mm512_fmadd_ps(w, x[e], a[q][e]);
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++)
            _mm512_mask_storeu_ps(sums->acc[j + (size_t)q] + d + W * e, n_reg == 1 ? m : 0xffff, a[q][e]);
    }
}

INL void values_all_dims(nib_cpu_kv_form form, int n, const void *v, const nib_cpu_page_sums *sums, size_t j,
                         size_t head_dim) {
    size_t d = 0;
    for (; d + 4 * W <= head_dim; d += 4 * W) values_n(form, n, 4, v, sums, j, d, 0xffff, head_dim);
    for (; d < head_dim; d += W) {
        __mmask16 m = head_dim - d >= W ? 0xffff : (__mmask16)((1u << (head_dim - d)) - 1);
        values_n(form, n, 1, v, sums, j, d, m, head_dim);
    }
}

INL void values(nib_cpu_kv_form form, const void *v, const nib_cpu_page_sums *sums, size_t head_dim) {
    size_t j = 0, n = sums->n;
    for (; n - j >= MAX_SUMS; j += MAX_SUMS) values_all_dims(form, MAX_SUMS, v, sums, j, head_dim);
    if (n - j == 5) values_all_dims(form, 5, v, sums, j, head_dim);
    if (n - j == 4) values_all_dims(form, 4, v, sums, j, head_dim);
    if (n - j == 3) values_all_dims(form, 3, v, sums, j, head_dim);
    if (n - j == 2) values_all_dims(form, 2, v, sums, j, head_dim);
    if (n - j == 1) values_all_dims(form, 1, v, sums, j, head_dim);
}

PAGES(avx512)

#endif
