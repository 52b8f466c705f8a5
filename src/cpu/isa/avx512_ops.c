/* cpu/isa/avx512_ops.c - the vector operations with AVX-512: bit for bit those of kern/ops_ref.c.
 *
 * Sixteen lanes at a time; what is left over at the end of a row goes through the same code under a mask. Sums keep 32
 * virtual lanes in two registers. */
#include "cpu/ops.h"

#include "cpu/isa/avx512_fold.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "base/math.h"

#include <float.h>
#include <immintrin.h>

#define W 16 /* floats in a register */

/* exp is p * 2^n: p, and n as a float. */
static inline __m512 exp16_parts(__m512 x, __m512 *n) {
    const __m512 magic = _mm512_set1_ps(NIB_EXPF_MAGIC), one = _mm512_set1_ps(1.0f);
    *n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(NIB_EXPF_LOG2E), magic), magic);
    __m512 r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-NIB_EXPF_LN2_HI), x);
    r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-NIB_EXPF_LN2_LO), r);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(NIB_EXPF_C6), r, _mm512_set1_ps(NIB_EXPF_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(NIB_EXPF_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(NIB_EXPF_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(NIB_EXPF_C2));
    p = _mm512_fmadd_ps(p, r, one);
    return _mm512_fmadd_ps(p, r, one);
}

/* Of numbers up to 0, and NaN. */
static inline __m512 exp16_down(__m512 x) {
    __m512 n, p = exp16_parts(x, &n);
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(NIB_EXPF_LOWEST), _CMP_NLT_UQ), p, n);
}

static inline __m512 exp16(__m512 x) {
    __m512 n, p = exp16_parts(x, &n);
    __m512 y = _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(NIB_EXPF_LOWEST), _CMP_NLT_UQ), p, n);
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(NIB_EXPF_HIGHEST), _CMP_GT_OQ), _mm512_set1_ps(INFINITY));
}

/* Halves of what is left, again and again. */
static inline float tree_sum(__m512 a) {
    __m256 y = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static void rms_norm(const float *x, const float *w, float eps, float *y, size_t n) {
    __m512 a = _mm512_setzero_ps(), b = a;
    for (size_t i = 0; i < n; i += 2 * W) { /* lanes without an element add 0 * 0 to a sum that is never -0 */
        __m512 u = _mm512_maskz_loadu_ps(rest(n - i), x + i);
        a = _mm512_fmadd_ps(u, u, a);
        if (n - i <= W) break;
        __m512 v = _mm512_maskz_loadu_ps(rest(n - i - W), x + i + W);
        b = _mm512_fmadd_ps(v, v, b);
    }
    __m512 g = _mm512_set1_ps(1.0f / sqrtf(tree_sum(_mm512_add_ps(a, b)) / (float)n + eps));
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), g);
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
    }
}

static void add(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        _mm512_mask_storeu_ps(y + i, m, _mm512_add_ps(_mm512_maskz_loadu_ps(m, y + i), _mm512_maskz_loadu_ps(m, x + i)));
    }
}

static void scale(float *x, float s, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        _mm512_mask_storeu_ps(x + i, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(s)));
    }
}

static void silu_mul(const float *gate, const float *up, float *out, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        __m512 g = _mm512_maskz_loadu_ps(m, gate + i), e = exp16(_mm512_xor_ps(g, _mm512_set1_ps(-0.0f)));
        g = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
        _mm512_mask_storeu_ps(out + i, m, _mm512_mul_ps(g, _mm512_maskz_loadu_ps(m, up + i)));
    }
}

static void gelu_mul(const float *gate, const float *up, float *out, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        __m512 x = _mm512_maskz_loadu_ps(m, gate + i);
        __m512 u = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(-0.0713548162726f), _mm512_set1_ps(-1.59576912161f));
        __m512 e = exp16(_mm512_mul_ps(x, u));
        x = _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
        _mm512_mask_storeu_ps(out + i, m, _mm512_mul_ps(x, _mm512_maskz_loadu_ps(m, up + i)));
    }
}

static void rope_halves(float *x, const float *cs, size_t n) {
    size_t h = n / 2;
    for (size_t i = 0; i < h; i += W) {
        __mmask16 m = rest(h - i);
        __m512 a = _mm512_maskz_loadu_ps(m, x + i), b = _mm512_maskz_loadu_ps(m, x + h + i);
        __m512 c = _mm512_maskz_loadu_ps(m, cs + i), s = _mm512_maskz_loadu_ps(m, cs + h + i);
        _mm512_mask_storeu_ps(x + i, m, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + h + i, m, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

static void rope_pairs(float *x, const float *cs, size_t n) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i one = _mm512_set1_epi32(1), eight = _mm512_set1_epi32(8);
    size_t h = n / 2;
    for (size_t i = 0; i < h; i += W) {
        __mmask16 m = rest(h - i), m0 = rest(2 * (h - i)), m1 = 2 * (h - i) > W ? rest(2 * (h - i) - W) : 0;
        __m512 lo = _mm512_maskz_loadu_ps(m0, x + 2 * i), hi = _mm512_maskz_loadu_ps(m1, x + 2 * i + W);
        __m512 a = _mm512_permutex2var_ps(lo, even, hi), b = _mm512_permutex2var_ps(lo, _mm512_add_epi32(even, one), hi);
        __m512 c = _mm512_maskz_loadu_ps(m, cs + i), s = _mm512_maskz_loadu_ps(m, cs + h + i);
        __m512 p = _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)), q = _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c));
        _mm512_mask_storeu_ps(x + 2 * i, m0, _mm512_permutex2var_ps(p, low, q));
        _mm512_mask_storeu_ps(x + 2 * i + W, m1, _mm512_permutex2var_ps(p, _mm512_add_epi32(low, eight), q));
    }
}

static void f16_from_f32(const float *x, uint16_t *out, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        _mm256_mask_storeu_epi16(out + i, m, _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i), _MM_FROUND_TO_NEAREST_INT));
    }
}

static void f32_from_f16(const uint16_t *x, float *out, size_t n) {
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        _mm512_mask_storeu_ps(out + i, m, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, x + i)));
    }
}

static float top(const float *x, size_t n) {
    const __m512 largest = _mm512_set1_ps(FLT_MAX);
    __m512 best = _mm512_setzero_ps();
    __mmask16 broken = 0;
    for (size_t i = 0; i < n; i += W) {
        __m512 v = _mm512_abs_ps(_mm512_maskz_loadu_ps(rest(n - i), x + i));
        broken |= _mm512_cmp_ps_mask(v, largest, _CMP_NLE_UQ);
        best = _mm512_max_ps(best, v);
    }
    return broken ? INFINITY : max_of(best);
}

static void codes(const float *x, float inverse, int16_t *out, size_t stride, size_t n) {
    const __m512 f = _mm512_set1_ps(inverse);
    for (size_t i = 0; i < n; i += W) {
        __mmask16 m = rest(n - i);
        _Alignas(32) int16_t c[W];
        _mm256_store_si256((__m256i *)c, _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), f))));
        for (size_t j = 0; j < W && j < n - i; j++) out[(i + j) * stride] = c[j];
    }
}

static void block_max(const float *x, float *best, size_t n) {
    for (size_t b = 0; b < n / NIB_BLOCK_VALUES; b++, x += NIB_BLOCK_VALUES) {
        __m512 a = _mm512_loadu_ps(x), c = _mm512_loadu_ps(x + W);
        best[b] = _mm512_cmp_ps_mask(a, c, _CMP_UNORD_Q) ? INFINITY : max_of(_mm512_max_ps(a, c));
    }
}

FOLD16(sum16, _mm512_add_ps)

/* NaN does not count: the instruction takes its second operand then. */
static inline __m512 max_lanes(const float *p) {
    return _mm512_max_ps(_mm512_loadu_ps(p), _mm512_max_ps(_mm512_loadu_ps(p + W), _mm512_set1_ps(-INFINITY)));
}

/* p = exp(p - top); the sums of lanes j and j + 16. */
static inline __m512 exp_lanes(float *p, float top) {
    __m512 x = _mm512_set1_ps(top), a = exp16_down(_mm512_sub_ps(_mm512_loadu_ps(p), x));
    __m512 b = exp16_down(_mm512_sub_ps(_mm512_loadu_ps(p + W), x));
    _mm512_storeu_ps(p, a);
    _mm512_storeu_ps(p + W, b);
    return _mm512_add_ps(a, b);
}

/* Queries are independent: sixteen are in the lanes of what is done once for each, and in flight of the rest. */
static void page_softmax(size_t n, float *s, float *m, float *l, float *corr) {
    for (size_t j = 0; j < n; j += W, s += W * NIB_PAGE_POS) {
        size_t n_q = n - j < W ? n - j : W;
        __mmask16 mask = rest(n_q);
        _Alignas(64) float top[W], sum[W];
        __m512 x[W];
        if (n_q == W) {
            for (size_t q = 0; q < W; q++) x[ROW(q)] = max_lanes(s + q * NIB_PAGE_POS);
            _mm512_store_ps(top, max16(x));
        } else {
            for (size_t q = 0; q < n_q; q++) top[q] = max_of(max_lanes(s + q * NIB_PAGE_POS));
        }
        __m512 old = _mm512_maskz_loadu_ps(mask, m + j), t = _mm512_maskz_load_ps(mask, top);
        t = _mm512_mask_mov_ps(old, _mm512_cmp_ps_mask(t, old, _CMP_GT_OQ), t);
        __m512 c = exp16_down(_mm512_sub_ps(old, t));
        _mm512_store_ps(top, t);
        if (n_q == W) {
            for (size_t q = 0; q < W; q++) x[ROW(q)] = exp_lanes(s + q * NIB_PAGE_POS, top[q]);
            _mm512_store_ps(sum, sum16(x));
        } else {
            for (size_t q = 0; q < n_q; q++) sum[q] = tree_sum(exp_lanes(s + q * NIB_PAGE_POS, top[q]));
        }
        __m512 sums = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, l + j), c, _mm512_maskz_load_ps(mask, sum));
        _mm512_mask_storeu_ps(l + j, mask, sums);
        _mm512_mask_storeu_ps(m + j, mask, t);
        _mm512_mask_storeu_ps(corr + j, mask, c);
    }
}

const nib_cpu_ops nib_cpu_ops_avx512 = {
    .rms_norm = rms_norm,         .add = add,
    .scale = scale,               .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,         .rope_halves = rope_halves,
    .rope_pairs = rope_pairs,     .block_max = block_max,
    .f16_from_f32 = f16_from_f32, .f32_from_f16 = f32_from_f16,
    .top = top,                   .codes = codes,
    .page_softmax = page_softmax, .page = nib_cpu_pages_avx512,
};

#else
typedef int nib_cpu_avx512_ops_unavailable; /* a translation unit may not be empty */
#endif
