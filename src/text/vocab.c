/* text/vocab.c - a list of tokens with a hash table from text to id: open addressing, half full at most. A slot holds
 * 32 bits of the hash, so that a miss hardly ever touches the texts. */
#include "text/vocab.h"

#include "base/mem.h"
#include "base/status.h"
#include "text/hash.h"

#include <string.h>

nib_status nib_text_vocab_init(nib_text_vocab *vocab, uint32_t n, uint64_t n_bytes, nib_error *err) {
    *vocab = (nib_text_vocab){0};
    if (n > NIB_TEXT_MAX_TOKENS || n_bytes > UINT32_MAX)
        return nib_fail(err, NIB_E_LIMIT, "a vocabulary of %u tokens and %llu bytes; at most %u tokens and 4 GiB", n,
                        (unsigned long long)n_bytes, NIB_TEXT_MAX_TOKENS);
    uint32_t n_slots = 16;
    while (n_slots < 2 * n) n_slots *= 2;
    vocab->capacity = n;
    vocab->text_capacity = (uint32_t)n_bytes;
    vocab->mask = n_slots - 1;
    vocab->text = nib_alloc(n_bytes, 1);
    vocab->at = nib_alloc((size_t)n + 1, sizeof *vocab->at);
    vocab->score = nib_calloc(n, sizeof *vocab->score);
    vocab->attr = nib_alloc(n, sizeof *vocab->attr);
    vocab->slots = nib_pages_new(n_slots * sizeof *vocab->slots); /* huge pages: looking up is all misses */
    if (!vocab->text || !vocab->at || !vocab->score || !vocab->attr || !vocab->slots) {
        nib_text_vocab_free(vocab);
        return nib_fail_nomem(err, n_bytes + (uint64_t)n * 26, "a vocabulary");
    }
    vocab->at[0] = 0;
    return NIB_OK;
}

void nib_text_vocab_free(nib_text_vocab *vocab) {
    nib_free(vocab->text);
    nib_free(vocab->at);
    nib_free(vocab->score);
    nib_free(vocab->attr);
    nib_pages_free(vocab->slots, ((size_t)vocab->mask + 1) * sizeof *vocab->slots);
    *vocab = (nib_text_vocab){0};
}

/* The slot that holds the text, or the empty one where it belongs. */
static struct nib_text_vocab_slot *slot_of(const nib_text_vocab *vocab, const char *text, size_t len, uint32_t hash) {
    for (uint32_t i = hash & vocab->mask;; i = (i + 1) & vocab->mask) {
        struct nib_text_vocab_slot *slot = &vocab->slots[i];
        if (!slot->id1) return slot;
        if (slot->hash != hash) continue;
        nib_str other = nib_text_vocab_text(vocab, (nib_token)(slot->id1 - 1));
        if (other.len == len && memcmp(other.ptr, text, len) == 0) return slot;
    }
}

bool nib_text_vocab_add(nib_text_vocab *vocab, nib_str text) {
    uint32_t id = vocab->n, from = vocab->at[id];
    if (id == vocab->capacity || text.len > vocab->text_capacity - from) return false;
    if (text.len) memcpy(vocab->text + from, text.ptr, text.len);
    vocab->at[id + 1] = from + (uint32_t)text.len;
    vocab->attr[id] = NIB_TOKEN_NORMAL;
    vocab->n++;
    if (!text.len) return true;
    if (text.len > vocab->max_len) vocab->max_len = (uint32_t)text.len;
    uint32_t hash = nib_text_hash(text.ptr, text.len);
    struct nib_text_vocab_slot *slot = slot_of(vocab, text.ptr, text.len, hash);
    if (slot->id1) vocab->n_duplicates++;
    else *slot = (struct nib_text_vocab_slot){hash, id + 1};
    return true;
}

nib_token nib_text_vocab_find(const nib_text_vocab *vocab, const char *text, size_t len) {
    if (len == 0 || len > vocab->max_len) return NIB_TOKEN_NONE;
    return (nib_token)slot_of(vocab, text, len, nib_text_hash(text, len))->id1 - 1;
}
