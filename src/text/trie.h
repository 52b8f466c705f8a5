/* text/trie.h - a tree of byte strings with a number at the end of each: finds all strings that begin at a place in one
 * walk. Filled once, then read by many threads. */
#ifndef NIB_TEXT_TRIE_H
#define NIB_TEXT_TRIE_H

#include "nib.h"

#define NIB_TEXT_TRIE_MAX_NODES (1u << 28)

typedef struct nib_text_trie { /* zero-initialise */
    uint64_t *edges; /* a hash table: parent << 36 | byte << 28 | child; 0: empty */
    uint32_t mask;
    nib_token *value; /* of each node; NIB_TOKEN_NONE: no string ends here. Node 0 is the root */
    uint32_t n_nodes;
    size_t capacity;
} nib_text_trie;

/* Adds a string; of equal ones the first stays. NIB_E_NOMEM or NIB_E_LIMIT leave the trie as it was or with a part of
 * the string that ends nowhere. */
nib_status nib_text_trie_add(nib_text_trie *trie, nib_str text, nib_token value, nib_error *err);
void nib_text_trie_free(nib_text_trie *trie);

/* The node behind `node` along byte; 0 when there is none. Walks begin at node 0. */
uint32_t nib_text_trie_step(const nib_text_trie *trie, uint32_t node, unsigned char byte);

#endif
