/* quant/iq4.c - IQ4_NL and IQ4_XS: blocks to floats. Layouts: iq4.h. */
#include "quant/iq4.h"

#include "quant/internal.h"

_Static_assert(sizeof(nib_quant_iq4_nl) == 18 && sizeof(nib_quant_iq4_xs) == 136, "blocks are packed");

const int8_t nib_quant_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* 32 weights. */
static void dequantize32(float d, const uint8_t qs[16], float *out) {
    for (int j = 0; j < 16; j++) {
        out[j] = d * (float)nib_quant_iq4_values[qs[j] & 15];
        out[j + 16] = d * (float)nib_quant_iq4_values[qs[j] >> 4];
    }
}

void nib_quant_iq4_scales(const nib_quant_iq4_xs *block, int8_t scales[8]) {
    unsigned high = nib_quant_u16(block->scales_h);
    for (int j = 0; j < 8; j++) {
        unsigned low = block->scales_l[j / 2] >> (j % 2 * 4) & 15;
        scales[j] = (int8_t)((int)(low | (high >> 2 * j & 3) << 4) - 32);
    }
}

void nib_quant_dequantize_IQ4_NL(const void *blocks, float *out, size_t n) {
    const nib_quant_iq4_nl *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++) dequantize32(nib_quant_f16(b->d), b->qs, out + i);
}

void nib_quant_dequantize_IQ4_XS(const void *blocks, float *out, size_t n) {
    const nib_quant_iq4_xs *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d);
        int8_t scales[8];
        nib_quant_iq4_scales(b, scales);
        for (int j = 0; j < 8; j++) dequantize32(d * (float)scales[j], b->qs + 16 * j, out + i + 32 * j);
    }
}

bool nib_quant_is_finite_IQ4_NL(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_iq4_nl), offsetof(nib_quant_iq4_nl, d), 1);
}

bool nib_quant_is_finite_IQ4_XS(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_iq4_xs), offsetof(nib_quant_iq4_xs, d), 1);
}
