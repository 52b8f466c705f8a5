/* base/math.h - exp, log, sin, cos with the same bits on every machine.
 *
 * libm differs between versions and picks FMA variants at run time, so its last bits are no contract. These use only
 * IEEE operations in a fixed order (the build forbids contraction). cpu/isa repeats nib_expf step by step in vectors. */
#ifndef NIB_BASE_MATH_H
#define NIB_BASE_MATH_H

#include "base/half.h"

#include <math.h>

/* exp to about 1 ulp. Results below the smallest normal float are 0; beyond e^88.37 they are infinity, a little before the
 * largest float is reached; exp(0) is exactly 1; NaN stays NaN.
 * x = n ln2 + r, |r| <= ln2 / 2; a polynomial of degree 6 for exp(r). */
#define NIB_EXPF_LOWEST (-87.33f)
#define NIB_EXPF_HIGHEST 88.37f
#define NIB_EXPF_LOG2E 1.44269504f
#define NIB_EXPF_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, nearest even */
#define NIB_EXPF_LN2_HI 0.693145752f
#define NIB_EXPF_LN2_LO 1.42860677e-6f
#define NIB_EXPF_C6 1.39355184e-3f
#define NIB_EXPF_C5 8.37481581e-3f
#define NIB_EXPF_C4 4.16657962e-2f
#define NIB_EXPF_C3 1.66664660e-1f
#define NIB_EXPF_C2 4.99999970e-1f
static inline float nib_expf(float x) {
    if (x != x) return x;
    if (x < NIB_EXPF_LOWEST) return 0.0f;
    if (x > NIB_EXPF_HIGHEST) return INFINITY;
    float t = fmaf(x, NIB_EXPF_LOG2E, NIB_EXPF_MAGIC), n = t - NIB_EXPF_MAGIC;
    float r = fmaf(n, -NIB_EXPF_LN2_LO, fmaf(n, -NIB_EXPF_LN2_HI, x));
    float p = fmaf(NIB_EXPF_C6, r, NIB_EXPF_C5);
    p = fmaf(p, r, NIB_EXPF_C4);
    p = fmaf(p, r, NIB_EXPF_C3);
    p = fmaf(p, r, NIB_EXPF_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    uint32_t scale = (nib_f32_bits(t) - nib_f32_bits(NIB_EXPF_MAGIC) + 127) << 23;
    return p * nib_f32_from_bits(scale);
}

/* Natural logarithm of a positive normal double, to about 1e-15 relative: log(m 2^e) = e ln2 + 2 atanh((m-1)/(m+1)). */
static inline double nib_log(double x) {
    if (!(x > 0)) return x == 0 ? (double)-INFINITY : (double)NAN;
    if (x > 1.7976931348623157e308) return x;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) m *= 0.5, e++;
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
    return e * 0.6931471805599453 + 2 * s * sum;
}

static inline float nib_logf(float x) {
    return (float)nib_log((double)x);
}

/* exp of a double in -700 … 700, to about 1e-15 relative. */
static inline double nib_exp(double x) {
    double n = (double)(int64_t)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10, sum = 1;
    for (int k = 17; k >= 1; k--) sum = sum * r / k + 1;
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

/* sin and cos of 0 <= x < 2^53: reduction by pi/2 in two parts, then Taylor series. Right to about 1e-15 for x < 1.6e6
 * (2^20 quarter turns: n times the first part is exact); from there on the error grows like x * 2e-16. */
static inline void nib_sincos(double x, double *sin_out, double *cos_out) {
    int64_t n = (int64_t)(x * 0.63661977236758134308 + 0.5);
    double r = (x - (double)n * 1.57079632673412561417) - (double)n * 6.07710050650619224932e-11;
    double z = r * r, s = 1, c = 1;
    for (int k = 17; k >= 3; k -= 2) s = 1 - s * z / (k * (k - 1));
    for (int k = 18; k >= 2; k -= 2) c = 1 - c * z / (k * (k - 1));
    s *= r;
    *sin_out = n & 1 ? (n & 2 ? -c : c) : (n & 2 ? -s : s);
    *cos_out = n & 1 ? (n & 2 ? s : -s) : (n & 2 ? -c : c);
}

#endif
