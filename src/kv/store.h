/* kv/store.h - the tree of pages on disk: what of kv/prefix outlives the memory and the process.
 *
 * A place in the store is a page of tokens behind another place, or behind the beginning; texts of different salts share none.
 * Tokens are compared all along the way, so no two texts can be mistaken for each other. Places are known in memory, bytes
 * are in files (store_file.h), written by a thread of their own; a place whose page was lost or damaged is kept, and
 * written again when somebody has the page.
 *
 * The bytes of all files stay below a limit: the place that was used longest ago goes. Whoever uses a place uses those before
 * it, so they go later. When a write fails the store writes no more, and reads on. One owner thread. */
#ifndef NIB_KV_STORE_H
#define NIB_KV_STORE_H

#include "kv/store_file.h"

#define NIB_KV_STORE_ROOT UINT32_MAX /* the place before the first page */
#define NIB_KV_STORE_NONE (UINT32_MAX - 1)

typedef void (*nib_kv_store_log_fn)(void *user, const char *message);

typedef struct nib_kv_store_config {
    const char *folder;
    uint64_t max_bytes, identity; /* identity: of all that the bits of a page depend on */
    size_t page_bytes;
    nib_kv_store_log_fn log; /* one line; NULL: none */
    void *user;
} nib_kv_store_config;

typedef struct nib_kv_store nib_kv_store;

typedef struct nib_kv_store_figures {
    uint64_t n_pages, n_bytes;           /* on disk, or on their way there */
    uint64_t n_read, n_written, n_bad;   /* pages; bad: lost, damaged */
    bool is_full;                        /* nothing is written any more */
} nib_kv_store_figures;

/* Finds what an earlier process left. Everything that is not sound is logged and removed. */
nib_status nib_kv_store_open(nib_kv_store **out, const nib_kv_store_config *config, nib_error *err);
/* Writes what waits. */
void nib_kv_store_close(nib_kv_store *store);

/* The place of the next page of tokens; NONE: there is none. */
uint32_t nib_kv_store_find(const nib_kv_store *store, uint32_t at, uint64_t salt, const nib_token *tokens);
/* Reads the page of a place. False: it is not on disk (yet), or was damaged. */
bool nib_kv_store_read(nib_kv_store *store, uint32_t at, void *page);
/* The place of the next page, made and written if it has to be; NONE: not now. The page is copied. */
uint32_t nib_kv_store_add(nib_kv_store *store, uint32_t at, uint64_t salt, const nib_token *tokens, const void *page);
/* A place, and all before it, are in use. */
void nib_kv_store_touch(nib_kv_store *store, uint32_t at);
/* Learns what became of writes; to be called now and then. */
void nib_kv_store_settle(nib_kv_store *store);
/* Is nothing on its way to disk? */
bool nib_kv_store_is_settled(nib_kv_store *store);
nib_kv_store_figures nib_kv_store_stats(const nib_kv_store *store);

#endif
