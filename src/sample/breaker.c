/* sample/breaker.c - nib_sampler_breakers: texts -> the token strings in which they can occur, for sample/dry.
 *
 * A text may begin inside a token. So a breaker is every token that contains it whole, and every token that ends with a
 * beginning of it, followed by the tokens of the rest. Uses the tokenizer as any caller of nib.h does. */
#include "base/mem.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 256 /* bytes; a breaker is a mark or a word, and each byte costs a tail */
#define MAX_TAIL 20  /* tokens of the rest that are compared: bounds the work of DRY per token of history */

typedef struct breaker_text {
    const char *ptr;
    size_t len;
    nib_token_list *tails; /* by how many bytes of the text came before; filled as they are needed */
} breaker_text;

typedef struct breaker_list {
    nib_token *ids;
    uint32_t *lengths;
    size_t n_ids, n, ids_capacity, lengths_capacity;
} breaker_list;

static nib_status add(breaker_list *list, nib_token head, const nib_token_list *tail, nib_error *err) {
    size_t n_tail = !tail ? 0 : tail->n < MAX_TAIL ? tail->n : MAX_TAIL;
    if (!nib_grow(&list->ids, &list->ids_capacity, list->n_ids + 1 + n_tail, sizeof *list->ids) ||
        !nib_grow(&list->lengths, &list->lengths_capacity, list->n + 1, sizeof *list->lengths) || list->n == UINT32_MAX)
        return nib_fail_nomem(err, (list->n_ids + n_tail) * sizeof *list->ids, "the breakers of DRY");
    list->ids[list->n_ids] = head;
    if (n_tail) memcpy(list->ids + list->n_ids + 1, tail->ids, n_tail * sizeof *list->ids);
    list->n_ids += 1 + n_tail;
    list->lengths[list->n++] = (uint32_t)(1 + n_tail);
    return NIB_OK;
}

static bool contains(nib_str word, const breaker_text *text) {
    for (size_t at = 0; at + text->len <= word.len; at++)
        if (memcmp(word.ptr + at, text->ptr, text->len) == 0) return true;
    return false;
}

/* Adds the ways in which `text` can begin in the token `id` that reads `word`. */
static nib_status add_token(const nib_tokenizer *tok, breaker_text *text, nib_token id, nib_str word,
                            breaker_list *list, nib_error *err) {
    if (contains(word, text)) return add(list, id, NULL, err);
    for (size_t head = word.len < text->len ? word.len : text->len - 1; head > 0; head--) {
        if (memcmp(word.ptr + word.len - head, text->ptr, head) != 0) continue;
        nib_token_list *tail = &text->tails[head];
        if (!tail->n) NIB_TRY(nib_tokenize(tok, text->ptr + head, text->len - head, 0, tail, err));
        NIB_TRY(add(list, id, tail, err));
    }
    return NIB_OK;
}

static nib_status add_all(const nib_tokenizer *tok, breaker_text *texts, size_t n_texts, breaker_list *list,
                          nib_error *err) {
    for (uint32_t id = 0; id < nib_tokenizer_n_tokens(tok); id++) {
        /* The first token of a text may lose its space; the second of two equal ones reads as it is. */
        nib_token twice[2] = {(nib_token)id, (nib_token)id};
        char *both;
        size_t len;
        NIB_TRY(nib_detokenize(tok, twice, 2, NIB_UNPARSE_SPECIAL, &both, &len, err));
        nib_str word = {both + len / 2, len - len / 2};
        nib_status status = NIB_OK;
        for (size_t i = 0; i < n_texts && status == NIB_OK; i++)
            status = add_token(tok, &texts[i], (nib_token)id, word, list, err);
        free(both);
        NIB_TRY(status);
    }
    return NIB_OK;
}

nib_status nib_sampler_breakers(const nib_tokenizer *tok, const char *const *texts, size_t n_texts, nib_token **ids,
                                uint32_t **lengths, uint32_t *n, nib_error *err) {
    *ids = NULL, *lengths = NULL, *n = 0;
    breaker_list list = {0};
    nib_status status;
    breaker_text *all = nib_calloc(n_texts, sizeof *all);
    if (!all) return nib_fail_nomem(err, n_texts * sizeof *all, "the breakers of DRY");
    for (size_t i = 0; i < n_texts; i++) {
        size_t len = strlen(texts[i]);
        if (len == 0 || len > MAX_TEXT) {
            status = nib_fail(err, NIB_E_ARG, "DRY breaker %zu has %zu bytes; allowed: 1 to %d", i, len, MAX_TEXT);
            goto out;
        }
        all[i] = (breaker_text){texts[i], len, nib_calloc(len, sizeof *all[i].tails)};
        if (!all[i].tails) {
            status = nib_fail_nomem(err, len * sizeof *all[i].tails, "the breakers of DRY");
            goto out;
        }
    }
    NIB_TRY_OUT(add_all(tok, all, n_texts, &list, err));
    *ids = list.ids, *lengths = list.lengths, *n = (uint32_t)list.n;
    list = (breaker_list){0};
out:
    for (size_t i = 0; i < n_texts; i++)
        for (size_t head = 0; head < all[i].len && all[i].tails; head++) nib_token_list_free(&all[i].tails[head]);
    for (size_t i = 0; i < n_texts; i++) nib_free(all[i].tails);
    nib_free(all);
    nib_free(list.ids);
    nib_free(list.lengths);
    return status;
}
