/* text/merge.h - greedy merging of neighbours: a row of symbols in, the same row with the best pairs joined out. The
 * heart of BPE (best: the lowest rank of a merge rule) and SentencePiece (best: the token with the highest score).
 *
 * Always the pair with the lowest rank is joined next, of equal ones the leftmost, until no pair has a rank. Short rows
 * are searched, long ones use a heap: O(n log n) whatever the symbols are. */
#ifndef NIB_TEXT_MERGE_H
#define NIB_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NIB_TEXT_NO_RANK UINT32_MAX
#define NIB_TEXT_NO_SYMBOL UINT32_MAX

typedef struct nib_text_symbol {
    uint32_t id;         /* the caller's number of what it stands for */
    uint32_t at;         /* first byte; it ends where the next one begins */
    uint32_t prev, next; /* places in the row; NIB_TEXT_NO_SYMBOL at the ends */
    uint32_t rank;       /* of the pair with the next symbol */
    uint32_t joined;     /* id of that pair */
} nib_text_symbol;

/* Buffers that are kept from row to row. Zero-initialise. */
typedef struct nib_text_merge {
    nib_text_symbol *symbols; /* after a run: follow `next` from 0 */
    uint64_t *heap;
    size_t n, n_heap, capacity, heap_capacity;
    uint32_t end; /* of the last symbol: one past its last byte */
    /* The rank of the pair of symbols `left` and the one behind it, NIB_TEXT_NO_RANK when they do not join; *joined
     * becomes the id of what they make. */
    uint32_t (*rank_of)(const struct nib_text_merge *merge, uint32_t left, uint32_t *joined);
    const void *user;
} nib_text_merge;

/* Starts a row of at most n symbols. False when memory is out. */
bool nib_text_merge_begin(nib_text_merge *merge, size_t n);
static inline void nib_text_merge_push(nib_text_merge *merge, uint32_t id, uint32_t at) {
    nib_text_symbol *s = &merge->symbols[merge->n++];
    s->id = id;
    s->at = at;
}
/* Joins all that joins. `end` is set before. False when memory is out. */
bool nib_text_merge_run(nib_text_merge *merge);
void nib_text_merge_free(nib_text_merge *merge);

/* One past the last byte of a symbol. */
static inline uint32_t nib_text_merge_end_of(const nib_text_merge *merge, const nib_text_symbol *symbol) {
    return symbol->next == NIB_TEXT_NO_SYMBOL ? merge->end : merge->symbols[symbol->next].at;
}

#endif
