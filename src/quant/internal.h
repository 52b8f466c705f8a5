/* quant/internal.h - private to quant/: the functions of every row of types.def, and readers of packed fields. */
#ifndef NIB_QUANT_INTERNAL_H
#define NIB_QUANT_INTERNAL_H

#include "base/half.h"
#include "quant/type.h"

/* The functions carry the name of the row, so that the table in type.c can be made from types.def. */
#define X(name, gguf, block, bytes)                                                                                    \
    void nib_quant_dequantize_##name(const void *blocks, float *out, size_t n);                                        \
    bool nib_quant_is_finite_##name(const void *blocks, size_t n);
#include "quant/types.def"
#undef X

/* Block fields are bytes: tensors may begin at any address, and the compiler makes one load of it. */
static inline uint16_t nib_quant_u16(const uint8_t p[2]) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline float nib_quant_f16(const uint8_t p[2]) {
    return nib_f16_to_f32(nib_quant_u16(p));
}

static inline bool nib_quant_f16_is_finite(const uint8_t p[2]) {
    return (p[1] & 0x7c) != 0x7c;
}

/* Whether `count` float16 numbers from byte `at` of each of n blocks are finite. */
static inline bool nib_quant_scales_are_finite(const void *blocks, size_t n, size_t block_bytes, size_t at,
                                               size_t count) {
    const uint8_t *p = (const uint8_t *)blocks + at;
    bool finite = true;
    for (size_t i = 0; i < n; i++, p += block_bytes)
        for (size_t k = 0; k < count; k++) finite &= nib_quant_f16_is_finite(p + 2 * k);
    return finite;
}

#endif
