/* cpu/isa/avx512_fold.h - private to the kernels of AVX-512: ends of rows, and folding a register or sixteen of them. */
#ifndef NIB_CPU_ISA_AVX512_FOLD_H
#define NIB_CPU_ISA_AVX512_FOLD_H

#if defined(__AVX512F__) && defined(__AVX512DQ__)

#include <immintrin.h>
#include <stddef.h>

/* The first n of 16 lanes. */
static inline __mmask16 rest(size_t n) {
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

static inline float max_of(__m512 a) {
    __m256 y = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

static inline __m512 unpack_low(__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

static inline __m512 unpack_high(__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/* Sixteen registers folded at once, each as max_of or tree_sum folds one: lane j is of x[ROW(j)]. */
#define ROW(j) (4 * ((j) % 4) + (j) / 4)
#define FOLD16(NAME, OP)                                                                                               \
    static inline __m512 NAME(__m512 *x) {                                                                             \
        for (int i = 0; i < 16; i += 2)                                                                                \
            x[i / 2] = OP(_mm512_shuffle_f32x4(x[i], x[i + 1], 0x44), _mm512_shuffle_f32x4(x[i], x[i + 1], 0xee));     \
        for (int i = 0; i < 8; i += 2)                                                                                 \
            x[i / 2] = OP(_mm512_shuffle_f32x4(x[i], x[i + 1], 0x88), _mm512_shuffle_f32x4(x[i], x[i + 1], 0xdd));     \
        for (int i = 0; i < 4; i += 2) x[i / 2] = OP(unpack_low(x[i], x[i + 1]), unpack_high(x[i], x[i + 1]));         \
        return OP(_mm512_shuffle_ps(x[0], x[1], 0x88), _mm512_shuffle_ps(x[0], x[1], 0xdd));                           \
    }
FOLD16(max16, _mm512_max_ps)

#endif

#endif
