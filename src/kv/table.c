/* kv/table.c - a sequence's pages in order. */
#include "kv/table.h"

#include "base/mem.h"
#include "base/status.h"

#include <assert.h>
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

/* Is the last page one that other tables hold too, although it will be written? */
static bool shares_open_page(const nib_kv_table *table, const nib_kv_pool *pool) {
    return table->length % NIB_KV_PAGE != 0 && pool->refs[table->pages[table->n_pages - 1]] > 1;
}

static nib_status check_free_page(const nib_kv_pool *pool, nib_error *err) {
    if (pool->n_free) return NIB_OK;
    return nib_fail(err, NIB_E_KV_FULL, "KV cache full: 1 page is missing for the copy of a shared one (%u pages in all)",
                    pool->n_pages);
}

static nib_kv_copy own_last(nib_kv_table *table, nib_kv_pool *pool) {
    uint32_t *last = &table->pages[table->n_pages - 1];
    nib_kv_copy copy = {true, *last, nib_kv_pool_take(pool)};
    nib_kv_pool_unref(pool, *last);
    *last = copy.to;
    return copy;
}

nib_status nib_kv_table_truncate(nib_kv_table *table, nib_kv_pool *pool, uint32_t length, nib_kv_copy *copy,
                                 nib_error *err) {
    *copy = (nib_kv_copy){0};
    nib_kv_table shorter = {.pages = table->pages, .n_pages = pages_of(length), .length = length};
    bool must_copy = shares_open_page(&shorter, pool), frees_page = false;
    for (uint32_t i = shorter.n_pages; i < table->n_pages; i++) frees_page |= pool->refs[table->pages[i]] == 1;
    if (must_copy && !frees_page) NIB_TRY(check_free_page(pool, err));
    for (uint32_t i = shorter.n_pages; i < table->n_pages; i++) nib_kv_pool_unref(pool, table->pages[i]);
    *table = shorter;
    if (must_copy) *copy = own_last(table, pool);
    return NIB_OK;
}

nib_status nib_kv_table_fork(const nib_kv_table *src, nib_kv_table *dst, nib_kv_pool *pool, nib_kv_copy *copy,
                             nib_error *err) {
    *copy = (nib_kv_copy){0};
    nib_kv_table_clear(dst, pool);
    if (src->length % NIB_KV_PAGE != 0) NIB_TRY(check_free_page(pool, err));
    for (uint32_t i = 0; i < src->n_pages; i++) nib_kv_pool_ref(pool, src->pages[i]);
    memcpy(dst->pages, src->pages, src->n_pages * sizeof *dst->pages);
    dst->n_pages = src->n_pages;
    dst->length = src->length;
    if (shares_open_page(dst, pool)) *copy = own_last(dst, pool);
    return NIB_OK;
}

void nib_kv_table_adopt(nib_kv_table *table, nib_kv_pool *pool, const uint32_t *pages, uint32_t n) {
    assert(table->length % NIB_KV_PAGE == 0);
    for (uint32_t i = 0; i < n; i++) {
        nib_kv_pool_ref(pool, pages[i]);
        table->pages[table->n_pages++] = pages[i];
    }
    table->length += n * NIB_KV_PAGE;
}

void nib_kv_table_replace(nib_kv_table *table, nib_kv_pool *pool, uint32_t i, uint32_t page) {
    assert((i + 1) * NIB_KV_PAGE <= table->length);
    nib_kv_pool_ref(pool, page);
    nib_kv_pool_unref(pool, table->pages[i]);
    table->pages[i] = page;
}

void nib_kv_table_clear(nib_kv_table *table, nib_kv_pool *pool) {
    for (uint32_t i = 0; i < table->n_pages; i++) nib_kv_pool_unref(pool, table->pages[i]);
    table->n_pages = table->length = 0;
}
