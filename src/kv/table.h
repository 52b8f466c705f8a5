/* kv/table.h - a sequence's pages in order: append, fork, truncate.
 *
 * Append-only but for truncation. A page that more than one table holds is full and never written: fork gives the copy a
 * last page of its own (the caller copies the bytes), and truncating into a shared page does the same. */
#ifndef NIB_KV_TABLE_H
#define NIB_KV_TABLE_H

#include "kv/pool.h"

typedef struct nib_kv_table {
    uint32_t *pages; /* room for every page of the pool */
    uint32_t n_pages, length; /* length: positions held */
} nib_kv_table;

/* What the caller must do with bytes after an operation: copy page `from` to page `to`. */
typedef struct nib_kv_copy {
    bool is_needed;
    uint32_t from, to;
} nib_kv_copy;

nib_status nib_kv_table_init(nib_kv_table *table, const nib_kv_pool *pool, nib_error *err);
void nib_kv_table_fini(nib_kv_table *table);
/* Pages that n more positions take from the pool. */
uint32_t nib_kv_table_pages_for(const nib_kv_table *table, uint32_t n);
/* Adds n positions; the caller has checked that the pool has nib_kv_table_pages_for free. */
void nib_kv_table_append(nib_kv_table *table, nib_kv_pool *pool, uint32_t n);
/* Keeps the first `length` positions (no more than there are). NIB_E_KV_FULL when a shared last page would have to be
 * copied and no page is free; then nothing changed. */
nib_status nib_kv_table_truncate(nib_kv_table *table, nib_kv_pool *pool, uint32_t length, nib_kv_copy *copy,
                                 nib_error *err);
/* dst (emptied first) = src. NIB_E_KV_FULL when the last page needs a copy and none is free; then dst is empty. */
nib_status nib_kv_table_fork(const nib_kv_table *src, nib_kv_table *dst, nib_kv_pool *pool, nib_kv_copy *copy,
                             nib_error *err);
/* Appends n full pages that somebody else holds, and takes a reference of each; no page is partly filled before. */
void nib_kv_table_adopt(nib_kv_table *table, nib_kv_pool *pool, const uint32_t *pages, uint32_t n);
/* Page i, which is full, gives way to another that holds the same bits. */
void nib_kv_table_replace(nib_kv_table *table, nib_kv_pool *pool, uint32_t i, uint32_t page);
void nib_kv_table_clear(nib_kv_table *table, nib_kv_pool *pool);

#endif
