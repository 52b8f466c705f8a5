/* cpu/isa/avx512_mm_256.h - private to the 512-bit and tile kernels of types with super-blocks of 256 weights: where the
 * fields of their units stand (cpu/pack.h), and their integer scales in registers. */
#ifndef NIB_CPU_ISA_AVX512_MM_256_H
#define NIB_CPU_ISA_AVX512_MM_256_H

#include "cpu/isa/avx512_mm.h"
#include "cpu/isa/mm_layout_256.h"

/* Every code stands this much too high (or low) in its integer sum. A power of two or 0. */
INL int excess(layout l) {
    return l.kind == CODES_U3 ? 4 : l.kind == CODES_U4 ? -8 : l.kind == CODES_U5 ? -16 : l.kind == CODES_IQ4 ? 128 : 0;
}

/* Integer scales and minima of 16 rows as bytes; the forms without minima are read in place. */
typedef struct small {
    _Alignas(64) uint8_t scale[16][16], min[16][16];
} small;

INL void unpack_small(layout l, const uint8_t *w, small *s) {
    const uint8_t *p = w + l.sc;
    if (l.scales == SCALES_4) {
        UNROLL for (int i = 0; i < 4; i++) {
            __m512i x = load(p + 64 * i);
            _mm512_store_si512(s->scale[4 * i], shift_and(x, 0, 15));
            _mm512_store_si512(s->min[4 * i], shift_and(x, -4, 15));
        }
    }
    if (l.scales == SCALES_6) { /* lines of bytes 0-3, 4-7, 8-11 of the packed scales: cpu/pack.h */
        __m512i a = load(p), b = load(p + 64), c = load(p + 128);
        _mm512_store_si512(s->scale[0], shift_and(a, 0, 63));
        _mm512_store_si512(s->min[0], shift_and(b, 0, 63));
        _mm512_store_si512(s->scale[4], or_bits(shift_and(c, 0, 15), a, -2, 48));
        _mm512_store_si512(s->min[4], or_bits(shift_and(c, -4, 15), b, -2, 48));
    }
}

/* Scale g (of 16 or 8) of 16 rows as int32. */
INL __m512i scale_at(layout l, const uint8_t *w, const small *s, int g) {
    return has_min(l) ? bytes_u8(s->scale[g]) : bytes_s8(w + l.sc + 16 * g);
}

INL int n_pairs(layout l) {
    return is_per_32(l) ? 4 : 8;
}

/* Scales (or minima) of neighbouring groups of columns as pairs. */
INL void make_pairs(layout l, const uint8_t *w, const small *s, bool minima, __m512i pairs[8]) {
    const int n = n_pairs(l);
    UNROLL for (int i = 0; i < n; i++) {
        pairs[i] = minima ? pair(bytes_u8(s->min[2 * i]), bytes_u8(s->min[2 * i + 1]))
                          : pair(scale_at(l, w, s, 2 * i), scale_at(l, w, s, 2 * i + 1));
    }
}

/* X(type, layout...) */
#define LAYOUTS_256(X)                                                                                                 \
    X(Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))                                                                  \
    X(Q3_K, CODES_U3, SCALES_8, AT(q3_k, scale, b))                                                                \
    X(Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))                                                                  \
    X(Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))                                                                   \
    X(Q6_K, CODES_U6, SCALES_8, AT(q6_k, scale, b))                                                                \
    X(IQ4_XS, CODES_IQ4, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
