/* cpu/isa/avx512_q16.c - AVX-512 (VNNI): attention over pages of 16-bit codes (cpu/q16.h).
 *
 * Scores: lanes are positions, two registers a query, of which eight share the keys. Values: lanes are dimensions, four registers a
 * query, of which six share the values. */
#include "cpu/q16.h"

#include "cpu/fetch.h"
#include "cpu/isa/avx512_fold.h"
#include "cpu/isa/mm_inline.h"

#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

enum { W = 16, POS = NIB_PAGE_POS, MAX_Q = 8, MAX_SUMS = 6, PAIRS = NIB_Q16_DIMS / 2 };

/* a + x * y, of the pairs of a lane. Written out: gcc 12 copies the sums of its own function to and fro. */
INL __m512i add_products(__m512i a, __m512i x, __m512i y) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(a) : "v"(x), "v"(y));
    return a;
}

/* Two codes in all lanes. */
INL __m512i both(const int16_t *codes) {
    int32_t pair;
    memcpy(&pair, codes, sizeof pair);
    return _mm512_set1_epi32(pair);
}

INL void scores_n(int n, const int16_t *k, const nib_cpu_page_queries *queries, size_t j0, size_t head_dim, float *s) {
    size_t stride = nib_q16_stride(head_dim), n_pairs = stride / 2;
    const int16_t *q = queries->codes + j0 * stride;
    for (size_t first = 0, end; first < n_pairs; first = end) {
        end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        __m512i a[MAX_Q], b[MAX_Q];
        UNROLL for (int j = 0; j < n; j++) a[j] = b[j] = _mm512_setzero_si512();
        for (size_t i = first; i < end; i++) {
            if (queries->next) nib_cpu_fetch((const int16_t *)queries->next + i * 2 * POS, 4 * POS);
            __m512i k0 = _mm512_loadu_si512(k + i * 2 * POS), k1 = _mm512_loadu_si512(k + i * 2 * POS + 2 * W);
            UNROLL for (int j = 0; j < n; j++) {
                __m512i x = both(q + (size_t)j * stride + 2 * i);
                a[j] = add_products(a[j], k0, x);
                b[j] = add_products(b[j], k1, x);
            }
        }
        UNROLL for (int j = 0; j < n; j++) {
            __m512 x = _mm512_cvtepi32_ps(a[j]), y = _mm512_cvtepi32_ps(b[j]);
            if (first) x = _mm512_add_ps(_mm512_loadu_ps(s + j * POS), x), y = _mm512_add_ps(_mm512_loadu_ps(s + j * POS + W), y);
            if (end == n_pairs) {
                const float *scale = nib_q16_key_scales(k, head_dim);
                __m512 f = _mm512_set1_ps(queries->scale[j0 + (size_t)j]);
                x = _mm512_mul_ps(_mm512_mul_ps(x, _mm512_loadu_ps(scale)), f);
                y = _mm512_mul_ps(_mm512_mul_ps(y, _mm512_loadu_ps(scale + W)), f);
            }
            _mm512_storeu_ps(s + j * POS, x);
            _mm512_storeu_ps(s + j * POS + W, y);
        }
    }
}

static void scores(const void *page, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    const int16_t *k = page;
    size_t j = 0, n = queries->n;
    for (; n - j >= MAX_Q; j += MAX_Q) scores_n(MAX_Q, k, queries, j, head_dim, s + j * POS);
    for (; n - j >= 4; j += 4) scores_n(4, k, queries, j, head_dim, s + j * POS);
    if (n - j == 3) scores_n(3, k, queries, j, head_dim, s + j * POS);
    if (n - j == 2) scores_n(2, k, queries, j, head_dim, s + j * POS);
    if (n - j == 1) scores_n(1, k, queries, j, head_dim, s + j * POS);
}

/* Weights of up to 16 queries and a page. */
typedef struct weights {
    _Alignas(64) int16_t codes[W][POS];
    _Alignas(64) float scale[W];
} weights;

/* p times the scales of the values; 0 where p is: the scale of a position that nobody sees may be anything. */
INL __m512 scaled(const float *p, const float *scale) {
    __m512 x = _mm512_loadu_ps(p);
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ), x, _mm512_loadu_ps(scale));
}

INL void make_weights(weights *w, size_t n, const float *p, const float *scale) {
    const __m512 largest = _mm512_set1_ps(NIB_Q16_VALUE);
    _Alignas(64) float inverse[W];
    __m512 x[W], top;
    if (n == W) {
        for (size_t q = 0; q < W; q++)
            x[ROW(q)] = _mm512_max_ps(scaled(p + q * POS, scale), scaled(p + q * POS + W, scale + W));
        top = max16(x);
    } else {
        for (size_t q = 0; q < n; q++)
            inverse[q] = max_of(_mm512_max_ps(scaled(p + q * POS, scale), scaled(p + q * POS + W, scale + W)));
        top = _mm512_maskz_load_ps(rest(n), inverse);
    }
    __mmask16 is_some = _mm512_cmp_ps_mask(top, _mm512_set1_ps(NIB_Q16_LEAST), _CMP_GE_OQ);
    __mmask16 is_finite = _mm512_mask_cmp_ps_mask(is_some, top, _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ);
    _mm512_store_ps(inverse, _mm512_maskz_div_ps(is_finite, largest, top));
    _mm512_store_ps(w->scale, _mm512_maskz_div_ps(is_some, top, largest));
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (size_t q = 0; q < n; q++) {
        __m512 f = _mm512_set1_ps(inverse[q]);
        __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(scaled(p + q * POS, scale), f));
        __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(scaled(p + q * POS + W, scale + W), f));
        _mm512_store_si512(w->codes[q], _mm512_permutexvar_epi64(order, _mm512_packs_epi32(a, b)));
    }
}

/* n_reg registers of dimensions from d on (the last one with the lanes m), for n queries from j on. */
INL void values_n(int n, int n_reg, const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, size_t w0, size_t j, size_t d,
                  __mmask16 m, size_t head_dim) {
    __m512i a[MAX_SUMS][4];
    if (n_reg > 1) m = 0xffff;
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++) a[q][e] = _mm512_setzero_si512();
    }
    for (size_t i = sums->first / 2; i < (sums->last + 1) / 2; i++) {
        if (sums->next) nib_cpu_fetch((const int16_t *)sums->next + (i * head_dim + d) * 2, (size_t)(4 * W * n_reg));
        __m512i x[4];
        UNROLL for (int e = 0; e < n_reg; e++)
            x[e] = _mm512_maskz_loadu_epi32(m, v + (i * head_dim + d + (size_t)(W * e)) * 2);
        UNROLL for (int q = 0; q < n; q++) {
            __m512i y = both(w->codes[w0 + (size_t)q] + 2 * i);
            UNROLL for (int e = 0; e < n_reg; e++) a[q][e] = add_products(a[q][e], x[e], y);
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        __m512 corr = _mm512_set1_ps(sums->corr[j + (size_t)q]), scale = _mm512_set1_ps(w->scale[w0 + (size_t)q]);
        float *acc = sums->acc[j + (size_t)q] + d;
        UNROLL for (int e = 0; e < n_reg; e++) {
            __m512 old = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, acc + W * e), corr);
            _mm512_mask_storeu_ps(acc + W * e, m, _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[q][e]), scale, old));
        }
    }
}

INL void values_all_dims(int n, const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, size_t w0, size_t j, size_t head_dim) {
    size_t d = 0;
    for (; d + 4 * W <= head_dim; d += 4 * W) values_n(n, 4, v, sums, w, w0, j, d, 0xffff, head_dim);
    for (; d < head_dim; d += W) values_n(n, 1, v, sums, w, w0, j, d, rest(head_dim - d), head_dim);
}

static void values(const void *page, const nib_cpu_page_sums *sums, size_t head_dim) {
    const int16_t *v = page;
    const float *scale = nib_q16_value_scales(page, head_dim);
    weights w;
    for (size_t j0 = 0, n; j0 < sums->n; j0 += n) {
        n = sums->n - j0 < W ? sums->n - j0 : W;
        make_weights(&w, n, sums->p + j0 * POS, scale);
        size_t j = 0;
        for (; n - j >= MAX_SUMS; j += MAX_SUMS) values_all_dims(MAX_SUMS, v, sums, &w, j, j0 + j, head_dim);
        if (n - j == 5) values_all_dims(5, v, sums, &w, j, j0 + j, head_dim);
        if (n - j == 4) values_all_dims(4, v, sums, &w, j, j0 + j, head_dim);
        if (n - j == 3) values_all_dims(3, v, sums, &w, j, j0 + j, head_dim);
        if (n - j == 2) values_all_dims(2, v, sums, &w, j, j0 + j, head_dim);
        if (n - j == 1) values_all_dims(1, v, sums, &w, j, j0 + j, head_dim);
    }
}

const nib_cpu_page_ops nib_cpu_q16_avx512 = {scores, values};

#else
typedef int nib_cpu_avx512_q16_unavailable; /* a translation unit may not be empty */
#endif
