/* cpu/isa/avxvnni_mm_256.c - AVX-VNNI kernels of the types with super-blocks of 256 weights.
 *
 * dpbusd sums as many columns as fit int16, then one dpwssd multiplies by the integer scale and adds. Bounds: Q2_K and
 * Q3_K 16 columns, 16 * 7 * 127 = 14224; Q4_K 32 columns from -8 * sum, 32 * 8 * 127 = 32512; Q5_K 16 columns from
 * -16 * sum, 16 * 16 * 127; Q6_K 8 columns from -32 * sum, 8 * 32 * 127. What the starts took away of Q4_K and Q5_K is
 * given back at the end. IQ4_XS does not fit: its sums of 32 columns are multiplied as int32. */
#include "cpu/isa/avx2_mm_256.h"

#if defined(__AVXVNNI__) && defined(__FMA__) && defined(__F16C__)

INL int excess(layout l) {
    return l.kind == CODES_U3 ? 4 : l.kind == CODES_U4 ? -8 : l.kind == CODES_U5 ? -16 : l.kind == CODES_IQ4_U ? 128 : 0;
}

INL __m256i add_products(__m256i acc, __m256i x, __m256i y) {
    return _mm256_dpwssd_avx_epi32(acc, x, y);
}

/* n chunks of 4 columns onto sum. */
INL __m256i dot(__m256i sum, const __m256i *v, const int8_t *a, int n) {
    UNROLL for (int s = 0; s < n; s++) sum = _mm256_dpbusd_avx_epi32(sum, v[s], broadcast4(a + 4 * s));
    return sum;
}

/* Block j of one token. s0, s1: scales of its 16 columns each, in the low int16 of a lane, the high one 0. */
INL __m256i block(layout l, __m256i isum, const __m256i v[8], __m256i s0, __m256i s1, const cursor *p, int j, int c,
                  int np) {
    const int8_t *a = p->q + j / 2 * 64 * np + j % 2 * 32 + 64 * c;
    const __m256i zero = _mm256_setzero_si256();
    if (l.kind == CODES_U4) return add_products(isum, dot(broadcast4(p->start8 + j * np + c), v, a, 8), s0);
    if (l.kind == CODES_U6) {
        UNROLL for (int e = 0; e < 4; e++)
            isum = add_products(isum, dot(broadcast4(p->start32 + (4 * j + e) * np + c), v + 2 * e, a + 8 * e, 2),
                                e < 2 ? s0 : s1);
        return isum;
    }
    bool starts = l.kind == CODES_U5;
    __m256i x = dot(starts ? broadcast4(p->start16 + 2 * j * np + c) : zero, v, a, 4);
    __m256i y = dot(starts ? broadcast4(p->start16 + 2 * j * np + np + c) : zero, v + 4, a + 16, 4);
    return add_products(add_products(isum, x, s0), y, s1);
}

INL void tile_block(layout l, int half, int nc, int np, const uint8_t *w, const small *s, int j, const cursor *p,
                    __m256i *isum) {
    __m256i v[8];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), half, v);
    __m256i s0 = scale_at(l, w, s, is_per_32(l) ? j : 2 * j, half), s1 = s0;
    if (l.kind == CODES_IQ4_U) {
        const int8_t *a = p->q + j / 2 * 64 * np + j % 2 * 32;
        UNROLL for (int c = 0; c < nc; c++)
            isum[c] = _mm256_add_epi32(isum[c],
                                       _mm256_mullo_epi32(dot(_mm256_setzero_si256(), v, a + 64 * c, 8), s0));
        return;
    }
    if (!is_per_32(l)) s1 = scale_at(l, w, s, 2 * j + 1, half);
    s0 = _mm256_and_si256(s0, _mm256_set1_epi32(0xffff));
    s1 = _mm256_and_si256(s1, _mm256_set1_epi32(0xffff));
    UNROLL for (int c = 0; c < nc; c++) isum[c] = block(l, isum[c], v, s0, s1, p, j, c, np);
}

KERNEL_256(avxvnni, Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))
KERNEL_256(avxvnni, Q3_K, CODES_U3, SCALES_8, AT(q3_k, scale, b))
KERNEL_256(avxvnni, Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))
KERNEL_256(avxvnni, Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))
KERNEL_256(avxvnni, Q6_K, CODES_U6, SCALES_8, AT(q6_k, scale, b))
KERNEL_256(avxvnni, IQ4_XS, CODES_IQ4_U, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
