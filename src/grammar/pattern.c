/* grammar/pattern.c - automata over characters: building, cutting to lengths, meeting, drawing. */
#include "grammar/pattern.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void nib_grammar_pattern_free(nib_grammar_pattern *p) {
    for (size_t i = 0; i < p->n_sets; i++) nib_grammar_charset_free(&p->sets[i]);
    nib_free(p->sets);
    nib_free(p->edges);
    nib_free(p->first);
    nib_free(p->ends);
    *p = (nib_grammar_pattern){0};
}

static void no_memory(nib_grammar_build *b, size_t n) {
    nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a pattern of %zu states", n);
}

uint32_t nib_grammar_pattern_state(nib_grammar_build *b, nib_grammar_pattern *p) {
    if (p->n_states >= NIB_GRAMMAR_MAX_PATTERN)
        nib_grammar_build_fail(b, NIB_E_LIMIT, b->offset,
                               "the pattern needs more than %d states; bounds of repetitions multiply",
                               NIB_GRAMMAR_MAX_PATTERN);
    else if (!nib_grow(&p->ends, &p->ends_capacity, p->n_states + 1, 1))
        no_memory(b, p->n_states);
    if (b->status != NIB_OK) return 0;
    p->ends[p->n_states] = 0;
    return (uint32_t)p->n_states++;
}

uint32_t nib_grammar_pattern_set(nib_grammar_build *b, nib_grammar_pattern *p, nib_grammar_charset *set) {
    if (set->failed || !nib_grow(&p->sets, &p->sets_capacity, p->n_sets + 1, sizeof *p->sets))
        no_memory(b, p->n_states);
    if (b->status != NIB_OK) {
        nib_grammar_charset_free(set);
        return 0;
    }
    p->sets[p->n_sets] = *set;
    *set = (nib_grammar_charset){0};
    return (uint32_t)p->n_sets++;
}

void nib_grammar_pattern_edge_add(nib_grammar_build *b, nib_grammar_pattern *p, nib_grammar_pattern_edge edge) {
    if (b->status != NIB_OK) return;
    if (p->n_edges >= 5 * (size_t)NIB_GRAMMAR_MAX_PATTERN)
        nib_grammar_build_fail(b, NIB_E_LIMIT, b->offset, "the pattern needs more than %d edges",
                               5 * NIB_GRAMMAR_MAX_PATTERN);
    else if (!nib_grow(&p->edges, &p->edges_capacity, p->n_edges + 1, sizeof *p->edges))
        no_memory(b, p->n_states);
    else
        p->edges[p->n_edges++] = edge;
}

static int by_from(const void *a, const void *b) {
    const nib_grammar_pattern_edge *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->set < y->set ? -1 : x->set > y->set;
}

static void index_edges(nib_grammar_pattern *p) {
    size_t e = 0, n = 0;
    if (p->n_edges) qsort(p->edges, p->n_edges, sizeof *p->edges, by_from);
    for (size_t i = 0; i < p->n_edges; i++)
        if (n == 0 || by_from(&p->edges[n - 1], &p->edges[i]) != 0) p->edges[n++] = p->edges[i];
    p->n_edges = n;
    for (size_t s = 0; s <= p->n_states; s++) {
        while (e < p->n_edges && p->edges[e].from < s) e++;
        p->first[s] = (uint32_t)e;
    }
}

/* Marks states that reach an end, backwards over edges sorted by their targets. */
static bool find_live(const nib_grammar_pattern *p, uint8_t *live) {
    uint32_t *stack = nib_calloc(p->n_states + 1, sizeof *stack), *next = nib_calloc(p->n_edges + 1, sizeof *next);
    uint32_t *head = nib_calloc(p->n_states + 1, sizeof *head);
    size_t n = 0;
    bool ok = stack && next && head;
    if (ok) memset(head, 0xFF, (p->n_states + 1) * sizeof *head);
    for (size_t e = 0; ok && e < p->n_edges; e++) {
        next[e] = head[p->edges[e].to];
        head[p->edges[e].to] = (uint32_t)e;
    }
    for (size_t s = 0; ok && s < p->n_states; s++)
        if (p->ends[s]) stack[n++] = (uint32_t)s, live[s] = 1;
    while (ok && n) {
        uint32_t s = stack[--n];
        for (uint32_t e = head[s]; e != UINT32_MAX; e = next[e])
            if (!live[p->edges[e].from]) live[p->edges[e].from] = 1, stack[n++] = p->edges[e].from;
    }
    nib_free(stack);
    nib_free(next);
    nib_free(head);
    return ok;
}

void nib_grammar_pattern_sort(nib_grammar_build *b, nib_grammar_pattern *p) {
    if (b->status != NIB_OK) return;
    uint8_t *live = nib_calloc(p->n_states + 1, 1);
    nib_free(p->first);
    p->first = nib_calloc(p->n_states + 2, sizeof *p->first);
    if (!live || !p->first || !find_live(p, live)) {
        no_memory(b, p->n_states);
    } else {
        size_t n = 0;
        for (size_t e = 0; e < p->n_edges; e++)
            if (live[p->edges[e].to] && p->sets[p->edges[e].set].n) p->edges[n++] = p->edges[e];
        p->n_edges = n;
        index_edges(p);
    }
    nib_free(live);
}

bool nib_grammar_pattern_is_empty(const nib_grammar_pattern *p) {
    return !p->n_states || (!p->ends[0] && p->first[0] == p->first[1]);
}

/* ---- products: the states of the result are pairs (state of p, number) */

typedef struct pairs {
    uint64_t *keys;
    uint32_t *table; /* index + 1 */
    size_t n, keys_capacity, n_table;
} pairs;

static void free_pairs(pairs *s) {
    nib_free(s->keys);
    nib_free(s->table);
}

static size_t pair_slot(const pairs *s, uint64_t key) {
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (s->n_table - 1);
    while (s->keys && s->table[at] && s->keys[s->table[at] - 1] != key) at = (at + 1) & (s->n_table - 1);
    return at;
}

/* The state of a pair, new if need be. */
static uint32_t pair_state(nib_grammar_build *b, pairs *s, nib_grammar_pattern *out, uint64_t key) {
    if (s->n * 2 >= s->n_table) {
        size_t n = s->n_table ? s->n_table * 2 : 256;
        uint32_t *table = nib_calloc(n, sizeof *table);
        if (!table) no_memory(b, s->n);
        if (!table) return 0;
        nib_free(s->table);
        s->table = table;
        s->n_table = n;
        for (size_t i = 0; i < s->n; i++) s->table[pair_slot(s, s->keys[i])] = (uint32_t)i + 1;
    }
    size_t at = pair_slot(s, key);
    if (s->table[at]) return s->table[at] - 1;
    if (!nib_grow(&s->keys, &s->keys_capacity, s->n + 1, sizeof *s->keys)) no_memory(b, s->n);
    uint32_t state = nib_grammar_pattern_state(b, out);
    if (b->status != NIB_OK) return 0;
    s->keys[s->n++] = key;
    s->table[at] = (uint32_t)s->n;
    return state;
}

static void replace(nib_grammar_build *b, nib_grammar_pattern *p, nib_grammar_pattern *with, pairs *s) {
    nib_grammar_pattern_sort(b, with);
    nib_grammar_pattern_free(p);
    *p = *with;
    free_pairs(s);
}

void nib_grammar_pattern_cut(nib_grammar_build *b, nib_grammar_pattern *p, uint32_t min, uint32_t max) {
    nib_grammar_pattern out = {0};
    pairs s = {0};
    if (b->status != NIB_OK || (min == 0 && max == NIB_GRAMMAR_NO)) return;
    out.sets = p->sets; /* handed over */
    out.n_sets = p->n_sets;
    out.sets_capacity = p->sets_capacity;
    p->sets = NULL;
    p->n_sets = 0;
    pair_state(b, &s, &out, 0);
    for (size_t i = 0; i < s.n && b->status == NIB_OK; i++) {
        uint32_t q = (uint32_t)(s.keys[i] >> 32), n = (uint32_t)s.keys[i];
        out.ends[i] = p->ends[q] && n >= min;
        if (n == max) continue;
        uint32_t more = max == NIB_GRAMMAR_NO && n == min ? n : n + 1;
        for (uint32_t e = p->first[q]; e < p->first[q + 1] && b->status == NIB_OK; e++) {
            uint32_t to = pair_state(b, &s, &out, (uint64_t)p->edges[e].to << 32 | more);
            nib_grammar_pattern_edge_add(b, &out, (nib_grammar_pattern_edge){(uint32_t)i, to, p->edges[e].set});
        }
    }
    replace(b, p, &out, &s);
}

void nib_grammar_pattern_meet(nib_grammar_build *b, nib_grammar_pattern *p, const nib_grammar_pattern *q) {
    nib_grammar_pattern out = {0};
    pairs s = {0};
    if (b->status != NIB_OK) return;
    pair_state(b, &s, &out, 0);
    for (size_t i = 0; i < s.n && b->status == NIB_OK; i++) {
        uint32_t x = (uint32_t)(s.keys[i] >> 32), y = (uint32_t)s.keys[i];
        out.ends[i] = p->ends[x] && q->ends[y];
        for (uint32_t e = p->first[x]; e < p->first[x + 1]; e++)
            for (uint32_t f = q->first[y]; f < q->first[y + 1] && b->status == NIB_OK; f++) {
                nib_grammar_charset both = {0};
                nib_grammar_charset_meet(&p->sets[p->edges[e].set], &q->sets[q->edges[f].set], &both);
                if (!both.n && !both.failed) continue;
                uint32_t set = nib_grammar_pattern_set(b, &out, &both);
                uint32_t to = pair_state(b, &s, &out, (uint64_t)p->edges[e].to << 32 | q->edges[f].to);
                nib_grammar_pattern_edge_add(b, &out, (nib_grammar_pattern_edge){(uint32_t)i, to, set});
            }
    }
    replace(b, p, &out, &s);
}

/* ---- matching and complement of lists */

bool nib_grammar_pattern_matches(nib_grammar_build *b, const nib_grammar_pattern *p, nib_str text) {
    uint8_t *now = nib_calloc(p->n_states + 1, 1), *next = nib_calloc(p->n_states + 1, 1), *swap;
    bool ends = false;
    if (!now || !next) {
        no_memory(b, p->n_states);
        goto out;
    }
    now[0] = 1;
    for (size_t i = 0, len; i < text.len && b->status == NIB_OK; i += len) {
        uint32_t c;
        len = nib_utf8_char(text.ptr + i, text.len - i, &c);
        if (!len) break; /* texts of JSON are UTF-8 */
        memset(next, 0, p->n_states);
        for (size_t e = 0; e < p->n_edges; e++)
            if (now[p->edges[e].from] && nib_grammar_charset_has(&p->sets[p->edges[e].set], c))
                next[p->edges[e].to] = 1;
        swap = now;
        now = next;
        next = swap;
    }
    for (size_t s = 0; s < p->n_states; s++) ends |= now[s] && p->ends[s];
out:
    nib_free(now);
    nib_free(next);
    return ends;
}

static uint32_t any_set(nib_grammar_build *b, nib_grammar_pattern *p) {
    nib_grammar_charset all = {0};
    nib_grammar_charset_add(&all, 0, 0x10FFFF);
    return nib_grammar_pattern_set(b, p, &all);
}

static int by_text(const void *a, const void *b) {
    const nib_str *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->ptr, y->ptr, n) : 0;
    return c ? c : x->len < y->len ? -1 : x->len > y->len;
}

typedef struct tree_range { /* texts [from, to) share their first `at` bytes, which lead to state */
    size_t from, to, at;
    uint32_t state;
} tree_range;

/* The edges of one state of the tree: a character of a text leads on in it, all others lead to where anything goes. */
static void branch(nib_grammar_build *b, nib_grammar_pattern *out, const nib_str *texts, tree_range r,
                   uint32_t anything, tree_range *more, size_t *n_more) {
    nib_grammar_charset others = {0};
    size_t i = r.from;
    out->ends[r.state] = 1;
    for (; i < r.to && texts[i].len == r.at; i++) out->ends[r.state] = 0;
    while (i < r.to && b->status == NIB_OK) {
        uint32_t c = 0;
        size_t len = nib_utf8_char(texts[i].ptr + r.at, texts[i].len - r.at, &c), from = i;
        for (i++; i < r.to && memcmp(texts[i].ptr + r.at, texts[from].ptr + r.at, len) == 0;) i++;
        nib_grammar_charset one = {0};
        nib_grammar_charset_add(&one, c, c);
        nib_grammar_charset_add(&others, c, c);
        uint32_t set = nib_grammar_pattern_set(b, out, &one), to = nib_grammar_pattern_state(b, out);
        nib_grammar_pattern_edge_add(b, out, (nib_grammar_pattern_edge){r.state, to, set});
        more[(*n_more)++] = (tree_range){from, i, r.at + len, to};
    }
    nib_grammar_charset_sort(&others);
    nib_grammar_charset_negate(&others);
    uint32_t set = nib_grammar_pattern_set(b, out, &others);
    nib_grammar_pattern_edge_add(b, out, (nib_grammar_pattern_edge){r.state, anything, set});
}

void nib_grammar_pattern_except(nib_grammar_build *b, const nib_str *texts, size_t n, nib_grammar_pattern *out) {
    nib_str *sorted = nib_calloc(n + 1, sizeof *sorted);
    size_t n_stack = 0, total = 1;
    for (size_t i = 0; i < n; i++) total += texts[i].len + 1;
    tree_range *stack = nib_calloc(total, sizeof *stack);
    if (!sorted || !stack) no_memory(b, n);
    if (sorted && n) memcpy(sorted, texts, n * sizeof *sorted);
    if (sorted && n) qsort(sorted, n, sizeof *sorted, by_text);
    uint32_t start = nib_grammar_pattern_state(b, out), anything = nib_grammar_pattern_state(b, out);
    uint32_t any = any_set(b, out);
    nib_grammar_pattern_edge_add(b, out, (nib_grammar_pattern_edge){anything, anything, any});
    if (b->status == NIB_OK && stack) {
        out->ends[anything] = 1;
        stack[n_stack++] = (tree_range){0, n, 0, start};
    }
    while (n_stack && b->status == NIB_OK) {
        tree_range r = stack[--n_stack];
        branch(b, out, sorted, r, anything, stack, &n_stack);
    }
    nib_free(sorted);
    nib_free(stack);
    nib_grammar_pattern_sort(b, out);
}

/* ---- drawing */

nib_grammar_piece nib_grammar_pattern_draw(nib_grammar_build *b, const nib_grammar_pattern *p,
                                           nib_grammar_draw_set_fn draw) {
    uint32_t *nodes = nib_calloc(p->n_states + 1, sizeof *nodes), end = nib_grammar_node(b);
    nib_grammar_piece piece = {end, end};
    if (!nodes) {
        no_memory(b, p->n_states);
        return piece;
    }
    for (size_t s = 0; s < p->n_states && b->status == NIB_OK; s++) {
        nodes[s] = nib_grammar_node(b);
        if (p->ends[s]) nib_grammar_empty(b, nodes[s], end);
    }
    if (b->status == NIB_OK && p->n_states)
        piece.start = nodes[0];
    else if (b->status == NIB_OK)
        piece.start = nib_grammar_node(b); /* nothing matches */
    for (size_t e = 0; e < p->n_edges && b->status == NIB_OK; e++) {
        const nib_grammar_pattern_edge *edge = &p->edges[e];
        draw(b, nodes[edge->from], nodes[edge->to], &p->sets[edge->set]);
    }
    nib_free(nodes);
    return piece;
}
