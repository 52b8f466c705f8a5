/* grammar/vocab.h - the bytes of all tokens, arranged so that a mask is a few sets of bits and a walk: a tree of the
 * tokens of plain characters (plain.h), one of the rest, and bits of tokens by groups and number of characters.
 * Immutable. */
#ifndef NIB_GRAMMAR_VOCAB_H
#define NIB_GRAMMAR_VOCAB_H

#include "grammar/tree.h"

typedef struct nib_grammar_lengthy {
    nib_token id;
    uint32_t n_chars;
} nib_grammar_lengthy;

struct nib_grammar_vocab {
    uint32_t n_tokens, n_mask_words;
    uint32_t max_len; /* bytes of the longest token */
    nib_str *bytes;   /* by id; empty: stands for no text */
    nib_str *names;   /* by id, as in the file */
    nib_buf text;
    nib_token *eog;
    size_t n_eog;
    nib_grammar_tree plain, rest;
    uint32_t *within[NIB_GRAMMAR_N_SETS];     /* by groups: plain tokens of no other characters */
    uint32_t n_within[NIB_GRAMMAR_N_SETS];    /* how many */
    uint32_t *slices[NIB_GRAMMAR_SHORT + 1]; /* [n]: plain tokens of at most n characters; [0] is not used */
    nib_grammar_lengthy *lengthy;             /* those of more than NIB_GRAMMAR_SHORT characters */
    size_t n_lengthy, lengthy_capacity;
    uint32_t max_chars; /* of a plain token */
    uint32_t *all;      /* every token but those that end a text */
};

/* One token at a time, in order of ids; then finish. Free it with nib_grammar_vocab_free. */
nib_status nib_grammar_vocab_begin(nib_grammar_vocab **out, uint32_t n_tokens, nib_error *err);
bool nib_grammar_vocab_add(nib_grammar_vocab *v, nib_str bytes, nib_str name, bool is_eog);
nib_status nib_grammar_vocab_finish(nib_grammar_vocab *v, nib_error *err);

#endif
