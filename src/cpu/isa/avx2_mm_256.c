/* cpu/isa/avx2_mm_256.c - AVX2 kernels of the types with super-blocks of 256 weights.
 *
 * Products are added in int16 and the widening multiplication applies the integer scale, so that a super-block is one
 * int32 sum. Bounds of a sum: Q2_K 8 * 3 * 127, Q3_K 8 * 7 * 127 = 7112, Q4_K 16 * 15 * 127 = 30480, Q5_K 8 * 31 * 127
 * = 31496; Q6_K starts from -32 * sum, and then 8 * 32 * 127 = 32512 fits. IQ4_XS is signed: |q| times sign(q) * a. */
#include "cpu/isa/avx2_mm_256.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

INL int excess(layout l) {
    return l.kind == CODES_U3 ? 4 : 0;
}

INL __m256i add_products(__m256i acc, __m256i x, __m256i y) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, y));
}

/* Signed codes need a second register for their magnitudes, so a block is taken in two steps. */
INL void tile_block_signed(int nc, const __m256i v[8], const int8_t *a, __m256i scale, __m256i *isum) {
    UNROLL for (int g = 0; g < 2; g++) {
        __m256i m[4];
        UNROLL for (int e = 0; e < 4; e++) m[e] = _mm256_abs_epi8(v[4 * g + e]);
        UNROLL for (int c = 0; c < nc; c++) {
            isum[c] = _mm256_add_epi32(isum[c], dot16_signed(m, v + 4 * g, a + 64 * c + 16 * g, scale));
        }
    }
}

INL void tile_block(layout l, int half, int nc, int np, const uint8_t *w, const small *s, int j, const cursor *p,
                    __m256i *isum) {
    const int8_t *a = p->q + j / 2 * 64 * np + j % 2 * 32;
    __m256i v[8];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), half, v);
    __m256i s0 = scale_at(l, w, s, is_per_32(l) ? j : 2 * j, half), s1 = s0;
    if (!is_per_32(l)) s1 = scale_at(l, w, s, 2 * j + 1, half);
    s0 = pair(s0, s0);
    s1 = pair(s1, s1);
    if (l.kind == CODES_IQ4) {
        tile_block_signed(nc, v, a, s0, isum);
        return;
    }
    const int16_t *half32 = p->half32 + 4 * j * np;
    UNROLL for (int c = 0; c < nc; c++, a += 64, half32 += 2) {
        if (l.kind == CODES_U4) {
            isum[c] = add_products(isum[c], dot32(v, a), s0);
            continue;
        }
        __m256i x = dot16(v, a), y = dot16(v + 4, a + 16);
        if (l.kind == CODES_U6) {
            x = _mm256_add_epi16(x, broadcast4(half32));
            y = _mm256_add_epi16(y, broadcast4(half32 + 2 * np));
        }
        isum[c] = add_products(add_products(isum[c], x, s0), y, s1);
    }
}

KERNEL_256(avx2, Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))
KERNEL_256(avx2, Q3_K, CODES_U3, SCALES_8, AT(q3_k, scale, b))
KERNEL_256(avx2, Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))
KERNEL_256(avx2, Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))
KERNEL_256(avx2, Q6_K, CODES_U6, SCALES_8, AT(q6_k, scale, b))
KERNEL_256(avx2, IQ4_XS, CODES_IQ4, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
