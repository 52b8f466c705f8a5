/* text/special.c - cuts text at added tokens with a trie; places where no token begins are skipped by a table of first
 * bytes. The cost of a place is bounded by the longest token. */
#include "text/special.h"

nib_status nib_text_special_init(nib_text_special *special, const nib_text_vocab *vocab, nib_error *err) {
    *special = (nib_text_special){0};
    for (uint32_t id = 0; id < vocab->n; id++) {
        if (!(vocab->attr[id] & (NIB_TOKEN_CONTROL | NIB_TOKEN_USER | NIB_TOKEN_UNKNOWN))) continue;
        nib_str text = nib_text_vocab_text(vocab, (nib_token)id);
        if (!text.len) continue;
        nib_status status = nib_text_trie_add(&special->trie, text, (nib_token)id, err);
        if (status != NIB_OK) {
            nib_text_special_free(special);
            return status;
        }
        special->first[(unsigned char)text.ptr[0]] = true;
    }
    return NIB_OK;
}

void nib_text_special_free(nib_text_special *special) {
    nib_text_trie_free(&special->trie);
    *special = (nib_text_special){0};
}

nib_text_special_walk nib_text_special_begin(const nib_text_special *special, const nib_text_vocab *vocab, nib_str text,
                                             const nib_span *spans, unsigned guarded) {
    return (nib_text_special_walk){special, vocab, text, spans, text.ptr + spans->len, guarded, NIB_TOKEN_NONE};
}

/* The longest token at the start of text, which lies in the walk's span. */
static nib_token match(const nib_text_special_walk *walk, const char *text, size_t len, size_t *match_len) {
    nib_token best = NIB_TOKEN_NONE;
    const nib_text_trie *trie = &walk->special->trie;
    const nib_span *span = walk->span;
    const char *span_end = walk->span_end;
    bool is_trusted = span->is_trusted;
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        for (; text + i >= span_end; is_trusted &= span->is_trusted) span_end += (++span)->len;
        node = nib_text_trie_step(trie, node, (unsigned char)text[i]);
        if (!node) break;
        nib_token id = trie->value[node];
        if (id == NIB_TOKEN_NONE) continue;
        if (!is_trusted && (walk->vocab->attr[id] & walk->guarded)) continue;
        best = id;
        *match_len = i + 1;
    }
    return best;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool nib_text_special_next(nib_text_special_walk *walk, nib_text_fragment *out) {
    if (walk->pending != NIB_TOKEN_NONE) {
        *out = (nib_text_fragment){walk->pending, {NULL, 0}};
        walk->pending = NIB_TOKEN_NONE;
        return true;
    }
    const char *p = walk->left.ptr;
    size_t n = walk->left.len, i = 0, len = 0;
    if (n == 0) return false;
    nib_token id = NIB_TOKEN_NONE;
    for (; i < n; i++) {
        if (!walk->special->first[(unsigned char)p[i]]) continue;
        while (p + i >= walk->span_end) walk->span_end += (++walk->span)->len;
        id = match(walk, p + i, n - i, &len);
        if (id != NIB_TOKEN_NONE) break;
    }
    size_t end = i, next = i + len;
    if (id != NIB_TOKEN_NONE && (walk->vocab->attr[id] & NIB_TEXT_STRIP_LEFT))
        while (end > 0 && is_space(p[end - 1])) end--;
    if (id != NIB_TOKEN_NONE && (walk->vocab->attr[id] & NIB_TEXT_STRIP_RIGHT))
        while (next < n && is_space(p[next])) next++;
    walk->left = (nib_str){p + next, n - next};
    if (end > 0) {
        *out = (nib_text_fragment){NIB_TOKEN_NONE, {p, end}};
        walk->pending = id;
    } else {
        *out = (nib_text_fragment){id, {NULL, 0}};
    }
    return true;
}
