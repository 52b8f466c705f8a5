/* text/words.c - a table of recent words, one slot for each value of the hash: a new word takes the place of an old
 * one. */
#include "text/words.h"

#include "base/mem.h"
#include "text/hash.h"

#define MIN_SLOTS 64u
#define MAX_SLOTS 8192u /* 256 KiB: half of a usual second-level cache */

bool nib_text_words_begin(nib_text_words *words, size_t len) {
    uint32_t n = MIN_SLOTS;
    if (words->slots) return true;
    while (n < MAX_SLOTS && n < len / 8) n *= 2;
    words->slots = nib_calloc(n, sizeof *words->slots);
    words->mask = n - 1;
    return words->slots != NULL;
}

void nib_text_words_free(nib_text_words *words) {
    nib_free(words->slots);
    *words = (nib_text_words){0};
}

typedef struct word_key {
    uint64_t part[NIB_TEXT_WORD_MAX / 8];
} word_key;

static word_key key_of(nib_str word) {
    word_key key = {{0}};
    memcpy(key.part, word.ptr, word.len);
    return key;
}

struct nib_text_words_slot *nib_text_words_find(nib_text_words *words, nib_str word) {
    if (!word.len || word.len > NIB_TEXT_WORD_MAX) return NULL;
    word_key key = key_of(word);
    uint64_t h = word.len;
    for (size_t i = 0; i < sizeof key.part / sizeof key.part[0]; i++) h = nib_text_hash_mix(h ^ key.part[i]);
    struct nib_text_words_slot *slot = &words->slots[nib_text_hash_u64(h) & words->mask];
    if (slot->len != word.len || memcmp(slot->key, key.part, sizeof key.part) != 0) slot->len = 0;
    return slot;
}

void nib_text_words_keep(struct nib_text_words_slot *slot, nib_str word, size_t first, const nib_token_list *list) {
    size_t n = list->n - first;
    if (first > UINT32_MAX || n > UINT16_MAX) return;
    word_key key = key_of(word);
    memcpy(slot->key, key.part, sizeof key.part);
    slot->first = (uint32_t)first;
    slot->n = (uint16_t)n;
    slot->len = (uint16_t)word.len;
}
