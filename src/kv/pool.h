/* kv/pool.h - pages of the KV cache as numbers with reference counts.
 *
 * Knows nothing of layers or bytes: the backend turns a number into addresses. One owner thread. */
#ifndef NIB_KV_POOL_H
#define NIB_KV_POOL_H

#include "nib.h"

#define NIB_KV_PAGE 32 /* positions in a page; cpu/ops.h counts in the same */

typedef struct nib_kv_pool {
    uint32_t n_pages, n_free;
    uint32_t *free;  /* stack of free numbers; the lowest is on top at first, so that memory is touched as it is used */
    uint32_t *refs;  /* by page */
} nib_kv_pool;

nib_status nib_kv_pool_init(nib_kv_pool *pool, uint32_t n_pages, nib_error *err);
void nib_kv_pool_fini(nib_kv_pool *pool);
/* A page with one reference. The caller has checked n_free. */
uint32_t nib_kv_pool_take(nib_kv_pool *pool);
void nib_kv_pool_ref(nib_kv_pool *pool, uint32_t page);
/* Drops a reference; the last one frees the page. */
void nib_kv_pool_unref(nib_kv_pool *pool, uint32_t page);

#endif
