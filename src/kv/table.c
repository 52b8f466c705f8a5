/* kv/table.c - a sequence's pages in order. */
#include "kv/table.h"

#include "base/mem.h"
#include "base/status.h"

#include <string.h>

static uint32_t pages_of(uint32_t length) {
    return length / NIB_KV_PAGE + (length % NIB_KV_PAGE != 0);
}

nib_status nib_kv_table_init(nib_kv_table *table, const nib_kv_pool *pool, nib_error *err) {
    *table = (nib_kv_table){.pages = nib_alloc(pool->n_pages, sizeof *table->pages)};
    return table->pages ? NIB_OK : nib_fail_nomem(err, (uint64_t)pool->n_pages * 4, "a sequence's pages");
}

void nib_kv_table_fini(nib_kv_table *table) {
    nib_free(table->pages);
    *table = (nib_kv_table){0};
}

uint32_t nib_kv_table_pages_for(const nib_kv_table *table, uint32_t n) {
    return pages_of(table->length + n) - table->n_pages;
}

void nib_kv_table_append(nib_kv_table *table, nib_kv_pool *pool, uint32_t n) {
    table->length += n;
    while (table->n_pages < pages_of(table->length)) table->pages[table->n_pages++] = nib_kv_pool_take(pool);
}

/* The last page is about to be written: a table that shares it gets its own. */
static nib_status own_last(nib_kv_table *table, nib_kv_pool *pool, nib_kv_copy *copy, nib_error *err) {
    if (table->length % NIB_KV_PAGE == 0) return NIB_OK;
    uint32_t *last = &table->pages[table->n_pages - 1];
    if (pool->refs[*last] == 1) return NIB_OK;
    if (pool->n_free == 0)
        return nib_fail(err, NIB_E_KV_FULL, "KV cache full: 1 page is missing for the copy of a shared one (%u pages in all)",
                        pool->n_pages);
    *copy = (nib_kv_copy){true, *last, nib_kv_pool_take(pool)};
    nib_kv_pool_unref(pool, *last);
    *last = copy->to;
    return NIB_OK;
}

nib_status nib_kv_table_truncate(nib_kv_table *table, nib_kv_pool *pool, uint32_t length, nib_kv_copy *copy,
                                 nib_error *err) {
    *copy = (nib_kv_copy){0};
    uint32_t n = pages_of(length), old = table->n_pages;
    nib_kv_table shorter = {.pages = table->pages, .n_pages = n, .length = length};
    NIB_TRY(own_last(&shorter, pool, copy, err)); /* before anything is dropped: an error changes nothing */
    for (uint32_t i = n; i < old; i++) nib_kv_pool_unref(pool, table->pages[i]);
    table->n_pages = n;
    table->length = length;
    return NIB_OK;
}

nib_status nib_kv_table_fork(const nib_kv_table *src, nib_kv_table *dst, nib_kv_pool *pool, nib_kv_copy *copy,
                             nib_error *err) {
    *copy = (nib_kv_copy){0};
    nib_kv_table_clear(dst, pool);
    for (uint32_t i = 0; i < src->n_pages; i++) nib_kv_pool_ref(pool, src->pages[i]);
    memcpy(dst->pages, src->pages, src->n_pages * sizeof *dst->pages);
    dst->n_pages = src->n_pages;
    dst->length = src->length;
    nib_status status = own_last(dst, pool, copy, err);
    if (status != NIB_OK) nib_kv_table_clear(dst, pool);
    return status;
}

void nib_kv_table_clear(nib_kv_table *table, nib_kv_pool *pool) {
    for (uint32_t i = 0; i < table->n_pages; i++) nib_kv_pool_unref(pool, table->pages[i]);
    table->n_pages = table->length = 0;
}
