/* quant/legacy.c - Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: blocks to floats. Layouts: legacy.h. */
#include "quant/legacy.h"

#include "quant/internal.h"

_Static_assert(sizeof(nib_quant_q4_0) == 18 && sizeof(nib_quant_q4_1) == 20 && sizeof(nib_quant_q5_0) == 22 &&
                   sizeof(nib_quant_q5_1) == 24 && sizeof(nib_quant_q8_0) == 34,
               "blocks are packed");

void nib_quant_dequantize_Q4_0(const void *blocks, float *out, size_t n) {
    const nib_quant_q4_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->qs[j] & 15) - 8);
            out[j + 16] = d * (float)((b->qs[j] >> 4) - 8);
        }
    }
}

void nib_quant_dequantize_Q4_1(const void *blocks, float *out, size_t n) {
    const nib_quant_q4_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_f16(b->d), m = nib_quant_f16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(b->qs[j] & 15) + m;
            out[j + 16] = d * (float)(b->qs[j] >> 4) + m;
        }
    }
}

/* The codes of 32 weights of five bits. */
static void codes5(const uint8_t qs[16], const uint8_t qh[4], uint8_t codes[32]) {
    for (int j = 0; j < 16; j++) {
        codes[j] = (uint8_t)((qs[j] & 15) | (qh[j / 8] >> j % 8 & 1) << 4);
        codes[j + 16] = (uint8_t)(qs[j] >> 4 | (qh[2 + j / 8] >> j % 8 & 1) << 4);
    }
}

void nib_quant_dequantize_Q5_0(const void *blocks, float *out, size_t n) {
    const nib_quant_q5_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_f16(b->d);
        uint8_t codes[32];
        codes5(b->qs, b->qh, codes);
        for (int j = 0; j < 32; j++) out[j] = d * (float)(codes[j] - 16);
    }
}

void nib_quant_dequantize_Q5_1(const void *blocks, float *out, size_t n) {
    const nib_quant_q5_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_f16(b->d), m = nib_quant_f16(b->m);
        uint8_t codes[32];
        codes5(b->qs, b->qh, codes);
        for (int j = 0; j < 32; j++) out[j] = d * (float)codes[j] + m;
    }
}

void nib_quant_dequantize_Q8_0(const void *blocks, float *out, size_t n) {
    const nib_quant_q8_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = nib_quant_f16(b->d);
        for (int j = 0; j < 32; j++) out[j] = d * (float)b->qs[j];
    }
}

bool nib_quant_is_finite_Q4_0(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_q4_0), offsetof(nib_quant_q4_0, d), 1);
}

bool nib_quant_is_finite_Q4_1(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_q4_1), offsetof(nib_quant_q4_1, d), 2);
}

bool nib_quant_is_finite_Q5_0(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_q5_0), offsetof(nib_quant_q5_0, d), 1);
}

bool nib_quant_is_finite_Q5_1(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_q5_1), offsetof(nib_quant_q5_1, d), 2);
}

bool nib_quant_is_finite_Q8_0(const void *blocks, size_t n) {
    return nib_quant_scales_are_finite(blocks, n / 32, sizeof(nib_quant_q8_0), offsetof(nib_quant_q8_0, d), 1);
}
