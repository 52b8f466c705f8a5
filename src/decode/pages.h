/* decode/pages.h - the pages of a context's sequences, for engine/, which lets them share a tree of pages. */
#ifndef NIB_DECODE_PAGES_H
#define NIB_DECODE_PAGES_H

#include "kv/table.h"

/* Borrowed; seq < n_seq. What the caller changes must leave the tables as kv/table.h promises. */
nib_kv_pool *nib_decode_pages_pool(nib_context *ctx);
nib_kv_table *nib_decode_pages_table(nib_context *ctx, uint32_t seq);
/* The bytes of a page, all layers. */
void *nib_decode_pages_bytes(const nib_context *ctx, uint32_t page, size_t *n_bytes);
void nib_decode_pages_copy(nib_context *ctx, uint32_t from, uint32_t to);
/* A number of all that the bits of a page depend on, but for its tokens: model, version, types of the cache. */
nib_status nib_decode_pages_identity(const nib_context *ctx, uint64_t *out, nib_error *err);

#endif
