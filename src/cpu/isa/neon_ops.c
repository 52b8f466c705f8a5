/* cpu/isa/neon_ops.c - the vector operations with NEON: bit for bit those of kern/ops_ref.c.
 *
 * Element-wise operations repeat the scalar sequence in four lanes; what is left over at the end of a row goes through
 * the same code on a padded copy. Sums keep 32 virtual lanes in eight registers. */
#include "cpu/ops.h"

#include "base/math.h"

#include <arm_neon.h>
#include <float.h>

#define W 4 /* floats in a register */

static inline float32x4_t exp4(float32x4_t x) {
    const float32x4_t magic = vdupq_n_f32(NIB_EXPF_MAGIC), one = vdupq_n_f32(1.0f);
    float32x4_t t = vfmaq_f32(magic, x, vdupq_n_f32(NIB_EXPF_LOG2E)), n = vsubq_f32(t, magic);
    float32x4_t r = vfmsq_f32(x, n, vdupq_n_f32(NIB_EXPF_LN2_HI));
    r = vfmsq_f32(r, n, vdupq_n_f32(NIB_EXPF_LN2_LO));
    float32x4_t p = vfmaq_f32(vdupq_n_f32(NIB_EXPF_C5), vdupq_n_f32(NIB_EXPF_C6), r);
    p = vfmaq_f32(vdupq_n_f32(NIB_EXPF_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(NIB_EXPF_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(NIB_EXPF_C2), p, r);
    p = vfmaq_f32(one, p, r);
    p = vfmaq_f32(one, p, r);
    int32x4_t e = vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(magic));
    e = vshlq_n_s32(vaddq_s32(e, vdupq_n_s32(127)), 23);
    float32x4_t y = vmulq_f32(p, vreinterpretq_f32_s32(e));
    y = vbslq_f32(vcltq_f32(x, vdupq_n_f32(NIB_EXPF_LOWEST)), vdupq_n_f32(0.0f), y);
    y = vbslq_f32(vcgtq_f32(x, vdupq_n_f32(NIB_EXPF_HIGHEST)), vdupq_n_f32(INFINITY), y);
    return vbslq_f32(vceqq_f32(x, x), y, x);
}

/* Eight registers are the 32 lanes; halving adds register 4 to 0, 5 to 1 and so on, then 2 to 0, 1 to 0, then inside. */
static inline float tree_sum(const float32x4_t s[8]) {
    float32x4_t a = vaddq_f32(vaddq_f32(s[0], s[4]), vaddq_f32(s[2], s[6]));
    float32x4_t b = vaddq_f32(vaddq_f32(s[1], s[5]), vaddq_f32(s[3], s[7]));
    a = vaddq_f32(a, b);
    float32x2_t c = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}

static inline void add_squares(float32x4_t s[8], const float *x) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        float32x4_t v = vld1q_f32(x + W * j);
        s[j] = vfmaq_f32(s[j], v, v);
    }
}

static void rms_norm(const float *x, const float *w, float eps, float *y, size_t n) {
    float32x4_t s[8];
    for (int j = 0; j < 8; j++) s[j] = vdupq_n_f32(0.0f);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) add_squares(s, x + i);
    if (i < n) { /* lanes without an element add 0 * 0: a sum of squares is never -0, so nothing changes */
        float rest[32] = {0};
        for (size_t e = i; e < n; e++) rest[e - i] = x[e];
        add_squares(s, rest);
    }
    float f = 1.0f / sqrtf(tree_sum(s) / (float)n + eps);
    for (i = 0; i + W <= n; i += W) vst1q_f32(y + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), f), vld1q_f32(w + i)));
    for (; i < n; i++) y[i] = x[i] * f * w[i];
}

static void add(float *y, const float *x, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(x + i)));
    for (; i < n; i++) y[i] += x[i];
}

static void scale(float *x, float s, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), s));
    for (; i < n; i++) x[i] *= s;
}

static inline float32x4_t silu4(float32x4_t g, float32x4_t u) {
    return vmulq_f32(vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp4(vnegq_f32(g)))), u);
}

static inline float32x4_t gelu4(float32x4_t x, float32x4_t up) {
    float32x4_t u = vfmaq_f32(vdupq_n_f32(-1.59576912161f), vmulq_f32(x, x), vdupq_n_f32(-0.0713548162726f));
    float32x4_t e = exp4(vmulq_f32(x, u));
    return vmulq_f32(vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), e)), up);
}

#define GATED(NAME, FOUR)                                                                                              \
    static void NAME(const float *gate, const float *up, float *out, size_t n) {                                       \
        size_t i = 0;                                                                                                  \
        for (; i + W <= n; i += W) vst1q_f32(out + i, FOUR(vld1q_f32(gate + i), vld1q_f32(up + i)));                   \
        if (i < n) {                                                                                                   \
            float g[W] = {0}, u[W] = {0};                                                                              \
            for (size_t e = i; e < n; e++) g[e - i] = gate[e], u[e - i] = up[e];                                       \
            vst1q_f32(g, FOUR(vld1q_f32(g), vld1q_f32(u)));                                                            \
            for (size_t e = i; e < n; e++) out[e] = g[e - i];                                                          \
        }                                                                                                              \
    }
GATED(silu_mul, silu4)
GATED(gelu_mul, gelu4)

static void rotate(float *a, float *b, float c, float s) {
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static inline void rotate4(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s) {
    float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, s)), x, c);
    *b = vfmaq_f32(vmulq_f32(y, c), x, s);
}

static void rope_halves(float *x, const float *cs, size_t n) {
    size_t h = n / 2, i = 0;
    for (; i + W <= h; i += W) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + h + i);
        rotate4(&a, &b, vld1q_f32(cs + i), vld1q_f32(cs + h + i));
        vst1q_f32(x + i, a);
        vst1q_f32(x + h + i, b);
    }
    for (; i < h; i++) rotate(&x[i], &x[i + h], cs[i], cs[i + h]);
}

static void rope_pairs(float *x, const float *cs, size_t n) {
    size_t h = n / 2, i = 0;
    for (; i + W <= h; i += W) {
        float32x4x2_t v = vld2q_f32(x + 2 * i);
        rotate4(&v.val[0], &v.val[1], vld1q_f32(cs + i), vld1q_f32(cs + h + i));
        vst2q_f32(x + 2 * i, v);
    }
    for (; i < h; i++) rotate(&x[2 * i], &x[2 * i + 1], cs[i], cs[i + h]);
}

static void f16_from_f32(const float *x, uint16_t *out, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    for (; i < n; i++) out[i] = nib_f16_from_f32(x[i]);
}

static void f32_from_f16(const uint16_t *x, float *out, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
    for (; i < n; i++) out[i] = nib_f16_to_f32(x[i]);
}

static inline float max_of(const float *s) {
    float32x4_t x = vld1q_f32(s);
    for (size_t e = 1; e < 8; e++) x = vmaxnmq_f32(x, vld1q_f32(s + W * e));
    return vmaxnmvq_f32(x);
}

static float top(const float *x, size_t n) {
    float32x4_t best = vdupq_n_f32(0);
    size_t i = 0;
    for (; i + W <= n; i += W) best = vmaxq_f32(best, vabsq_f32(vld1q_f32(x + i))); /* of NaN and a number: NaN */
    float max = vmaxvq_f32(best);
    for (; i < n && max <= FLT_MAX; i++)
        if (!(fabsf(x[i]) <= max)) max = fabsf(x[i]);
    return max <= FLT_MAX ? max : INFINITY;
}

static void codes(const float *x, float inverse, int16_t *out, size_t stride, size_t n) {
    for (size_t i = 0; i < n; i++) out[i * stride] = (int16_t)vcvtns_s32_f32(x[i] * inverse);
}

static void block_max(const float *x, float *best, size_t n) {
    for (size_t b = 0; b < n / NIB_BLOCK_VALUES; b++, x += NIB_BLOCK_VALUES) {
        float32x4_t v = vld1q_f32(x);
        for (size_t e = 1; e < 8; e++) v = vmaxq_f32(v, vld1q_f32(x + W * e)); /* of NaN and a number: NaN */
        float max = vmaxvq_f32(v);
        best[b] = max == max ? max : INFINITY;
    }
}

/* Queries are independent: four are in the lanes of what is done once for each, and in flight of the rest. */
static void page_softmax(size_t n, float *s, float *m, float *l, float *corr) {
    for (size_t j = 0; j < n; j += W, s += W * NIB_PAGE_POS) {
        size_t n_q = n - j < W ? n - j : W;
        float old[W] = {0}, top[W] = {0}, c[W];
        for (size_t q = 0; q < n_q; q++) {
            float x = max_of(s + q * NIB_PAGE_POS);
            old[q] = m[j + q];
            top[q] = x > old[q] ? x : old[q];
        }
        vst1q_f32(c, exp4(vsubq_f32(vld1q_f32(old), vld1q_f32(top))));
        for (size_t q = 0; q < n_q; q++) {
            float *p = s + q * NIB_PAGE_POS;
            float32x4_t v[8];
            for (size_t e = 0; e < 8; e++) {
                v[e] = exp4(vsubq_f32(vld1q_f32(p + W * e), vdupq_n_f32(top[q])));
                vst1q_f32(p + W * e, v[e]);
            }
            l[j + q] = fmaf(l[j + q], c[q], tree_sum(v));
            m[j + q] = top[q];
            corr[j + q] = c[q];
        }
    }
}

const nib_cpu_ops nib_cpu_ops_neon = {
    .rms_norm = rms_norm,         .add = add,
    .scale = scale,               .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,         .rope_halves = rope_halves,
    .rope_pairs = rope_pairs,     .block_max = block_max,
    .f16_from_f32 = f16_from_f32, .f32_from_f16 = f32_from_f16,
    .top = top,                   .codes = codes,
    .page_softmax = page_softmax, .page = nib_cpu_pages_neon,
};
