/* cpu/isa/neon_i8mm_dot.h - private: how the tiles of the level `neon_i8mm` multiply: smmla, two rows of two tokens in a
 * register, twice the products of sdot.
 *
 * The functions of neon_dot.h. smmla takes 8 columns of two rows and of two tokens: codes are zipped when they are
 * unpacked, activations once per slice for all four quarters. Of the sums of a pair of tokens a and b, register 0 holds
 * rows 0a 0b 1a 1b and register 1 rows 2a 2b 3a 3b. */
#ifndef NIB_CPU_ISA_NEON_I8MM_DOT_H
#define NIB_CPU_ISA_NEON_I8MM_DOT_H

#include "cpu/isa/neon_mm.h"

enum { ARRANGED_BYTES = 256 };

INL int8x16_t zip64(int8x16_t a, int8x16_t b, int e) {
    int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);
    return vreinterpretq_s8_s64(e ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

/* [block][pair][8 columns][token][8] */
INL void arrange(int nc, size_t n_blocks, const int8_t *q, int8_t *buf) {
    for (size_t j = 0; j < n_blocks; j++) {
        const int8_t *a = q + j / 2 * 64 * NIB_ACT_PANEL + j % 2 * 32;
        UNROLL for (int c = 0; c < nc; c += 2, a += 128, buf += 64) {
            UNROLL for (int i = 0; i < 2; i++) {
                int8x16_t x = vld1q_s8(a + 16 * i), y = vld1q_s8(a + 64 + 16 * i);
                vst1q_s8(buf + 32 * i, zip64(x, y, 0));
                vst1q_s8(buf + 32 * i + 16, zip64(x, y, 1));
            }
        }
    }
}

INL const int8_t *arranged(int nc, const int8_t *q, const int8_t *buf, size_t j, int c) {
    (void)q;
    return buf + j * 32 * (size_t)nc + 32 * c;
}

INL int32x4_t zip32(int32x4_t a, int32x4_t b, int e) {
    return e ? vzip2q_s32(a, b) : vzip1q_s32(a, b);
}

/* Two chunks of four rows: 8 columns of rows 0 and 1, then of rows 2 and 3. */
INL void arrange_codes(int8x16_t v[8]) {
    UNROLL for (int s = 0; s < 8; s += 2) {
        int32x4_t x = vreinterpretq_s32_s8(v[s]), y = vreinterpretq_s32_s8(v[s + 1]);
        v[s] = vreinterpretq_s8_s32(zip32(x, y, 0));
        v[s + 1] = vreinterpretq_s8_s32(zip32(x, y, 1));
    }
}

INL void add_half(int32x4_t t[2], const int8x16_t v[8], const int8_t *a, int h) {
    int8x16_t x = vld1q_s8(a + 32 * h), y = vld1q_s8(a + 32 * h + 16);
    t[0] = vmmlaq_s32(vmmlaq_s32(t[0], v[4 * h], x), v[4 * h + 2], y);
    t[1] = vmmlaq_s32(vmmlaq_s32(t[1], v[4 * h + 1], x), v[4 * h + 3], y);
}

INL void in_order(int32x4_t t[2]) {
    int32x4_t x = t[0], y = t[1];
    t[0] = zip32(x, y, 0);
    t[1] = zip32(x, y, 1);
}

/* From the order of the sums to tokens of 16 rows. */
INL void finish_tile(int nc, float *out) {
    for (int c = 0; c < nc; c += 2, out += 32) {
        UNROLL for (int i = 0; i < 16; i += 4) {
            float32x4_t x = vld1q_f32(out + i), y = vld1q_f32(out + 16 + i);
            vst1q_f32(out + i, vuzp1q_f32(x, y));
            vst1q_f32(out + 16 + i, vuzp2q_f32(x, y));
        }
    }
}

INL int32x4_t rows_s32(int32x4_t x, int e) {
    return zip32(x, x, e);
}

INL float32x4_t rows_f32(float32x4_t x, int e) {
    return e ? vzip2q_f32(x, x) : vzip1q_f32(x, x);
}

INL int32x4_t tokens_s32(const int32_t *p, int e) {
    (void)e;
    int32x2_t x = vld1_s32(p);
    return vcombine_s32(x, x);
}

INL float32x4_t tokens_f32(const float *p) {
    float32x2_t x = vld1_f32(p);
    return vcombine_f32(x, x);
}

INL float32x4_t mul_tokens(float32x4_t x, const float *p, int e) {
    (void)e;
    return vmulq_f32(x, tokens_f32(p));
}

INL float32x4_t fma_tokens(float32x4_t acc, float32x4_t x, const float *p, int e) {
    (void)e;
    return vfmaq_f32(acc, x, tokens_f32(p));
}

#endif
