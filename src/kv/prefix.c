/* kv/prefix.c - a radix tree from token ids to pages of KV cache, shared by all sequences. */
#include "kv/prefix.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

#include <assert.h>
#include <string.h>

#define NONE UINT32_MAX

nib_status nib_kv_prefix_init(nib_kv_prefix *tree, nib_kv_pool *pool, nib_error *err) {
    uint32_t n_buckets = 1, random[2] = {0};
    while (n_buckets < pool->n_pages && n_buckets < 1u << 31) n_buckets *= 2;
    *tree = (nib_kv_prefix){.pool = pool, .mask = n_buckets - 1};
    tree->nodes = nib_calloc((size_t)pool->n_pages + 1, sizeof *tree->nodes);
    tree->heap = nib_alloc(pool->n_pages, sizeof *tree->heap);
    tree->buckets = nib_alloc(n_buckets, sizeof *tree->buckets);
    if (!tree->nodes || !tree->heap || !tree->buckets) {
        nib_kv_prefix_fini(tree);
        return nib_fail_nomem(err, (uint64_t)pool->n_pages * sizeof *tree->nodes, "the tree of cached pages");
    }
    tree->nodes[pool->n_pages].child = NONE;
    memset(tree->buckets, 0xff, n_buckets * sizeof *tree->buckets);
    for (int i = 0; i < 2; i++) (void)nib_rng_system(&random[i]); /* without one the bound of a bucket still holds */
    tree->seed = (uint64_t)random[0] << 32 | random[1];
    return NIB_OK;
}

void nib_kv_prefix_fini(nib_kv_prefix *tree) {
    for (uint32_t i = 0; tree->nodes && i < tree->pool->n_pages; i++)
        if (tree->nodes[i].is_in_tree) nib_kv_pool_unref(tree->pool, i);
    nib_free(tree->nodes);
    nib_free(tree->heap);
    nib_free(tree->buckets);
    *tree = (nib_kv_prefix){0};
}

/* ---- children by hash */

static uint32_t *bucket_of(const nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens) {
    uint64_t seed = (tree->seed ^ salt) + (uint64_t)parent * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t h = nib_hash64(seed, tokens, NIB_KV_PAGE * sizeof *tokens);
    return &tree->buckets[(h ^ h >> 32) & tree->mask];
}

static bool is_node(const nib_kv_node *node, uint32_t parent, uint64_t salt, const nib_token *tokens) {
    return node->parent == parent && node->salt == salt && memcmp(node->tokens, tokens, sizeof node->tokens) == 0;
}

uint32_t nib_kv_prefix_find(const nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens) {
    uint32_t page = *bucket_of(tree, parent, salt, tokens);
    while (page != NONE && !is_node(&tree->nodes[page], parent, salt, tokens)) page = tree->nodes[page].next;
    return page;
}

static void unlink_node(nib_kv_prefix *tree, uint32_t page) {
    const nib_kv_node *node = &tree->nodes[page];
    uint32_t *link = bucket_of(tree, node->parent, node->salt, node->tokens);
    while (*link != page) link = &tree->nodes[*link].next;
    *link = node->next;
}

/* ---- children by their last use, for what they have in common with a text */

static uint32_t *child_of(const nib_kv_prefix *tree, uint32_t parent) {
    return &tree->nodes[parent == NIB_KV_PREFIX_ROOT ? tree->pool->n_pages : parent].child;
}

static void link_child(nib_kv_prefix *tree, uint32_t page) {
    nib_kv_node *node = &tree->nodes[page];
    uint32_t *first = child_of(tree, node->parent);
    node->younger = NONE;
    node->older = *first;
    if (*first != NONE) tree->nodes[*first].younger = page;
    *first = page;
}

static void unlink_child(nib_kv_prefix *tree, uint32_t page) {
    const nib_kv_node *node = &tree->nodes[page];
    if (node->older != NONE) tree->nodes[node->older].younger = node->younger;
    if (node->younger != NONE) tree->nodes[node->younger].older = node->older;
    else *child_of(tree, node->parent) = node->older;
}

static uint32_t n_common(const nib_kv_node *node, uint64_t salt, const nib_token *tokens, uint32_t n) {
    uint32_t i = 0, most = n < node->n_tokens ? n : node->n_tokens;
    while (node->salt == salt && i < most && node->tokens[i] == tokens[i]) i++;
    return i;
}

uint32_t nib_kv_prefix_find_part(const nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t n,
                                 uint32_t *page) {
    uint32_t best = 0, at = *child_of(tree, parent);
    for (int i = 0; at != NONE && i < NIB_KV_PREFIX_LOOK; at = tree->nodes[at].older, i++) {
        uint32_t common = n_common(&tree->nodes[at], salt, tokens, n);
        if (common <= best) continue;
        best = common;
        *page = at;
    }
    return best;
}

/* ---- leaves by age: a binary heap */

static void put(nib_kv_prefix *tree, uint32_t place, uint32_t page) {
    tree->heap[place] = page;
    tree->nodes[page].heap = place;
}

static bool is_older(const nib_kv_prefix *tree, uint32_t a, uint32_t b) {
    return tree->nodes[a].used < tree->nodes[b].used;
}

/* Puts a page where it belongs, at `place` or above or below it. */
static void sift(nib_kv_prefix *tree, uint32_t place, uint32_t page) {
    for (; place > 0 && is_older(tree, page, tree->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put(tree, place, tree->heap[(place - 1) / 2]);
    for (uint32_t child; (child = 2 * place + 1) < tree->n_heap; place = child) {
        if (child + 1 < tree->n_heap && is_older(tree, tree->heap[child + 1], tree->heap[child])) child++;
        if (!is_older(tree, tree->heap[child], page)) break;
        put(tree, place, tree->heap[child]);
    }
    put(tree, place, page);
}

static void heap_add(nib_kv_prefix *tree, uint32_t page) {
    assert(tree->nodes[page].heap == NONE);
    sift(tree, tree->n_heap++, page);
}

static void heap_remove(nib_kv_prefix *tree, uint32_t page) {
    uint32_t place = tree->nodes[page].heap, last = tree->heap[--tree->n_heap];
    if (last != page) sift(tree, place, last);
    tree->nodes[page].heap = NONE;
}

/* ---- pins */

void nib_kv_prefix_pin(nib_kv_prefix *tree, uint32_t page) {
    while (page != NIB_KV_PREFIX_ROOT && tree->nodes[page].n_held++ == 0) { /* held now: its parent has one reason more */
        if (tree->nodes[page].heap != NONE) heap_remove(tree, page);
        tree->n_held++;
        page = tree->nodes[page].parent;
    }
}

void nib_kv_prefix_unpin(nib_kv_prefix *tree, uint32_t page) {
    uint64_t now = ++tree->clock;
    if (page != NIB_KV_PREFIX_ROOT) {
        unlink_child(tree, page);
        link_child(tree, page);
    }
    while (page != NIB_KV_PREFIX_ROOT) {
        nib_kv_node *node = &tree->nodes[page];
        assert(node->is_in_tree && node->n_held > 0);
        node->used = now;
        if (--node->n_held > 0) return;
        tree->n_held--;
        if (node->child == NONE) heap_add(tree, page);
        page = node->parent;
    }
}

uint32_t nib_kv_prefix_match(nib_kv_prefix *tree, uint64_t salt, const nib_token *tokens, uint32_t n, uint32_t *pages) {
    uint32_t n_pages = 0, last = NIB_KV_PREFIX_ROOT;
    for (; n - n_pages * NIB_KV_PAGE >= NIB_KV_PAGE; n_pages++) {
        uint32_t page = nib_kv_prefix_find(tree, last, salt, tokens + n_pages * NIB_KV_PAGE);
        if (page == NIB_KV_PREFIX_ROOT) break;
        pages[n_pages] = last = page;
    }
    nib_kv_prefix_pin(tree, last);
    return n_pages;
}

/* ---- in and out */

static uint32_t chain_length(const nib_kv_prefix *tree, uint32_t page) {
    uint32_t n = 0;
    for (; page != NONE; page = tree->nodes[page].next) n++;
    return n;
}

static void remove_leaf(nib_kv_prefix *tree, uint32_t page) {
    nib_kv_node *node = &tree->nodes[page];
    heap_remove(tree, page);
    if (node->n_tokens == NIB_KV_PAGE) unlink_node(tree, page);
    unlink_child(tree, page);
    node->is_in_tree = false;
    tree->n_nodes--;
    nib_kv_pool_unref(tree->pool, page);
    if (node->parent == NIB_KV_PREFIX_ROOT) return;
    nib_kv_node *above = &tree->nodes[node->parent];
    if (above->used < node->used) above->used = node->used;
    if (above->child == NONE && above->n_held == 0) heap_add(tree, node->parent);
}

/* Parts that a new page holds as well are of no more use. */
static void remove_parts_of(nib_kv_prefix *tree, uint32_t page) {
    const nib_kv_node *node = &tree->nodes[page];
    uint32_t at = node->older, older;
    for (int i = 0; at != NONE && i < NIB_KV_PREFIX_LOOK; at = older, i++) {
        const nib_kv_node *part = &tree->nodes[at];
        older = part->older;
        if (part->n_tokens == NIB_KV_PAGE || part->n_held) continue;
        if (n_common(part, node->salt, node->tokens, node->n_tokens) == part->n_tokens) remove_leaf(tree, at);
    }
}

/* n tokens behind `parent`, which nobody has yet. */
static void enter(nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t n, uint32_t page) {
    nib_kv_node *node = &tree->nodes[page];
    assert(!node->is_in_tree && n > 0 && n <= NIB_KV_PAGE);
    *node = (nib_kv_node){.parent = parent, .child = NONE, .n_tokens = n, .heap = NONE, .is_in_tree = true, .salt = salt,
                          .used = ++tree->clock};
    memcpy(node->tokens, tokens, n * sizeof *tokens);
    link_child(tree, page);
    nib_kv_pool_ref(tree->pool, page);
    tree->n_nodes++;
    if (parent != NIB_KV_PREFIX_ROOT && tree->nodes[parent].heap != NONE) heap_remove(tree, parent);
    heap_add(tree, page);
    remove_parts_of(tree, page);
}

uint32_t nib_kv_prefix_insert(nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t page) {
    uint32_t found = nib_kv_prefix_find(tree, parent, salt, tokens);
    if (found != NIB_KV_PREFIX_ROOT) return found;
    uint32_t *bucket = bucket_of(tree, parent, salt, tokens);
    if (tree->nodes[page].is_in_tree || chain_length(tree, *bucket) >= NIB_KV_PREFIX_CHAIN) return NIB_KV_PREFIX_ROOT;
    enter(tree, parent, salt, tokens, NIB_KV_PAGE, page);
    tree->nodes[page].next = *bucket;
    *bucket = page;
    return page;
}

void nib_kv_prefix_insert_part(nib_kv_prefix *tree, uint32_t parent, uint64_t salt, const nib_token *tokens, uint32_t n,
                               uint32_t page) {
    uint32_t found = NIB_KV_PREFIX_ROOT;
    assert(n < NIB_KV_PAGE);
    if (nib_kv_prefix_find_part(tree, parent, salt, tokens, n, &found) < n) {
        enter(tree, parent, salt, tokens, n, page);
    } else { /* it was used now */
        nib_kv_prefix_pin(tree, found);
        nib_kv_prefix_unpin(tree, found);
    }
}

uint32_t nib_kv_prefix_evict(nib_kv_prefix *tree, uint32_t n) {
    uint32_t done = 0;
    for (; done < n && tree->n_heap > 0; done++) remove_leaf(tree, tree->heap[0]);
    return done;
}
