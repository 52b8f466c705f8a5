/* cpu/isa/neon_pages.c - NEON: attention over pages of 32 positions, read as the cache holds them (cpu/kv.h).
 *
 * Scores: lanes are positions, eight registers a query. Values: lanes are dimensions. Two queries share every load and its
 * conversion: 16 sums, which leaves registers for what is loaded. */
#include "base/half.h"
#include "cpu/isa/pages.h"

#include <arm_neon.h>
#include <math.h>

enum { W = 4, MAX_Q = 2 };

/* 16 or, of F32 and F16, 4 numbers from element i on; those of Q8_0 without their scale. */
INL void lanes(nib_cpu_kv_form form, int n_reg, const void *page, size_t i, float32x4_t x[4]) {
    if (form == NIB_CPU_KV_F32)
        UNROLL for (int e = 0; e < n_reg; e++) x[e] = vld1q_f32((const float *)page + i + W * e);
    if (form == NIB_CPU_KV_F16)
        UNROLL for (int e = 0; e < n_reg; e++)
            x[e] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)page + i + W * e)));
    if (form == NIB_CPU_KV_Q8_0) {
        int8x16_t codes = vld1q_s8((const int8_t *)page + i);
        int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
        x[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
        x[1] = vcvtq_f32_s32(vmovl_high_s16(low));
        x[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
        x[3] = vcvtq_f32_s32(vmovl_high_s16(high));
    }
}

INL float lane(nib_cpu_kv_form form, const void *page, size_t i) {
    return form == NIB_CPU_KV_F32 ? ((const float *)page)[i] : nib_f16_to_f32(((const uint16_t *)page)[i]);
}

INL void scores_n(nib_cpu_kv_form form, int n, const void *k, const nib_cpu_page_queries *queries, size_t j0,
                  size_t head_dim, float *s) {
    const float *const *q = queries->q + j0;
    const uint16_t *scales = scales_of(k, head_dim);
    float32x4_t a[MAX_Q][8];
    UNROLL for (int j = 0; j < n; j++) {
        UNROLL for (int e = 0; e < 8; e++) a[j][e] = vdupq_n_f32(0);
    }
    for (size_t d = 0; d < head_dim; d++) {
        if (size_of(form) * POS >= 64 || d % 2 == 0) fetch(queries->next, size_of(form) * POS * d, size_of(form) * POS);
        UNROLL for (int h = 0; h < 2; h++) {
            float32x4_t y[4], scale[4];
            lanes(form, 4, k, d * POS + (size_t)(4 * W * h), y);
            if (form == NIB_CPU_KV_Q8_0) {
                lanes(NIB_CPU_KV_F16, 4, scales, d / Q8_BLOCK * POS + (size_t)(4 * W * h), scale);
                UNROLL for (int e = 0; e < 4; e++) y[e] = vmulq_f32(y[e], scale[e]);
            }
            UNROLL for (int e = 0; e < 4; e++) {
                UNROLL for (int j = 0; j < n; j++) a[j][4 * h + e] = vfmaq_n_f32(a[j][4 * h + e], y[e], q[j][d]);
            }
        }
    }
    UNROLL for (int j = 0; j < n; j++) {
        UNROLL for (int e = 0; e < 8; e++) vst1q_f32(s + j * POS + W * e, a[j][e]);
    }
}

INL void scores(nib_cpu_kv_form form, const void *k, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    size_t j = 0, n = queries->n;
    for (; n - j >= MAX_Q; j += MAX_Q) scores_n(form, MAX_Q, k, queries, j, head_dim, s + j * POS);
    if (n - j == 1) scores_n(form, 1, k, queries, j, head_dim, s + j * POS);
}

/* n_reg registers of dimensions from d on, for n queries from j on. */
INL void values_n(nib_cpu_kv_form form, int n, int n_reg, const void *v, const nib_cpu_page_sums *sums, size_t j,
                  size_t d, size_t head_dim) {
    const uint16_t *scales = scales_of(v, head_dim);
    const float *p = sums->p + j * POS;
    float32x4_t a[MAX_Q][8];
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++)
            a[q][e] = vmulq_n_f32(vld1q_f32(sums->acc[j + (size_t)q] + d + W * e), sums->corr[j + (size_t)q]);
    }
    for (size_t i = sums->first; i < sums->last; i++) {
        fetch(sums->next, (i * head_dim + d) * size_of(form), (size_t)(W * n_reg) * size_of(form));
        UNROLL for (int e0 = 0; e0 < n_reg; e0 += 4) {
            const int m = n_reg < 4 ? n_reg : 4;
            float32x4_t x[4];
            lanes(form, m, v, i * head_dim + d + (size_t)(W * e0), x);
            if (form == NIB_CPU_KV_Q8_0) {
                float scale = nib_f16_to_f32(scales[i * (head_dim / Q8_BLOCK) + d / Q8_BLOCK]);
                UNROLL for (int e = 0; e < m; e++) x[e] = vmulq_n_f32(x[e], scale);
            }
            UNROLL for (int e = 0; e < m; e++) {
                UNROLL for (int q = 0; q < n; q++) a[q][e0 + e] = vfmaq_n_f32(a[q][e0 + e], x[e], p[(size_t)q * POS + i]);
            }
        }
    }
    UNROLL for (int q = 0; q < n; q++) {
        UNROLL for (int e = 0; e < n_reg; e++) vst1q_f32(sums->acc[j + (size_t)q] + d + W * e, a[q][e]);
    }
}

/* The last dimensions of heads that are no multiple of 4; Q8_0 has none. */
INL void values_rest(nib_cpu_kv_form form, const void *v, const nib_cpu_page_sums *sums, size_t j, size_t d,
                     size_t head_dim) {
    for (; d < head_dim; d++) {
        float a = sums->acc[j][d] * sums->corr[j];
        for (size_t i = sums->first; i < sums->last; i++)
            a = fmaf(sums->p[j * POS + i], lane(form, v, i * head_dim + d), a);
        sums->acc[j][d] = a;
    }
}

INL void values_all_dims(nib_cpu_kv_form form, int n, const void *v, const nib_cpu_page_sums *sums, size_t j,
                         size_t head_dim) {
    size_t d = 0;
    for (; d + 8 * W <= head_dim; d += 8 * W) values_n(form, n, 8, v, sums, j, d, head_dim);
    if (form == NIB_CPU_KV_Q8_0) return; /* heads are multiples of 32 */
    for (; d + W <= head_dim; d += W) values_n(form, n, 1, v, sums, j, d, head_dim);
    for (int q = 0; q < n; q++) values_rest(form, v, sums, j + (size_t)q, d, head_dim);
}

INL void values(nib_cpu_kv_form form, const void *v, const nib_cpu_page_sums *sums, size_t head_dim) {
    size_t j = 0;
    for (; sums->n - j >= MAX_Q; j += MAX_Q) values_all_dims(form, MAX_Q, v, sums, j, head_dim);
    if (j < sums->n) values_all_dims(form, 1, v, sums, j, head_dim);
}

PAGES(neon)
