/* cpu/isa/avx512_mm_32.h - private to the 512-bit and tile kernels of types with a scale per 32 weights: where the
 * fields of their units stand (cpu/pack.h). */
#ifndef NIB_CPU_ISA_AVX512_MM_32_H
#define NIB_CPU_ISA_AVX512_MM_32_H

#include "cpu/isa/avx512_mm.h"

typedef struct layout { /* of a unit of 64 columns; always a constant */
    codes kind;
    bool has_min;
    size_t unit, at; /* bytes of a unit, offset of the codes */
} layout;

/* Scales of block b of a unit. The minima follow the scales. */
INL __m512 scales(layout l, const uint8_t *w, int b) {
    const uint16_t *d = (const uint16_t *)w + 16 * b;
    return l.kind == CODES_FP4 ? scales_bf16(d) : scales_f16(d);
}

#define AT_32(unit, codes) sizeof(nib_cpu_pack_##unit), offsetof(nib_cpu_pack_##unit, codes)
/* X(type, layout...) */
#define LAYOUTS_32(X)                                                                                                  \
    X(Q4_0, CODES_U4, false, AT_32(q4, qs))                                                                            \
    X(Q4_1, CODES_U4, true, AT_32(q4_1, qs))                                                                           \
    X(Q5_0, CODES_U5, false, AT_32(q5_0, b))                                                                           \
    X(Q5_1, CODES_U5, true, AT_32(q5_1, b))                                                                            \
    X(MXFP4, CODES_FP4, false, AT_32(q4, qs))                                                                          \
    X(Q8_0, CODES_S8, false, AT_32(q8_0, qs))                                                                          \
    X(IQ4_NL, CODES_IQ4, false, AT_32(q4, qs))

#endif
