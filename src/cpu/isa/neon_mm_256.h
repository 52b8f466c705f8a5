/* cpu/isa/neon_mm_256.h - private: the NEON kernels of types with super-blocks of 256 weights.
 *
 * A unit includes neon_dot.h or neon_i8mm_dot.h before this. The int32 sum of 16 or 32 columns is multiplied by its integer
 * scale and added to that of the super-block; the bounds of kern/mm_ref.c hold. */
#ifndef NIB_CPU_ISA_NEON_MM_256_H
#define NIB_CPU_ISA_NEON_MM_256_H

#include "cpu/isa/neon_mm.h"
#include "cpu/isa/mm_layout_256.h"

/* Integer scales and minima of 16 rows, widened. */
typedef struct small {
    int16_t scale[16][16], min[16][16];
} small;

INL void widen(int16_t to[16], uint8x16_t x) {
    int8x16_t s = vreinterpretq_s8_u8(x);
    vst1q_s16(to, vmovl_s8(vget_low_s8(s)));
    vst1q_s16(to + 8, vmovl_high_s8(s));
}

INL void unpack_small(layout l, const uint8_t *w, small *s) {
    const uint8_t *p = w + l.sc;
    if (l.scales == SCALES_8 || l.scales == SCALES_8_32)
        for (size_t g = 0; g < (is_per_32(l) ? 8 : 16); g++) widen(s->scale[g], vld1q_u8(p + 16 * g));
    if (l.scales == SCALES_4)
        for (size_t g = 0; g < 16; g++) {
            uint8x16_t x = vld1q_u8(p + 16 * g);
            widen(s->scale[g], shift_and(x, 0, 15));
            widen(s->min[g], shift(x, -4));
        }
    if (l.scales == SCALES_6) /* rows of bytes 0-3, 4-7, 8-11 of the packed scales: cpu/pack.h */
        for (size_t g = 0; g < 4; g++) {
            uint8x16_t a = vld1q_u8(p + 16 * g), b = vld1q_u8(p + 64 + 16 * g), c = vld1q_u8(p + 128 + 16 * g);
            widen(s->scale[g], shift_and(a, 0, 63));
            widen(s->min[g], shift_and(b, 0, 63));
            widen(s->scale[g + 4], insert(shift_and(c, 0, 15), a, -2, 48));
            widen(s->min[g + 4], insert(shift(c, -4), b, -2, 48));
        }
}

/* Scale of half h of block j for a quarter of the rows. */
INL int32x4_t scale_at(layout l, const small *s, size_t j, size_t h, int quarter) {
    return vmovl_s16(vld1_s16(s->scale[is_per_32(l) ? j : 2 * j + h] + 4 * quarter));
}

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes, pairs: 2 c) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d;
    const int16_t *sums; /* pairs: of 32 columns or of 16, as the scales have it */
} cursor;

INL cursor cursor_at(layout l, const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n = a->n_pad / 256, at8 = nib_cpu_act_at(act, t, 8 * n, 1), at4 = nib_cpu_act_at(act, t, 4 * n, 1);
    return (cursor){.q = a->q + 64 * at4,
                    .d = a->d + nib_cpu_act_at(act, t, n, 1),
                    .sums = is_per_32(l) ? a->sum32 + 2 * at4 : a->sum16 + 2 * at8};
}

INL int n_pairs(layout l) {
    return is_per_32(l) ? 4 : 8;
}

/* On to the next super-block of NP tokens. */
INL void advance(layout l, cursor *p, int np) {
    p->q += 256 * np;
    p->d += np;
    p->sums += 2 * n_pairs(l) * np;
}

/* d is float16 where there are minima (their scales follow), else float32. */
INL float32x4_t scale_of(layout l, const uint8_t *w, int quarter) {
    return has_min(l) ? from_f16((const uint16_t *)(const void *)w + 4 * quarter)
                      : vld1q_f32((const float *)(const void *)w + 4 * quarter);
}

INL float32x4_t min_scale_of(const uint8_t *w, int quarter) {
    return from_f16((const uint16_t *)(const void *)w + 16 + 4 * quarter);
}

/* Adds block j (of 8) to nc integer sums, the scales applied. */
INL void tile_block(layout l, int quarter, int nc, const uint8_t *w, const small *s, size_t j, const cursor *p,
                    const int8_t *buf, int32x4_t *isum) {
    int8x16_t v[8];
    unpack(l.kind, w + l.at + j * block_bytes(l.kind), quarter, v);
    arrange_codes(v);
    int32x4_t scale[2] = {scale_at(l, s, j, 0, quarter), scale_at(l, s, j, 1, quarter)};
    UNROLL for (int c = 0; c < nc; c += 2) {
        const int8_t *a = arranged(nc, p->q, buf, j, c);
        int32x4_t t[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
        UNROLL for (int h = 0; h < 2; h++) {
            add_half(t, v, a, h);
            if (is_per_32(l) && h == 0) continue;
            UNROLL for (int e = 0; e < 2; e++) {
                isum[c + e] = vmlaq_s32(isum[c + e], t[e], rows_s32(scale[h], e));
                t[e] = vdupq_n_s32(0);
            }
        }
    }
}

/* The minima of a quarter times the sums of activations of tokens c and c + 1. */
INL void times_sums(layout l, const small *s, int quarter, const cursor *p, int c, int32x4_t m[2]) {
    m[0] = m[1] = vdupq_n_s32(0);
    const int n = n_pairs(l);
    UNROLL for (int i = 0; i < n; i++) {
        int16x4_t x = vld1_s16(p->sums + 2 * (NIB_ACT_PANEL * i + c));
        int16x4_t m0 = vld1_s16(s->min[2 * i] + 4 * quarter), m1 = vld1_s16(s->min[2 * i + 1] + 4 * quarter);
        m[0] = vmlal_lane_s16(vmlal_lane_s16(m[0], m0, x, 0), m1, x, 1);
        m[1] = vmlal_lane_s16(vmlal_lane_s16(m[1], m0, x, 2), m1, x, 3);
    }
    in_order(m);
}

/* The end of a super-block: into the accumulators, which live in the tile so that the registers are free for the integer
 * sums. */
INL void finish(layout l, int quarter, int nc, const uint8_t *w, const small *s, const cursor *p,
                const int32x4_t *isum, float *out) {
    float32x4_t d = scale_of(l, w, quarter), dmin = has_min(l) ? min_scale_of(w, quarter) : d;
    UNROLL for (int c = 0; c < nc; c += 2) {
        int32x4_t m[2];
        if (has_min(l)) times_sums(l, s, quarter, p, c, m);
        UNROLL for (int e = 0; e < 2; e++) {
            float *to = out + 16 * (c + e) + 4 * quarter;
            float32x4_t i = vcvtq_f32_s32(isum[c + e]), x = rows_f32(d, e), acc = vld1q_f32(to);
            if (!has_min(l)) {
                acc = vfmaq_f32(acc, i, mul_tokens(x, p->d + c, e));
            } else {
                float32x4_t f = vfmsq_f32(vmulq_f32(i, x), vcvtq_f32_s32(m[e]), rows_f32(dmin, e));
                acc = fma_tokens(acc, f, p->d + c, e);
            }
            vst1q_f32(to, acc);
        }
    }
}

/* nc tokens of a panel. */
INL void tile(layout l, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    cursor p = cursor_at(l, act, t0);
    _Alignas(64) int8_t buf[16 * ARRANGED_BYTES];
    memset(out, 0, 64 * (size_t)nc);
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        unpack_small(l, w, &s);
        arrange(nc, 8, p.q, buf);
        for (int quarter = 0; quarter < 4; quarter++) {
            int32x4_t isum[16];
            UNROLL for (int c = 0; c < nc; c++) isum[c] = vdupq_n_s32(0);
            for (size_t j = 0; j < 8; j++) tile_block(l, quarter, nc, w, &s, j, &p, buf, isum);
            finish(l, quarter, nc, w, &s, &p, isum, out);
        }
        advance(l, &p, NIB_ACT_PANEL);
    }
    finish_tile(nc, out);
}

/* One token: bound by memory, so all quarters go together and the next super-block is asked for. */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *out) {
    cursor p = cursor_at(l, act, 0);
    float32x4_t acc[4];
    UNROLL for (int i = 0; i < 4; i++) acc[i] = vdupq_n_f32(0);
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        int32x4_t isum[4], m[4];
        unpack_small(l, w, &s);
        UNROLL for (int i = 0; i < 4; i++) isum[i] = m[i] = vdupq_n_s32(0);
        for (size_t j = 0; j < 8; j++) {
            const uint8_t *lines = w + l.at + j * block_bytes(l.kind);
            int8x16_t v[8], a0 = vld1q_s8(p.q + 32 * j), a1 = vld1q_s8(p.q + 32 * j + 16);
            prefetch(lines + l.unit, (int)(block_bytes(l.kind) / 64));
            UNROLL for (int i = 0; i < 4; i++) {
                unpack(l.kind, lines, i, v);
                if (is_per_32(l)) {
                    int32x4_t t = vaddq_s32(dot16(vdupq_n_s32(0), v, a0), dot16(vdupq_n_s32(0), v + 4, a1));
                    isum[i] = vmlaq_s32(isum[i], t, scale_at(l, &s, j, 0, i));
                } else {
                    isum[i] = vmlaq_s32(isum[i], dot16(vdupq_n_s32(0), v, a0), scale_at(l, &s, j, 0, i));
                    isum[i] = vmlaq_s32(isum[i], dot16(vdupq_n_s32(0), v + 4, a1), scale_at(l, &s, j, 1, i));
                }
            }
        }
        if (has_min(l))
            for (int g = 0; g < 2 * n_pairs(l); g++) /* a single token: its pairs stand together */
                UNROLL for (int i = 0; i < 4; i++) m[i] = vmlal_n_s16(m[i], vld1_s16(s.min[g] + 4 * i), p.sums[g]);
        UNROLL for (int i = 0; i < 4; i++) {
            float32x4_t f = vcvtq_f32_s32(isum[i]), d = scale_of(l, w, i);
            if (has_min(l))
                acc[i] = vfmaq_n_f32(
                    acc[i], vfmsq_f32(vmulq_f32(f, d), vcvtq_f32_s32(m[i]), min_scale_of(w, i)), p.d[0]);
            else
                acc[i] = vfmaq_f32(acc[i], f, vmulq_n_f32(d, p.d[0]));
        }
        advance(l, &p, 1);
    }
    UNROLL for (int i = 0; i < 4; i++) vst1q_f32(out + 4 * i, acc[i]);
}

/* X(type, layout) */
#define TYPES_256(X)                                                                                                   \
    X(Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))                                                                      \
    X(Q3_K, CODES_S3, SCALES_8, AT(q3_k, scale, b))                                                                    \
    X(Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))                                                                      \
    X(Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))                                                                       \
    X(Q6_K, CODES_S6, SCALES_8, AT(q6_k, scale, b))                                                                    \
    X(IQ4_XS, CODES_IQ4, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
