/* cpu/isa/avx2_q16.c - AVX2: attention over pages of 16-bit codes. */
#if defined(__AVX2__) && defined(__FMA__)

#include "cpu/isa/avx2_q16.h"

INL __m256i add_products(__m256i a, __m256i x, __m256i y) {
    return _mm256_add_epi32(a, _mm256_madd_epi16(x, y));
}

const nib_cpu_page_ops nib_cpu_q16_avx2 = {scores, values};

#else
typedef int nib_cpu_avx2_q16_unavailable; /* a translation unit may not be empty */
#endif
