/* grammar/negate.c - the complement of a pattern: first one state for each set of states (subset construction), then
 * ends and others change places. */
#include "base/mem.h"
#include "grammar/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SUBSETS = 4096 };

typedef struct subsets {
    nib_grammar_build *b;
    const nib_grammar_pattern *p;
    uint64_t *bits; /* n_words for each subset */
    size_t n, capacity, n_words;
    nib_grammar_charset *to; /* while one subset is worked on: the characters that lead to each other one */
    size_t to_capacity;
    uint32_t *cuts; /* where characters begin to behave otherwise */
    size_t n_cuts, cuts_capacity;
} subsets;

static void no_memory(subsets *s) {
    nib_grammar_build_fail(s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory to negate a pattern");
}

static uint32_t find_subset(subsets *s, const uint64_t *bits) {
    for (size_t i = 0; i < s->n; i++)
        if (memcmp(s->bits + i * s->n_words, bits, s->n_words * sizeof *bits) == 0) return (uint32_t)i;
    if (s->n >= MAX_SUBSETS)
        nib_grammar_build_fail(s->b, NIB_E_LIMIT, s->b->offset,
                               "the complement of the pattern needs more than %d states", MAX_SUBSETS);
    else if (!nib_grow(&s->bits, &s->capacity, s->n + 1, s->n_words * sizeof *s->bits))
        no_memory(s);
    if (s->b->status != NIB_OK) return 0;
    memcpy(s->bits + s->n * s->n_words, bits, s->n_words * sizeof *bits);
    return (uint32_t)s->n++;
}

static bool has(const uint64_t *bits, uint32_t state) {
    return bits[state / 64] >> state % 64 & 1;
}

static int compare_cuts(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void add_cut(subsets *s, uint32_t c) {
    if (nib_grow(&s->cuts, &s->cuts_capacity, s->n_cuts + 1, sizeof *s->cuts))
        s->cuts[s->n_cuts++] = c;
    else
        no_memory(s);
}

static void find_cuts(subsets *s, const uint64_t *bits) {
    s->n_cuts = 0;
    add_cut(s, 0);
    for (size_t e = 0; e < s->p->n_edges; e++) {
        const nib_grammar_charset *set = &s->p->sets[s->p->edges[e].set];
        for (size_t i = 0; has(bits, s->p->edges[e].from) && i < set->n; i++) {
            add_cut(s, set->ranges[i].lo);
            add_cut(s, set->ranges[i].hi + 1);
        }
    }
    add_cut(s, 0x110000);
    qsort(s->cuts, s->n_cuts, sizeof *s->cuts, compare_cuts);
}

/* Edges of subset i. */
static void step(subsets *s, size_t i, nib_grammar_pattern *out, uint64_t *bits, uint64_t *next) {
    memcpy(bits, s->bits + i * s->n_words, s->n_words * sizeof *bits);
    find_cuts(s, bits);
    for (size_t c = 0; c + 1 < s->n_cuts && s->b->status == NIB_OK; c++) {
        uint32_t lo = s->cuts[c], hi = s->cuts[c + 1] - 1;
        if (s->cuts[c] == s->cuts[c + 1]) continue;
        memset(next, 0, s->n_words * sizeof *next);
        for (size_t e = 0; e < s->p->n_edges; e++) {
            const nib_grammar_pattern_edge *edge = &s->p->edges[e];
            if (has(bits, edge->from) && nib_grammar_charset_has(&s->p->sets[edge->set], lo))
                next[edge->to / 64] |= UINT64_C(1) << edge->to % 64;
        }
        uint32_t to = find_subset(s, next);
        size_t before = s->to_capacity;
        if (!nib_grow(&s->to, &s->to_capacity, s->n, sizeof *s->to)) no_memory(s);
        if (s->b->status != NIB_OK) return;
        memset(s->to + before, 0, (s->to_capacity - before) * sizeof *s->to);
        nib_grammar_charset_add(&s->to[to], lo, hi);
    }
    for (uint32_t to = 0; to < s->to_capacity && s->b->status == NIB_OK; to++) {
        if (!s->to[to].n) continue;
        nib_grammar_charset_sort(&s->to[to]);
        uint32_t set = nib_grammar_pattern_set(s->b, out, &s->to[to]);
        nib_grammar_pattern_edge_add(s->b, out, (nib_grammar_pattern_edge){(uint32_t)i, to, set});
    }
}

void nib_grammar_pattern_negate(nib_grammar_build *b, nib_grammar_pattern *p) {
    subsets s = {.b = b, .p = p, .n_words = p->n_states / 64 + 1};
    nib_grammar_pattern out = {0};
    if (b->status != NIB_OK) return;
    uint64_t *bits = nib_calloc(s.n_words, sizeof *bits), *next = nib_calloc(s.n_words, sizeof *next);
    if (!bits || !next) no_memory(&s);
    if (bits && p->n_states) bits[0] = 1;
    if (b->status == NIB_OK) find_subset(&s, bits);
    for (size_t i = 0; i < s.n && b->status == NIB_OK; i++) step(&s, i, &out, bits, next);
    for (size_t i = 0; i < s.n && b->status == NIB_OK; i++) {
        uint32_t state = nib_grammar_pattern_state(b, &out);
        bool ends = false;
        for (uint32_t q = 0; q < p->n_states; q++) ends |= has(s.bits + i * s.n_words, q) && p->ends[q];
        if (b->status == NIB_OK) out.ends[state] = !ends;
    }
    nib_grammar_pattern_sort(b, &out);
    for (size_t i = 0; i < s.to_capacity; i++) nib_grammar_charset_free(&s.to[i]);
    nib_free(s.to);
    nib_free(s.bits);
    nib_free(s.cuts);
    nib_free(bits);
    nib_free(next);
    nib_grammar_pattern_free(p);
    *p = out;
}
