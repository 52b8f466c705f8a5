/* text/wordpiece.h - WordPiece ("bert"): text in, for each word the longest tokens that make it up out, or the unknown
 * token. GGUF writes a token that begins a word with U+2581 in front, and the others without "##". */
#ifndef NIB_TEXT_WORDPIECE_H
#define NIB_TEXT_WORDPIECE_H

#include "base/buf.h"
#include "text/trie.h"
#include "text/vocab.h"

typedef struct nib_text_wordpiece { /* immutable once built */
    unsigned flags; /* text/flags.h */
    nib_token unknown;
    nib_text_trie trie;
} nib_text_wordpiece;

/* On error there is nothing to free. */
nib_status nib_text_wordpiece_init(nib_text_wordpiece *wordpiece, const nib_text_vocab *vocab, unsigned flags,
                                   nib_token unknown, nib_error *err);
void nib_text_wordpiece_free(nib_text_wordpiece *wordpiece);

/* Appends the tokens of a text; `word` is a buffer. False when memory is out. */
bool nib_text_wordpiece_encode(const nib_text_wordpiece *wordpiece, nib_buf *word, nib_str text, nib_token_list *out);

#endif
