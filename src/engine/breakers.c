/* engine/breakers.c - nib_sampler_breakers: texts in; out, the sequences of tokens that DRY takes for them.
 *
 * A breaker may begin anywhere inside a token: a token that contains the text is a breaker by itself, and one that ends
 * with the beginning of the text is one together with the tokens of the rest. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "text/list.h"
#include "text/tokenizer.h"

#include <string.h>

#define MAX_TEXT 255 /* bytes of a breaker */
#define MAX_TAIL 20  /* tokens behind the first: enough to tell it apart */

typedef struct breakers {
    nib_token_list ids;
    uint32_t *lengths;
    size_t n, capacity;
} breakers;

static bool add(breakers *b, nib_token head, const nib_token_list *tail) {
    size_t n = !tail ? 0 : tail->n < MAX_TAIL ? tail->n : MAX_TAIL;
    if (!nib_grow(&b->lengths, &b->capacity, b->n + 1, sizeof *b->lengths)) return false;
    if (!nib_text_list_reserve(&b->ids, n + 1)) return false;
    b->ids.ids[b->ids.n++] = head;
    for (size_t i = 0; i < n; i++) b->ids.ids[b->ids.n++] = tail->ids[i];
    b->lengths[b->n++] = (uint32_t)n + 1;
    return true;
}

static bool contains(const char *s, size_t len, nib_str text) {
    for (size_t i = 0; i + text.len <= len; i++)
        if (s[i] == text.ptr[0] && memcmp(s + i, text.ptr, text.len) == 0) return true;
    return false;
}

/* One token. tails[i]: the tokens of the text from byte i on. */
static bool add_token(breakers *b, nib_token id, const nib_buf *piece, nib_str text, const nib_token_list *tails) {
    if (contains(piece->ptr, piece->len, text)) return add(b, id, NULL);
    for (size_t n = 1; n < text.len && n <= piece->len; n++)
        if (memcmp(piece->ptr + piece->len - n, text.ptr, n) == 0 && !add(b, id, &tails[n])) return false;
    return true;
}

static nib_status add_text(breakers *b, const nib_tokenizer *tok, nib_str text, nib_error *err) {
    nib_token_list tails[MAX_TEXT + 1] = {{0}};
    nib_buf piece = {0};
    nib_status status = NIB_OK;
    for (size_t n = 1; n < text.len && status == NIB_OK; n++)
        status = nib_text_continue(tok, (nib_str){text.ptr + n, text.len - n}, &tails[n], err);
    bool ok = true;
    for (uint32_t id = 0; id < tok->vocab.n && ok && status == NIB_OK; id++) {
        piece.len = 0;
        nib_text_piece(tok, (nib_token)id, true, &piece);
        ok = !piece.failed && (!piece.len || add_token(b, (nib_token)id, &piece, text, tails));
    }
    for (size_t n = 0; n <= MAX_TEXT; n++) nib_token_list_free(&tails[n]);
    nib_buf_free(&piece);
    if (ok && b->n > UINT32_MAX)
        return nib_fail(err, NIB_E_LIMIT, "%zu ways to write the breakers, at most %u", b->n, UINT32_MAX);
    return ok ? status : nib_fail_nomem(err, b->n * sizeof *b->lengths, "breakers");
}

nib_status nib_sampler_breakers(const nib_tokenizer *tok, const char *const *texts, size_t n_texts, nib_token **ids,
                                uint32_t **lengths, uint32_t *n, nib_error *err) {
    breakers b = {0};
    *ids = NULL;
    *lengths = NULL;
    *n = 0;
    nib_status status = NIB_OK;
    for (size_t i = 0; i < n_texts && status == NIB_OK; i++) {
        nib_str text = {texts[i], strlen(texts[i])};
        if (text.len == 0 || text.len > MAX_TEXT)
            status = nib_fail(err, NIB_E_ARG, "breaker %zu has %zu bytes, expected 1 to %d", i, text.len, MAX_TEXT);
        else status = add_text(&b, tok, text, err);
    }
    if (status != NIB_OK) {
        nib_token_list_free(&b.ids);
        nib_free(b.lengths);
        return status;
    }
    *ids = b.ids.ids;
    *lengths = b.lengths;
    *n = (uint32_t)b.n;
    return NIB_OK;
}
