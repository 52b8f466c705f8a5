/* cpu/isa/avx2_fold.h - private to the kernels with registers of 256 bits: the largest lane of one register or of four. */
#ifndef NIB_CPU_ISA_AVX2_FOLD_H
#define NIB_CPU_ISA_AVX2_FOLD_H

#if defined(__AVX2__)

#include <immintrin.h>
#include <math.h>

static inline float max_of(__m256 a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

/* NaN does not count: the instruction takes its second operand then. */
static inline float max4(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 least = _mm256_set1_ps(-INFINITY);
    a = _mm256_max_ps(a, _mm256_max_ps(b, least));
    return max_of(_mm256_max_ps(a, _mm256_max_ps(c, _mm256_max_ps(d, least))));
}

#endif

#endif
