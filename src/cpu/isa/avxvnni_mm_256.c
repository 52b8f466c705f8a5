/* cpu/isa/avxvnni_mm_256.c - AVX-VNNI kernels of the types with super-blocks of 256 weights.
 *
 * dpbusd sums as many columns as fit int16, then one dpwssd multiplies by the integer scale and adds. Bounds: Q2_K and
 * Q3_K 16 columns, 16 * 7 * 127 = 14224; Q4_K 32 columns from -8 * sum, 32 * 8 * 127 = 32512; Q5_K 16 columns from
 * -16 * sum, 16 * 16 * 127; Q6_K 8 columns from -32 * sum, 8 * 32 * 127. What the starts took away of Q4_K and Q5_K is
 * given back at the end. IQ4_XS does not fit: its sums of 32 columns are multiplied as int32. */
#include "cpu/isa/avx2_mm_256.h"

#if defined(__AVXVNNI__) && defined(__FMA__) && defined(__F16C__)

INL int excess(layout l) {
    return l.kind == CODES_U3      ? 4
           : l.kind == CODES_U4    ? -8
           : l.kind == CODES_U5    ? -16
           : l.kind == CODES_IQ4_U ? 128
                                   : 0;
}

INL __m256i add_products(__m256i acc, __m256i x, __m256i y) {
    return _mm256_dpwssd_avx_epi32(acc, x, y);
}

/* Q4_K and IQ4_XS have a sum per block of 32 columns, the others two or, Q6_K, four. */
INL int sums_per_block(layout l) {
    return l.kind == CODES_U4 || l.kind == CODES_IQ4_U ? 1 : l.kind == CODES_U6 ? 4 : 2;
}

/* Where sum i of a super-block starts. */
INL __m256i start(layout l, const cursor *p, int i, int c, int np) {
    const int32_t *s = l.kind == CODES_U4 ? p->start8 : l.kind == CODES_U5 ? p->start16 : p->start32;
    bool has_start = l.kind == CODES_U4 || l.kind == CODES_U5 || l.kind == CODES_U6;
    return has_start ? broadcast4(s + i * np + c) : _mm256_setzero_si256();
}

/* isum + t * scale */
INL __m256i add_scaled(layout l, __m256i isum, __m256i t, __m256i scale) {
    if (l.kind == CODES_IQ4_U) return _mm256_add_epi32(isum, _mm256_mullo_epi32(t, scale));
    return _mm256_dpwssd_avx_epi32(isum, t, scale);
}

INL void tile_block(layout l, int half, int nc, int np, const uint8_t *w, const small *s, int j, const cursor *p,
                    __m256i *isum) {
    const int n = sums_per_block(l), m = 8 / n;
    const int8_t *q = p->q + j / 2 * 64 * np + j % 2 * 32;
    __m256i v[8];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), half, v);
    __m256i s0 = scale_at(l, w, s, is_per_32(l) ? j : 2 * j, half), s1 = s0;
    if (!is_per_32(l)) s1 = scale_at(l, w, s, 2 * j + 1, half);
    if (l.kind == CODES_U3 || l.kind == CODES_U6) { /* signed scales: the high int16 of a lane must be 0 */
        s0 = _mm256_and_si256(s0, _mm256_set1_epi32(0xffff));
        s1 = _mm256_and_si256(s1, _mm256_set1_epi32(0xffff));
    }
    UNROLL for (int c = 0; c < nc; c++, q += 64) {
        UNROLL for (int i = 0; i < n; i++) {
            __m256i t = start(l, p, n * j + i, c, np);
            UNROLL for (int k = 0; k < m; k++) {
                t = _mm256_dpbusd_avx_epi32(t, v[m * i + k], broadcast4(q + 4 * (m * i + k)));
            }
            isum[c] = add_scaled(l, isum[c], t, 2 * i < n ? s0 : s1);
        }
    }
}

KERNEL_256(avxvnni, Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))
KERNEL_256(avxvnni, Q3_K, CODES_U3, SCALES_8, AT(q3_k, scale, b))
KERNEL_256(avxvnni, Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))
KERNEL_256(avxvnni, Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))
KERNEL_256(avxvnni, Q6_K, CODES_U6, SCALES_8, AT(q6_k, scale, b))
KERNEL_256(avxvnni, IQ4_XS, CODES_IQ4_U, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
