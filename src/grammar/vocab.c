/* grammar/vocab.c - tokens in -> trees of their bytes, and bits of plain tokens by groups and length. */
#include "grammar/vocab.h"

#include "base/mem.h"
#include "base/status.h"

#include <string.h>

/* While tokens are added, the pointers of bytes and names are offsets into text. */
nib_status nib_grammar_vocab_begin(nib_grammar_vocab **out, uint32_t n_tokens, nib_error *err) {
    nib_grammar_vocab *v = *out = nib_calloc(1, sizeof *v);
    if (!v) return nib_fail_nomem(err, sizeof *v, "a vocabulary");
    v->n_mask_words = (n_tokens + 31) / 32;
    v->bytes = nib_calloc(n_tokens + 1, sizeof *v->bytes);
    v->names = nib_calloc(n_tokens + 1, sizeof *v->names);
    v->eog = nib_calloc(n_tokens + 1, sizeof *v->eog);
    v->all = nib_calloc(v->n_mask_words + 1, sizeof *v->all);
    if (v->bytes && v->names && v->eog && v->all) return NIB_OK;
    nib_grammar_vocab_free(v);
    *out = NULL;
    return nib_fail_nomem(err, n_tokens * sizeof *v->bytes, "a vocabulary");
}

bool nib_grammar_vocab_add(nib_grammar_vocab *v, nib_str bytes, nib_str name, bool is_eog) {
    uint32_t id = v->n_tokens++;
    v->bytes[id] = (nib_str){NULL, is_eog ? 0 : bytes.len};
    v->names[id] = (nib_str){NULL, name.len};
    if (is_eog)
        v->eog[v->n_eog++] = (nib_token)id;
    else
        v->all[id / 32] |= 1u << id % 32;
    return nib_buf_append(&v->text, bytes.ptr, v->bytes[id].len) && nib_buf_append(&v->text, name.ptr, name.len);
}

static void set_pointers(nib_grammar_vocab *v) {
    const char *at = v->text.ptr ? v->text.ptr : "";
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        v->bytes[i].ptr = at;
        v->names[i].ptr = at + v->bytes[i].len;
        at = v->names[i].ptr + v->names[i].len;
        if (v->bytes[i].len > v->max_len) v->max_len = (uint32_t)v->bytes[i].len;
    }
}

/* ---- bits */

static bool add_lengthy(nib_grammar_vocab *v, const nib_grammar_entry *e) {
    if (!nib_grow(&v->lengthy, &v->lengthy_capacity, v->n_lengthy + 1, sizeof *v->lengthy)) return false;
    v->lengthy[v->n_lengthy++] = (nib_grammar_lengthy){e->id, e->n_chars};
    return true;
}

/* Sets of groups hold those of fewer groups; slices those of fewer characters. */
static void close_sets(nib_grammar_vocab *v) {
    for (unsigned bit = 1; bit < NIB_GRAMMAR_N_SETS; bit *= 2)
        for (unsigned set = 0; set < NIB_GRAMMAR_N_SETS; set++) {
            if (!(set & bit)) continue;
            v->n_within[set] += v->n_within[set ^ bit];
            for (size_t w = 0; w < v->n_mask_words; w++) v->within[set][w] |= v->within[set ^ bit][w];
        }
    for (unsigned n = 2; n <= NIB_GRAMMAR_SHORT; n++)
        for (size_t w = 0; w < v->n_mask_words; w++) v->slices[n][w] |= v->slices[n - 1][w];
}

static bool make_sets(nib_grammar_vocab *v, const nib_grammar_entry *plain, size_t n) {
    bool ok = true;
    for (unsigned set = 0; set < NIB_GRAMMAR_N_SETS; set++)
        ok = (v->within[set] = nib_calloc(v->n_mask_words + 1, sizeof **v->within)) != NULL && ok;
    for (unsigned k = 1; k <= NIB_GRAMMAR_SHORT; k++)
        ok = (v->slices[k] = nib_calloc(v->n_mask_words + 1, sizeof **v->slices)) != NULL && ok;
    for (size_t i = 0; ok && i < n; i++) {
        uint32_t id = (uint32_t)plain[i].id, n_chars = plain[i].n_chars;
        v->within[plain[i].groups][id / 32] |= 1u << id % 32;
        v->n_within[plain[i].groups]++;
        if (n_chars > v->max_chars) v->max_chars = n_chars;
        if (n_chars <= NIB_GRAMMAR_SHORT)
            v->slices[n_chars][id / 32] |= 1u << id % 32;
        else
            ok = add_lengthy(v, &plain[i]);
    }
    if (ok) close_sets(v);
    return ok;
}

nib_status nib_grammar_vocab_finish(nib_grammar_vocab *v, nib_error *err) {
    size_t n_plain = 0, n_rest = 0;
    nib_grammar_entry *plain = nib_calloc(v->n_tokens + 1, sizeof *plain);
    nib_grammar_entry *rest = nib_calloc(v->n_tokens + 1, sizeof *rest);
    uint8_t *below = nib_alloc(v->text.len + 1, sizeof *below);
    set_pointers(v);
    bool ok = plain && rest && below && !v->text.failed && v->max_len < UINT16_MAX;
    for (uint32_t i = 0; ok && i < v->n_tokens; i++) {
        nib_grammar_entry e = {.bytes = v->bytes[i], .id = (nib_token)i};
        if (!e.bytes.len) continue;
        nib_grammar_entry_read(&e, below + (e.bytes.ptr - v->text.ptr));
        if (e.groups >> NIB_GRAMMAR_OTHER)
            rest[n_rest++] = e;
        else
            plain[n_plain++] = e;
    }
    ok = ok && make_sets(v, plain, n_plain) && nib_grammar_tree_make(&v->plain, plain, n_plain) &&
         nib_grammar_tree_make(&v->rest, rest, n_rest);
    nib_free(plain);
    nib_free(rest);
    nib_free(below);
    return ok ? NIB_OK : nib_fail_nomem(err, v->text.len, "the bytes of a vocabulary");
}

void nib_grammar_vocab_free(nib_grammar_vocab *v) {
    if (!v) return;
    nib_free(v->bytes);
    nib_free(v->names);
    nib_buf_free(&v->text);
    nib_free(v->eog);
    nib_free(v->all);
    nib_free(v->lengthy);
    for (unsigned set = 0; set < NIB_GRAMMAR_N_SETS; set++) nib_free(v->within[set]);
    for (unsigned k = 1; k <= NIB_GRAMMAR_SHORT; k++) nib_free(v->slices[k]);
    nib_grammar_tree_free(&v->plain);
    nib_grammar_tree_free(&v->rest);
    nib_free(v);
}
