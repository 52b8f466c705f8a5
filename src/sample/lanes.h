/* sample/lanes.h - 32 logits at a time: checks, maximum, exp, sums. Private to sample/.
 *
 * Written in vectors of four (an extension that gcc and clang share and lower to any machine): with plain loops the
 * speed hung on flags and on the unroller. Each lane is computed alone, and sums run over eight lanes that are added in
 * one fixed order at the end, so the bits are the same everywhere. */
#ifndef NIB_SAMPLE_LANES_H
#define NIB_SAMPLE_LANES_H

#include "base/math.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NIB_SAMPLE_LANES 32
#define NIB_SAMPLE_VECTORS (NIB_SAMPLE_LANES / 4)

typedef float nib_sample_f4 __attribute__((vector_size(16)));
typedef int32_t nib_sample_i4 __attribute__((vector_size(16)));

static inline nib_sample_f4 nib_sample_load(const float *x) {
    nib_sample_f4 v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline nib_sample_f4 nib_sample_all(float x) {
    return (nib_sample_f4){x, x, x, x};
}

/* a where the mask (the result of a comparison) is set, b elsewhere. */
static inline nib_sample_f4 nib_sample_select(nib_sample_i4 mask, nib_sample_f4 a, nib_sample_f4 b) {
    return (nib_sample_f4)(((nib_sample_i4)a & mask) | ((nib_sample_i4)b & ~mask));
}

/* exp(x) of x <= 0 to about 1 ulp; 0 below NIB_SAMPLE_EXP_LOWEST; exp(0) is exactly 1. The polynomial of nib_expf with
 * separate multiply and add: fma is a library call on the x86-64 baseline, 20 times the cost. */
#define NIB_SAMPLE_EXP_LOWEST (-87.0f)
static inline nib_sample_f4 nib_sample_exp4(nib_sample_f4 x) {
    nib_sample_i4 is_low = x < NIB_SAMPLE_EXP_LOWEST;
    nib_sample_f4 c = nib_sample_select(is_low, nib_sample_all(NIB_SAMPLE_EXP_LOWEST), x);
    nib_sample_f4 t = c * NIB_EXPF_LOG2E + NIB_EXPF_MAGIC, n = t - NIB_EXPF_MAGIC;
    nib_sample_f4 r = (c - n * NIB_EXPF_LN2_HI) - n * NIB_EXPF_LN2_LO;
    nib_sample_f4 p = NIB_EXPF_C6 * r + NIB_EXPF_C5;
    p = p * r + NIB_EXPF_C4;
    p = p * r + NIB_EXPF_C3;
    p = p * r + NIB_EXPF_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* t holds n in its low bits; n + 127 is at least 1. */
    nib_sample_i4 scale = ((nib_sample_i4)t - (int32_t)(nib_f32_bits(NIB_EXPF_MAGIC) - 127)) << 23;
    return (nib_sample_f4)((nib_sample_i4)(p * (nib_sample_f4)scale) & ~is_low);
}

static inline float nib_sample_exp(float x) {
    return nib_sample_exp4(nib_sample_all(x))[0];
}

/* The maximum; *is_ok becomes false when a lane is NaN or +infinity. */
static inline float nib_sample_lanes_max(const float *x, bool *is_ok) {
    nib_sample_f4 max = nib_sample_load(x);
    nib_sample_i4 ok = max < INFINITY;
    for (int i = 1; i < NIB_SAMPLE_VECTORS; i++) {
        nib_sample_f4 v = nib_sample_load(x + 4 * i);
        ok &= v < INFINITY;
        max = nib_sample_select(v > max, v, max);
    }
    if (!(ok[0] & ok[1] & ok[2] & ok[3])) *is_ok = false;
    float a = max[0] > max[2] ? max[0] : max[2], b = max[1] > max[3] ? max[1] : max[3];
    return a > b ? a : b;
}

/* y: the lanes of x whose bits are set in allowed, -infinity elsewhere. */
static inline void nib_sample_lanes_mask(const float *x, uint32_t allowed, float *y) {
    for (int i = 0; i < NIB_SAMPLE_VECTORS; i++) {
        int32_t bits = (int32_t)(allowed >> 4 * i & 15);
        nib_sample_i4 is_in = ((nib_sample_i4){bits, bits, bits, bits} & (nib_sample_i4){1, 2, 4, 8}) != 0;
        nib_sample_f4 v = nib_sample_select(is_in, nib_sample_load(x + 4 * i), nib_sample_all(-INFINITY));
        memcpy(y + 4 * i, &v, sizeof v);
    }
}

/* Sums over many blocks: four lanes, in float within a block of 32 and in double over the blocks. */
typedef struct nib_sample_sums {
    double a[4], b[4];
    nib_sample_i4 n;
} nib_sample_sums;

static inline double nib_sample_lanes_total(const double s[4]) {
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static inline size_t nib_sample_lanes_count(const nib_sample_sums *sums) {
    return (size_t)sums->n[0] + (size_t)sums->n[1] + (size_t)sums->n[2] + (size_t)sums->n[3];
}

/* Over lanes of at least `lowest`, with d = x - max: a += exp(d), b += exp(d) d, n += 1. */
static inline void nib_sample_lanes_add_exp(nib_sample_sums *sums, const float *x, float max, float lowest) {
    nib_sample_f4 a = {0}, b = {0};
    for (int i = 0; i < NIB_SAMPLE_VECTORS; i++) {
        nib_sample_f4 v = nib_sample_load(x + 4 * i), d = v - max;
        nib_sample_i4 is_in = v >= lowest;
        nib_sample_f4 e = (nib_sample_f4)((nib_sample_i4)nib_sample_exp4(d) & is_in);
        /* Far below, exp is 0 and d may be infinite: their product would be NaN. */
        d = (nib_sample_f4)((nib_sample_i4)d & (d >= NIB_SAMPLE_EXP_LOWEST));
        a += e;
        b += e * d;
        sums->n -= is_in; /* a set mask is -1 */
    }
    for (int j = 0; j < 4; j++) {
        sums->a[j] += (double)a[j];
        sums->b[j] += (double)b[j];
    }
}

/* Over finite lanes, with d = x - max: a += d, b += d^2, n += 1. */
static inline void nib_sample_lanes_add_moments(nib_sample_sums *sums, const float *x, float max) {
    for (int i = 0; i < NIB_SAMPLE_LANES; i++) {
        if (!(x[i] > -INFINITY)) continue;
        double d = (double)x[i] - (double)max; /* in double: its square may exceed a float */
        sums->a[i % 4] += d;
        sums->b[i % 4] += d * d;
        sums->n[i % 4]++;
    }
}

/* y = (x - shift) / temp; what falls out of the range below stays finite, -infinity stays. */
static inline void nib_sample_lanes_scale(const float *x, float *y, float shift, float temp) {
    for (int i = 0; i < NIB_SAMPLE_VECTORS; i++) {
        nib_sample_f4 v = nib_sample_load(x + 4 * i), q = (v - shift) / temp;
        q = nib_sample_select(q < -FLT_MAX, nib_sample_all(-FLT_MAX), q);
        q = nib_sample_select(v > -INFINITY, q, nib_sample_all(-INFINITY));
        memcpy(y + 4 * i, &q, sizeof q);
    }
}

#endif
