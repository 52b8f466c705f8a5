/* grammar/merge.c - fewer states for the same language: paths that begin alike share their beginning (a list of words
 * becomes a tree), states from which the same is possible become one. Then classes of bytes, and flags. */
#include "base/hash.h"
#include "base/mem.h"
#include "grammar/finish.h"
#include "grammar/plain.h"

#include <stdlib.h>
#include <string.h>

static int compare_edges(const void *a, const void *b) {
    const nib_grammar_edge *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi) return x->hi < y->hi ? -1 : 1;
    if (x->arg != y->arg) return x->arg < y->arg ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static bool is_same_label(const nib_grammar_edge *x, const nib_grammar_edge *y) {
    return x->kind == y->kind && x->lo == y->lo && x->hi == y->hi && x->arg == y->arg;
}

/* Sorts the edges of a state and drops doubles, whose targets lose an entry. */
static void tidy(nib_grammar_edge *edges, nib_grammar_state *s, uint32_t *entries) {
    uint32_t n = 0;
    if (s->n_edges < 2) return;
    nib_grammar_edge *e = edges + s->edges;
    qsort(e, s->n_edges, sizeof *e, compare_edges);
    for (uint32_t i = 1; i < s->n_edges; i++) {
        if (compare_edges(&e[n], &e[i]) != 0)
            e[++n] = e[i];
        else if (entries)
            entries[e[i].to]--;
    }
    s->n_edges = n + 1;
}

/* Moves the edges of states x[0 … n) to a fresh place as those of the first one. */
static bool join(nib_grammar *g, size_t *capacity, const nib_grammar_edge *same, uint32_t n) {
    size_t total = 0, at = g->n_edges;
    nib_grammar_state *first = &g->states[same[0].to];
    uint32_t list[64];
    for (uint32_t i = 0; i < n; i++) {
        list[i] = same[i].to;
        total += g->states[list[i]].n_edges;
    }
    if (!nib_grow(&g->edges, capacity, at + total, sizeof *g->edges)) return false;
    for (uint32_t i = 0; i < n; i++) {
        nib_grammar_state *s = &g->states[list[i]];
        memcpy(g->edges + g->n_edges, g->edges + s->edges, s->n_edges * sizeof *g->edges);
        g->n_edges += s->n_edges;
        first->flags |= s->flags;
        if (i) s->n_edges = 0;
    }
    first->edges = (uint32_t)at;
    first->n_edges = (uint32_t)total;
    return true;
}

/* Joins targets that are entered only here, by edges with the same label. */
static bool join_targets(nib_grammar *g, size_t *capacity, uint32_t state, uint32_t *entries) {
    nib_grammar_state *s = &g->states[state];
    uint32_t to = 0;
    for (uint32_t i = 0, n; i < s->n_edges; i += n) {
        nib_grammar_edge *e = g->edges + s->edges + i;
        uint32_t alone = 0;
        for (n = 1; i + n < s->n_edges && n < 64 && is_same_label(e, e + n);) n++;
        for (uint32_t k = 0; k < n; k++) alone += entries[e[k].to] == 1;
        bool is_move = e->kind >= NIB_GRAMMAR_INC;
        if (n > 1 && alone == n && !is_move) {
            if (!join(g, capacity, e, n)) return false;
            e = g->edges + s->edges + i;
            g->edges[s->edges + to++] = *e;
        } else {
            for (uint32_t k = 0; k < n; k++) g->edges[s->edges + to++] = e[k];
        }
    }
    s->n_edges = to;
    return true;
}

static bool merge_beginnings(nib_grammar *g) {
    uint32_t *entries = nib_calloc(g->n_states + 1, sizeof *entries),
             *queue = nib_calloc(g->n_states + 1, sizeof *queue);
    uint8_t *seen = nib_calloc(g->n_states + 1, 1);
    size_t capacity = g->n_edges, n_queue = 0, before;
    bool ok = entries && queue && seen;
    for (size_t i = 0; ok && i < g->n_rules; i++) {
        uint32_t start = g->rules[i].start;
        if (start == NIB_GRAMMAR_NO) continue;
        entries[start] += 2; /* never alone */
        if (!seen[start]) queue[n_queue++] = start;
        seen[start] = 1;
    }
    for (size_t i = 0; ok && i < g->n_states; i++)
        for (uint32_t e = 0; e < g->states[i].n_edges; e++) entries[g->edges[g->states[i].edges + e].to]++;
    for (size_t at = 0; ok && at < n_queue; at++) {
        nib_grammar_state *s = &g->states[queue[at]];
        do { /* 64 at a time */
            before = s->n_edges;
            tidy(g->edges, s, entries);
            ok = join_targets(g, &capacity, queue[at], entries);
        } while (ok && s->n_edges < before && s->n_edges > 1);
        for (uint32_t e = 0; ok && e < s->n_edges; e++) {
            uint32_t to = g->edges[s->edges + e].to;
            if (!seen[to]) queue[n_queue++] = to;
            seen[to] = 1;
        }
    }
    nib_free(entries);
    nib_free(queue);
    nib_free(seen);
    return ok;
}

static uint64_t hash_state(const nib_grammar *g, const nib_grammar_state *s) {
    uint64_t h = s->flags;
    for (uint32_t e = 0; e < s->n_edges; e++) {
        const nib_grammar_edge *x = &g->edges[s->edges + e];
        h = (h ^ x->to) * UINT64_C(0x9E3779B97F4A7C15);
        h = (h ^ x->arg ^ (uint64_t)x->kind << 40 ^ (uint64_t)x->lo << 48 ^ (uint64_t)x->hi << 56) *
            UINT64_C(0xC2B2AE3D27D4EB4F);
        h ^= h >> 29;
    }
    return h;
}

static bool is_same_state(const nib_grammar *g, const nib_grammar_state *x, const nib_grammar_state *y) {
    if (x->flags != y->flags || x->n_edges != y->n_edges) return false;
    for (uint32_t e = 0; e < x->n_edges; e++)
        if (compare_edges(&g->edges[x->edges + e], &g->edges[y->edges + e]) != 0) return false;
    return true;
}

enum { GONE = 128 }; /* a flag that no state has */

/* One pass: equal states -> the first of them. Returns how many went. */
static size_t merge_once(nib_grammar *g, uint32_t *table, size_t n_table, uint32_t *to) {
    size_t n_gone = 0;
    memset(table, 0xFF, n_table * sizeof *table);
    for (uint32_t i = 0; i < g->n_states; i++) {
        to[i] = i;
        if (g->states[i].flags == GONE) continue;
        size_t at = hash_state(g, &g->states[i]) & (n_table - 1);
        while (table[at] != UINT32_MAX && !is_same_state(g, &g->states[table[at]], &g->states[i]))
            at = (at + 1) & (n_table - 1);
        if (table[at] == UINT32_MAX) {
            table[at] = i;
            continue;
        }
        to[i] = table[at];
        g->states[i].flags = GONE;
        g->states[i].n_edges = 0;
        n_gone++;
    }
    for (uint32_t i = 0; n_gone && i < g->n_states; i++) {
        nib_grammar_state *s = &g->states[i];
        for (uint32_t e = 0; e < s->n_edges; e++) g->edges[s->edges + e].to = to[g->edges[s->edges + e].to];
        tidy(g->edges, s, NULL);
    }
    for (size_t i = 0; n_gone && i < g->n_rules; i++)
        if (g->rules[i].start != NIB_GRAMMAR_NO) g->rules[i].start = to[g->rules[i].start];
    return n_gone;
}

static bool merge_ends(nib_grammar *g) {
    enum { MAX_PASSES = 24 };
    size_t n_table = 64;
    while (n_table < g->n_states * 2) n_table *= 2;
    uint32_t *table = nib_alloc(n_table, sizeof *table), *to = nib_alloc(g->n_states + 1, sizeof *to);
    bool ok = table && to;
    for (size_t i = 0; ok && i < g->n_states; i++) tidy(g->edges, &g->states[i], NULL);
    for (int pass = 0; ok && pass < MAX_PASSES && merge_once(g, table, n_table, to);) pass++;
    nib_free(table);
    nib_free(to);
    return ok;
}

/* Numbers the states that are left, in the order of a walk from the rules, and packs their edges. */
static bool pack(nib_grammar *g) {
    uint32_t *queue = nib_calloc(g->n_states + 1, sizeof *queue), *number = nib_alloc(g->n_states + 1, sizeof *number);
    nib_grammar_state *states = nib_calloc(g->n_states + 1, sizeof *states);
    nib_grammar_edge *edges = nib_calloc(g->n_edges + 1, sizeof *edges);
    bool ok = queue && number && states && edges;
    uint32_t n = 0, n_edges = 0;
    if (ok) memset(number, 0xFF, g->n_states * sizeof *number);
    for (size_t i = 0; ok && i < g->n_rules; i++) {
        uint32_t *start = &g->rules[i].start;
        if (*start == NIB_GRAMMAR_NO) continue;
        if (number[*start] == UINT32_MAX) {
            queue[n] = *start;
            number[*start] = n++;
        }
        *start = number[*start];
    }
    for (uint32_t at = 0; ok && at < n; at++) {
        const nib_grammar_state *s = &g->states[queue[at]];
        states[at] = (nib_grammar_state){.edges = n_edges, .n_edges = s->n_edges, .flags = s->flags};
        for (uint32_t e = 0; e < s->n_edges; e++) {
            nib_grammar_edge edge = g->edges[s->edges + e];
            if (number[edge.to] == UINT32_MAX) {
                queue[n] = edge.to;
                number[edge.to] = n++;
            }
            edge.to = number[edge.to];
            edges[n_edges++] = edge;
        }
    }
    nib_free(queue);
    nib_free(number);
    if (!ok) {
        nib_free(states);
        nib_free(edges);
        return false;
    }
    nib_free(g->states);
    nib_free(g->edges);
    g->states = states;
    g->edges = edges;
    g->n_states = n;
    g->n_edges = n_edges;
    return true;
}

bool nib_grammar_merge(nib_grammar *g) {
    return merge_beginnings(g) && merge_ends(g) && pack(g);
}

/* ---- classes and flags */

static void find_classes(nib_grammar *g) {
    bool begins[257] = {false};
    for (size_t e = 0; e < g->n_edges; e++)
        if (g->edges[e].kind == NIB_GRAMMAR_BYTES) begins[g->edges[e].lo] = begins[g->edges[e].hi + 1] = true;
    g->n_classes = 1;
    for (unsigned c = 0; c < 256; c++) {
        if (c && begins[c]) g->n_classes++;
        g->class_of[c] = (uint8_t)(g->n_classes - 1);
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        nib_grammar_edge *edge = &g->edges[e];
        if (edge->kind != NIB_GRAMMAR_BYTES) continue;
        edge->lo = g->class_of[edge->lo];
        edge->hi = g->class_of[edge->hi];
    }
}

static void find_flags(nib_grammar *g, nib_grammar_state *s) {
    for (uint32_t e = 0; e < s->n_edges; e++) {
        const nib_grammar_edge *edge = &g->edges[s->edges + e];
        s->flags |= edge->kind == NIB_GRAMMAR_BYTES   ? NIB_GRAMMAR_HAS_BYTES
                    : edge->kind == NIB_GRAMMAR_TOKEN ? NIB_GRAMMAR_HAS_TOKENS
                                                      : NIB_GRAMMAR_HAS_MOVES;
    }
}

void nib_grammar_classify(nib_grammar *g) {
    find_classes(g);
    for (size_t i = 0; i < g->n_states; i++) find_flags(g, &g->states[i]);
    nib_grammar_find_loops(g);
}
