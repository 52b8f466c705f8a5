/* gguf/index.c - finds items by name among many, and names that occur twice. */
#include "gguf/index.h"

#include "base/mem.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(nib_str s) { /* FNV-1a */
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < s.len; i++) h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3;
    return h;
}

static int compare_names(const nib_gguf_slot *a, const nib_gguf_slot *b) {
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->name->len != b->name->len) return a->name->len < b->name->len ? -1 : 1;
    return a->name->len ? memcmp(a->name->ptr, b->name->ptr, a->name->len) : 0;
}

static int compare(const void *x, const void *y) {
    const nib_gguf_slot *a = x, *b = y;
    int order = compare_names(a, b);
    return order ? order : (a->name > b->name) - (a->name < b->name);
}

nib_status nib_gguf_index_build(nib_gguf_index *index, const void *items, size_t n, size_t stride, nib_error *err) {
    nib_gguf_index_free(index);
    nib_gguf_slot *slots = nib_alloc(n, sizeof *slots);
    if (!slots) return nib_fail_nomem(err, (uint64_t)n * sizeof *slots, "an index of names");
    for (size_t i = 0; i < n; i++) {
        const nib_str *name = (const void *)((const char *)items + i * stride);
        slots[i] = (nib_gguf_slot){hash_of(*name), name};
    }
    qsort(slots, n, sizeof *slots, compare);
    *index = (nib_gguf_index){slots, n};
    return NIB_OK;
}

void nib_gguf_index_free(nib_gguf_index *index) {
    nib_free(index->slots);
    *index = (nib_gguf_index){0};
}

const void *nib_gguf_index_find(const nib_gguf_index *index, nib_str name) {
    nib_gguf_slot wanted = {hash_of(name), &name};
    for (size_t lo = 0, hi = index->n; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int order = compare_names(&index->slots[mid], &wanted);
        if (order == 0) return index->slots[mid].name;
        if (order < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

const void *nib_gguf_index_duplicate(const nib_gguf_index *index, const void **earlier) {
    const nib_str *found = NULL;
    for (size_t i = 1; i < index->n; i++) {
        const nib_gguf_slot *a = &index->slots[i - 1], *b = &index->slots[i];
        if (compare_names(a, b) == 0 && (!found || b->name < found)) {
            found = b->name;
            *earlier = a->name;
        }
    }
    return found;
}
