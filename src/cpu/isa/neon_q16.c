/* cpu/isa/neon_q16.c - NEON: attention over pages of 16-bit codes (cpu/q16.h).
 *
 * Pairs are taken apart as they are loaded: scores have positions in their lanes, eight registers a query, values dimensions, eight
 * registers a query. Two queries share what is loaded. */
#include "cpu/q16.h"

#include "cpu/fetch.h"
#include "cpu/isa/q16_pairs.h"

#include <arm_neon.h>

enum { W = 4 };

/* Eight pairs, times a pair: into two registers. */
INL void add_products(int32x4_t *a, int16x8x2_t x, const int16_t *y) {
    a[0] = vmlal_n_s16(vmlal_n_s16(a[0], vget_low_s16(x.val[0]), y[0]), vget_low_s16(x.val[1]), y[1]);
    a[1] = vmlal_high_n_s16(vmlal_high_n_s16(a[1], x.val[0], y[0]), x.val[1], y[1]);
}

INL void scores_n(int n, const int16_t *k, const nib_cpu_page_queries *queries, size_t j0, size_t head_dim, float *s) {
    size_t stride = nib_q16_stride(head_dim), n_pairs = stride / 2;
    const int16_t *q = queries->codes + j0 * stride;
    const float *scale = nib_q16_key_scales(k, head_dim);
    for (size_t first = 0, end; first < n_pairs; first = end) {
        end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        int32x4_t a[MAX_Q][8];
        UNROLL for (int j = 0; j < n; j++) {
            UNROLL for (int e = 0; e < 8; e++) a[j][e] = vdupq_n_s32(0);
        }
        for (size_t i = first; i < end; i++) {
            if (queries->next) nib_cpu_fetch((const int16_t *)queries->next + i * 2 * POS, 4 * POS);
            UNROLL for (int e = 0; e < 4; e++) {
                int16x8x2_t x = vld2q_s16(k + i * 2 * POS + 16 * e);
                UNROLL for (int j = 0; j < n; j++) add_products(a[j] + 2 * e, x, q + (size_t)j * stride + 2 * i);
            }
        }
        UNROLL for (int j = 0; j < n; j++) {
            UNROLL for (int e = 0; e < 8; e++) {
                float *out = s + j * POS + W * e;
                float32x4_t sum = vcvtq_f32_s32(a[j][e]);
                if (first) sum = vaddq_f32(vld1q_f32(out), sum);
                if (end == n_pairs) sum = vmulq_n_f32(vmulq_f32(sum, vld1q_f32(scale + W * e)), queries->scale[j0 + (size_t)j]);
                vst1q_f32(out, sum);
            }
        }
    }
}

/* p times the scales of the values; 0 where p is: the scale of a position that nobody sees may be anything. */
INL void make_weights(weights *w, int q, const float *p, const float *scale) {
    float32x4_t x[8], best = vdupq_n_f32(0);
    UNROLL for (int e = 0; e < 8; e++) {
        float32x4_t y = vld1q_f32(p + W * e);
        uint32x4_t is_zero = vceqzq_f32(y);
        x[e] = vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(vmulq_f32(y, vld1q_f32(scale + W * e))), is_zero));
        best = vmaxq_f32(best, x[e]);
    }
    float inverse;
    w->scale[q] = nib_q16_scale(vmaxvq_f32(best), NIB_Q16_VALUE, &inverse);
    UNROLL for (int e = 0; e < 8; e += 2) {
        int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(x[e], inverse)), b = vcvtnq_s32_f32(vmulq_n_f32(x[e + 1], inverse));
        vst1q_s16(w->codes[q] + W * e, vqmovn_high_s32(vqmovn_s32(a), b));
    }
}

/* 8 * n_reg dimensions from d on, for n queries from j on. */
INL void values_n(int n, int n_reg, const int16_t *v, const nib_cpu_page_sums *sums, const weights *w, size_t j, size_t d,
                  size_t head_dim) {
    int32x4_t a[MAX_Q][8];
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < 2 * n_reg; e++) a[q][e] = vdupq_n_s32(0);
    }
    for (size_t i = sums->first / 2; i < (sums->last + 1) / 2; i++) {
        if (sums->next) nib_cpu_fetch((const int16_t *)sums->next + (i * head_dim + d) * 2, (size_t)(32 * n_reg));
        UNROLL for (int e = 0; e < n_reg; e++) {
            int16x8x2_t x = vld2q_s16(v + (i * head_dim + d + (size_t)(8 * e)) * 2);
            UNROLL for (int q = 0; q < n; q++) add_products(a[q] + 2 * e, x, w->codes[q] + 2 * i);
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        float *acc = sums->acc[j + (size_t)q] + d;
        UNROLL for (int e = 0; e < 2 * n_reg; e++) {
            float32x4_t old = vmulq_n_f32(vld1q_f32(acc + W * e), sums->corr[j + (size_t)q]);
            vst1q_f32(acc + W * e, vfmaq_n_f32(old, vcvtq_f32_s32(a[q][e]), w->scale[q]));
        }
    }
}

const nib_cpu_page_ops nib_cpu_q16_neon = {scores, values};
