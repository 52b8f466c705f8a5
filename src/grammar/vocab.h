/* grammar/vocab.h - the bytes of all tokens, arranged so that a mask is a walk: two trees of bytes, one of the tokens
 * of plain characters (plain.h), one of the rest. Immutable. */
#ifndef NIB_GRAMMAR_VOCAB_H
#define NIB_GRAMMAR_VOCAB_H

#include "grammar/grammar.h"

typedef struct nib_grammar_tree_node { /* in the order of a walk, parents first */
    uint32_t end;                      /* the next node that is not below this one */
    uint32_t ids;                      /* tokens that end here, in ids of the tree */
    uint16_t n_ids, depth;             /* depth: bytes */
    uint8_t byte;
    uint8_t groups; /* of the bytes below: bits 1 << nib_grammar_group */
} nib_grammar_tree_node;

/* Bytes that mostly go together, so that a configuration which repeats all of them takes whole branches. */
enum {
    NIB_GRAMMAR_LOWER,
    NIB_GRAMMAR_UPPER,
    NIB_GRAMMAR_DIGITS,
    NIB_GRAMMAR_SIGNS,
    NIB_GRAMMAR_OTHERS,
    NIB_GRAMMAR_N_GROUPS
};
static inline unsigned nib_grammar_group(uint8_t c) {
    if (c >= 'a' && c <= 'z') return NIB_GRAMMAR_LOWER;
    if (c >= 'A' && c <= 'Z') return NIB_GRAMMAR_UPPER;
    if (c >= '0' && c <= '9') return NIB_GRAMMAR_DIGITS;
    return c > 0x20 && c < 0x7F ? NIB_GRAMMAR_SIGNS : NIB_GRAMMAR_OTHERS;
}

typedef struct nib_grammar_tree {
    nib_grammar_tree_node *nodes;
    size_t n_nodes, capacity;
    nib_token *ids;
    size_t n_ids;
} nib_grammar_tree;

/* Tokens of at most NIB_GRAMMAR_SLICES characters have a bit set for each length. */
enum { NIB_GRAMMAR_SLICES = 24 };

struct nib_grammar_vocab {
    uint32_t n_tokens, n_mask_words;
    uint32_t max_len; /* bytes of the longest token */
    nib_str *bytes;   /* by id; empty: stands for no text */
    nib_str *names;   /* by id, as in the file */
    nib_buf text;
    nib_token *eog;
    size_t n_eog;
    nib_grammar_tree plain, rest;
    uint32_t *slices[NIB_GRAMMAR_SLICES + 1]; /* [n]: plain tokens of at most n characters; [0]: all plain tokens */
    nib_token *by_length;                     /* plain tokens in order of characters */
    uint32_t *lengths;                        /* of these */
    size_t n_by_length;
    uint32_t *all; /* every token but those that end a text */
};

/* One token at a time, in order of ids; then finish. Free it with nib_grammar_vocab_free. */
nib_status nib_grammar_vocab_begin(nib_grammar_vocab **out, uint32_t n_tokens, nib_error *err);
bool nib_grammar_vocab_add(nib_grammar_vocab *v, nib_str bytes, nib_str name, bool is_eog);
nib_status nib_grammar_vocab_finish(nib_grammar_vocab *v, nib_error *err);

#endif
