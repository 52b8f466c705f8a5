/* cpu/isa/avx512_mm_32.h - private to the 512-bit and tile kernels of types with a scale per 32 weights: where the
 * fields of their units stand (cpu/pack.h). */
#ifndef NIB_CPU_ISA_AVX512_MM_32_H
#define NIB_CPU_ISA_AVX512_MM_32_H

#include "cpu/isa/avx512_mm.h"
#include "cpu/isa/mm_layout_32.h"

/* Scales of block b of a unit. The minima follow the scales. */
INL __m512 scales(layout l, const uint8_t *w, int b) {
    const uint16_t *d = (const uint16_t *)w + 16 * b;
    return l.kind == CODES_FP4 ? scales_bf16(d) : scales_f16(d);
}

/* X(type, layout...) */
#define LAYOUTS_32(X)                                                                                                  \
    X(Q4_0, CODES_U4, false, AT(q4, qs))                                                                            \
    X(Q4_1, CODES_U4, true, AT(q4_1, qs))                                                                           \
    X(Q5_0, CODES_U5, false, AT(q5_0, b))                                                                           \
    X(Q5_1, CODES_U5, true, AT(q5_1, b))                                                                            \
    X(MXFP4, CODES_FP4, false, AT(q4, qs))                                                                          \
    X(Q8_0, CODES_S8, false, AT(q8_0, qs))                                                                          \
    X(IQ4_NL, CODES_IQ4, false, AT(q4, qs))

#endif
