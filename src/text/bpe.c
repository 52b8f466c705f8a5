/* text/bpe.c - byte-pair encoding on numbers: every text that a rule names gets a number once, so that merging a word
 * compares and looks up pairs of numbers only. */
#include "text/bpe.h"

#include "base/mem.h"
#include "base/status.h"
#include "text/flags.h"
#include "text/hash.h"
#include "text/list.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>

#define MERGES_KEY "tokenizer.ggml.merges"

/* Bytes that print stand for themselves, the 68 others for U+0100 onwards. */
static bool prints(unsigned c) {
    return (c >= '!' && c <= '~') || (c >= 0xA1 && c != 0xAD);
}

static unsigned rank_of_unprintable(unsigned c) { /* among the bytes that do not print */
    return c <= 0x20 ? c : c <= 0xA0 ? c - 0x7F + 33 : 67;
}

size_t nib_text_bpe_alphabet(unsigned char byte, char out[2]) {
    return nib_text_utf8_put(prints(byte) ? byte : 0x100 + rank_of_unprintable(byte), out);
}

int nib_text_bpe_byte_of(uint32_t cp) {
    if (cp < 0x100) return prints(cp) ? (int)cp : -1;
    unsigned rank = cp - 0x100;
    if (rank > 67) return -1;
    return (int)(rank <= 0x20 ? rank : rank < 67 ? rank + 0x7F - 33 : 0xAD);
}

static struct nib_text_bpe_pair *pair_of(const nib_text_bpe *bpe, uint32_t left, uint32_t right) {
    uint32_t i = nib_text_hash_u64((uint64_t)left << 32 | right) & bpe->mask;
    for (;; i = (i + 1) & bpe->mask) {
        struct nib_text_bpe_pair *pair = &bpe->pairs[i];
        if (!pair->rank1 || (pair->left == left && pair->right == right)) return pair;
    }
}

static uint32_t find_symbol(const nib_text_bpe *bpe, const char *text, size_t len) {
    nib_token id = nib_text_vocab_find(bpe->vocab, text, len);
    if (id != NIB_TOKEN_NONE) return (uint32_t)id;
    id = nib_text_vocab_find(&bpe->extra, text, len);
    return id == NIB_TOKEN_NONE ? NIB_TEXT_NO_SYMBOL : bpe->vocab->n + (uint32_t)id;
}

/* A vocabulary knows its size beforehand; symbols that are no token are too few to count them first. */
static nib_status add_extra(nib_text_bpe *bpe, nib_str text, nib_error *err) {
    nib_text_vocab *extra = &bpe->extra;
    if (nib_text_vocab_add(extra, text)) return NIB_OK;
    nib_text_vocab grown;
    NIB_TRY(nib_text_vocab_init(&grown, extra->n * 2 + 16, (uint64_t)extra->text_capacity * 2 + text.len, err));
    for (uint32_t i = 0; i < extra->n; i++) nib_text_vocab_add(&grown, nib_text_vocab_text(extra, (nib_token)i));
    nib_text_vocab_add(&grown, text);
    nib_text_vocab_free(extra);
    *extra = grown;
    return NIB_OK;
}

static nib_status make_symbol(nib_text_bpe *bpe, nib_str text, uint32_t *symbol, nib_error *err) {
    *symbol = find_symbol(bpe, text.ptr, text.len);
    if (*symbol != NIB_TEXT_NO_SYMBOL) return NIB_OK;
    NIB_TRY(add_extra(bpe, text, err));
    *symbol = bpe->vocab->n + bpe->extra.n - 1;
    return NIB_OK;
}

/* The place of the one space of a rule, 0 when it has none, several, or nothing on a side. */
static size_t separator(nib_str rule) {
    const char *space = rule.len ? memchr(rule.ptr, ' ', rule.len) : NULL;
    if (!space) return 0;
    size_t at = (size_t)(space - rule.ptr), behind = rule.len - at - 1;
    return behind && !memchr(space + 1, ' ', behind) ? at : 0;
}

static nib_status add_rule(nib_text_bpe *bpe, nib_str rule, uint32_t rank, nib_buf *scratch, nib_error *err) {
    size_t at = separator(rule);
    if (!at)
        return nib_fail(err, NIB_E_FORMAT, MERGES_KEY "[%u] is \"%.*s\", expected two parts with one space between",
                        rank, NIB_STR_ARG(rule));
    uint32_t left, right, joined;
    if (!nib_buf_reserve(scratch, rule.len)) return nib_fail_nomem(err, rule.len, "a merge rule");
    memcpy(scratch->ptr, rule.ptr, at);
    memcpy(scratch->ptr + at, rule.ptr + at + 1, rule.len - at - 1);
    NIB_TRY(make_symbol(bpe, (nib_str){rule.ptr, at}, &left, err));
    NIB_TRY(make_symbol(bpe, (nib_str){rule.ptr + at + 1, rule.len - at - 1}, &right, err));
    NIB_TRY(make_symbol(bpe, (nib_str){scratch->ptr, rule.len - 1}, &joined, err));
    struct nib_text_bpe_pair *pair = pair_of(bpe, left, right);
    if (!pair->rank1) *pair = (struct nib_text_bpe_pair){left, right, joined, rank + 1};
    return NIB_OK;
}

static nib_status add_rules(nib_text_bpe *bpe, nib_str merges, uint64_t n, nib_error *err) {
    if (n > NIB_TEXT_MAX_TOKENS)
        return nib_fail(err, NIB_E_LIMIT, MERGES_KEY " has %llu rules; at most %u", (unsigned long long)n,
                        NIB_TEXT_MAX_TOKENS);
    uint32_t n_slots = 16;
    while (n_slots / 2 < n) n_slots *= 2;
    bpe->mask = n_slots - 1;
    bpe->pairs = nib_pages_new(n_slots * sizeof *bpe->pairs);
    if (!bpe->pairs) return nib_fail_nomem(err, (uint64_t)n_slots * sizeof *bpe->pairs, "merge rules");
    nib_buf scratch = {0};
    nib_status status = NIB_OK;
    nib_str rule;
    for (uint32_t i = 0; i < n && status == NIB_OK && nib_gguf_next_string(&merges, &rule); i++)
        status = add_rule(bpe, rule, i, &scratch, err);
    nib_buf_free(&scratch);
    return status;
}

/* The token that stands for one byte: a character of the alphabet, or "<0x0A>". */
static void find_bytes(nib_text_bpe *bpe) {
    for (unsigned c = 0; c < 256; c++) {
        char text[8];
        size_t len = bpe->flags & NIB_TEXT_RAW ? (size_t)snprintf(text, sizeof text, "<0x%02X>", c)
                                               : nib_text_bpe_alphabet((unsigned char)c, text);
        bpe->byte[c] = nib_text_vocab_find(bpe->vocab, text, len);
        bpe->symbol[c] = find_symbol(bpe, text, len);
    }
}

nib_status nib_text_bpe_init(nib_text_bpe *bpe, const nib_text_vocab *vocab, nib_str merges, uint64_t n, unsigned flags,
                             nib_error *err) {
    *bpe = (nib_text_bpe){.vocab = vocab, .flags = flags};
    nib_status status = nib_text_vocab_init(&bpe->extra, 0, 0, err);
    if (status == NIB_OK) status = add_rules(bpe, merges, n, err);
    if (status != NIB_OK) {
        nib_text_bpe_free(bpe);
        return status;
    }
    find_bytes(bpe);
    return NIB_OK;
}

void nib_text_bpe_free(nib_text_bpe *bpe) {
    nib_text_vocab_free(&bpe->extra);
    nib_pages_free(bpe->pairs, ((size_t)bpe->mask + 1) * sizeof *bpe->pairs);
    *bpe = (nib_text_bpe){0};
}

static uint32_t rank_of_pair(const nib_text_merge *merge, uint32_t left, uint32_t *joined) {
    const nib_text_symbol *s = &merge->symbols[left];
    const struct nib_text_bpe_pair *pair = pair_of(merge->user, s->id, merge->symbols[s->next].id);
    *joined = pair->joined;
    return pair->rank1 - 1; /* NIB_TEXT_NO_RANK for an empty one */
}

/* The token of a whole word, which the vocabulary may write in the byte alphabet. */
static nib_token find_word(const nib_text_bpe *bpe, nib_buf *text, nib_str word) {
    if (word.len > bpe->vocab->max_len) return NIB_TOKEN_NONE;
    if (bpe->flags & NIB_TEXT_RAW) return nib_text_vocab_find(bpe->vocab, word.ptr, word.len);
    text->len = 0;
    if (!nib_buf_reserve(text, 2 * word.len)) return NIB_TOKEN_NONE;
    for (size_t i = 0; i < word.len; i++)
        text->len += nib_text_bpe_alphabet((unsigned char)word.ptr[i], text->ptr + text->len);
    return nib_text_vocab_find(bpe->vocab, text->ptr, text->len);
}

static bool is_newlines(nib_str word) {
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] != '\n') return false;
    return true;
}

/* What is no token becomes the tokens of its bytes. */
static bool emit(const nib_text_bpe *bpe, const nib_text_merge *merge, nib_str word, nib_token_list *out) {
    for (uint32_t i = 0; i != NIB_TEXT_NO_SYMBOL; i = merge->symbols[i].next) {
        const nib_text_symbol *s = &merge->symbols[i];
        if (s->id < bpe->vocab->n) {
            if (!nib_text_list_add(out, (nib_token)s->id)) return false;
            continue;
        }
        for (uint32_t at = s->at, end = nib_text_merge_end_of(merge, s); at < end; at++) {
            nib_token id = bpe->byte[(unsigned char)word.ptr[at]];
            if (id != NIB_TOKEN_NONE && !nib_text_list_add(out, id)) return false;
        }
    }
    return true;
}

void nib_text_bpe_work_free(nib_text_bpe_work *work) {
    nib_text_merge_free(&work->merge);
    nib_buf_free(&work->text);
}

bool nib_text_bpe_word(const nib_text_bpe *bpe, nib_text_bpe_work *work, nib_str word, nib_token_list *out) {
    nib_text_merge *merge = &work->merge;
    bool is_whole = (bpe->flags & NIB_TEXT_IGNORE_MERGES) != 0;
    if (bpe->flags & NIB_TEXT_WHOLE_NEWLINES) is_whole = is_newlines(word);
    nib_token id = is_whole ? find_word(bpe, &work->text, word) : NIB_TOKEN_NONE;
    if (id != NIB_TOKEN_NONE) return nib_text_list_add(out, id);
    if (work->text.failed || !nib_text_merge_begin(merge, word.len)) return false;
    for (uint32_t at = 0; at < word.len;) {
        if (bpe->flags & NIB_TEXT_RAW) {
            size_t len = nib_text_utf8_len(word.ptr[at]);
            if (len > word.len - at) len = word.len - at;
            nib_text_merge_push(merge, find_symbol(bpe, word.ptr + at, len), at);
            at += (uint32_t)len;
        } else {
            nib_text_merge_push(merge, bpe->symbol[(unsigned char)word.ptr[at]], at);
            at++;
        }
    }
    merge->end = (uint32_t)word.len;
    merge->rank_of = rank_of_pair;
    merge->user = bpe;
    return nib_text_merge_run(merge) && emit(bpe, merge, word, out);
}
