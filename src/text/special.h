/* text/special.h - cuts text at added tokens ("<|im_end|>", "<table>"): text in, plain pieces and ids out, in order.
 *
 * At each place the longest token wins, and the leftmost place first. One walk over the text. Guarded tokens are found only
 * where every byte is trusted. */
#ifndef NIB_TEXT_SPECIAL_H
#define NIB_TEXT_SPECIAL_H

#include "text/trie.h"
#include "text/vocab.h"

typedef struct nib_text_special { /* zero-initialise */
    nib_text_trie trie;
    bool first[256]; /* bytes that begin a token */
} nib_text_special;

/* All control, user-defined and unknown tokens of the vocabulary. */
nib_status nib_text_special_init(nib_text_special *special, const nib_text_vocab *vocab, nib_error *err);
void nib_text_special_free(nib_text_special *special);

typedef struct nib_text_fragment {
    nib_token id; /* NIB_TOKEN_NONE: plain text */
    nib_str text; /* of the plain text; never empty */
} nib_text_fragment;

enum {
    NIB_TEXT_GUARD_CONTROL = NIB_TOKEN_CONTROL | NIB_TOKEN_UNKNOWN,
    NIB_TEXT_GUARD_ALL = NIB_TEXT_GUARD_CONTROL | NIB_TEXT_MARKUP,
};

/* A walk over one text; borrows all it is given. */
typedef struct nib_text_special_walk {
    const nib_text_special *special;
    const nib_text_vocab *vocab;
    nib_str left;
    const nib_span *span;  /* that `left` begins in or before */
    const char *span_end;
    unsigned guarded;      /* attributes of tokens that need trust */
    nib_token pending;     /* found behind the plain text that was given out last */
} nib_text_special_walk;

/* spans: all of the text, at least one. */
nib_text_special_walk nib_text_special_begin(const nib_text_special *special, const nib_text_vocab *vocab, nib_str text,
                                             const nib_span *spans, unsigned guarded);
bool nib_text_special_next(nib_text_special_walk *walk, nib_text_fragment *out); /* false at the end */

#endif
