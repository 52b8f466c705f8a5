/* cpu/isa/neon_mm_act.c - quantising activations with NEON: bit for bit what cpu/act.c does.
 *
 * Magnitudes are compared as integers, in which order a NaN is the greatest. */
#include "cpu/kern/mm.h"

#include "base/half.h"
#include "cpu/isa/mm_inline.h"

#include <arm_neon.h>

/* The greatest magnitude of 32 floats in every lane's share. */
INL uint32x4_t magnitudes(const float *x) {
    uint32x4_t m = vdupq_n_u32(0);
    UNROLL for (int i = 0; i < 8; i++) m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + 4 * i))));
    return m;
}

/* Scale of a block and its reciprocal: 0 for a block that counts as zeros or is broken. */
INL float scale_of(uint32_t amax, float *inverse) {
    float d = nib_f32_from_bits(amax) / 127.0f;
    *inverse = 0.0f;
    if (amax >= 0x7f800000) return nib_f32_from_bits(0x7fc00000);
    if (d < 0x1p-126f) return 0.0f;
    *inverse = 1.0f / d;
    return d;
}

/* Sums over a block for its scale: x times code in 32 lanes, and code squared. */
typedef struct fit {
    float32x4_t along[8];
    int32x4_t squares;
} fit;

INL fit no_fit(void) {
    fit f = {.squares = vdupq_n_s32(0)};
    UNROLL for (int i = 0; i < 8; i++) f.along[i] = vdupq_n_f32(0);
    return f;
}

INL float tree_sum(const float32x4_t x[8]) {
    float32x4_t y[4];
    UNROLL for (int i = 0; i < 4; i++) y[i] = vaddq_f32(x[i], x[i + 4]);
    float32x4_t a = vaddq_f32(vaddq_f32(y[0], y[2]), vaddq_f32(y[1], y[3]));
    float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}

INL float fitted(float d, float inverse, const fit *f) {
    return inverse == 0.0f ? d : d * (tree_sum(f->along) / (float)vaddvq_s32(f->squares));
}

/* 32 codes. A broken block may hold infinities, so zeros cannot come from the multiplication. */
INL int8x16x2_t codes_of(const float *x, float inverse, fit *f) {
    int8x16x2_t codes = {{vdupq_n_s8(0), vdupq_n_s8(0)}};
    if (inverse == 0.0f) return codes;
    int16x4_t q[8];
    UNROLL for (int i = 0; i < 8; i++) {
        float32x4_t scaled = vmulq_n_f32(vld1q_f32(x + 4 * i), inverse);
        int32x4_t code = vcvtnq_s32_f32(scaled);
        f->along[i] = vfmaq_f32(f->along[i], scaled, vcvtq_f32_s32(code));
        q[i] = vmovn_s32(code);
    }
    UNROLL for (int i = 0; i < 2; i++) {
        int8x8_t low = vmovn_s16(vcombine_s16(q[4 * i], q[4 * i + 1]));
        codes.val[i] = vcombine_s8(low, vmovn_s16(vcombine_s16(q[4 * i + 2], q[4 * i + 3])));
        f->squares = vdotq_s32(f->squares, codes.val[i], codes.val[i]);
    }
    return codes;
}

/* Half sums of 16 codes: a pair of int16 in every 32-bit lane. */
INL int16x4_t half_sums16(int8x16_t q) {
    int16x8_t x = vpaddlq_s8(q);
    int16x4_t y = vadd_s16(vget_low_s16(x), vget_high_s16(x));
    return vadd_s16(y, vext_s16(y, y, 2));
}

/* Stores the pair times n. */
INL void store_pair(int16_t *p, int16x4_t x, int16_t n) {
    x = vmul_n_s16(x, n);
    vst1_lane_s16(p, x, 0);
    vst1_lane_s16(p + 1, x, 1);
}

INL int pair_sum(int16x4_t x) {
    return vget_lane_s16(x, 0) + vget_lane_s16(x, 1);
}

INL void store_codes(int8_t *p, int8x16x2_t q) {
    vst1q_s8(p, q.val[0]);
    vst1q_s8(p + 16, q.val[1]);
}

static void quantize32(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t np = act->np, n32 = a->n_pad / 32, at = nib_cpu_act_at(act, t, n32, 1) + part.k0 / 32 * np;
    int8_t *line = a->q + nib_cpu_act_at(act, t, n32 / 2, 64);
    for (size_t b = part.k0 / 32; b < part.k1 / 32; b++, at += np) {
        float buf[32], inverse;
        const float *x = nib_cpu_act_columns(act, part, 32 * b, 32, buf);
        float d = scale_of(vmaxvq_u32(magnitudes(x)), &inverse);
        fit f = no_fit();
        int8x16x2_t q = codes_of(x, inverse, &f);
        a->d[at] = fitted(d, inverse, &f);
        store_codes(line + b / 2 * np * 64 + b % 2 * 32, q);
        int16x4_t half = vadd_s16(half_sums16(q.val[0]), half_sums16(q.val[1]));
        int sum = pair_sum(half);
        a->sum[at] = (float)sum;
        a->start8[at] = -8 * sum;
        a->start16[at] = -16 * sum;
        a->start128[at] = -128 * sum;
        store_pair(a->half16 + 2 * at, half, -16);
    }
}

/* Where the side arrays of the 256-form stand for one token. */
typedef struct side {
    int16_t *sum16, *sum32, *half32;
    int32_t *start8, *start16, *start32;
} side;

/* The side arrays of block j (of 8), whose codes are q. */
INL void side_block(const side *s, size_t j, size_t np, int8x16x2_t q) {
    int sum[2];
    UNROLL for (size_t g = 0; g < 2; g++) {
        int16x8_t sum8 = vpaddlq_s8(q.val[g]); /* of 2, then 4, then 8 */
        sum8 = vpaddq_s16(sum8, sum8);
        sum8 = vpaddq_s16(sum8, sum8);
        int16x4_t half = half_sums16(q.val[g]);
        s->start32[(4 * j + 2 * g) * np] = -32 * vgetq_lane_s16(sum8, 0);
        s->start32[(4 * j + 2 * g + 1) * np] = -32 * vgetq_lane_s16(sum8, 1);
        store_pair(s->half32 + 2 * (2 * j + g) * np, half, -32);
        sum[g] = pair_sum(half);
        s->start16[(2 * j + g) * np] = -16 * sum[g];
        s->sum16[2 * j * np + g] = (int16_t)sum[g];
    }
    s->start8[j * np] = -8 * (sum[0] + sum[1]);
    s->sum32[j / 2 * 2 * np + j % 2] = (int16_t)(sum[0] + sum[1]);
}

static void quantize256(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t np = act->np, n256 = a->n_pad / 256;
    int8_t *line = a->q + nib_cpu_act_at(act, t, 4 * n256, 64);
    float *d = a->d + nib_cpu_act_at(act, t, n256, 1);
    side s = {a->sum16 + nib_cpu_act_at(act, t, 8 * n256, 2),    a->sum32 + nib_cpu_act_at(act, t, 4 * n256, 2),
              a->half32 + nib_cpu_act_at(act, t, 16 * n256, 2),  a->start8 + nib_cpu_act_at(act, t, 8 * n256, 1),
              a->start16 + nib_cpu_act_at(act, t, 16 * n256, 1), a->start32 + nib_cpu_act_at(act, t, 32 * n256, 1)};
    for (size_t b = part.k0 / 256; b < part.k1 / 256; b++) {
        float buf[256], inverse;
        const float *x = nib_cpu_act_columns(act, part, 256 * b, 256, buf);
        uint32x4_t m = magnitudes(x);
        for (int j = 1; j < 8; j++) m = vmaxq_u32(m, magnitudes(x + 32 * j));
        float largest = scale_of(vmaxvq_u32(m), &inverse);
        fit f = no_fit();
        for (size_t j = 0; j < 8; j++) {
            int8x16x2_t q = codes_of(x + 32 * j, inverse, &f);
            store_codes(line + (4 * b + j / 2) * np * 64 + j % 2 * 32, q);
            side_block(&s, 8 * b + j, np, q);
        }
        d[b * np] = fitted(largest, inverse, &f);
    }
}

const nib_cpu_mm_quantize nib_cpu_mm_quantize_neon = {quantize32, quantize256};
