/* text/trie.c - a tree of byte strings whose edges live in one hash table, half full at most: 16 bytes an edge, one
 * probe a step, and no lists of children to search. */
#include "text/trie.h"

#include "base/mem.h"
#include "base/status.h"
#include "text/hash.h"

void nib_text_trie_free(nib_text_trie *trie) {
    nib_free(trie->edges);
    nib_free(trie->value);
    *trie = (nib_text_trie){0};
}

#define CHILD_BITS 28

static uint64_t *edge_of(const nib_text_trie *trie, uint64_t key) {
    for (uint32_t i = nib_text_hash_u64(key) & trie->mask;; i = (i + 1) & trie->mask) {
        uint64_t *edge = &trie->edges[i];
        if (!*edge || *edge >> CHILD_BITS == key) return edge;
    }
}

uint32_t nib_text_trie_step(const nib_text_trie *trie, uint32_t node, unsigned char byte) {
    if (!trie->edges) return 0;
    return (uint32_t)(*edge_of(trie, (uint64_t)node << 8 | byte) & ((1u << CHILD_BITS) - 1));
}

static bool grow_edges(nib_text_trie *trie) {
    uint32_t n = trie->edges ? (trie->mask + 1) * 2 : 64;
    nib_text_trie grown = {.edges = nib_calloc(n, sizeof *grown.edges), .mask = n - 1};
    if (!grown.edges) return false;
    for (uint32_t i = 0; trie->edges && i <= trie->mask; i++)
        if (trie->edges[i]) *edge_of(&grown, trie->edges[i] >> CHILD_BITS) = trie->edges[i];
    nib_free(trie->edges);
    trie->edges = grown.edges;
    trie->mask = grown.mask;
    return true;
}

static nib_status new_node(nib_text_trie *trie, nib_error *err) {
    if (trie->n_nodes == NIB_TEXT_TRIE_MAX_NODES)
        return nib_fail(err, NIB_E_LIMIT, "a vocabulary with more than %u prefixes", NIB_TEXT_TRIE_MAX_NODES);
    bool is_full = !trie->edges || trie->n_nodes >= trie->mask / 2;
    if (!nib_grow(&trie->value, &trie->capacity, (size_t)trie->n_nodes + 1, sizeof *trie->value) ||
        (is_full && !grow_edges(trie)))
        return nib_fail_nomem(err, (uint64_t)trie->n_nodes * 2 * sizeof *trie->edges, "a tree of tokens");
    trie->value[trie->n_nodes++] = NIB_TOKEN_NONE;
    return NIB_OK;
}

nib_status nib_text_trie_add(nib_text_trie *trie, nib_str text, nib_token value, nib_error *err) {
    if (trie->n_nodes == 0) NIB_TRY(new_node(trie, err));
    uint32_t node = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        uint32_t child = nib_text_trie_step(trie, node, byte);
        if (!child) {
            NIB_TRY(new_node(trie, err));
            child = trie->n_nodes - 1;
            uint64_t key = (uint64_t)node << 8 | byte;
            *edge_of(trie, key) = key << CHILD_BITS | child;
        }
        node = child;
    }
    if (text.len && trie->value[node] == NIB_TOKEN_NONE) trie->value[node] = value;
    return NIB_OK;
}
