/* text/words.h - remembers the tokens of words met before in the same text: language repeats itself, and finding a word
 * again is ten times faster than merging it. */
#ifndef NIB_TEXT_WORDS_H
#define NIB_TEXT_WORDS_H

#include "nib.h"

#define NIB_TEXT_WORD_MAX 24 /* bytes; longer words are not kept */

typedef struct nib_text_words { /* zero-initialise */
    struct nib_text_words_slot {
        uint64_t key[NIB_TEXT_WORD_MAX / 8]; /* the bytes, filled up with zeros */
        uint32_t first;                      /* where its ids begin in the output */
        uint16_t n;
        uint16_t len; /* of the word; 0: empty */
    } *slots;
    uint32_t mask;
} nib_text_words;

/* For words of a text of len bytes. False when memory is out. A second call changes nothing. */
bool nib_text_words_begin(nib_text_words *words, size_t len);
void nib_text_words_free(nib_text_words *words);

/* The slot of a word, NULL for words that are not kept. When slot->len is not 0, it has the ids of this word. */
struct nib_text_words_slot *nib_text_words_find(nib_text_words *words, nib_str word);

/* Says that ids[first] to the end of the list are those of the word the empty slot was found for. */
void nib_text_words_keep(struct nib_text_words_slot *slot, nib_str word, size_t first, const nib_token_list *list);

#endif
