/* kv/prefix.h - a radix tree from token ids to pages of KV cache, shared by all sequences.
 *
 * An edge is a page of 32 tokens, so a node is its page: everything about a node is kept in arrays by page number, made
 * once. Full pages are found by a hash over (parent, salt, tokens) with a random seed; a hit compares all three.
 *
 * The last page of a text is seldom full when the text ends. It is kept as a part: a leaf that is not shared but copied by who
 * goes on from there. Copying also serves texts that leave a full page somewhere in its middle.
 *
 * The tree holds a reference of each of its pages. A sequence that uses pages of the tree pins the deepest of them, which
 * keeps all above it. What nobody pins is evicted when pages are wanted: leaves only, the least recently used first, so a
 * long text goes from its tail on. Whoever used a page last also used the pages before it; when the last child of a page is
 * evicted, the page inherits its age.
 *
 * Matching costs one hash and comparison a page, pinning at most the depth of the page, a part LOOK comparisons, eviction of a
 * page the logarithm of the number of pages. Nothing is allocated after init. One owner thread. */
#ifndef NIB_KV_PREFIX_H
#define NIB_KV_PREFIX_H

#include "kv/pool.h"

#define NIB_KV_PREFIX_ROOT UINT32_MAX /* as a page: the beginning of every text */
#define NIB_KV_PREFIX_CHAIN 64        /* nodes of equal hash; more are refused, so that time is bounded for any tokens */
#define NIB_KV_PREFIX_LOOK 64         /* children, those last used, that are looked at for a common beginning; for the same reason */

typedef struct nib_kv_node { /* of a page that is in the tree */
    uint32_t parent, next;   /* page; next of the same bucket */
    uint32_t child, younger, older; /* the child that was last used, and the siblings by that; or NONE */
    uint32_t n_tokens;       /* fewer than a page: a part, which is in no bucket */
    uint32_t n_held;         /* pins, and children that are held: 0 when nobody needs the page */
    uint32_t heap;           /* place in the heap of leaves that can be evicted, or NONE */
    bool is_in_tree;
    uint64_t salt, used;     /* used: when it was last let go of */
    nib_token tokens[NIB_KV_PAGE];
} nib_kv_node;

typedef struct nib_kv_prefix {
    nib_kv_pool *pool;
    nib_kv_node *nodes;   /* by page; one more for the root, of which only its children matter */
    uint32_t *buckets;    /* first page, or NONE; mask + 1 of them */
    uint32_t mask;
    uint32_t *heap;       /* leaves that nobody needs, by age: the oldest first */
    uint32_t n_heap;
    uint32_t n_nodes, n_held; /* pages in the tree, and those of them that are needed */
    uint64_t seed, clock;
} nib_kv_prefix;

/* The pool must outlive the tree. */
nib_status nib_kv_prefix_init(nib_kv_prefix *tree, nib_kv_pool *pool, nib_error *err);
/* Gives all pages back to the pool. */
void nib_kv_prefix_fini(nib_kv_prefix *tree);

/* The page that holds the next NIB_KV_PAGE tokens after page `parent` (or ROOT): its number, or ROOT when there is none.
 * Texts of different salts share nothing. */
uint32_t nib_kv_prefix_find(const nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens);
/* The longest prefix of n tokens that the tree holds in full pages: their numbers go to pages (room for n / NIB_KV_PAGE),
 * the last one is pinned when there is one. Returns how many. */
uint32_t nib_kv_prefix_match(nib_kv_prefix *tree, uint64_t salt, const nib_token *tokens, uint32_t n, uint32_t *pages);
/* Keeps a page and all above it; ROOT: nothing. Each pin must be given back with unpin. */
void nib_kv_prefix_pin(nib_kv_prefix *tree, uint32_t page);
void nib_kv_prefix_unpin(nib_kv_prefix *tree, uint32_t page);
/* Enters a full page behind `parent` and takes a reference of it; parts that it holds as well leave the tree. Returns the page that
 * now stands for these tokens: this one, another that was there before (of the same bits: the caller should use it in place of its
 * own), or ROOT when the tree does not take it. Nothing is pinned. */
uint32_t nib_kv_prefix_insert(nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t page);

/* How many of the next n tokens the children of `parent` have at most in common with a text, up to a page; *page: the child that
 * has them, whose first positions may be copied; pin it before pages are entered or evicted. 0: none. */
uint32_t nib_kv_prefix_find_part(const nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t n,
                                 uint32_t *page);
/* Enters a page with n tokens, 1 to 31, and takes a reference of it, unless a child that is looked at has them all. Nobody may write
 * the page any more. */
void nib_kv_prefix_insert_part(nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t n,
                               uint32_t page);

/* Evicts up to n pages; returns how many. They are free unless somebody holds references of them without a pin. */
uint32_t nib_kv_prefix_evict(nib_kv_prefix *tree, uint32_t n);
static inline bool nib_kv_prefix_is_idle(const nib_kv_prefix *tree, uint32_t page) {
    return tree->nodes[page].n_held == 0;
}
/* Pages that could be evicted: those that are idle. */
static inline uint32_t nib_kv_prefix_n_idle(const nib_kv_prefix *tree) {
    return tree->n_nodes - tree->n_held;
}

#endif
