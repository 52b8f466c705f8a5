/* base/mem.c - allocation with checked sizes, an arena, and memory reserved in pages. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The one counter of the process: statistics for tests, never read by the library itself. */
static atomic_uint_fast64_t g_alloc_count;

static void count(void) {
    atomic_fetch_add_explicit(&g_alloc_count, 1, memory_order_relaxed);
}

uint64_t nib_alloc_count(void) {
    return atomic_load_explicit(&g_alloc_count, memory_order_relaxed);
}

bool nib_mem_size(size_t n, size_t size, size_t *out) {
    size_t total;
    if (__builtin_mul_overflow(n, size, &total) || total > PTRDIFF_MAX) return false;
    *out = total;
    return true;
}

void *nib_alloc(size_t n, size_t size) {
    size_t total;
    if (!nib_mem_size(n, size, &total)) return NULL;
    count();
    return malloc(total ? total : 1);
}

void *nib_calloc(size_t n, size_t size) {
    size_t total;
    if (!nib_mem_size(n, size, &total)) return NULL;
    count();
    return calloc(1, total ? total : 1);
}

void *nib_realloc(void *p, size_t n, size_t size) {
    size_t total;
    if (!nib_mem_size(n, size, &total)) return NULL;
    count();
    return realloc(p, total ? total : 1);
}

void nib_free(void *p) {
    free(p);
}

bool nib_grow(void *array_ptr, size_t *capacity, size_t need, size_t elem_size) {
    if (need <= *capacity) return true;
    size_t cap = *capacity ? *capacity : 16;
    while (cap < need) {
        if (cap > SIZE_MAX / 2) return false;
        cap *= 2;
    }
    void *old;
    memcpy(&old, array_ptr, sizeof old); /* any T**: the pointer's bytes are copied, not its type */
    void *grown = nib_realloc(old, cap, elem_size);
    if (!grown) return false;
    memcpy(array_ptr, &grown, sizeof grown);
    *capacity = cap;
    return true;
}

#define HUGE_PAGE ((size_t)2 << 20)

void *nib_pages_new(size_t n_bytes) {
    if (n_bytes == 0 || n_bytes > PTRDIFF_MAX - HUGE_PAGE) return NULL;
    count();
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    /* 4 KiB pages cost about 30 % in the matrix kernels and 4-5 times at first touch. */
    if (n_bytes >= HUGE_PAGE) madvise(p, n_bytes, MADV_HUGEPAGE);
#endif
    return p;
}

void nib_pages_free(void *p, size_t n_bytes) {
    if (p) munmap(p, n_bytes);
}

struct nib_arena_block {
    struct nib_arena_block *next;
    _Alignas(16) unsigned char data[];
};

void *nib_arena_alloc(nib_arena *arena, size_t n) {
    if (n > PTRDIFF_MAX - 16) return NULL;
    n = (n + 15) & ~(size_t)15;
    if (arena->limit && (n > arena->limit || arena->total > arena->limit - n)) return NULL;
    if (!arena->head || arena->size - arena->used < n) {
        size_t size = arena->size ? arena->size * 2 : 4096;
        if (size > ((size_t)1 << 20)) size = (size_t)1 << 20;
        if (size < n) size = n;
        struct nib_arena_block *block = nib_alloc(1, sizeof *block + size);
        if (!block) return NULL;
        block->next = arena->head;
        arena->head = block;
        arena->used = 0;
        arena->size = size;
    }
    void *p = arena->head->data + arena->used;
    arena->used += n;
    arena->total += n;
    return p;
}

void *nib_arena_copy(nib_arena *arena, const void *data, size_t n) {
    if (n == SIZE_MAX) return NULL;
    char *p = nib_arena_alloc(arena, n + 1);
    if (!p) return NULL;
    if (n) memcpy(p, data, n);
    p[n] = 0;
    return p;
}

void nib_arena_free(nib_arena *arena) {
    for (struct nib_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        nib_free(b);
    }
    *arena = (nib_arena){0};
}
