/* text/unigram.h - SentencePiece's unigram kind ("t5"): words in, out the tokens with the highest sum of
 * scores. */
#ifndef NIB_TEXT_UNIGRAM_H
#define NIB_TEXT_UNIGRAM_H

#include "base/buf.h"
#include "text/charsmap.h"
#include "text/trie.h"
#include "text/vocab.h"

typedef struct nib_text_unigram { /* immutable once built */
    const nib_text_vocab *vocab; /* borrowed */
    unsigned flags;              /* text/flags.h */
    nib_token unknown;
    double unknown_score;
    nib_text_trie trie;
    nib_text_charsmap map;
} nib_text_unigram;

/* On error there is nothing to free. */
nib_status nib_text_unigram_init(nib_text_unigram *unigram, const nib_text_vocab *vocab, nib_str charsmap,
                                 unsigned flags, nib_token unknown, nib_error *err);
void nib_text_unigram_free(nib_text_unigram *unigram);

typedef struct nib_text_unigram_work { /* buffers of one thread; zero-initialise */
    struct nib_text_unigram_best {
        double score; /* of the best way to here */
        uint32_t from;
        nib_token id; /* its last token and where that begins */
    } *best;
    size_t capacity;
} nib_text_unigram_work;
void nib_text_unigram_work_free(nib_text_unigram_work *work);

/* The text as the model wants it: characters replaced, spaces as U+2581. In the buffer; empty and scratch->failed when
 * memory is out. */
nib_str nib_text_unigram_normalize(const nib_text_unigram *unigram, nib_str text, nib_buf *scratch);

/* Appends the tokens of a word of normalised text. `first` is where the tokens of the text begin in the list:
 * neighbouring unknown characters are one token, across words too. False when memory is out. */
bool nib_text_unigram_word(const nib_text_unigram *unigram, nib_text_unigram_work *work, nib_str word, size_t first,
                           nib_token_list *out);

#endif
