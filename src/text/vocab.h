/* text/vocab.h - a list of tokens: text, score and attributes of each id, and the way back from a text to its id.
 *
 * Texts are kept as the file has them, in one block. Filled once (init, add …), then read by many threads. */
#ifndef NIB_TEXT_VOCAB_H
#define NIB_TEXT_VOCAB_H

#include "nib.h"

#define NIB_TEXT_MAX_TOKENS (1u << 28)

/* Attributes beside the public nib_token_attr. */
enum {
    NIB_TEXT_STRIP_LEFT = 1 << 8,  /* white space before the token belongs to it */
    NIB_TEXT_STRIP_RIGHT = 1 << 9, /* and white space after it */
    NIB_TEXT_MARKUP = 1 << 10,     /* a user-defined token that marks turns, calls, thoughts: a control token in all but name */
    NIB_TEXT_PUBLIC_ATTR = 0xFF,
};

typedef struct nib_text_vocab {
    uint32_t n;
    char *text;     /* all texts, one behind the other */
    uint32_t *at;   /* n + 1 offsets into text */
    float *score;   /* n */
    uint16_t *attr; /* n */
    uint32_t max_len, n_duplicates; /* bytes of the longest text; texts that an earlier id has already */
    struct nib_text_vocab_slot {
        uint32_t hash, id1; /* id + 1; 0: empty */
    } *slots;
    uint32_t mask;
    uint32_t capacity, text_capacity;
} nib_text_vocab;

/* Memory for exactly n tokens with n_bytes of text together. On error there is nothing to free. */
nib_status nib_text_vocab_init(nib_text_vocab *vocab, uint32_t n, uint64_t n_bytes, nib_error *err);
void nib_text_vocab_free(nib_text_vocab *vocab);

/* Appends a token: score 0, NIB_TOKEN_NORMAL. Of equal texts the first keeps the way back; an empty text has none.
 * False when it does not fit into what init was told. */
bool nib_text_vocab_add(nib_text_vocab *vocab, nib_str text);

/* The id of a text; NIB_TOKEN_NONE when no token has it. */
nib_token nib_text_vocab_find(const nib_text_vocab *vocab, const char *text, size_t len);

/* id must be in range. */
static inline nib_str nib_text_vocab_text(const nib_text_vocab *vocab, nib_token id) {
    uint32_t from = vocab->at[id];
    return (nib_str){vocab->text + from, vocab->at[id + 1] - from};
}

#endif
