/* quant/kquant.c - Q2_K to Q6_K: super-blocks to floats. Layouts: kquant.h.
 *
 * Products of a float16 and two small integers are exact in float32: only the subtraction of a minimum rounds. */
#include "quant/kquant.h"

#include "quant/internal.h"

_Static_assert(sizeof(nib_quant_q2_k) == 84 && sizeof(nib_quant_q3_k) == 110 && sizeof(nib_quant_q4_k) == 144 &&
                   sizeof(nib_quant_q5_k) == 176 && sizeof(nib_quant_q6_k) == 210,
               "blocks are packed");

void nib_quant_kquant_scales(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]) {
    /* Bytes 0-3 and 4-7: six bits of scale and minimum 0-3; their top two bits belong to 4-7, whose low four bits are
     * the nibbles of bytes 8-11. */
    for (int j = 0; j < 4; j++) {
        uint8_t s = packed[j], m = packed[4 + j], low = packed[8 + j];
        scales[j] = s & 63;
        mins[j] = m & 63;
        scales[4 + j] = (uint8_t)((low & 15) | s >> 6 << 4);
        mins[4 + j] = (uint8_t)(low >> 4 | m >> 6 << 4);
    }
}

void nib_quant_kquant_scales3(const uint8_t packed[12], int8_t scales[16]) {
    for (int g = 0; g < 16; g++) {
        int low = packed[g % 8] >> (g / 8 * 4) & 15, high = packed[8 + g % 4] >> (g / 4 * 2) & 3;
        scales[g] = (int8_t)((low | high << 4) - 32);
    }
}

void nib_quant_dequantize_Q2_K(const void *blocks, float *out, size_t n) {
    const nib_quant_q2_k *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d), dmin = nib_quant_f16(b->dmin);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)(b->scales[g] & 15), min = dmin * (float)(b->scales[g] >> 4);
            const uint8_t *qs = b->qs + g / 8 * 32 + g % 2 * 16;
            for (int l = 0; l < 16; l++) out[l] = scale * (float)(qs[l] >> (g % 8 / 2 * 2) & 3) - min;
        }
    }
}

void nib_quant_dequantize_Q3_K(const void *blocks, float *out, size_t n) {
    const nib_quant_q3_k *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d);
        int8_t scales[16];
        nib_quant_kquant_scales3(b->scales, scales);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)scales[g];
            const uint8_t *qs = b->qs + g / 8 * 32 + g % 2 * 16, *high = b->hmask + g % 2 * 16;
            for (int l = 0; l < 16; l++) {
                int q = (qs[l] >> (g % 8 / 2 * 2) & 3) | (high[l] >> (g / 2) & 1) << 2;
                out[l] = scale * (float)(q - 4);
            }
        }
    }
}

void nib_quant_dequantize_Q4_K(const void *blocks, float *out, size_t n) {
    const nib_quant_q4_k *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d), dmin = nib_quant_f16(b->dmin);
        uint8_t scales[8], mins[8];
        nib_quant_kquant_scales(b->scales, scales, mins);
        for (int j = 0; j < 8; j++, out += 32) {
            float scale = d * (float)scales[j], min = dmin * (float)mins[j];
            const uint8_t *qs = b->qs + j / 2 * 32;
            for (int l = 0; l < 32; l++) out[l] = scale * (float)(qs[l] >> (j % 2 * 4) & 15) - min;
        }
    }
}

void nib_quant_dequantize_Q5_K(const void *blocks, float *out, size_t n) {
    const nib_quant_q5_k *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d), dmin = nib_quant_f16(b->dmin);
        uint8_t scales[8], mins[8];
        nib_quant_kquant_scales(b->scales, scales, mins);
        for (int j = 0; j < 8; j++, out += 32) {
            float scale = d * (float)scales[j], min = dmin * (float)mins[j];
            const uint8_t *qs = b->qs + j / 2 * 32;
            for (int l = 0; l < 32; l++) {
                int q = (qs[l] >> (j % 2 * 4) & 15) | (b->qh[l] >> j & 1) << 4;
                out[l] = scale * (float)q - min;
            }
        }
    }
}

void nib_quant_dequantize_Q6_K(const void *blocks, float *out, size_t n) {
    const nib_quant_q6_k *b = blocks;
    for (size_t i = 0; i < n; i += 256, b++) {
        float d = nib_quant_f16(b->d);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)b->scales[g];
            const uint8_t *ql = b->ql + g / 8 * 64 + g % 4 * 16, *qh = b->qh + g / 8 * 32 + g % 2 * 16;
            for (int l = 0; l < 16; l++) {
                int q = (ql[l] >> (g % 8 / 4 * 4) & 15) | (qh[l] >> (g % 8 / 2 * 2) & 3) << 4;
                out[l] = scale * (float)(q - 32);
            }
        }
    }
}

bool nib_quant_is_finite_Q2_K(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_q2_k), offsetof(nib_quant_q2_k, d), 2);
}

bool nib_quant_is_finite_Q3_K(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_q3_k), offsetof(nib_quant_q3_k, d), 1);
}

bool nib_quant_is_finite_Q4_K(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_q4_k), offsetof(nib_quant_q4_k, d), 2);
}

bool nib_quant_is_finite_Q5_K(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_q5_k), offsetof(nib_quant_q5_k, d), 2);
}

bool nib_quant_is_finite_Q6_K(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 256, sizeof(nib_quant_q6_k), offsetof(nib_quant_q6_k, d), 1);
}
