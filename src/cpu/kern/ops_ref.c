/* cpu/kern/ops_ref.c - the scalar vector operations: these define the bits that every level must give. */
#include "cpu/ops.h"

#include "base/math.h"

#include <float.h>

#define LANES 32

/* The one tree of all sums. */
static float tree_sum(float *lane) {
    for (int half = LANES / 2; half >= 1; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

static void rms_norm(const float *x, const float *w, float eps, float *y, size_t n) {
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) lane[i % LANES] = fmaf(x[i], x[i], lane[i % LANES]);
    float s = 1.0f / sqrtf(tree_sum(lane) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = x[i] * s * w[i];
}

static void add(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

static void scale(float *x, float s, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] *= s;
}

static void silu_mul(const float *gate, const float *up, float *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = gate[i] / (1.0f + nib_expf(-gate[i])) * up[i];
}

/* 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + exp(-2u)). */
static void gelu_mul(const float *gate, const float *up, float *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = gate[i], u = x * fmaf(x * x, -0.0713548162726f, -1.59576912161f);
        out[i] = x / (1.0f + nib_expf(u)) * up[i];
    }
}

static void rotate(float *a, float *b, float c, float s) {
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static void rope_halves(float *x, const float *cs, size_t n) {
    for (size_t i = 0; i < n / 2; i++) rotate(&x[i], &x[i + n / 2], cs[i], cs[i + n / 2]);
}

static void rope_pairs(float *x, const float *cs, size_t n) {
    for (size_t i = 0; i < n / 2; i++) rotate(&x[2 * i], &x[2 * i + 1], cs[i], cs[i + n / 2]);
}

static void block_max(const float *x, float *best, size_t n) {
    for (size_t b = 0; b < n / NIB_BLOCK_VALUES; b++, x += NIB_BLOCK_VALUES) {
        best[b] = x[0] == x[0] ? x[0] : INFINITY;
        for (size_t i = 1; i < NIB_BLOCK_VALUES; i++)
            if (!(x[i] <= best[b])) best[b] = x[i] == x[i] ? x[i] : INFINITY;
    }
}

static void f16_from_f32(const float *x, uint16_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = nib_f16_from_f32(x[i]);
}

static void f32_from_f16(const uint16_t *x, float *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = nib_f16_to_f32(x[i]);
}

static float top(const float *x, size_t n) {
    float best = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) <= FLT_MAX)) return INFINITY;
        best = fabsf(x[i]) > best ? fabsf(x[i]) : best;
    }
    return best;
}

static void codes(const float *x, float inverse, int16_t *out, size_t stride, size_t n) {
    for (size_t i = 0; i < n; i++) out[i * stride] = (int16_t)rintf(x[i] * inverse);
}

static void page_scores(const void *page, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {
    const float *k = page, *const *q = queries->q;
    for (size_t j = 0; j < queries->n; j++, s += NIB_PAGE_POS) {
        for (size_t i = 0; i < NIB_PAGE_POS; i++) s[i] = 0.0f;
        for (size_t d = 0; d < head_dim; d++)
            for (size_t i = 0; i < NIB_PAGE_POS; i++) s[i] = fmaf(q[j][d], k[d * NIB_PAGE_POS + i], s[i]);
    }
}

static void page_softmax(size_t n, float *s, float *m, float *l, float *corr) {
    for (size_t j = 0; j < n; j++, s += NIB_PAGE_POS) {
        float top = m[j], lane[LANES];
        for (int i = 0; i < NIB_PAGE_POS; i++) top = s[i] > top ? s[i] : top;
        for (int i = 0; i < NIB_PAGE_POS; i++) lane[i] = s[i] = nib_expf(s[i] - top);
        corr[j] = nib_expf(m[j] - top);
        l[j] = fmaf(l[j], corr[j], tree_sum(lane));
        m[j] = top;
    }
}

static void page_values(const void *page, const nib_cpu_page_sums *sums, size_t head_dim) {
    const float *v = page;
    for (size_t j = 0; j < sums->n; j++) {
        float *acc = sums->acc[j];
        for (size_t d = 0; d < head_dim; d++) acc[d] *= sums->corr[j];
        for (size_t i = sums->first; i < sums->last; i++)
            for (size_t d = 0; d < head_dim; d++)
                acc[d] = fmaf(sums->p[j * NIB_PAGE_POS + i], v[i * head_dim + d], acc[d]);
    }
}

static const nib_cpu_page_ops pages[NIB_CPU_KV_COUNT] = {[NIB_CPU_KV_F32] = {page_scores, page_values}};

const nib_cpu_ops nib_cpu_ops_scalar = {
    .rms_norm = rms_norm,         .add = add,
    .scale = scale,               .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,         .rope_halves = rope_halves,
    .rope_pairs = rope_pairs,     .block_max = block_max,
    .f16_from_f32 = f16_from_f32, .f32_from_f16 = f32_from_f16,
    .top = top,                   .codes = codes,
    .page_softmax = page_softmax, .page = pages,
};
