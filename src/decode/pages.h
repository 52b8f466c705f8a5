/* decode/pages.h - the pages of a context's sequences, for engine/, which lets them share a tree of pages. */
#ifndef NIB_DECODE_PAGES_H
#define NIB_DECODE_PAGES_H

#include "kv/table.h"

/* Borrowed; seq < n_seq. What the caller changes must leave the tables as kv/table.h promises. */
nib_kv_pool *nib_decode_pages_pool(nib_context *ctx);
nib_kv_table *nib_decode_pages_table(nib_context *ctx, uint32_t seq);

#endif
