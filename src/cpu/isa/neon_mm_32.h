/* cpu/isa/neon_mm_32.h - private: the NEON kernels of types with a scale per 32 weights.
 *
 * A unit includes neon_dot.h or neon_i8mm_dot.h before this. Sums of bytes times bytes go straight into int32, so nothing
 * can overflow. Q4_0 and Q5_0 are stored with an offset of 8 or 16 that the start value of a sum takes away. */
#ifndef NIB_CPU_ISA_NEON_MM_32_H
#define NIB_CPU_ISA_NEON_MM_32_H

#include "cpu/isa/neon_mm.h"
#include "cpu/isa/mm_layout_32.h"

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *start;
} cursor;

INL cursor cursor_at(layout l, const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n32 = a->n_pad / 32, i = nib_cpu_act_at(act, t, n32, 1);
    const int32_t *start = l.kind == CODES_U4 ? a->start8 : a->start16;
    return (cursor){a->q + nib_cpu_act_at(act, t, n32 / 2, 64), a->d + i, a->sum + i, start + i};
}

INL bool has_start(layout l) {
    return !l.has_min && (l.kind == CODES_U4 || l.kind == CODES_U5);
}

/* Scales of a quarter of block b of a unit. The minima follow the scales. */
INL float32x4_t scales(layout l, const uint8_t *w, size_t b, int quarter) {
    const uint16_t *d = (const uint16_t *)(const void *)w + 16 * b + 4 * quarter;
    return l.kind == CODES_FP4 ? from_bf16(d) : from_f16(d);
}

/* Adds block j of a slice (its unit is w) to nc accumulators. p: at the slice. */
INL void tile_block(layout l, int quarter, int nc, const uint8_t *w, size_t j, const cursor *p, const int8_t *buf,
                    float32x4_t *acc) {
    int8x16_t v[8];
    unpack(l.kind, w + l.at + j % 2 * block_bytes(l.kind), quarter, v);
    arrange_codes(v);
    float32x4_t d = scales(l, w, j % 2, quarter), m = l.has_min ? scales(l, w + 64, j % 2, quarter) : d;
    const float *da = p->d + j * NIB_ACT_PANEL, *sum = p->sum + j * NIB_ACT_PANEL;
    const int32_t *start = p->start + j * NIB_ACT_PANEL;
    UNROLL for (int c = 0; c < nc; c += 2) {
        const int8_t *a = arranged(nc, p->q, buf, j, c);
        int32x4_t t[2];
        UNROLL for (int e = 0; e < 2; e++) t[e] = has_start(l) ? tokens_s32(start + c, e) : vdupq_n_s32(0);
        add_half(t, v, a, 0);
        add_half(t, v, a, 1);
        UNROLL for (int e = 0; e < 2; e++) {
            float32x4_t i = vcvtq_f32_s32(t[e]), x = rows_f32(d, e);
            if (l.has_min)
                acc[c + e] = fma_tokens(
                    acc[c + e], fma_tokens(vmulq_f32(i, x), rows_f32(m, e), sum + c, e), da + c, e);
            else
                acc[c + e] = vfmaq_f32(acc[c + e], i, mul_tokens(x, da + c, e));
        }
    }
}

/* A slice of n_blocks, a quarter of the rows. The accumulators wait in the tile. */
INL void tile_quarter(layout l, int quarter, int nc, const uint8_t *w, size_t n_blocks, const cursor *p,
                      const int8_t *buf, float *out) {
    float32x4_t acc[16];
    out += 4 * quarter;
    UNROLL for (int c = 0; c < nc; c++) acc[c] = vld1q_f32(out + 16 * c);
    for (size_t j = 0; j < n_blocks; j++) tile_block(l, quarter, nc, w + j / 2 * l.unit, j, p, buf, acc);
    UNROLL for (int c = 0; c < nc; c++) vst1q_f32(out + 16 * c, acc[c]);
}

/* nc tokens of a panel. */
INL void tile(layout l, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    cursor p = cursor_at(l, act, t0);
    _Alignas(64) int8_t buf[16 * ARRANGED_BYTES];
    memset(out, 0, 64 * (size_t)nc);
    for (size_t rest = act->q32.n_pad / 32; rest > 0;) {
        size_t n = rest < 8 ? rest : 8;
        arrange(nc, n, p.q, buf);
        for (int quarter = 0; quarter < 4; quarter++) tile_quarter(l, quarter, nc, w, n, &p, buf, out);
        w += n / 2 * l.unit;
        p.q += 32 * n * NIB_ACT_PANEL;
        p.d += n * NIB_ACT_PANEL;
        p.sum += n * NIB_ACT_PANEL;
        p.start += n * NIB_ACT_PANEL;
        rest -= n;
    }
    finish_tile(nc, out);
}

/* One token: bound by memory, so all quarters go together and lines are asked for 2 KiB ahead. */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *out) {
    cursor p = cursor_at(l, act, 0);
    float32x4_t acc[4];
    UNROLL for (int i = 0; i < 4; i++) acc[i] = vdupq_n_f32(0);
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit, p.q += 64, p.d += 2, p.sum += 2, p.start += 2) {
        prefetch(w + 2048, (int)(l.unit / 64));
        for (size_t b = 0; b < 2; b++) {
            int8x16_t v[8], a0 = vld1q_s8(p.q + 32 * b), a1 = vld1q_s8(p.q + 32 * b + 16);
            int32x4_t start = has_start(l) ? vdupq_n_s32(p.start[b]) : vdupq_n_s32(0);
            UNROLL for (int i = 0; i < 4; i++) {
                unpack(l.kind, w + l.at + b * block_bytes(l.kind), i, v);
                int32x4_t t = vaddq_s32(dot16(start, v, a0), dot16(vdupq_n_s32(0), v + 4, a1));
                float32x4_t f = vcvtq_f32_s32(t), d = scales(l, w, b, i);
                if (l.has_min)
                    acc[i] = vfmaq_n_f32(
                        acc[i], vfmaq_n_f32(vmulq_f32(f, d), scales(l, w + 64, b, i), p.sum[b]), p.d[b]);
                else
                    acc[i] = vfmaq_f32(acc[i], f, vmulq_n_f32(d, p.d[b]));
            }
        }
    }
    UNROLL for (int i = 0; i < 4; i++) vst1q_f32(out + 4 * i, acc[i]);
}

/* The last two fields of a layout. */
/* X(type, layout) */
#define TYPES_32(X)                                                                                                    \
    X(Q4_0, CODES_U4, false, AT(q4, qs))                                                                               \
    X(Q4_1, CODES_U4, true, AT(q4_1, qs))                                                                              \
    X(Q5_0, CODES_U5, false, AT(q5_0, b))                                                                              \
    X(Q5_1, CODES_U5, true, AT(q5_1, b))                                                                               \
    X(MXFP4, CODES_FP4, false, AT(q4, qs))                                                                             \
    X(Q8_0, CODES_S8, false, AT(q8_0, qs))                                                                             \
    X(IQ4_NL, CODES_IQ4, false, AT(q4, qs))

#endif
