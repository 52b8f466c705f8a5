/* text/merge.c - greedy merging of neighbours.
 *
 * The row is a linked list inside an array; a joined symbol takes the place of its left part. A heap entry is the
 * number rank << 32 | place, so comparing numbers gives the order wanted (rank, then leftmost). Entries are never taken
 * out early: one whose rank is no longer that of its place is skipped when it comes up. */
#include "text/merge.h"

#include "base/mem.h"

/* Rows up to this length are searched in full for each join, which is faster than a heap: most have 2-10 symbols. */
#define SHORT_ROW 32

bool nib_text_merge_begin(nib_text_merge *merge, size_t n) {
    merge->n = 0;
    return n < NIB_TEXT_NO_SYMBOL && nib_grow(&merge->symbols, &merge->capacity, n, sizeof *merge->symbols);
}

void nib_text_merge_free(nib_text_merge *merge) {
    nib_free(merge->symbols);
    nib_free(merge->heap);
    *merge = (nib_text_merge){0};
}

static void set_rank(nib_text_merge *merge, uint32_t left) {
    nib_text_symbol *s = &merge->symbols[left];
    s->rank = s->next == NIB_TEXT_NO_SYMBOL ? NIB_TEXT_NO_RANK : merge->rank_of(merge, left, &s->joined);
}

/* Joins a symbol with the next one. The ranks of the two pairs that it is now part of are not yet set. */
static void join(nib_text_merge *merge, uint32_t left) {
    nib_text_symbol *s = &merge->symbols[left], *right = &merge->symbols[s->next];
    s->id = s->joined;
    s->next = right->next;
    right->rank = NIB_TEXT_NO_RANK;
    if (s->next != NIB_TEXT_NO_SYMBOL) merge->symbols[s->next].prev = left;
}

static void run_short(nib_text_merge *merge) {
    nib_text_symbol *symbols = merge->symbols;
    for (;;) {
        uint32_t best = 0;
        for (uint32_t i = symbols[0].next; i != NIB_TEXT_NO_SYMBOL; i = symbols[i].next)
            if (symbols[i].rank < symbols[best].rank) best = i;
        if (symbols[best].rank == NIB_TEXT_NO_RANK) return;
        join(merge, best);
        set_rank(merge, best);
        if (best != 0) set_rank(merge, symbols[best].prev);
    }
}

/* A heap with eight children to a node: one cache line a level, and few levels. */
#define CHILDREN 8

static void sift_down(uint64_t *heap, size_t n, size_t i, uint64_t entry) {
    for (;;) {
        size_t first = CHILDREN * i + 1, best = first;
        if (first >= n) break;
        size_t last = n - first < CHILDREN ? n : first + CHILDREN;
        for (size_t c = first + 1; c < last; c++)
            if (heap[c] < heap[best]) best = c;
        if (heap[best] >= entry) break;
        heap[i] = heap[best];
        i = best;
    }
    heap[i] = entry;
}

static bool push(nib_text_merge *merge, uint32_t place) {
    uint32_t rank = merge->symbols[place].rank;
    if (rank == NIB_TEXT_NO_RANK) return true;
    if (!nib_grow(&merge->heap, &merge->heap_capacity, merge->n_heap + 1, sizeof *merge->heap)) return false;
    uint64_t entry = (uint64_t)rank << 32 | place;
    size_t i = merge->n_heap++;
    for (; i > 0 && merge->heap[(i - 1) / CHILDREN] > entry; i = (i - 1) / CHILDREN)
        merge->heap[i] = merge->heap[(i - 1) / CHILDREN];
    merge->heap[i] = entry;
    return true;
}

static bool run_long(nib_text_merge *merge) {
    nib_text_symbol *symbols = merge->symbols;
    merge->n_heap = 0;
    for (size_t i = 0; i < merge->n; i++)
        if (!push(merge, (uint32_t)i)) return false;
    while (merge->n_heap) {
        uint64_t top = merge->heap[0];
        merge->n_heap--;
        sift_down(merge->heap, merge->n_heap, 0, merge->heap[merge->n_heap]);
        uint32_t place = (uint32_t)top;
        if (symbols[place].rank != top >> 32) continue;
        join(merge, place);
        set_rank(merge, place);
        if (!push(merge, place)) return false;
        if (place != 0) {
            set_rank(merge, symbols[place].prev);
            if (!push(merge, symbols[place].prev)) return false;
        }
    }
    return true;
}

bool nib_text_merge_run(nib_text_merge *merge) {
    uint32_t n = (uint32_t)merge->n;
    for (uint32_t i = 0; i < n; i++) {
        merge->symbols[i].prev = i - 1; /* NIB_TEXT_NO_SYMBOL for the first */
        merge->symbols[i].next = i + 1 < n ? i + 1 : NIB_TEXT_NO_SYMBOL;
    }
    for (uint32_t i = 0; i < n; i++) set_rank(merge, i);
    if (n < 2) return true;
    if (n > SHORT_ROW) return run_long(merge);
    run_short(merge);
    return true;
}
