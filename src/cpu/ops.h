/* cpu/ops.h - vector operations between the matrix products, one table per instruction set level.
 *
 * `scalar` (kern/ops_ref.c) defines the bits; every other level must give the same. Sums use 32 virtual lanes (lane j
 * adds elements j, j + 32, …) and one fixed tree: j + (j + 16), then 8, 4, 2, 1. All pointers are to floats unless they
 * say otherwise; no alignment is assumed. */
#ifndef NIB_CPU_OPS_H
#define NIB_CPU_OPS_H

#include <stddef.h>
#include <stdint.h>

#define NIB_PAGE_POS 32 /* positions in a KV page; kv/pool counts in the same pages */
#define NIB_BLOCK_VALUES 32 /* of a row, of which the best is known */

typedef enum nib_cpu_kv_form { NIB_CPU_KV_F32, NIB_CPU_KV_F16, NIB_CPU_KV_Q8_0, NIB_CPU_KV_Q16, NIB_CPU_KV_COUNT } nib_cpu_kv_form;

/* Queries that add values of a page to their sums. */
typedef struct nib_cpu_page_sums {
    size_t n;
    size_t first, last;  /* positions of the page that they see; Q16: that any of them sees, with p = 0 where it does not */
    const float *p;      /* [n][32] weights */
    const float *corr;   /* [n] factors of the sums so far */
    float *const *acc;   /* [n] sums of head_dim */
    const void *next;    /* the page after this one is fetched meanwhile; NULL: none */
} nib_cpu_page_sums;

typedef struct nib_cpu_page_queries {
    size_t n;
    const float *const *q; /* [n] queries of head_dim; not of Q16 */
    const void *next;      /* as above */
    const int16_t *codes;  /* Q16: [n] queries as codes, nib_q16_stride(head_dim) apart, and their scales: cpu/q16.h */
    const float *scale;
} nib_cpu_page_queries;

/* Attention over one page of a type of cache, as it lies in memory (cpu/kv.h). F32 and Q16 are there on every level; another
 * type without functions is turned into floats first: the same bits. What is said below is not of Q16, which
 * has an arithmetic of its own (cpu/q16.h). */
typedef struct nib_cpu_page_ops {
    /* s[j * 32 + i] = sum over d ascending, by fma from +0, of q[j][d] * k[d][i]. */
    void (*scores)(const void *k, const nib_cpu_page_queries *queries, size_t head_dim, float *s);
    /* acc = acc * corr, then acc = fma(p[i], v[i][d], acc) for positions i in order. */
    void (*values)(const void *v, const nib_cpu_page_sums *sums, size_t head_dim);
} nib_cpu_page_ops;

typedef struct nib_cpu_ops {
    /* y = x * (1 / sqrt(mean(x^2) + eps)) * w. y may be x. */
    void (*rms_norm)(const float *x, const float *w, float eps, float *y, size_t n);
    /* y += x */
    void (*add)(float *y, const float *x, size_t n);
    void (*scale)(float *x, float s, size_t n);
    /* out = act(gate) * up; out may be gate or up. silu(x) = x / (1 + exp(-x)); gelu in its tanh form. */
    void (*silu_mul)(const float *gate, const float *up, float *out, size_t n);
    void (*gelu_mul)(const float *gate, const float *up, float *out, size_t n);
    /* Rotates pairs of one head by angles with cosines cs[0 … n/2-1] and sines cs[n/2 … n-1]. `halves`: pair i is
     * (x[i], x[i + n/2]); `pairs`: (x[2i], x[2i + 1]). */
    void (*rope_halves)(float *x, const float *cs, size_t n);
    void (*rope_pairs)(float *x, const float *cs, size_t n);
    /* The best of each block of 32 of x, +INFINITY where a value is NaN. n is a multiple of 32. */
    void (*block_max)(const float *x, float *best, size_t n);
    void (*f16_from_f32)(const float *x, uint16_t *out, size_t n);
    void (*f32_from_f16)(const uint16_t *x, float *out, size_t n);
    /* The largest magnitude of n > 0 numbers; INFINITY when one is infinite or NaN. */
    float (*top)(const float *x, size_t n);
    /* codes[i * stride] = the whole number nearest to x[i] * inverse, of two equally near ones the even one. */
    void (*codes)(const float *x, float inverse, int16_t *codes, size_t stride, size_t n);
    /* Online softmax of one page for n queries with 32 scores each: m' = max(m, s); p = exp(s - m'); corr = exp(m - m');
     * l' = l * corr + sum(p). Scores of masked positions are -INFINITY and give p = 0; at least one of a query is finite. */
    void (*page_softmax)(size_t n, float *s, float *m, float *l, float *corr);
    const nib_cpu_page_ops *page; /* [NIB_CPU_KV_COUNT], without Q16: nib_cpu_isa */
} nib_cpu_ops;

extern const nib_cpu_ops nib_cpu_ops_scalar;
extern const nib_cpu_ops nib_cpu_ops_avx2;
extern const nib_cpu_ops nib_cpu_ops_avx512;
extern const nib_cpu_page_ops nib_cpu_pages_avx2[NIB_CPU_KV_COUNT], nib_cpu_pages_avx512[NIB_CPU_KV_COUNT];
extern const nib_cpu_ops nib_cpu_ops_neon;
extern const nib_cpu_page_ops nib_cpu_pages_neon[NIB_CPU_KV_COUNT];
extern const nib_cpu_page_ops nib_cpu_q16_scalar, nib_cpu_q16_avx2, nib_cpu_q16_avxvnni, nib_cpu_q16_avx512, nib_cpu_q16_neon;

#endif
