/* cpu/kv.h - memory of the KV cache: turns (layer, page, head) into keys and values.
 *
 * A page holds 32 positions. Keys stand dimension-major ([k_dim][32]: lane = position), values position-major
 * ([32][v_dim]). Types: f32; f16; q8_0 (int8 with an f16 scale per 32 dimensions of a position); q16, in an order of its own
 * (cpu/q16.h). Page numbers come from kv/pool; memory is reserved at once and touched as it is used. Different
 * pages may be used by different threads. */
#ifndef NIB_CPU_KV_H
#define NIB_CPU_KV_H

#include "cpu/ops.h"
#include "plan/plan.h"

typedef struct nib_cpu_kv_type {
    const char *name;
    nib_cpu_kv_form form;
    size_t block;                                                /* head sizes must be a multiple of it */
    size_t (*key_bytes)(size_t dim), (*value_bytes)(size_t dim); /* of a page and one head */
    /* One position (slot of the page) of keys or values. */
    void (*store_key)(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops);
    void (*store_value)(void *page, size_t slot, const float *x, size_t dim, const nib_cpu_ops *ops);
    /* A page as floats in the order above: the page itself, or scratch (32 * dim floats). */
    const float *(*load_keys)(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops);
    const float *(*load_values)(const void *page, float *scratch, size_t dim, const nib_cpu_ops *ops);
} nib_cpu_kv_type;

/* NULL name: f16. NIB_E_ARG names what there is. */
nib_status nib_cpu_kv_type_find(const nib_cpu_kv_type **out, const char *name, nib_error *err);

typedef struct nib_cpu_kv {
    const nib_cpu_kv_type *k_type, *v_type;
    const nib_plan *plan;
    uint32_t n_pages;
    size_t page_bytes;      /* all layers */
    size_t *layer_at;       /* offset of a layer's keys of head 0 in a page */
    unsigned char *memory;
    size_t n_bytes;
} nib_cpu_kv;

/* Bytes that one page takes over all layers; NIB_E_UNSUPPORTED when the type does not fit the head size. */
nib_status nib_cpu_kv_page_bytes(const nib_plan *plan, const nib_cpu_kv_type *k, const nib_cpu_kv_type *v, size_t *out,
                                 nib_error *err);
/* NIB_E_NOMEM says how much is needed when the machine has less. */
nib_status nib_cpu_kv_init(nib_cpu_kv *kv, const nib_plan *plan, const nib_cpu_kv_type *k, const nib_cpu_kv_type *v,
                           uint32_t n_pages, nib_error *err);
void nib_cpu_kv_fini(nib_cpu_kv *kv);
void *nib_cpu_kv_keys(const nib_cpu_kv *kv, int layer, uint32_t page, uint32_t head);
void *nib_cpu_kv_values(const nib_cpu_kv *kv, int layer, uint32_t page, uint32_t head);
void nib_cpu_kv_copy(const nib_cpu_kv *kv, uint32_t from, uint32_t to);

#endif
