/* grammar/tree.c - tokens in -> tree out, by sorting them byte for byte. */
#include "grammar/tree.h"

#include "base/mem.h"

#include <string.h>

/* ---- tokens */

/* The group of the character at s[*at], which is stepped over. What is cut at the end counts as whole. */
static unsigned next_char(nib_str s, size_t *at) {
    uint8_t c = (uint8_t)s.ptr[(*at)++];
    if (!nib_grammar_is_lead(c)) return NIB_GRAMMAR_OTHER;
    nib_grammar_lead lead = nib_grammar_lead_of(c);
    uint32_t code = c & 0x3Fu >> lead.n;
    for (unsigned i = 0; i < lead.n && *at < s.len; i++, ++*at) {
        uint8_t next = (uint8_t)s.ptr[*at];
        if (next < (i ? 0x80 : lead.lo) || next > (i ? 0xBF : lead.hi)) return NIB_GRAMMAR_OTHER;
        code = code << 6 | (next & 0x3F);
    }
    return nib_grammar_is_line_end(code) ? NIB_GRAMMAR_OTHER : nib_grammar_group(c);
}

void nib_grammar_entry_read(nib_grammar_entry *entry, uint8_t *below) {
    nib_str s = entry->bytes;
    uint8_t groups = 0;
    memset(below, 0, s.len);
    entry->below = below;
    for (size_t i = 0; i < s.len; entry->n_chars++) {
        size_t start = i;
        below[start] = (uint8_t)(1u << next_char(s, &i));
    }
    for (size_t i = s.len; i-- > 0;) below[i] = groups = (uint8_t)(groups | below[i]);
    entry->groups = groups;
}

/* ---- sorting */

enum { N_KEYS = 257, FEW = 24 };

/* By the byte at a depth; tokens that end there come first. */
static unsigned byte_key(const nib_grammar_entry *e, size_t depth) {
    return e->bytes.len == depth ? 0 : 1u + (uint8_t)e->bytes.ptr[depth];
}

/* By groups, those that are short first; all that are not plain count as one. */
static unsigned group_key(const nib_grammar_entry *e, size_t depth) {
    (void)depth;
    if (e->groups >> NIB_GRAMMAR_OTHER) return 2 * NIB_GRAMMAR_N_SETS;
    return e->n_chars > NIB_GRAMMAR_SHORT ? e->groups | NIB_GRAMMAR_N_SETS : e->groups;
}

typedef unsigned (*key_fn)(const nib_grammar_entry *, size_t depth);

/* Keeps the order of equal ones. */
static void sort(nib_grammar_entry *e, size_t n, nib_grammar_entry *spare, key_fn key, size_t depth) {
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            nib_grammar_entry x = e[i];
            size_t at = i;
            for (; at > 0 && key(&e[at - 1], depth) > key(&x, depth); at--) e[at] = e[at - 1];
            e[at] = x;
        }
        return;
    }
    size_t starts[N_KEYS + 1] = {0};
    for (size_t i = 0; i < n; i++) starts[key(&e[i], depth) + 1]++;
    for (size_t k = 0; k < N_KEYS; k++) starts[k + 1] += starts[k];
    memcpy(spare, e, n * sizeof *e);
    for (size_t i = 0; i < n; i++) e[starts[key(&spare[i], depth)]++] = spare[i];
}

/* ---- the tree */

typedef struct range { /* entries of one node, which agree up to depth, and whose children are to be made */
    uint32_t node, lo, hi;
    uint32_t depth;
} range;

typedef struct maker {
    nib_grammar_tree *t;
    nib_grammar_entry *entries, *spare;
    range *stack;
    size_t n_stack, stack_capacity;
} maker;

/* Whether a character is open behind n bytes. */
static bool is_cut(const char *bytes, size_t n) {
    for (unsigned k = 0; k < 3 && k < n; k++) {
        uint8_t c = (uint8_t)bytes[n - 1 - k];
        if (c < 0x80) return false;
        if (c >= 0xC0) return nib_grammar_lead_of(c).n > k;
    }
    return false;
}

static bool add_node(maker *m, range r, uint16_t n_chars) {
    nib_grammar_tree *t = m->t;
    nib_grammar_tree_node node = {.ids = r.lo, .n_chars = n_chars};
    const char *bytes = m->entries[r.lo].bytes.ptr;
    uint8_t byte = (uint8_t)bytes[r.depth - 1];
    bool goes_on = is_cut(bytes, r.depth - 1) && (byte & 0xC0) == 0x80;
    if (!goes_on) node.n_chars++;
    if (is_cut(bytes, r.depth)) node.groups = 1u << NIB_GRAMMAR_OTHER;
    for (uint32_t i = r.lo; i < r.hi; i++) {
        const nib_grammar_entry *e = &m->entries[i];
        if (e->n_chars > node.max_chars) node.max_chars = e->n_chars;
        if (e->bytes.len > r.depth) node.groups |= e->below[r.depth];
    }
    if (!nib_grow(&t->nodes, &t->nodes_capacity, t->n_nodes + 1, sizeof *t->nodes) ||
        !nib_grow(&t->bytes, &t->bytes_capacity, t->n_nodes + 1, 1) ||
        !nib_grow(&m->stack, &m->stack_capacity, m->n_stack + 1, sizeof *m->stack))
        return false;
    r.node = (uint32_t)t->n_nodes;
    m->stack[m->n_stack++] = r;
    t->bytes[t->n_nodes] = byte;
    t->nodes[t->n_nodes++] = node;
    return true;
}

static bool add_children(maker *m, range r) {
    nib_grammar_tree *t = m->t;
    uint32_t at = r.lo, first = (uint32_t)t->n_nodes;
    size_t below = m->n_stack;
    sort(m->entries + r.lo, r.hi - r.lo, m->spare, byte_key, r.depth);
    while (at < r.hi && m->entries[at].bytes.len == r.depth) at++;
    while (at < r.hi) {
        range child = {0, at, at + 1, r.depth + 1};
        unsigned key = byte_key(&m->entries[at], r.depth);
        while (child.hi < r.hi && byte_key(&m->entries[child.hi], r.depth) == key) child.hi++;
        if (!add_node(m, child, t->nodes[r.node].n_chars)) return false;
        at = child.hi;
    }
    t->nodes[r.node].first = first;
    t->nodes[r.node].n_children = (uint16_t)(t->n_nodes - first);
    for (size_t top = m->n_stack; below + 1 < top; below++) { /* the first one goes on top */
        range last = m->stack[--top];
        m->stack[top] = m->stack[below];
        m->stack[below] = last;
    }
    return true;
}

static bool add_branch(maker *m, uint32_t lo, uint32_t hi) {
    nib_grammar_tree *t = m->t;
    uint32_t node = (uint32_t)t->n_nodes;
    if (!nib_grow(&t->branches, &t->branches_capacity, t->n_branches + 1, sizeof *t->branches)) return false;
    bool ok = add_node(m, (range){0, lo, hi, 1}, 0);
    while (ok && m->n_stack) ok = add_children(m, m->stack[--m->n_stack]);
    if (!ok) return false;
    uint8_t groups = m->entries[lo].groups >> NIB_GRAMMAR_OTHER ? 0 : m->entries[lo].groups;
    t->branches[t->n_branches++] = (nib_grammar_branch){node, hi, t->nodes[node].max_chars, groups};
    return true;
}

bool nib_grammar_tree_make(nib_grammar_tree *t, nib_grammar_entry *entries, size_t n) {
    maker m = {.t = t, .entries = entries, .spare = nib_alloc(n + 1, sizeof *entries)};
    uint32_t at = 0, byte = 0;
    t->ids = nib_alloc(n + 1, sizeof *t->ids);
    bool ok = m.spare && t->ids;
    if (ok) {
        sort(entries, n, m.spare, group_key, 0);
        sort(entries, n, m.spare, byte_key, 0);
    }
    while (ok && at < n) {
        const nib_grammar_entry *e = &entries[at];
        uint32_t end = at + 1;
        while (end < n && entries[end].bytes.ptr[0] == e->bytes.ptr[0] &&
               group_key(&entries[end], 0) == group_key(e, 0))
            end++;
        while (byte <= (uint8_t)e->bytes.ptr[0]) t->roots[byte++] = (uint32_t)t->n_branches;
        ok = add_branch(&m, at, end);
        at = end;
    }
    while (byte <= 256) t->roots[byte++] = (uint32_t)t->n_branches;
    for (size_t i = 0; ok && i < n; i++) t->ids[i] = entries[i].id;
    t->n_ids = n;
    nib_free(m.spare);
    nib_free(m.stack);
    return ok;
}

void nib_grammar_tree_free(nib_grammar_tree *t) {
    nib_free(t->nodes);
    nib_free(t->bytes);
    nib_free(t->branches);
    nib_free(t->ids);
}
