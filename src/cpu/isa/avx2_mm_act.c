/* cpu/isa/avx2_mm_act.c - quantising activations with AVX2: bit for bit what cpu/act.c does.
 *
 * Magnitudes are compared as integers, in which order a NaN is the greatest. */
#include "cpu/isa/avx2_mm.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "base/half.h"

/* The greatest magnitude of 32 floats in every lane's share. */
INL __m256i magnitudes(const float *x) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_setzero_si256();
    UNROLL for (int i = 0; i < 4; i++) {
        m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + 8 * i)), mask));
    }
    return m;
}

INL uint32_t max_of_lanes(__m256i x) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* Scale of a block and its reciprocal: 0 for a block that counts as zeros or is broken. */
INL float scale_of(uint32_t amax, float *inverse) {
    float d = nib_f32_from_bits(amax) / 127.0f;
    *inverse = 0.0f;
    if (amax >= 0x7f800000) return nib_f32_from_bits(0x7fc00000);
    if (d < 0x1p-126f) return 0.0f;
    *inverse = 1.0f / d;
    return d;
}

/* Sums over a block for its scale: x times code, and code squared, in 32 lanes. */
typedef struct fit {
    __m256 along[4], squares[4];
} fit;

INL fit no_fit(void) {
    fit f;
    UNROLL for (int i = 0; i < 4; i++) f.along[i] = f.squares[i] = _mm256_setzero_ps();
    return f;
}

INL float tree_sum(const __m256 *x) {
    __m256 a = _mm256_add_ps(_mm256_add_ps(x[0], x[2]), _mm256_add_ps(x[1], x[3]));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

INL float fitted(float d, float inverse, const fit *f) {
    return inverse == 0.0f ? d : d * (tree_sum(f->along) / tree_sum(f->squares));
}

/* 32 codes. A broken block may hold infinities, so zeros cannot come from the multiplication. */
INL __m256i codes_of(const float *x, float inverse, fit *f) {
    if (inverse == 0.0f) return _mm256_setzero_si256();
    __m256i q[4];
    UNROLL for (int i = 0; i < 4; i++) {
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse));
        q[i] = _mm256_cvtps_epi32(scaled);
        __m256 code = _mm256_cvtepi32_ps(q[i]);
        f->along[i] = _mm256_fmadd_ps(scaled, code, f->along[i]);
        f->squares[i] = _mm256_fmadd_ps(code, code, f->squares[i]);
    }
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Half sums of each 16 codes: a pair of int16 in every lane of that half. */
INL __m256i half_sums16(__m256i q) {
    __m256i x = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    x = _mm256_add_epi16(x, _mm256_shuffle_epi32(x, 0x4e));
    return _mm256_add_epi16(x, _mm256_shuffle_epi32(x, 0xb1));
}

INL void store_pair(int16_t *p, __m128i x) {
    _mm_storeu_si32(p, x);
}

static void quantize32(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t np = act->np, n32 = a->n_pad / 32, at = nib_cpu_act_at(act, t, n32, 1) + part.k0 / 32 * np;
    int8_t *line = a->q + nib_cpu_act_at(act, t, n32 / 2, 64);
    for (size_t b = part.k0 / 32; b < part.k1 / 32; b++, at += np) {
        float buf[32], inverse;
        const float *x = nib_cpu_act_columns(act, part, 32 * b, 32, buf);
        float d = scale_of(max_of_lanes(magnitudes(x)), &inverse);
        fit f = no_fit();
        __m256i q = codes_of(x, inverse, &f), h = half_sums16(q);
        a->d[at] = fitted(d, inverse, &f);
        _mm256_store_si256((__m256i *)(line + b / 2 * np * 64 + b % 2 * 32), q);
        __m128i half = _mm_add_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
        int sum = _mm_cvtsi128_si32(_mm_madd_epi16(half, _mm_set1_epi16(1)));
        a->sum[at] = (float)sum;
        a->start8[at] = -8 * sum;
        a->start16[at] = -16 * sum;
        a->start128[at] = -128 * sum;
        store_pair(a->half16 + 2 * at, _mm_mullo_epi16(half, _mm_set1_epi16(-16)));
    }
}

/* Where the side arrays of the 256-form stand for one token. */
typedef struct side {
    int16_t *sum16, *sum32, *half32;
    int32_t *start8, *start16, *start32;
} side;

/* The side arrays of block j (of 8), whose codes are q. */
INL void side_block(const side *s, size_t j, size_t np, __m256i q) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256i sum4 = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), one);
    __m256i sum8 = _mm256_add_epi32(sum4, _mm256_shuffle_epi32(sum4, 0xb1)); /* lanes 0, 2, 4, 6 */
    __m256i start = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sum8, 5));
    __m256i half = half_sums16(q), sum16 = _mm256_madd_epi16(half, one);
    __m256i half32 = _mm256_mullo_epi16(half, _mm256_set1_epi16(-32));
    __m128i low = _mm256_castsi256_si128(start), high = _mm256_extracti128_si256(start, 1);
    int32_t *start32 = s->start32 + 4 * j * np;
    start32[0] = _mm_cvtsi128_si32(low);
    start32[np] = _mm_extract_epi32(low, 2);
    start32[2 * np] = _mm_cvtsi128_si32(high);
    start32[3 * np] = _mm_extract_epi32(high, 2);
    store_pair(s->half32 + 4 * j * np, _mm256_castsi256_si128(half32));
    store_pair(s->half32 + 4 * j * np + 2 * np, _mm256_extracti128_si256(half32, 1));
    int s0 = _mm_cvtsi128_si32(_mm256_castsi256_si128(sum16)), s1 = _mm256_extract_epi32(sum16, 4);
    s->start16[2 * j * np] = -16 * s0;
    s->start16[2 * j * np + np] = -16 * s1;
    s->start8[j * np] = -8 * (s0 + s1);
    s->sum16[2 * j * np] = (int16_t)s0;
    s->sum16[2 * j * np + 1] = (int16_t)s1;
    s->sum32[j / 2 * 2 * np + j % 2] = (int16_t)(s0 + s1);
}

static void quantize256(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t np = act->np, n256 = a->n_pad / 256;
    int8_t *line = a->q + nib_cpu_act_at(act, t, 4 * n256, 64);
    float *d = a->d + nib_cpu_act_at(act, t, n256, 1);
    side s = {a->sum16 + nib_cpu_act_at(act, t, 8 * n256, 2),    a->sum32 + nib_cpu_act_at(act, t, 4 * n256, 2),
              a->half32 + nib_cpu_act_at(act, t, 16 * n256, 2),  a->start8 + nib_cpu_act_at(act, t, 8 * n256, 1),
              a->start16 + nib_cpu_act_at(act, t, 16 * n256, 1), a->start32 + nib_cpu_act_at(act, t, 32 * n256, 1)};
    for (size_t b = part.k0 / 256; b < part.k1 / 256; b++) {
        float buf[256], inverse;
        const float *x = nib_cpu_act_columns(act, part, 256 * b, 256, buf);
        __m256i m = magnitudes(x);
        for (int j = 1; j < 8; j++) m = _mm256_max_epi32(m, magnitudes(x + 32 * j));
        float largest = scale_of(max_of_lanes(m), &inverse);
        fit f = no_fit();
        for (size_t j = 0; j < 8; j++) {
            __m256i q = codes_of(x + 32 * j, inverse, &f);
            _mm256_store_si256((__m256i *)(line + (4 * b + j / 2) * np * 64 + j % 2 * 32), q);
            side_block(&s, 8 * b + j, np, q);
        }
        d[b * np] = fitted(largest, inverse, &f);
    }
}

const nib_cpu_mm_quantize nib_cpu_mm_quantize_avx2 = {quantize32, quantize256};

#endif
