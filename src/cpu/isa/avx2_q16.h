/* cpu/isa/avx2_q16.h - attention over pages of 16-bit codes (cpu/q16.h) with registers of 256 bits.
 *
 * A unit that includes this defines add_products (a + x * y, of the pairs of a lane) and its table. Scores: lanes are positions, four
 * registers a query. Values: lanes are dimensions. Two queries share what is loaded: more sums do not fit the 16 registers. */
#ifndef NIB_CPU_ISA_AVX2_Q16_H
#define NIB_CPU_ISA_AVX2_Q16_H

#include "cpu/fetch.h"
#include "cpu/isa/avx2_fold.h"
#include "cpu/isa/q16_pairs.h"

#include <immintrin.h>
#include <string.h>

enum { W = 8 };

INL __m256i add_products(__m256i a, __m256i x, __m256i y);

/* Two codes in all lanes. */
INL __m256i both(const int16_t *codes) {
    int32_t pair;
    memcpy(&pair, codes, sizeof pair);
    return _mm256_set1_epi32(pair);
}

INL __m256i load(const int16_t *codes) {
    return _mm256_loadu_si256((const __m256i *)(const void *)codes);
}

INL void scores_n(int n, const int16_t *k, const nib_cpu_page_queries *queries, size_t j0, size_t head_dim, float *s) {
    size_t stride = nib_q16_stride(head_dim), n_pairs = stride / 2;
    const int16_t *q = queries->codes + j0 * stride;
    const float *scale = nib_q16_key_scales(k, head_dim);
    for (size_t first = 0, end; first < n_pairs; first = end) {
        end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        __m256i a[MAX_Q][4], x[MAX_Q];
        UNROLL for (int j = 0; j < n; j++) {
            UNROLL for (int e = 0; e < 4; e++) a[j][e] = _mm256_setzero_si256();
        }
        for (size_t i = first; i < end; i++) {
            if (queries->next) nib_cpu_fetch((const int16_t *)queries->next + i * 2 * POS, 4 * POS);
            UNROLL for (int j = 0; j < n; j++) x[j] = both(q + (size_t)j * stride + 2 * i);
            UNROLL for (int e = 0; e < 4; e++) {
                __m256i y = load(k + i * 2 * POS + 2 * W * e);
                UNROLL for (int j = 0; j < n; j++) a[j][e] = add_products(a[j][e], y, x[j]);
            }
        }
        UNROLL for (int j = 0; j < n; j++) {
            UNROLL for (int e = 0; e < 4; e++) {
                float *out = s + j * POS + W * e;
                __m256 sum = _mm256_cvtepi32_ps(a[j][e]);
                if (first) sum = _mm256_add_ps(_mm256_loadu_ps(out), sum);
                if (end == n_pairs) {
                    sum = _mm256_mul_ps(sum, _mm256_loadu_ps(scale + W * e));
                    sum = _mm256_mul_ps(sum, _mm256_set1_ps(queries->scale[j0 + (size_t)j]));
                }
                _mm256_storeu_ps(out, sum);
            }
        }
    }
}

/* p times the scales of the values; 0 where p is: the scale of a position that nobody sees may be anything. */
INL void make_weights(weights *w, int q, const float *p, const float *scale) {
    __m256 x[4];
    UNROLL for (int e = 0; e < 4; e++) {
        __m256 y = _mm256_loadu_ps(p + W * e);
        x[e] = _mm256_and_ps(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_NEQ_UQ), _mm256_mul_ps(y, _mm256_loadu_ps(scale + W * e)));
    }
    float inverse, top = max4(x[0], x[1], x[2], x[3]);
    w->scale[q] = nib_q16_scale(top, NIB_Q16_VALUE, &inverse);
    __m256i c[4];
    UNROLL for (int e = 0; e < 4; e++) c[e] = _mm256_cvtps_epi32(_mm256_mul_ps(x[e], _mm256_set1_ps(inverse)));
    UNROLL for (int e = 0; e < 4; e += 2)
        _mm256_store_si256((__m256i *)(void *)(w->codes[q] + W * e), _mm256_permute4x64_epi64(_mm256_packs_epi32(c[e], c[e + 1]), 0xd8));
}

/* n_reg registers of dimensions from d on, for n queries from j on. */
INL void values_n(int n, int n_reg, const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, size_t j, size_t d,
                  size_t head_dim) {
    __m256i a[MAX_Q][4], y[MAX_Q];
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++) a[q][e] = _mm256_setzero_si256();
    }
    for (size_t i = sums->first / 2; i < (sums->last + 1) / 2; i++) {
        if (sums->next) nib_cpu_fetch((const int16_t *)sums->next + (i * head_dim + d) * 2, (size_t)(4 * W * n_reg));
        UNROLL for (int q = 0; q < n; q++) y[q] = both(w->codes[q] + 2 * i);
        UNROLL for (int e = 0; e < n_reg; e++) {
            __m256i x = load(v + (i * head_dim + d + (size_t)(W * e)) * 2);
            UNROLL for (int q = 0; q < n; q++) a[q][e] = add_products(a[q][e], x, y[q]);
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        float *acc = sums->acc[j + (size_t)q] + d;
        __m256 corr = _mm256_set1_ps(sums->corr[j + (size_t)q]), scale = _mm256_set1_ps(w->scale[q]);
        UNROLL for (int e = 0; e < n_reg; e++) {
            __m256 old = _mm256_mul_ps(_mm256_loadu_ps(acc + W * e), corr);
            _mm256_storeu_ps(acc + W * e, _mm256_fmadd_ps(_mm256_cvtepi32_ps(a[q][e]), scale, old));
        }
    }
}

#endif
