/* text/bpe.h - byte-pair encoding: words in, tokens out, by the merge rules of the file. */
#ifndef NIB_TEXT_BPE_H
#define NIB_TEXT_BPE_H

#include "base/buf.h"
#include "text/merge.h"
#include "text/vocab.h"

typedef struct nib_text_bpe { /* immutable once built */
    const nib_text_vocab *vocab; /* borrowed */
    unsigned flags;              /* text/flags.h */
    /* Symbols are tokens, and beyond them the texts of rules that are no token. */
    nib_text_vocab extra;
    struct nib_text_bpe_pair {
        uint32_t left, right, joined, rank1; /* rank + 1; 0: empty */
    } *pairs; /* a hash table */
    uint32_t mask;
    uint32_t symbol[256]; /* of each byte */
    nib_token byte[256];  /* the token of each byte, for what is no token; NIB_TOKEN_NONE: the byte is lost */
} nib_text_bpe;

/* merges: n strings "left right" as a GGUF array holds them. On error there is nothing to free. */
nib_status nib_text_bpe_init(nib_text_bpe *bpe, const nib_text_vocab *vocab, nib_str merges, uint64_t n, unsigned flags,
                             nib_error *err);
void nib_text_bpe_free(nib_text_bpe *bpe);

typedef struct nib_text_bpe_work { /* buffers of one thread; zero-initialise */
    nib_text_merge merge;
    nib_buf text;
} nib_text_bpe_work;
void nib_text_bpe_work_free(nib_text_bpe_work *work);

/* Appends the tokens of a word, which is not empty. False when memory is out. */
bool nib_text_bpe_word(const nib_text_bpe *bpe, nib_text_bpe_work *work, nib_str word, nib_token_list *out);

/* The byte alphabet of GPT-2: printable characters that stand for bytes. */
size_t nib_text_bpe_alphabet(unsigned char byte, char out[2]);     /* writes the character, returns its length */
int nib_text_bpe_byte_of(uint32_t cp);                             /* -1: not in the alphabet */

#endif
