/* cpu/isa/avx2_mm_32.c - AVX2 kernels of the types with a scale per 32 weights.
 *
 * Unsigned codes: maddubs products are added in int16, 16 columns a sum, and then widened once. Bounds: Q4 16 * 15 *
 * 127 = 30480 fits; Q5_0 and MXFP4 start from -16 * sum, and then 16 * 16 * 127 = 32512 fits, whatever wraps on the
 * way; Q5_1 is widened every 8 columns a sum (8 * 31 * 127 = 31496). Signed codes (Q8_0, IQ4_NL) take |q| times sign(q)
 * * a; a pair of products is at most 2 * 128 * 127 = 32512. */
#include "cpu/isa/avx2_mm_32.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

/* The exact sum of a block of unsigned codes for token c. */
INL __m256i block_sum(layout l, const __m256i v[8], const cursor *p, int c) {
    const __m256i one = _mm256_set1_epi16(1);
    const int8_t *a = p->q + 64 * c;
    if (l.kind == CODES_U5 && l.has_min)
        return _mm256_add_epi32(_mm256_madd_epi16(dot16(v, a), one), _mm256_madd_epi16(dot16(v + 4, a + 16), one));
    if (l.kind == CODES_U4) {
        __m256i t = _mm256_madd_epi16(dot32(v, a), one);
        return l.has_min ? t : _mm256_add_epi32(t, broadcast4(p->start8 + c));
    }
    return _mm256_madd_epi16(_mm256_add_epi16(dot32(v, a), broadcast4(p->half16 + 2 * c)), one);
}

/* Signed codes need a second register for their magnitudes, so a block is taken in two steps. */
INL void tile_block_signed(layout l, int half, int nc, const uint8_t *lines, __m256 d, const cursor *p, __m256 *acc) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256i first[8], v[8], m[4];
    UNROLL for (int g = 0; g < 2; g++) {
        unpack(l.kind, lines, half, v);
        UNROLL for (int s = 0; s < 4; s++) m[s] = _mm256_abs_epi8(v[4 * g + s]);
        UNROLL for (int c = 0; c < nc; c++) {
            __m256i t = dot16_signed(m, v + 4 * g, p->q + 64 * c + 16 * g, one);
            if (g == 0)
                first[c] = t;
            else
                acc[c] = accumulate(l, acc[c], _mm256_add_epi32(first[c], t), d, d, p, c);
        }
    }
}

INL void tile_block(layout l, int half, int nc, const uint8_t *lines, __m256 d, __m256 m, const cursor *p,
                    __m256 *acc) {
    if (l.kind == CODES_S8 || l.kind == CODES_IQ4) {
        tile_block_signed(l, half, nc, lines, d, p, acc);
        return;
    }
    __m256i v[8];
    unpack(l.kind, lines, half, v);
    UNROLL for (int c = 0; c < nc; c++) acc[c] = accumulate(l, acc[c], block_sum(l, v, p, c), d, m, p, c);
}

KERNEL_256(avx2, Q4_0, CODES_U4, false, AT(q4, qs))
KERNEL_256(avx2, Q4_1, CODES_U4, true, AT(q4_1, qs))
KERNEL_256(avx2, Q5_0, CODES_U5, false, AT(q5_0, b))
KERNEL_256(avx2, Q5_1, CODES_U5, true, AT(q5_1, b))
KERNEL_256(avx2, MXFP4, CODES_FP4, false, AT(q4, qs))
KERNEL_256(avx2, Q8_0, CODES_S8, false, AT(q8_0, qs))
KERNEL_256(avx2, IQ4_NL, CODES_IQ4, false, AT(q4, qs))

#endif
