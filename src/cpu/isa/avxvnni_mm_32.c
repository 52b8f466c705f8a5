/* cpu/isa/avxvnni_mm_32.c - AVX-VNNI kernels of the types with a scale per 32 weights.
 *
 * dpbusd multiplies unsigned by signed bytes straight into int32, so nothing can overflow. Codes are stored with an
 * offset of 8, 16 or 128 that the start value of a sum takes away. */
#include "cpu/isa/avx2_mm_32.h"

#if defined(__AVXVNNI__) && defined(__FMA__) && defined(__F16C__)

INL __m256i start(layout l, const cursor *p, int c) {
    if (l.has_min) return _mm256_setzero_si256();
    bool bytes = l.kind == CODES_IQ4_U || l.kind == CODES_S8_U;
    return broadcast4((l.kind == CODES_U4 ? p->start8 : bytes ? p->start128 : p->start16) + c);
}

INL void tile_block(layout l, int half, int nc, const uint8_t *lines, __m256 d, __m256 m, const cursor *p,
                    __m256 *acc) {
    const int step = nc < 4 ? nc : nc % 4 ? 2 : 4; /* tokens side by side: two chains of products */
    __m256i v[8], t[4];
    unpack(l.kind, lines, half, v);
    UNROLL for (int c = 0; c < nc; c += step) {
        UNROLL for (int e = 0; e < step; e++) t[e] = start(l, p, c + e);
        UNROLL for (int s = 0; s < 8; s++) {
            UNROLL for (int e = 0; e < step; e++) {
                t[e] = _mm256_dpbusd_avx_epi32(t[e], v[s], broadcast4(p->q + 64 * (c + e) + 4 * s));
            }
        }
        UNROLL for (int e = 0; e < step; e++) acc[c + e] = accumulate(l, acc[c + e], t[e], d, m, p, c + e);
    }
}

KERNEL_256(avxvnni, Q4_0, CODES_U4, false, AT(q4, qs))
KERNEL_256(avxvnni, Q4_1, CODES_U4, true, AT(q4_1, qs))
KERNEL_256(avxvnni, Q5_0, CODES_U5, false, AT(q5_0, b))
KERNEL_256(avxvnni, Q5_1, CODES_U5, true, AT(q5_1, b))
KERNEL_256(avxvnni, MXFP4, CODES_FP4, false, AT(q4, qs))
KERNEL_256(avxvnni, Q8_0, CODES_S8_U, false, AT(q8_0, qs))
KERNEL_256(avxvnni, IQ4_NL, CODES_IQ4_U, false, AT(q4, qs))

#endif
