/* quant/float.c - F32, F16 and BF16: weights that are floats themselves. */
#include "quant/internal.h"

#include <string.h>

void nib_quant_dequantize_F32(const void *blocks, float *out, size_t n) {
    memcpy(out, blocks, n * sizeof *out);
}

void nib_quant_dequantize_F16(const void *blocks, float *out, size_t n) {
    const uint8_t *p = blocks;
    for (size_t i = 0; i < n; i++) out[i] = nib_quant_f16(p + 2 * i);
}

void nib_quant_dequantize_BF16(const void *blocks, float *out, size_t n) {
    const uint8_t *p = blocks;
    for (size_t i = 0; i < n; i++) out[i] = nib_bf16_to_f32(nib_quant_u16(p + 2 * i));
}

bool nib_quant_is_finite_F32(const void *blocks, size_t n) {
    const uint8_t *p = blocks;
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= (nib_quant_u16(p + 4 * i + 2) & 0x7f80) != 0x7f80;
    return finite;
}

bool nib_quant_is_finite_F16(const void *blocks, size_t n) {
    const uint8_t *p = blocks;
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= nib_quant_f16_is_finite(p + 2 * i);
    return finite;
}

bool nib_quant_is_finite_BF16(const void *blocks, size_t n) {
    const uint8_t *p = blocks;
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= (nib_quant_u16(p + 2 * i) & 0x7f80) != 0x7f80;
    return finite;
}
