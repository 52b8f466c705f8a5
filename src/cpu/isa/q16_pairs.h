/* cpu/isa/q16_pairs.h - private to the kernels of 16-bit codes that take two queries at a time: the loops around their registers.
 *
 * A unit that includes this defines scores_n, make_weights and values_n; n_reg of the latter are 8 dimensions each. */
#ifndef NIB_CPU_ISA_Q16_PAIRS_H
#define NIB_CPU_ISA_Q16_PAIRS_H

#include "cpu/isa/mm_inline.h"
#include "cpu/q16.h"

#include <math.h>

enum { POS = NIB_PAGE_POS, MAX_Q = 2, PAIRS = NIB_Q16_DIMS / 2 };

/* Weights of two queries and a page. */
typedef struct weights {
    _Alignas(32) int16_t codes[MAX_Q][POS];
    float scale[MAX_Q];
} weights;

INL void scores_n(int n, const int16_t *k, const nib_cpu_page_queries *queries, size_t j0, size_t head_dim, float *s);
INL void make_weights(weights *w, int q, const float *p, const float *scale);
INL void values_n(int n, int n_reg, const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, size_t j, size_t d,
                  size_t head_dim);

static void scores(const void *page, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    size_t j = 0, n = queries->n;
    for (; n - j >= MAX_Q; j += MAX_Q) scores_n(MAX_Q, page, queries, j, head_dim, s + j * POS);
    if (n - j == 1) scores_n(1, page, queries, j, head_dim, s + j * POS);
}

/* The last dimensions of heads that are no multiple of 8. Codes of positions that nobody sees are multiplied by 0. */
INL void values_rest(const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, int q, size_t j, size_t d, size_t head_dim) {
    for (; d < head_dim; d++) {
        uint32_t sum = 0; /* of a broken query anything: it wraps, as registers do */
        for (size_t i = sums->first; i < sums->last; i++) sum += (uint32_t)(w->codes[q][i] * v[(i / 2 * head_dim + d) * 2 + i % 2]);
        sums->acc[j][d] = fmaf((float)(int32_t)sum, w->scale[q], sums->acc[j][d] * sums->corr[j]);
    }
}

INL void values_all_dims(int n, const int16_t *v, const nib_cpu_page_sums *sums, size_t j, size_t head_dim) {
    weights w;
    size_t d = 0;
    for (int q = 0; q < n; q++) make_weights(&w, q, sums->p + (j + (size_t)q) * POS, nib_q16_value_scales(v, head_dim));
    for (; d + 32 <= head_dim; d += 32) values_n(n, 4, v, sums, &w, j, d, head_dim);
    for (; d + 8 <= head_dim; d += 8) values_n(n, 1, v, sums, &w, j, d, head_dim);
    for (int q = 0; q < n; q++) values_rest(v, sums, &w, q, j + (size_t)q, d, head_dim);
}

static void values(const void *page, const nib_cpu_page_sums *sums, size_t head_dim) {
    size_t j = 0;
    for (; sums->n - j >= MAX_Q; j += MAX_Q) values_all_dims(MAX_Q, page, sums, j, head_dim);
    if (j < sums->n) values_all_dims(1, page, sums, j, head_dim);
}

#endif
