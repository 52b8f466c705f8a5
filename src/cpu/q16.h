/* cpu/q16.h - keys and values as 16-bit whole numbers: as precise as halves, multiplied twice as fast as floats.
 *
 * A vector (query, key or value of a head and position) is codes and a scale of its own, x = code * scale. Codes are so
 * small that products can be added up exactly in 32 bits, on every level and in any order: 64 dimensions of queries and keys,
 * 32 positions of weights and values. What is left for floats are a few operations a page, in a fixed order:
 *
 *   score  = ((float(sum of dimensions 0 … 63) + float(64 … 127) + …) * scale of key) * scale of query
 *   weight = p * scale of value (0 where p is 0), and these of a page as codes with a scale of their own
 *   acc    = fma(float(sum of codes of weights * values), scale of weights, acc * corr)
 *
 * In a page codes stand in pairs, as instructions multiply them: keys [k_dim / 2][32][2], two dimensions of a position side by
 * side (an odd k_dim has a 0 more); values [16][v_dim][2], two positions. The scales of the 32 positions stand behind. */
#ifndef NIB_CPU_Q16_H
#define NIB_CPU_Q16_H

#include "cpu/ops.h"

#include <float.h>

#define NIB_Q16_KEY 5792.0f   /* largest code of queries and keys: 64 * 5792^2 < 2^31 */
#define NIB_Q16_VALUE 8191.0f /* of weights and values: 32 * 8191^2 < 2^31 */
#define NIB_Q16_DIMS 64       /* that are added up exactly */
#define NIB_Q16_LEAST 1e-30f  /* a vector with smaller numbers is 0 */

/* The scale of a vector by its largest magnitude, and the factor that makes codes of it. A vector with NaN or infinity has codes 0 and
 * scale INFINITY: NaN comes out
 * (of a value only where its p is not 0). */
static inline float nib_q16_scale(float top, float largest, float *inverse) {
    *inverse = top >= NIB_Q16_LEAST && top <= FLT_MAX ? largest / top : 0;
    return top >= NIB_Q16_LEAST ? top / largest : 0;
}

/* Codes in a row of keys: whole pairs. */
static inline size_t nib_q16_stride(size_t k_dim) {
    return (k_dim + 1) & ~(size_t)1;
}

static inline const float *nib_q16_key_scales(const void *page, size_t k_dim) {
    return (const float *)(const void *)((const int16_t *)page + NIB_PAGE_POS * nib_q16_stride(k_dim));
}

static inline const float *nib_q16_value_scales(const void *page, size_t v_dim) {
    return (const float *)(const void *)((const int16_t *)page + NIB_PAGE_POS * v_dim);
}

/* A query as codes (of nib_q16_stride(k_dim)). */
static inline float nib_q16_query(const nib_cpu_ops *ops, const float *q, size_t k_dim, int16_t *codes) {
    float inverse, top = ops->top(q, k_dim), scale = nib_q16_scale(top, NIB_Q16_KEY, &inverse);
    codes[nib_q16_stride(k_dim) - 1] = 0;
    if (inverse > 0) ops->codes(q, inverse, codes, 1, k_dim);
    else
        for (size_t i = 0; i < k_dim; i++) codes[i] = 0;
    return scale;
}

#endif
