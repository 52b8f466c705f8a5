/* cpu/isa/avx2_pages.c - AVX2: attention over pages of 32 positions, read as the cache holds them (cpu/kv.h).
 *
 * Scores: lanes are positions, four registers a query. Values: lanes are dimensions. Two queries share every load and its
 * conversion: more sums do not fit the 16 registers. */
#include "cpu/isa/pages.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>
#include <math.h>

enum { W = 8, MAX_Q = 2 };

/* Eight numbers from element i on; those of Q8_0 without their scale. */
INL __m256 lanes(nib_cpu_kv_form form, const void *page, size_t i) {
    if (form == NIB_CPU_KV_F32) return _mm256_loadu_ps((const float *)page + i);
    if (form == NIB_CPU_KV_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const uint16_t *)page + i)));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)((const int8_t *)page + i))));
}

INL float lane(nib_cpu_kv_form form, const void *page, size_t i) {
    return form == NIB_CPU_KV_F32 ? ((const float *)page)[i] : _cvtsh_ss(((const uint16_t *)page)[i]);
}

INL void scores_n(nib_cpu_kv_form form, int n, const void *k, const nib_cpu_page_queries *queries, size_t j0,
                  size_t head_dim, float *s) {
    const float *const *q = queries->q + j0;
    const uint16_t *scales = scales_of(k, head_dim);
    __m256 a[MAX_Q][4], x[MAX_Q];
    UNROLL for (int j = 0; j < n; j++) {
        UNROLL for (int e = 0; e < 4; e++) a[j][e] = _mm256_setzero_ps();
    }
    for (size_t d = 0; d < head_dim; d++) {
        if (size_of(form) * POS >= 64 || d % 2 == 0) fetch(queries->next, size_of(form) * POS * d, size_of(form) * POS);
        UNROLL for (int j = 0; j < n; j++) x[j] = _mm256_broadcast_ss(q[j] + d);
        UNROLL for (int e = 0; e < 4; e++) {
            __m256 y = lanes(form, k, d * POS + (size_t)(W * e));
            if (form == NIB_CPU_KV_Q8_0) y = _mm256_mul_ps(y, lanes(NIB_CPU_KV_F16, scales, d / Q8_BLOCK * POS + (size_t)(W * e)));
            UNROLL for (int j = 0; j < n; j++) a[j][e] = _mm256_fmadd_ps(x[j], y, a[j][e]);
        }
    }
    UNROLL for (int j = 0; j < n; j++) {
        UNROLL for (int e = 0; e < 4; e++) _mm256_storeu_ps(s + j * POS + W * e, a[j][e]);
    }
}

INL void scores(nib_cpu_kv_form form, const void *k, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    size_t j = 0, n = queries->n;
    for (; n - j >= MAX_Q; j += MAX_Q) scores_n(form, MAX_Q, k, queries, j, head_dim, s + j * POS);
    if (n - j == 1) scores_n(form, 1, k, queries, j, head_dim, s + j * POS);
}

/* n_reg registers of dimensions from d on, for n queries from j on. */
INL void values_n(nib_cpu_kv_form form, int n, int n_reg, const void *v, const nib_cpu_page_sums *sums, size_t j,
                  size_t d, size_t head_dim) {
    const uint16_t *scales = scales_of(v, head_dim);
    const float *p = sums->p + j * POS;
    __m256 a[MAX_Q][4];
    UNROLL for (int q = 0; q < n; q++) {
        __m256 corr = _mm256_broadcast_ss(sums->corr + j + q);
        UNROLL for (int e = 0; e < n_reg; e++)
            a[q][e] = _mm256_mul_ps(_mm256_loadu_ps(sums->acc[j + (size_t)q] + d + W * e), corr);
    }
    for (size_t i = sums->first; i < sums->last; i++) {
        fetch(sums->next, (i * head_dim + d) * size_of(form), (size_t)(W * n_reg) * size_of(form));
        __m256 w[MAX_Q];
        UNROLL for (int q = 0; q < n; q++) w[q] = _mm256_broadcast_ss(p + q * POS + i);
        UNROLL for (int e = 0; e < n_reg; e++) {
            __m256 x = lanes(form, v, i * head_dim + d + (size_t)(W * e));
            if (form == NIB_CPU_KV_Q8_0) {
                const uint16_t *h = scales + i * (head_dim / Q8_BLOCK) + (d + (size_t)(W * e)) / Q8_BLOCK;
                x = _mm256_mul_ps(x, _mm256_set1_ps(_cvtsh_ss(*h)));
            }
            UNROLL for (int q = 0; q < n; q++) a[q][e] = _mm256_fmadd_ps(w[q], x, a[q][e]);
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++) _mm256_storeu_ps(sums->acc[j + (size_t)q] + d + W * e, a[q][e]);
    }
}

/* The last dimensions of heads that are no multiple of 8; Q8_0 has none. */
INL void values_rest(nib_cpu_kv_form form, const void *v, const nib_cpu_page_sums *sums, size_t j, size_t d,
                     size_t head_dim) {
    for (; d < head_dim; d++) {
        float a = sums->acc[j][d] * sums->corr[j];
        for (size_t i = sums->first; i < sums->last; i++)
            a = fmaf(sums->p[j * POS + i], lane(form, v, i * head_dim + d), a);
        sums->acc[j][d] = a;
    }
}

INL void values_all_dims(nib_cpu_kv_form form, int n, const void *v, const nib_cpu_page_sums *sums, size_t j,
                         size_t head_dim) {
    size_t d = 0;
    for (; d + 4 * W <= head_dim; d += 4 * W) values_n(form, n, 4, v, sums, j, d, head_dim);
    for (; d + W <= head_dim; d += W) values_n(form, n, 1, v, sums, j, d, head_dim);
    for (int q = 0; q < n; q++) values_rest(form, v, sums, j + (size_t)q, d, head_dim);
}

INL void values(nib_cpu_kv_form form, const void *v, const nib_cpu_page_sums *sums, size_t head_dim) {
    size_t j = 0;
    for (; sums->n - j >= MAX_Q; j += MAX_Q) values_all_dims(form, MAX_Q, v, sums, j, head_dim);
    if (j < sums->n) values_all_dims(form, 1, v, sums, j, head_dim);
}

PAGES(avx2)

#endif
