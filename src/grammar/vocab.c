/* grammar/vocab.c - tokens in -> trees of their bytes, and bit sets of plain tokens by length. */
#include "grammar/vocab.h"

#include "base/mem.h"
#include "base/status.h"
#include "grammar/plain.h"

#include <stdlib.h>
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

typedef struct entry {
    nib_str bytes;
    nib_token id;
    uint32_t n_chars; /* 0: not plain */
} entry;

static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    size_t n = x->bytes.len < y->bytes.len ? x->bytes.len : y->bytes.len;
    int c = memcmp(x->bytes.ptr, y->bytes.ptr, n);
    if (c) return c;
    if (x->bytes.len != y->bytes.len) return x->bytes.len < y->bytes.len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_lengths(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->n_chars != y->n_chars) return x->n_chars < y->n_chars ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Characters of text that is plain from its first byte on; the last one may be cut. 0: it is not. */
static uint32_t count_plain(nib_str s) {
    uint32_t n = 0;
    for (size_t i = 0; i < s.len; n++) {
        unsigned char c = (unsigned char)s.ptr[i++];
        if (!nib_grammar_is_plain(c) || (c >= 0x80 && c < 0xC2) || c > 0xF4) return 0;
        unsigned left = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
        unsigned char lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        for (; left && i < s.len; left--, i++, lo = 0x80, hi = 0xBF)
            if ((unsigned char)s.ptr[i] < lo || (unsigned char)s.ptr[i] > hi) return 0;
    }
    return n;
}

static bool add_node(nib_grammar_tree *t, uint8_t byte, uint16_t depth) {
    if (!nib_grow(&t->nodes, &t->capacity, t->n_nodes + 1, sizeof *t->nodes)) return false;
    t->nodes[t->n_nodes++] = (nib_grammar_tree_node){.byte = byte, .depth = depth, .ids = (uint32_t)t->n_ids};
    return true;
}

/* A tree of sorted entries. */
static bool make_tree(nib_grammar_tree *t, const entry *entries, size_t n, size_t max_len) {
    uint32_t *path = nib_calloc(max_len + 1, sizeof *path); /* the node at each depth */
    nib_str last = {"", 0};
    t->ids = nib_calloc(n + 1, sizeof *t->ids);
    bool ok = path && t->ids;
    for (size_t i = 0; ok && i < n; i++) {
        nib_str s = entries[i].bytes;
        unsigned groups = 0;
        size_t common = 0;
        while (common < last.len && common < s.len && last.ptr[common] == s.ptr[common]) common++;
        for (size_t d = last.len; d > common; d--) t->nodes[path[d]].end = (uint32_t)t->n_nodes;
        for (size_t d = common + 1; ok && d <= s.len; d++) {
            path[d] = (uint32_t)t->n_nodes;
            ok = add_node(t, (uint8_t)s.ptr[d - 1], (uint16_t)d);
        }
        if (!ok) break;
        for (size_t d = s.len; d > 0; d--) {
            t->nodes[path[d]].groups |= (uint8_t)groups;
            groups |= 1u << nib_grammar_group((uint8_t)s.ptr[d - 1]);
        }
        t->nodes[path[s.len]].n_ids++;
        t->ids[t->n_ids++] = entries[i].id;
        last = s;
    }
    for (size_t d = last.len; ok && d > 0; d--) t->nodes[path[d]].end = (uint32_t)t->n_nodes;
    nib_free(path);
    return ok;
}

static bool make_slices(nib_grammar_vocab *v, entry *plain, size_t n) {
    v->by_length = nib_calloc(n + 1, sizeof *v->by_length);
    v->lengths = nib_calloc(n + 1, sizeof *v->lengths);
    bool ok = v->by_length && v->lengths;
    for (size_t k = 0; k <= NIB_GRAMMAR_SLICES; k++)
        ok = (v->slices[k] = nib_calloc(v->n_mask_words + 1, sizeof **v->slices)) != NULL && ok;
    if (!ok) return false;
    qsort(plain, n, sizeof *plain, compare_lengths);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)plain[i].id;
        v->by_length[i] = plain[i].id;
        v->lengths[i] = plain[i].n_chars;
        for (size_t k = 0; k <= NIB_GRAMMAR_SLICES; k++)
            if (k == 0 || plain[i].n_chars <= k) v->slices[k][id / 32] |= 1u << id % 32;
    }
    v->n_by_length = n;
    return true;
}

nib_status nib_grammar_vocab_finish(nib_grammar_vocab *v, nib_error *err) {
    size_t n_plain = 0, n_rest = 0;
    entry *plain = nib_calloc(v->n_tokens + 1, sizeof *plain), *rest = nib_calloc(v->n_tokens + 1, sizeof *rest);
    set_pointers(v);
    bool ok = plain && rest && !v->text.failed && v->max_len < UINT16_MAX;
    for (uint32_t i = 0; ok && i < v->n_tokens; i++) {
        entry e = {v->bytes[i], (nib_token)i, count_plain(v->bytes[i])};
        if (!e.bytes.len) continue;
        if (e.n_chars)
            plain[n_plain++] = e;
        else
            rest[n_rest++] = e;
    }
    if (ok) {
        qsort(plain, n_plain, sizeof *plain, compare_entries);
        qsort(rest, n_rest, sizeof *rest, compare_entries);
        ok = make_tree(&v->plain, plain, n_plain, v->max_len) && make_tree(&v->rest, rest, n_rest, v->max_len) &&
             make_slices(v, plain, n_plain);
    }
    nib_free(plain);
    nib_free(rest);
    return ok ? NIB_OK : nib_fail_nomem(err, v->text.len, "the bytes of a vocabulary");
}

static void free_tree(nib_grammar_tree *t) {
    nib_free(t->nodes);
    nib_free(t->ids);
}

void nib_grammar_vocab_free(nib_grammar_vocab *v) {
    if (!v) return;
    nib_free(v->bytes);
    nib_free(v->names);
    nib_buf_free(&v->text);
    nib_free(v->eog);
    nib_free(v->all);
    nib_free(v->by_length);
    nib_free(v->lengths);
    for (size_t k = 0; k <= NIB_GRAMMAR_SLICES; k++) nib_free(v->slices[k]);
    free_tree(&v->plain);
    free_tree(&v->rest);
    nib_free(v);
}
