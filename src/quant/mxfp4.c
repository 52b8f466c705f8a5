/* quant/mxfp4.c - MXFP4: blocks to floats. Layout: mxfp4.h. */
#include "quant/mxfp4.h"

#include "quant/internal.h"

_Static_assert(sizeof(nib_quant_mxfp4) == 17, "blocks are packed");

const int8_t nib_quant_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float nib_quant_mxfp4_scale(uint8_t e) {
    return nib_f32_from_bits(e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23);
}

void nib_quant_dequantize_MXFP4(const void *blocks, float *out, size_t n) {
    const nib_quant_mxfp4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_mxfp4_scale(b->e);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)nib_quant_mxfp4_values[b->qs[j] & 15];
            out[j + 16] = d * (float)nib_quant_mxfp4_values[b->qs[j] >> 4];
        }
    }
}

bool nib_quant_is_finite_MXFP4(const void *blocks, size_t n) {
    const nib_quant_mxfp4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++) {
        if (b->e == 255) return false;
        if (b->e < 253) continue; /* 12 * 2^124 is below FLT_MAX; above it depends on the codes */
        float w[32];
        nib_quant_dequantize_MXFP4(b, w, 32);
        if (!nib_quant_is_finite_F32(w, 32)) return false;
    }
    return true;
}
