/* cpu/kern/q16_ref.c - attention over pages of 16-bit codes (cpu/q16.h): defines the bits that every level must give. */
#include "cpu/q16.h"

#include <math.h>

enum { POS = NIB_PAGE_POS };

/* Codes of positions that nobody sees may be anything: their sums may wrap. */
static uint32_t product(int16_t a, int16_t b) {
    return (uint32_t)((int32_t)a * b);
}

static void scores(const void *page, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    const int16_t *k = page;
    const float *scale = nib_q16_key_scales(page, head_dim);
    size_t stride = nib_q16_stride(head_dim);
    for (size_t j = 0; j < queries->n; j++, s += POS) {
        const int16_t *q = queries->codes + j * stride;
        for (size_t i = 0; i < POS; i++) {
            float all = 0;
            for (size_t first = 0; first < stride; first += NIB_Q16_DIMS) {
                uint32_t sum = 0;
                for (size_t d = first; d < stride && d < first + NIB_Q16_DIMS; d++)
                    sum += product(q[d], k[d / 2 * 2 * POS + 2 * i + d % 2]);
                all += (float)(int32_t)sum;
            }
            s[i] = all * scale[i] * queries->scale[j];
        }
    }
}

/* Weights of a page as codes; returns their scale. NaN has no code, and comes out by the sum of p. */
static float make_weights(const float *p, const float *scale, int16_t *codes) {
    float w[POS], top = 0, inverse;
    for (size_t i = 0; i < POS; i++) {
        w[i] = p[i] != 0 ? p[i] * scale[i] : 0;
        top = w[i] > top ? w[i] : top;
    }
    float weights_scale = nib_q16_scale(top, NIB_Q16_VALUE, &inverse);
    for (size_t i = 0; i < POS; i++) {
        float c = rintf(w[i] * inverse);
        codes[i] = c >= INT16_MIN && c <= INT16_MAX ? (int16_t)c : 0;
    }
    return weights_scale;
}

static void values(const void *page, const nib_cpu_page_sums *sums, size_t head_dim) {
    const int16_t *v = page;
    for (size_t j = 0; j < sums->n; j++) {
        int16_t w[POS];
        float *acc = sums->acc[j], scale = make_weights(sums->p + j * POS, nib_q16_value_scales(page, head_dim), w);
        for (size_t d = 0; d < head_dim; d++) {
            uint32_t sum = 0;
            for (size_t i = 0; i < POS; i++) sum += product(w[i], v[(i / 2 * head_dim + d) * 2 + i % 2]);
            acc[d] = fmaf((float)(int32_t)sum, scale, acc[d] * sums->corr[j]);
        }
    }
}

const nib_cpu_page_ops nib_cpu_q16_scalar = {scores, values};
