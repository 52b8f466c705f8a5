/* cpu/isa/pages.h - private to the attention kernels of the levels: what does not depend on registers.
 *
 * A unit that includes this defines scores and values, templates over the type of the cache; PAGES makes the table. */
#ifndef NIB_CPU_ISA_PAGES_H
#define NIB_CPU_ISA_PAGES_H

#include "cpu/fetch.h"
#include "cpu/isa/mm_inline.h"
#include "cpu/ops.h"

enum { POS = NIB_PAGE_POS, Q8_BLOCK = 32 };

/* Scales of Q8_0 stand behind the codes of the page. */
INL const uint16_t *scales_of(const void *page, size_t head_dim) {
    return (const uint16_t *)(const void *)((const int8_t *)page + POS * head_dim);
}

/* Bytes of an element. */
INL size_t size_of(nib_cpu_kv_form form) {
    return form == NIB_CPU_KV_F32 ? 4 : form == NIB_CPU_KV_F16 ? 2 : 1;
}

/* Bytes from `at` on of the next page, if there is one: pages are too short for the hardware to notice. */
INL void fetch(const void *page, size_t at, size_t n) {
    if (page) nib_cpu_fetch((const char *)page + at, n);
}

#define PAGE_OPS(FORM)                                                                                                 \
    static void FORM##_scores(const void *k, const nib_cpu_page_queries *queries, size_t head_dim, float *s) {         \
        scores(NIB_CPU_KV_##FORM, k, queries, head_dim, s);                                                            \
    }                                                                                                                  \
    static void FORM##_values(const void *v, const nib_cpu_page_sums *sums, size_t head_dim) {                         \
        values(NIB_CPU_KV_##FORM, v, sums, head_dim);                                                                  \
    }
#define PAGES(LEVEL)                                                                                                   \
    PAGE_OPS(F32)                                                                                                      \
    PAGE_OPS(F16)                                                                                                      \
    PAGE_OPS(Q8_0)                                                                                                     \
    const nib_cpu_page_ops nib_cpu_pages_##LEVEL[NIB_CPU_KV_COUNT] = {                                                 \
        [NIB_CPU_KV_F32] = {F32_scores, F32_values},                                                                   \
        [NIB_CPU_KV_F16] = {F16_scores, F16_values},                                                                   \
        [NIB_CPU_KV_Q8_0] = {Q8_0_scores, Q8_0_values},                                                                \
    };

#endif
