/* gguf/index.h - finds items by name among many, and names that occur twice.
 *
 * An array sorted by (hash, length, bytes): n log n in the worst case, where names that someone chose to collide would
 * make a hash table quadratic. Items are structs that begin with their name; they must not move while indexed. */
#ifndef NIB_GGUF_INDEX_H
#define NIB_GGUF_INDEX_H

#include "nib.h"

typedef struct nib_gguf_slot {
    uint64_t hash;
    const nib_str *name; /* the first member of an item */
} nib_gguf_slot;

typedef struct nib_gguf_index { /* zero-initialise */
    nib_gguf_slot *slots;
    size_t n;
} nib_gguf_index;

/* Indexes n items of `stride` bytes. Replaces what the index held. */
nib_status nib_gguf_index_build(nib_gguf_index *index, const void *items, size_t n, size_t stride, nib_error *err);
void nib_gguf_index_free(nib_gguf_index *index);

/* The item of that name, or NULL. */
const void *nib_gguf_index_find(const nib_gguf_index *index, nib_str name);
/* The first item, in the order of items, whose name an earlier one (*earlier) has too; NULL when all differ. */
const void *nib_gguf_index_duplicate(const nib_gguf_index *index, const void **earlier);

#endif
