/* cpu/isa/avx2_ops.c - the vector operations with AVX2, FMA and F16C: bit for bit those of kern/ops_ref.c.
 *
 * Element-wise operations repeat the scalar sequence in eight lanes; what is left over at the end of a row goes through
 * the same code on a padded copy. Sums keep 32 virtual lanes in four registers. */
#include "cpu/ops.h"

#include "cpu/isa/avx2_fold.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "base/math.h"

#include <float.h>
#include <immintrin.h>

#define W 8 /* floats in a register */

static inline __m256 exp8(__m256 x) {
    const __m256 magic = _mm256_set1_ps(NIB_EXPF_MAGIC), one = _mm256_set1_ps(1.0f);
    __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(NIB_EXPF_LOG2E), magic), n = _mm256_sub_ps(t, magic);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-NIB_EXPF_LN2_HI), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-NIB_EXPF_LN2_LO), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(NIB_EXPF_C6), r, _mm256_set1_ps(NIB_EXPF_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(NIB_EXPF_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(NIB_EXPF_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(NIB_EXPF_C2));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    __m256i e = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(magic));
    e = _mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23);
    __m256 y = _mm256_mul_ps(p, _mm256_castsi256_ps(e));
    y = _mm256_blendv_ps(y, _mm256_setzero_ps(), _mm256_cmp_ps(x, _mm256_set1_ps(NIB_EXPF_LOWEST), _CMP_LT_OQ));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(INFINITY), _mm256_cmp_ps(x, _mm256_set1_ps(NIB_EXPF_HIGHEST), _CMP_GT_OQ));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* Four registers are the 32 lanes; halving adds register 2 to 0 and 3 to 1, then 1 to 0, then inside the register. */
static inline float tree_sum4(__m256 a, __m256 b, __m256 c, __m256 d) {
    a = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static void rms_norm(const float *x, const float *w, float eps, float *y, size_t n) {
    __m256 s[4];
    for (int j = 0; j < 4; j++) s[j] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t j = 0; j < 4; j++) {
            __m256 v = _mm256_loadu_ps(x + i + W * j);
            s[j] = _mm256_fmadd_ps(v, v, s[j]);
        }
    if (i < n) { /* lanes without an element add 0 * 0: a sum of squares is never -0, so nothing changes */
        float rest[32] = {0};
        for (size_t e = i; e < n; e++) rest[e - i] = x[e];
        for (size_t j = 0; j < 4; j++) {
            __m256 v = _mm256_loadu_ps(rest + W * j);
            s[j] = _mm256_fmadd_ps(v, v, s[j]);
        }
    }
    float f = 1.0f / sqrtf(tree_sum4(s[0], s[1], s[2], s[3]) / (float)n + eps);
    __m256 g = _mm256_set1_ps(f);
    for (i = 0; i + W <= n; i += W)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), g), _mm256_loadu_ps(w + i)));
    for (; i < n; i++) y[i] = x[i] * f * w[i];
}

static void add(float *y, const float *x, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
    for (; i < n; i++) y[i] += x[i];
}

static void scale(float *x, float s, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(s)));
    for (; i < n; i++) x[i] *= s;
}

static inline __m256 silu8(__m256 g, __m256 u) {
    __m256 e = exp8(_mm256_xor_ps(g, _mm256_set1_ps(-0.0f)));
    return _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), e)), u);
}

static inline __m256 gelu8(__m256 x, __m256 up) {
    __m256 u = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(-0.0713548162726f), _mm256_set1_ps(-1.59576912161f));
    __m256 e = exp8(_mm256_mul_ps(x, u));
    return _mm256_mul_ps(_mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e)), up);
}

#define GATED(NAME, EIGHT)                                                                                             \
    static void NAME(const float *gate, const float *up, float *out, size_t n) {                                       \
        size_t i = 0;                                                                                                  \
        for (; i + W <= n; i += W) _mm256_storeu_ps(out + i, EIGHT(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i))); \
        if (i < n) {                                                                                                   \
            float g[W] = {0}, u[W] = {0};                                                                              \
            for (size_t e = i; e < n; e++) g[e - i] = gate[e], u[e - i] = up[e];                                       \
            _mm256_storeu_ps(g, EIGHT(_mm256_loadu_ps(g), _mm256_loadu_ps(u)));                                        \
            for (size_t e = i; e < n; e++) out[e] = g[e - i];                                                          \
        }                                                                                                              \
    }
GATED(silu_mul, silu8)
GATED(gelu_mul, gelu8)

static void rotate(float *a, float *b, float c, float s) {
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static void rope_halves(float *x, const float *cs, size_t n) {
    size_t h = n / 2, i = 0;
    for (; i + W <= h; i += W) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + h + i);
        __m256 c = _mm256_loadu_ps(cs + i), s = _mm256_loadu_ps(cs + h + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(x + h + i, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
    for (; i < h; i++) rotate(&x[i], &x[i + h], cs[i], cs[i + h]);
}

static void rope_pairs(float *x, const float *cs, size_t n) {
    size_t h = n / 2, i = 0;
    for (; i + W <= h; i += W) { /* 16 floats: de-interleave, rotate, interleave; lanes stay in the 128-bit halves */
        __m256 lo = _mm256_loadu_ps(x + 2 * i), hi = _mm256_loadu_ps(x + 2 * i + W);
        __m256 u = _mm256_permute2f128_ps(lo, hi, 0x20), v = _mm256_permute2f128_ps(lo, hi, 0x31);
        __m256 a = _mm256_shuffle_ps(u, v, 0x88), b = _mm256_shuffle_ps(u, v, 0xdd);
        __m256 c = _mm256_loadu_ps(cs + i), s = _mm256_loadu_ps(cs + h + i);
        __m256 p = _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)), q = _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c));
        u = _mm256_unpacklo_ps(p, q), v = _mm256_unpackhi_ps(p, q);
        _mm256_storeu_ps(x + 2 * i, _mm256_permute2f128_ps(u, v, 0x20));
        _mm256_storeu_ps(x + 2 * i + W, _mm256_permute2f128_ps(u, v, 0x31));
    }
    for (; i < h; i++) rotate(&x[2 * i], &x[2 * i + 1], cs[i], cs[i + h]);
}

static void f16_from_f32(const float *x, uint16_t *out, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) out[i] = nib_f16_from_f32(x[i]);
}

static void f32_from_f16(const uint16_t *x, float *out, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    for (; i < n; i++) out[i] = nib_f16_to_f32(x[i]);
}

static float top(const float *x, size_t n) {
    const __m256 largest = _mm256_set1_ps(FLT_MAX), magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 best = _mm256_setzero_ps(), broken = best;
    size_t i = 0;
    for (; i + W <= n; i += W) {
        __m256 v = _mm256_and_ps(_mm256_loadu_ps(x + i), magnitude);
        broken = _mm256_or_ps(broken, _mm256_cmp_ps(v, largest, _CMP_NLE_UQ));
        best = _mm256_max_ps(best, v);
    }
    if (_mm256_movemask_ps(broken)) return INFINITY;
    float max = max_of(best);
    for (; i < n; i++) {
        if (!(fabsf(x[i]) <= FLT_MAX)) return INFINITY;
        max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    }
    return max;
}

static void codes(const float *x, float inverse, int16_t *out, size_t stride, size_t n) {
    size_t i = 0;
    for (; i + W <= n; i += W) {
        __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(inverse)));
        int16_t code[W];
        _mm_storeu_si128((__m128i *)(void *)code, _mm_packs_epi32(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1)));
        for (size_t j = 0; j < W; j++) out[(i + j) * stride] = code[j];
    }
    for (; i < n; i++) out[i * stride] = (int16_t)_mm_cvtss_si32(_mm_set_ss(x[i] * inverse));
}

static void block_max(const float *x, float *best, size_t n) {
    for (size_t b = 0; b < n / NIB_BLOCK_VALUES; b++, x += NIB_BLOCK_VALUES) {
        __m256 v[4];
        for (size_t e = 0; e < 4; e++) v[e] = _mm256_loadu_ps(x + W * e);
        __m256 is_nan = _mm256_or_ps(_mm256_cmp_ps(v[0], v[1], _CMP_UNORD_Q), _mm256_cmp_ps(v[2], v[3], _CMP_UNORD_Q));
        best[b] = _mm256_movemask_ps(is_nan) ? INFINITY : max4(v[0], v[1], v[2], v[3]);
    }
}

/* Queries are independent: eight are in the lanes of what is done once for each, and in flight of the rest. */
static void page_softmax(size_t n, float *s, float *m, float *l, float *corr) {
    for (size_t j = 0; j < n; j += W, s += W * NIB_PAGE_POS) {
        size_t n_q = n - j < W ? n - j : W;
        float old[W] = {0}, top[W] = {0}, c[W], sum[W];
        for (size_t q = 0; q < n_q; q++) {
            const float *p = s + q * NIB_PAGE_POS;
            float x = max4(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16), _mm256_loadu_ps(p + 24));
            old[q] = m[j + q];
            top[q] = x > old[q] ? x : old[q];
        }
        _mm256_storeu_ps(c, exp8(_mm256_sub_ps(_mm256_loadu_ps(old), _mm256_loadu_ps(top))));
        for (size_t q = 0; q < n_q; q++) {
            float *p = s + q * NIB_PAGE_POS;
            __m256 v[4], x = _mm256_set1_ps(top[q]);
            for (size_t e = 0; e < 4; e++) {
                v[e] = exp8(_mm256_sub_ps(_mm256_loadu_ps(p + W * e), x));
                _mm256_storeu_ps(p + W * e, v[e]);
            }
            sum[q] = tree_sum4(v[0], v[1], v[2], v[3]);
        }
        for (size_t q = 0; q < n_q; q++) {
            l[j + q] = fmaf(l[j + q], c[q], sum[q]);
            m[j + q] = top[q];
            corr[j + q] = c[q];
        }
    }
}

const nib_cpu_ops nib_cpu_ops_avx2 = {
    .rms_norm = rms_norm,         .add = add,
    .scale = scale,               .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,         .rope_halves = rope_halves,
    .rope_pairs = rope_pairs,     .block_max = block_max,
    .f16_from_f32 = f16_from_f32, .f32_from_f16 = f32_from_f16,
    .top = top,                   .codes = codes,
    .page_softmax = page_softmax, .page = nib_cpu_pages_avx2,
};

#else
typedef int nib_cpu_avx2_ops_unavailable; /* a translation unit may not be empty */
#endif
