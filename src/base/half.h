/* base/half.h - 16-bit floats as integers: exact conversions in plain C, the same bits on every machine.
 * IEEE 754 binary16 and bfloat16; narrowing rounds to nearest even. */
#ifndef NIB_BASE_HALF_H
#define NIB_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float nib_f32_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t nib_f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float nib_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3ff;
    if (exp == 31) return nib_f32_from_bits(sign | 0x7f800000 | man << 13 | (man ? 0x400000 : 0)); /* NaNs go quiet */
    if (exp) return nib_f32_from_bits(sign | (exp + 112) << 23 | man << 13);
    float f = (float)man * 0x1p-24f; /* subnormal or zero: exact */
    return sign ? -f : f;
}

static inline uint16_t nib_f16_from_f32(float f) {
    uint32_t x = nib_f32_bits(f), sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (a < 0x38800000) {                                  /* subnormal: let the adder round at the right place */
        float r = nib_f32_from_bits(a) + 0.5f;
        return (uint16_t)(sign | (nib_f32_bits(r) - nib_f32_bits(0.5f)));
    }
    a += 0xc8000fff + (a >> 13 & 1); /* rebias the exponent and round to nearest even */
    return (uint16_t)(sign | a >> 13);
}

static inline float nib_bf16_to_f32(uint16_t h) {
    return nib_f32_from_bits((uint32_t)h << 16);
}

#endif
