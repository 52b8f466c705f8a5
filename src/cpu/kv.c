/* cpu/kv.c - memory of the KV cache and its types. */
#include "cpu/kv.h"

#include "cpu/q16.h"

#include "base/half.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"

#include <math.h>
#include <string.h>

typedef unsigned long long ull;

#define POS NIB_PAGE_POS
#define Q8_BLOCK 32

static size_t f32_bytes(size_t dim) {
    return POS * dim * sizeof(float);
}

static void f32_store_key(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    float *k = page;
    for (size_t d = 0; d < dim; d++) k[d * POS + slot] = x[d];
}

static void f32_store_value(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    memcpy((float *)page + slot * dim, x, dim * sizeof *x);
}

static const float *f32_load(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    (void)scratch, (void)dim, (void)ops;
    return page;
}

static size_t f16_bytes(size_t dim) {
    return POS * dim * sizeof(uint16_t);
}

static void f16_store_key(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    uint16_t *k = page, half[64];
    for (size_t d = 0; d < dim; d += 64) {
        size_t n = dim - d < 64 ? dim - d : 64;
        ops->f16_from_f32(x + d, half, n);
        for (size_t i = 0; i < n; i++) k[(d + i) * POS + slot] = half[i];
    }
}

static void f16_store_value(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    ops->f16_from_f32(x, (uint16_t *)page + slot * dim, dim);
}

static const float *f16_load(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    ops->f32_from_f16(page, scratch, POS * dim);
    return scratch;
}

/* int8 codes first, then the scales: keys [dim][32] and [dim / 32][32], values [32][dim] and [32][dim / 32]. */
static size_t q8_bytes(size_t dim) {
    return POS * dim + POS * (dim / Q8_BLOCK) * sizeof(uint16_t);
}

/* Codes of one block; its scale as it will be read back. */
static uint16_t q8_quantize(const float *x, int8_t *codes) {
    float top = 0;
    for (size_t i = 0; i < Q8_BLOCK; i++) top = fabsf(x[i]) > top || x[i] != x[i] ? fabsf(x[i]) : top;
    uint16_t d = nib_f16_from_f32(top / 127.0f);
    float scale = nib_f16_to_f32(d);
    for (size_t i = 0; i < Q8_BLOCK; i++) {
        float c = scale > 0 ? rintf(x[i] / scale) : 0;
        codes[i] = (int8_t)(c > 127 ? 127 : c < -127 ? -127 : c == c ? c : 0);
    }
    return d;
}

static void q8_store_key(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    int8_t *k = page, codes[Q8_BLOCK];
    uint16_t *scales = (uint16_t *)(void *)(k + POS * dim);
    for (size_t b = 0; b < dim / Q8_BLOCK; b++) {
        scales[b * POS + slot] = q8_quantize(x + b * Q8_BLOCK, codes);
        for (size_t i = 0; i < Q8_BLOCK; i++) k[(b * Q8_BLOCK + i) * POS + slot] = codes[i];
    }
}

static void q8_store_value(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    int8_t *v = page;
    uint16_t *scales = (uint16_t *)(void *)(v + POS * dim);
    for (size_t b = 0; b < dim / Q8_BLOCK; b++)
        scales[slot * (dim / Q8_BLOCK) + b] = q8_quantize(x + b * Q8_BLOCK, v + slot * dim + b * Q8_BLOCK);
}

static const float *q8_load_keys(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    const int8_t *k = page;
    float scale[POS];
    for (size_t b = 0; b < dim / Q8_BLOCK; b++) {
        ops->f32_from_f16((const uint16_t *)(const void *)(k + POS * dim) + b * POS, scale, POS);
        for (size_t d = b * Q8_BLOCK; d < (b + 1) * Q8_BLOCK; d++)
            for (size_t i = 0; i < POS; i++) scratch[d * POS + i] = (float)k[d * POS + i] * scale[i];
    }
    return scratch;
}

static const float *q8_load_values(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    const int8_t *v = page;
    const uint16_t *scales = (const uint16_t *)(const void *)(v + POS * dim);
    for (size_t b = 0; b < POS * dim / Q8_BLOCK; b++) {
        float scale = nib_f16_to_f32(scales[b]);
        for (size_t i = b * Q8_BLOCK; i < (b + 1) * Q8_BLOCK; i++) scratch[i] = (float)v[i] * scale;
    }
    return scratch;
}

/* Codes and scales as cpu/q16.h says. */
static size_t q16_key_bytes(size_t dim) {
    return POS * (nib_q16_stride(dim) * sizeof(int16_t) + sizeof(float));
}

static size_t q16_value_bytes(size_t dim) {
    return POS * (dim * sizeof(int16_t) + sizeof(float));
}

static void q16_store_key(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    int16_t *k = (int16_t *)page + 2 * slot, codes[64] = {0};
    float inverse, scale = nib_q16_scale(ops->top(x, dim), NIB_Q16_KEY, &inverse);
    for (size_t d = 0; d < dim; d += 64) {
        size_t n = dim - d < 64 ? dim - d : 64;
        if (inverse > 0) ops->codes(x + d, inverse, codes, 1, n);
        if (n % 2) codes[n] = 0;
        for (size_t i = 0; i < n; i += 2) memcpy(k + (d + i) * POS, codes + i, 2 * sizeof *codes);
    }
    float *scales = (float *)(void *)((unsigned char *)page + q16_key_bytes(dim)) - POS;
    scales[slot] = scale;
}

static void q16_store_value(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops) {
    int16_t *v = (int16_t *)page + slot / 2 * 2 * dim + slot % 2;
    float inverse, scale = nib_q16_scale(ops->top(x, dim), NIB_Q16_VALUE, &inverse);
    if (inverse > 0) ops->codes(x, inverse, v, 2, dim);
    else
        for (size_t d = 0; d < dim; d++) v[2 * d] = 0;
    float *scales = (float *)(void *)((unsigned char *)page + q16_value_bytes(dim)) - POS;
    scales[slot] = scale;
}

static const float *q16_load_keys(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    const int16_t *k = page;
    const float *scale = nib_q16_key_scales(page, dim);
    for (size_t d = 0; d < dim; d++)
        for (size_t i = 0; i < POS; i++) scratch[d * POS + i] = (float)k[d / 2 * 2 * POS + 2 * i + d % 2] * scale[i];
    return scratch;
}

static const float *q16_load_values(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops) {
    (void)ops;
    const int16_t *v = page;
    const float *scale = nib_q16_value_scales(page, dim);
    for (size_t i = 0; i < POS; i++)
        for (size_t d = 0; d < dim; d++) scratch[i * dim + d] = (float)v[(i / 2 * dim + d) * 2 + i % 2] * scale[i];
    return scratch;
}

static const nib_cpu_kv_type types[] = {
    {"f16", NIB_CPU_KV_F16, 1, f16_bytes, f16_bytes, f16_store_key, f16_store_value, f16_load, f16_load},
    {"f32", NIB_CPU_KV_F32, 1, f32_bytes, f32_bytes, f32_store_key, f32_store_value, f32_load, f32_load},
    {"q8_0", NIB_CPU_KV_Q8_0, Q8_BLOCK, q8_bytes, q8_bytes, q8_store_key, q8_store_value, q8_load_keys, q8_load_values},
    {"q16", NIB_CPU_KV_Q16, 1, q16_key_bytes, q16_value_bytes, q16_store_key, q16_store_value, q16_load_keys, q16_load_values},
};

nib_status nib_cpu_kv_type_find(const nib_cpu_kv_type **out, const char *name, nib_error *err) {
    *out = &types[0];
    if (!name) return NIB_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = &types[i];
            return NIB_OK;
        }
    return nib_fail(err, NIB_E_ARG, "KV cache type \"%.40s\": nib knows f16, f32, q8_0 and q16", name);
}

static size_t layer_bytes(const nib_plan_kv_layer *l, const nib_cpu_kv_type *k, const nib_cpu_kv_type *v) {
    size_t n = l->n_head_kv * (k->key_bytes(l->k_dim) + v->value_bytes(l->v_dim));
    return (n + 63) & ~(size_t)63;
}

nib_status nib_cpu_kv_page_bytes(const nib_plan *plan, const nib_cpu_kv_type *k, const nib_cpu_kv_type *v, size_t *out,
                                 nib_error *err) {
    *out = 0;
    for (size_t i = 0; i < plan->n_kv_layers; i++) {
        const nib_plan_kv_layer *l = &plan->kv_layers[i];
        if (l->k_dim % k->block || l->v_dim % v->block)
            return nib_fail(err, NIB_E_UNSUPPORTED,
                            "KV cache type %s needs head sizes that are multiples of 32, the model has %u and %u: use f16",
                            l->k_dim % k->block ? k->name : v->name, l->k_dim, l->v_dim);
        *out += layer_bytes(l, k, v);
    }
    return NIB_OK;
}

nib_status nib_cpu_kv_init(nib_cpu_kv *kv, const nib_plan *plan, const nib_cpu_kv_type *k, const nib_cpu_kv_type *v,
                           uint32_t n_pages, nib_error *err) {
    *kv = (nib_cpu_kv){.k_type = k, .v_type = v, .plan = plan, .n_pages = n_pages};
    NIB_TRY(nib_cpu_kv_page_bytes(plan, k, v, &kv->page_bytes, err));
    /* Address space beyond what there is of memory could be had; the process would be killed when the cache fills. */
    uint64_t total = nib_sys_total_memory();
    if (!nib_mem_size(n_pages, kv->page_bytes, &kv->n_bytes) || kv->n_bytes > total)
        return nib_fail(err, NIB_E_NOMEM,
                        "a KV cache of %llu tokens needs %llu MiB, this machine has %llu MiB of memory: ask for a smaller context",
                        (ull)n_pages * POS, (ull)((double)n_pages * (double)kv->page_bytes / 0x1p20), (ull)total >> 20);
    kv->layer_at = nib_alloc(plan->n_kv_layers + 1, sizeof *kv->layer_at);
    kv->memory = nib_pages_new(kv->n_bytes);
    if (!kv->memory || !kv->layer_at) {
        nib_cpu_kv_fini(kv);
        return nib_fail_nomem(err, kv->n_bytes, "the KV cache; ask for a smaller context");
    }
    size_t at = 0;
    for (size_t i = 0; i < plan->n_kv_layers; i++) {
        kv->layer_at[i] = at;
        at += layer_bytes(&plan->kv_layers[i], k, v);
    }
    return NIB_OK;
}

void nib_cpu_kv_fini(nib_cpu_kv *kv) {
    nib_pages_free(kv->memory, kv->n_bytes);
    nib_free(kv->layer_at);
    kv->memory = NULL;
    kv->layer_at = NULL;
}

void *nib_cpu_kv_keys(const nib_cpu_kv *kv, int layer, uint32_t page, uint32_t head) {
    const nib_plan_kv_layer *l = &kv->plan->kv_layers[layer];
    return kv->memory + page * kv->page_bytes + kv->layer_at[layer] + head * kv->k_type->key_bytes(l->k_dim);
}

void *nib_cpu_kv_values(const nib_cpu_kv *kv, int layer, uint32_t page, uint32_t head) {
    const nib_plan_kv_layer *l = &kv->plan->kv_layers[layer];
    return (unsigned char *)nib_cpu_kv_keys(kv, layer, page, l->n_head_kv) + head * kv->v_type->value_bytes(l->v_dim);
}

void nib_cpu_kv_copy(const nib_cpu_kv *kv, uint32_t from, uint32_t to) {
    memcpy(kv->memory + to * kv->page_bytes, kv->memory + from * kv->page_bytes, kv->page_bytes);
}
