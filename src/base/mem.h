/* base/mem.h - allocation with checked sizes, an arena, and memory reserved in pages.
 *
 * nib_alloc_count tells how many allocations went through this file: a test proves that nib_decode makes none. Folders
 * above base/ allocate only through these functions. */
#ifndef NIB_BASE_MEM_H
#define NIB_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n * size, or false when it does not fit (or exceeds PTRDIFF_MAX). */
bool nib_mem_size(size_t n, size_t size, size_t *out);

/* n elements of size bytes, not zeroed / zeroed; NULL on overflow or when memory is out. n * size == 0 gives a pointer
 * that may be freed. */
void *nib_alloc(size_t n, size_t size);
void *nib_calloc(size_t n, size_t size);
/* Grows or shrinks; NULL leaves the old block alone. */
void *nib_realloc(void *p, size_t n, size_t size);
void nib_free(void *p);

/* Makes room for `need` elements in a growable array, at least doubling. Returns false when memory is out; then
 * nothing changed. */
bool nib_grow(void *array_ptr, size_t *capacity, size_t need, size_t elem_size);

/* Address space of n bytes, zeroed, touched only as it is used, huge pages asked for when n >= 2 MiB; 64-byte aligned
 * at least. NULL when it cannot be had. */
void *nib_pages_new(size_t n_bytes);
void nib_pages_free(void *p, size_t n_bytes);

/* Allocations since the process began, all threads. */
uint64_t nib_alloc_count(void);

/* An arena: many small pieces, freed as a whole. Zero-initialise. */
typedef struct nib_arena {
    struct nib_arena_block *head;
    size_t used, size;   /* of the head block */
    size_t total, limit; /* bytes given out; limit 0: none */
} nib_arena;
/* n bytes, 16-byte aligned, not zeroed; NULL when memory is out or the limit is passed. */
void *nib_arena_alloc(nib_arena *arena, size_t n);
void *nib_arena_copy(nib_arena *arena, const void *data, size_t n); /* with a NUL after it */
void nib_arena_free(nib_arena *arena);

#endif
