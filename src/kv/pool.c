/* kv/pool.c - pages of the KV cache as numbers with reference counts. */
#include "kv/pool.h"

#include "base/mem.h"
#include "base/status.h"

#include <assert.h>

nib_status nib_kv_pool_init(nib_kv_pool *pool, uint32_t n_pages, nib_error *err) {
    *pool = (nib_kv_pool){.n_pages = n_pages, .n_free = n_pages};
    pool->free = nib_alloc(n_pages, sizeof *pool->free);
    pool->refs = nib_calloc(n_pages, sizeof *pool->refs);
    if (!pool->free || !pool->refs) {
        nib_kv_pool_fini(pool);
        return nib_fail_nomem(err, (uint64_t)n_pages * 8, "the page table");
    }
    for (uint32_t i = 0; i < n_pages; i++) pool->free[i] = n_pages - 1 - i;
    return NIB_OK;
}

void nib_kv_pool_fini(nib_kv_pool *pool) {
    nib_free(pool->free);
    nib_free(pool->refs);
    *pool = (nib_kv_pool){0};
}

uint32_t nib_kv_pool_take(nib_kv_pool *pool) {
    assert(pool->n_free > 0);
    uint32_t page = pool->free[--pool->n_free];
    pool->refs[page] = 1;
    return page;
}

void nib_kv_pool_ref(nib_kv_pool *pool, uint32_t page) {
    assert(pool->refs[page] > 0);
    pool->refs[page]++;
}

void nib_kv_pool_unref(nib_kv_pool *pool, uint32_t page) {
    assert(pool->refs[page] > 0);
    if (--pool->refs[page] == 0) pool->free[pool->n_free++] = page;
}
