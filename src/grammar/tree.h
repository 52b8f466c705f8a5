/* grammar/tree.h - the bytes of tokens as a tree, in which whole branches fall away or are taken.
 *
 * Branches are tokens of the same first byte and the same groups of characters (plain.h), short ones and others apart,
 * so that all tokens of some groups are known before the walk. */
#ifndef NIB_GRAMMAR_TREE_H
#define NIB_GRAMMAR_TREE_H

#include "grammar/plain.h"

enum { NIB_GRAMMAR_SHORT = 24 }; /* characters of a token, at most */

typedef struct nib_grammar_tree_node {
    uint32_t first; /* child; children stand side by side in order of bytes, and so do their ids */
    uint32_t ids;   /* tokens that end here, then those below */
    uint16_t n_children;
    uint16_t n_chars, max_chars; /* characters begun up to here; most of a token that ends here or below */
    uint8_t groups; /* of the characters below: bits 1 << group; inside of a character OTHER is among them */
} nib_grammar_tree_node;

typedef struct nib_grammar_branch {
    uint32_t node, ids_end;
    uint16_t max_chars;
    uint8_t groups; /* of each of its tokens; 0: they are not plain */
} nib_grammar_branch;

typedef struct nib_grammar_tree {
    nib_grammar_tree_node *nodes; /* those below a node before those below the next one, as they are walked */
    uint8_t *bytes;               /* of nodes: many are looked at and no further */
    nib_grammar_branch *branches;
    uint32_t roots[257]; /* branches of a first byte: from roots[byte] on */
    nib_token *ids;
    size_t n_nodes, n_branches, n_ids, nodes_capacity, bytes_capacity, branches_capacity;
} nib_grammar_tree;

typedef struct nib_grammar_entry { /* a token */
    nib_str bytes;                 /* not empty */
    const uint8_t *below;          /* for each byte the groups of the characters that begin there or later */
    nib_token id;
    uint16_t n_chars;
    uint8_t groups;
} nib_grammar_entry;

/* Fills groups and n_chars from the bytes, and below, which has room for as many. */
void nib_grammar_entry_read(nib_grammar_entry *entry, uint8_t *below);
/* Entries are in order of ids, and are put into that of the tree. False: memory was out. */
bool nib_grammar_tree_make(nib_grammar_tree *t, nib_grammar_entry *entries, size_t n);
void nib_grammar_tree_free(nib_grammar_tree *t);

#endif
