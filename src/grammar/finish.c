/* grammar/finish.c - drawn rules in -> the arrays of a nib_grammar out: what may be empty is found, what cannot end is
 * cut off, empty edges go, equal beginnings and ends of paths are merged (merge.c), left recursion is refused. */
#include "grammar/finish.h"

#include "base/mem.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef nib_grammar_draft_edge draft_edge;

/* Edges by the node that they lead to; calls by their rule. */
typedef struct reverse {
    uint32_t *first, *next, *from; /* first: by node; next, from: by edge */
    uint32_t *first_call, *next_call;
} reverse;

typedef struct finish {
    nib_grammar_build *b;
    reverse rev;
    uint32_t *stack; /* of nodes, one entry each at most */
    size_t n_stack;
    uint8_t *may_be_empty, *can_end; /* by node: reaches the end of its rule reading nothing / at all */
    uint8_t *rule_empty, *rule_ends; /* by rule */
    uint32_t *starts;                /* by node: the rule that starts there; NIB_GRAMMAR_NO */
    nib_grammar *g;
} finish;

static void *take(finish *f, size_t n, size_t size) {
    void *p = nib_calloc(n + 1, size);
    if (!p)
        nib_grammar_build_fail(f->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a grammar of %zu states",
                               f->b->n_nodes);
    return p;
}

static void free_reverse(reverse *r) {
    nib_free(r->first);
    nib_free(r->next);
    nib_free(r->from);
    nib_free(r->first_call);
    nib_free(r->next_call);
    *r = (reverse){0};
}

static bool make_reverse(finish *f) {
    nib_grammar_build *b = f->b;
    reverse *r = &f->rev;
    free_reverse(r);
    r->first = take(f, b->n_nodes, sizeof *r->first);
    r->next = take(f, b->n_edges, sizeof *r->next);
    r->from = take(f, b->n_edges, sizeof *r->from);
    r->first_call = take(f, b->n_rules, sizeof *r->first_call);
    r->next_call = take(f, b->n_edges, sizeof *r->next_call);
    if (b->status != NIB_OK) return false;
    memset(r->first, 0xFF, b->n_nodes * sizeof *r->first);
    memset(r->first_call, 0xFF, b->n_rules * sizeof *r->first_call);
    for (size_t node = 0; node < b->n_nodes; node++)
        for (uint32_t e = b->nodes[node]; e != NIB_GRAMMAR_NO; e = b->edges[e].next) {
            const nib_grammar_edge *edge = &b->edges[e].edge;
            r->from[e] = (uint32_t)node;
            r->next[e] = r->first[edge->to];
            r->first[edge->to] = e;
            if (edge->kind != NIB_GRAMMAR_CALL) continue;
            r->next_call[e] = r->first_call[edge->arg];
            r->first_call[edge->arg] = e;
        }
    return true;
}

static void visit(finish *f, uint8_t *seen, uint32_t node) {
    if (seen[node]) return;
    seen[node] = 1;
    f->stack[f->n_stack++] = node;
}

/* ---- what may be empty */

static void rule_is_empty(finish *f, uint32_t rule) {
    if (f->rule_empty[rule]) return;
    f->rule_empty[rule] = 1;
    for (uint32_t e = f->rev.first_call[rule]; e != NIB_GRAMMAR_NO; e = f->rev.next_call[e])
        if (f->may_be_empty[f->b->edges[e].edge.to]) visit(f, f->may_be_empty, f->rev.from[e]);
}

static void find_empty(finish *f) {
    nib_grammar_build *b = f->b;
    for (uint32_t i = 0; i < b->n_rules; i++) {
        bool repeats = b->rules[i].body != NIB_GRAMMAR_NO;
        f->starts[repeats ? b->rules[i].body : b->rules[i].rule.start] = i;
        visit(f, f->may_be_empty, repeats ? b->rules[i].body_end : b->rules[i].end);
        if (repeats && b->rules[i].rule.min == 0) rule_is_empty(f, i);
    }
    while (f->n_stack) {
        uint32_t node = f->stack[--f->n_stack];
        if (f->starts[node] != NIB_GRAMMAR_NO) rule_is_empty(f, f->starts[node]);
        for (uint32_t e = f->rev.first[node]; e != NIB_GRAMMAR_NO; e = f->rev.next[e]) {
            const nib_grammar_edge *edge = &b->edges[e].edge;
            bool reads = edge->kind == NIB_GRAMMAR_BYTES || edge->kind == NIB_GRAMMAR_TOKEN ||
                         (edge->kind == NIB_GRAMMAR_CALL && !f->rule_empty[edge->arg]);
            if (!reads) visit(f, f->may_be_empty, f->rev.from[e]);
        }
    }
}

/* Puts the body of a repetition between INC and the start; one that may be empty is a rule of its own, of which only
 * what is not empty counts, so no minimum is left. */
static void wire_repetition(finish *f, uint32_t i) {
    nib_grammar_build *b = f->b;
    nib_grammar_draft_rule *r = &b->rules[i];
    uint32_t start = r->rule.start, body = r->body, body_end = r->body_end;
    nib_grammar_edge inc = {.to = body, .kind = NIB_GRAMMAR_INC};
    if (!f->may_be_empty[body]) {
        nib_grammar_draw(b, start, inc);
        nib_grammar_empty(b, body_end, start);
        return;
    }
    r->rule.min = 0;
    uint32_t rule = nib_grammar_rule_new(b, (nib_str){"a turn", 6});
    if (b->status != NIB_OK) return;
    nib_grammar_empty(b, b->rules[rule].rule.start, body);
    nib_grammar_empty(b, body_end, b->rules[rule].end);
    inc.to = nib_grammar_node(b);
    nib_grammar_draw(b, start, inc);
    nib_grammar_draw(b, inc.to, (nib_grammar_edge){.to = start, .arg = rule, .kind = NIB_GRAMMAR_CALL, .lo = 1});
}

static void wire(finish *f) {
    nib_grammar_build *b = f->b;
    size_t n_edges = b->n_edges, n_rules = b->n_rules;
    for (uint32_t e = 0; e < n_edges && b->status == NIB_OK; e++) {
        nib_grammar_edge edge = b->edges[e].edge;
        if (edge.kind == NIB_GRAMMAR_CALL && f->rule_empty[edge.arg]) nib_grammar_empty(b, f->rev.from[e], edge.to);
    }
    for (uint32_t i = 0; i < n_rules && b->status == NIB_OK; i++)
        if (b->rules[i].body != NIB_GRAMMAR_NO) wire_repetition(f, i);
}

/* ---- what can end */

/* A MARK edge and the rule whose frame it changes. */
typedef struct key_mark {
    uint32_t edge, rule;
} key_mark;

typedef struct key_marks {
    key_mark *list;
    size_t n, capacity;
    uint64_t *found; /* bits of the keys of one rule */
} key_marks;

/* Whether the rule ends only with certain keys, or with enough of them. */
static bool needs_keys(const nib_grammar_build *b, uint32_t rule) {
    const nib_grammar_draft_rule *r = &b->rules[rule];
    return r->rule.n_keys || (r->rule.min > 0 && r->body == NIB_GRAMMAR_NO);
}

/* Those that are reached from the start of a rule without a call. */
static void find_marks(finish *f, key_marks *marks) {
    nib_grammar_build *b = f->b;
    uint8_t *seen = take(f, b->n_nodes, 1);
    marks->found = take(f, b->n_words, sizeof *marks->found);
    for (uint32_t i = 0; i < b->n_rules && b->status == NIB_OK; i++) {
        if (!needs_keys(b, i)) continue;
        visit(f, seen, b->rules[i].rule.start);
        while (f->n_stack) {
            uint32_t node = f->stack[--f->n_stack];
            for (uint32_t e = b->nodes[node]; e != NIB_GRAMMAR_NO; e = b->edges[e].next) {
                visit(f, seen, b->edges[e].edge.to);
                if (b->edges[e].edge.kind != NIB_GRAMMAR_MARK) continue;
                if (nib_grow(&marks->list, &marks->capacity, marks->n + 1, sizeof *marks->list))
                    marks->list[marks->n++] = (key_mark){e, i};
                else
                    nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu keys", marks->n);
            }
        }
    }
    nib_free(seen);
}

/* Whether every required key of an object has a value that can end, and enough keys have. Keys without a number are as many as
 * are needed. */
static bool keys_can_end(const finish *f, uint32_t rule, const key_marks *marks) {
    const nib_grammar_build *b = f->b;
    const nib_grammar_rule *r = &b->rules[rule].rule;
    size_t n_words = (r->n_keys + 63) / 64;
    uint64_t n_found = 0;
    if (n_words) memset(marks->found, 0, n_words * sizeof *marks->found);
    for (size_t i = 0; i < marks->n; i++) {
        const nib_grammar_edge *edge = &b->edges[marks->list[i].edge].edge;
        if (marks->list[i].rule != rule || !f->can_end[edge->to]) continue;
        if (edge->arg == NIB_GRAMMAR_NO) n_found += UINT32_MAX;
        else marks->found[edge->arg / 64] |= UINT64_C(1) << edge->arg % 64;
    }
    for (size_t w = 0; w < n_words; w++) {
        if (b->words[r->required + w] & ~marks->found[w]) return false;
        for (uint64_t bits = marks->found[w]; bits; bits &= bits - 1) n_found++;
    }
    return n_found >= r->min;
}

static void rule_can_end(finish *f, uint32_t rule) {
    if (f->rule_ends[rule]) return;
    f->rule_ends[rule] = 1;
    for (uint32_t e = f->rev.first_call[rule]; e != NIB_GRAMMAR_NO; e = f->rev.next_call[e])
        if (f->can_end[f->b->edges[e].edge.to]) visit(f, f->can_end, f->rev.from[e]);
}

static void spread_ends(finish *f) {
    while (f->n_stack) {
        uint32_t node = f->stack[--f->n_stack], rule = f->starts[node];
        if (rule != NIB_GRAMMAR_NO && !needs_keys(f->b, rule)) rule_can_end(f, rule);
        for (uint32_t e = f->rev.first[node]; e != NIB_GRAMMAR_NO; e = f->rev.next[e]) {
            const nib_grammar_edge *edge = &f->b->edges[e].edge;
            if (edge->kind != NIB_GRAMMAR_CALL || f->rule_ends[edge->arg]) visit(f, f->can_end, f->rev.from[e]);
        }
    }
}

static void find_ends(finish *f) {
    nib_grammar_build *b = f->b;
    key_marks marks = {0};
    find_marks(f, &marks);
    memset(f->starts, 0xFF, b->n_nodes * sizeof *f->starts);
    for (uint32_t i = 0; i < b->n_rules; i++) {
        const nib_grammar_draft_rule *r = &b->rules[i];
        f->starts[r->body != NIB_GRAMMAR_NO && r->rule.min > 0 ? r->body : r->rule.start] = i;
        visit(f, f->can_end, r->end);
    }
    for (bool changed = b->status == NIB_OK; changed;) { /* again for objects whose keys can end now */
        changed = false;
        spread_ends(f);
        for (uint32_t i = 0; i < b->n_rules; i++) {
            if (f->rule_ends[i] || !needs_keys(b, i) || !f->can_end[b->rules[i].rule.start]) continue;
            if (!keys_can_end(f, i, &marks)) continue;
            rule_can_end(f, i);
            changed = true;
        }
    }
    f->n_stack = 0;
    nib_free(marks.list);
    nib_free(marks.found);
}

static bool prepare(finish *f) {
    nib_grammar_build *b = f->b;
    if (!make_reverse(f)) return false;
    f->stack = take(f, b->n_nodes, sizeof *f->stack);
    f->may_be_empty = take(f, b->n_nodes, 1);
    f->rule_empty = take(f, b->n_rules, 1);
    f->starts = take(f, b->n_nodes, sizeof *f->starts);
    if (b->status != NIB_OK) return false;
    memset(f->starts, 0xFF, b->n_nodes * sizeof *f->starts);
    find_empty(f);
    wire(f);
    if (b->status != NIB_OK || !make_reverse(f)) return false;
    nib_free(f->stack); /* there are more nodes and rules now */
    f->stack = take(f, b->n_nodes, sizeof *f->stack);
    nib_free(f->starts);
    f->starts = take(f, b->n_nodes, sizeof *f->starts);
    f->can_end = take(f, b->n_nodes, 1);
    f->rule_ends = take(f, b->n_rules, 1);
    if (b->status != NIB_OK) return false;
    find_ends(f);
    return b->status == NIB_OK;
}

/* ---- states */

typedef struct state_list {
    nib_grammar_state *states;
    size_t n_states, states_capacity;
    nib_grammar_edge *edges;
    size_t n_edges, edges_capacity;
    uint32_t *of_node, *nodes; /* node -> state, state -> node */
    size_t nodes_capacity;
    uint32_t *stamp; /* by node */
} state_list;

static uint32_t state_of(finish *f, state_list *s, uint32_t node) {
    if (s->of_node[node] != NIB_GRAMMAR_NO) return s->of_node[node];
    if (!nib_grow(&s->states, &s->states_capacity, s->n_states + 1, sizeof *s->states) ||
        !nib_grow(&s->nodes, &s->nodes_capacity, s->n_states + 1, sizeof *s->nodes)) {
        nib_grammar_build_fail(f->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu states", s->n_states);
        return 0;
    }
    s->states[s->n_states] = (nib_grammar_state){0};
    s->nodes[s->n_states] = node;
    return s->of_node[node] = (uint32_t)s->n_states++;
}

static bool keeps(const finish *f, const nib_grammar_edge *edge) {
    return f->can_end[edge->to] && (edge->kind != NIB_GRAMMAR_CALL || f->rule_ends[edge->arg]);
}

/* All edges of the nodes that are reached by empty ones. */
static void fill_state(finish *f, state_list *s, uint32_t state, const uint8_t *is_end) {
    nib_grammar_build *b = f->b;
    uint32_t begin = (uint32_t)s->n_edges;
    f->n_stack = 0;
    f->stack[f->n_stack++] = s->nodes[state];
    s->stamp[s->nodes[state]] = state + 1;
    while (f->n_stack && b->status == NIB_OK) {
        uint32_t node = f->stack[--f->n_stack];
        if (is_end[node]) s->states[state].flags |= NIB_GRAMMAR_ENDS;
        for (uint32_t e = b->nodes[node]; e != NIB_GRAMMAR_NO; e = b->edges[e].next) {
            nib_grammar_edge edge = b->edges[e].edge;
            if (!keeps(f, &edge)) continue;
            if (edge.kind == NIB_GRAMMAR_EMPTY) {
                if (s->stamp[edge.to] == state + 1) continue;
                s->stamp[edge.to] = state + 1;
                f->stack[f->n_stack++] = edge.to;
                continue;
            }
            if (s->n_edges >= b->limits->max_edges)
                nib_grammar_build_fail(b, NIB_E_LIMIT, NIB_NO_OFFSET,
                                       "the grammar needs more than %u edges (max_edges)", b->limits->max_edges);
            else if (!nib_grow(&s->edges, &s->edges_capacity, s->n_edges + 1, sizeof *s->edges))
                nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu edges", s->n_edges);
            if (b->status != NIB_OK) return;
            if (edge.kind == NIB_GRAMMAR_CALL) edge.lo = 0;
            edge.to = state_of(f, s, edge.to);
            s->edges[s->n_edges++] = edge;
        }
    }
    s->states[state].edges = begin;
    s->states[state].n_edges = (uint32_t)(s->n_edges - begin);
}

/* The states that `root` needs, breadth first, and the rules that it calls; numbers of rules stay. */
static void make_states(finish *f, state_list *s, uint32_t root) {
    nib_grammar_build *b = f->b;
    uint8_t *is_end = take(f, b->n_nodes, 1), *called = take(f, b->n_rules, 1);
    s->of_node = take(f, b->n_nodes, sizeof *s->of_node);
    s->stamp = take(f, b->n_nodes, sizeof *s->stamp);
    if (b->status != NIB_OK) goto out;
    memset(s->of_node, 0xFF, b->n_nodes * sizeof *s->of_node);
    for (size_t i = 0; i < b->n_rules; i++) is_end[b->rules[i].end] = 1;
    called[root] = 1;
    state_of(f, s, b->rules[root].rule.start);
    for (uint32_t at = 0; at < s->n_states && b->status == NIB_OK; at++) {
        fill_state(f, s, at, is_end);
        for (uint32_t e = s->states[at].edges; b->status == NIB_OK && e < s->n_edges; e++) {
            if (s->edges[e].kind != NIB_GRAMMAR_CALL || called[s->edges[e].arg]) continue;
            called[s->edges[e].arg] = 1;
            state_of(f, s, b->rules[s->edges[e].arg].rule.start);
        }
    }
    for (size_t i = 0; i < b->n_rules && b->status == NIB_OK; i++)
        b->rules[i].rule.start = called[i] ? s->of_node[b->rules[i].rule.start] : NIB_GRAMMAR_NO;
out:
    nib_free(is_end);
    nib_free(called);
}

/* ---- left recursion */

/* Rules that `rule` may call as its first act: calls of its start, and of what INC and MARK lead to. */
static bool first_calls(finish *f, uint32_t rule, uint8_t *seen, uint32_t **list, size_t *n, size_t *capacity) {
    nib_grammar *g = f->g;
    size_t at;
    uint32_t *nodes = f->stack;
    size_t n_nodes = 0;
    nodes[n_nodes++] = g->rules[rule].start;
    seen[g->rules[rule].start] = 1;
    for (at = 0; at < n_nodes; at++) {
        const nib_grammar_state *s = &g->states[nodes[at]];
        for (uint32_t e = s->edges; e < s->edges + s->n_edges; e++) {
            const nib_grammar_edge *edge = &g->edges[e];
            if (edge->kind == NIB_GRAMMAR_CALL) {
                if (!nib_grow(list, capacity, *n + 1, sizeof **list)) return false;
                (*list)[(*n)++] = edge->arg;
            } else if (edge->kind >= NIB_GRAMMAR_INC && !seen[edge->to]) {
                seen[edge->to] = 1;
                nodes[n_nodes++] = edge->to;
            }
        }
    }
    for (at = 0; at < n_nodes; at++) seen[nodes[at]] = 0;
    return true;
}

/* Depth-first over the first calls: ranks fall from leaves to callers, a way back is left recursion. */
static void rank_rules(finish *f) {
    nib_grammar *g = f->g;
    nib_grammar_build *b = f->b;
    uint8_t *seen = take(f, g->n_states, 1), *mark = take(f, g->n_rules, 1);
    uint32_t *path = take(f, g->n_rules, sizeof *path), *list = NULL, rank = (uint32_t)g->n_rules;
    size_t *left = take(f, g->n_rules, sizeof *left), *bases = take(f, g->n_rules, sizeof *bases);
    size_t n_list = 0, capacity = 0;
    for (uint32_t i = 0; i < g->n_rules && b->status == NIB_OK; i++) {
        if (mark[i] || g->rules[i].start == NIB_GRAMMAR_NO) continue;
        size_t depth = 0;
        uint32_t next = i;
        for (;;) {
            if (next != NIB_GRAMMAR_NO) {
                mark[next] = 1;
                path[depth] = next;
                bases[depth] = n_list;
                bool ok = first_calls(f, next, seen, &list, &n_list, &capacity);
                if (!ok) nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for calls of rules");
                if (!ok) break;
                left[depth++] = n_list;
            }
            next = NIB_GRAMMAR_NO;
            if (left[depth - 1] > bases[depth - 1]) {
                uint32_t callee = list[--left[depth - 1]];
                if (mark[callee] == 1) {
                    nib_str name = nib_grammar_rule_name(b, callee);
                    nib_grammar_build_fail(b, NIB_E_FORMAT, b->rules[callee].offset,
                                           "left recursion: rule %.*s begins with itself; write it as a repetition",
                                           NIB_STR_ARG(name));
                    break;
                }
                if (!mark[callee]) next = callee;
                continue;
            }
            n_list = bases[--depth];
            mark[path[depth]] = 2;
            g->rules[path[depth]].rank = rank--;
            if (depth == 0) break;
        }
    }
    nib_free(seen);
    nib_free(mark);
    nib_free(path);
    nib_free(list);
    nib_free(left);
    nib_free(bases);
}

/* ---- the grammar */

static void take_over(finish *f, state_list *s, uint32_t root) {
    nib_grammar_build *b = f->b;
    nib_grammar *g = f->g = nib_calloc(1, sizeof *g);
    if (!g || !(g->rules = nib_calloc(b->n_rules, sizeof *g->rules)) || pthread_mutex_init(&g->lock, NULL) != 0) {
        if (g) nib_free(g->rules);
        nib_free(g);
        f->g = NULL;
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu rules", b->n_rules);
        return;
    }
    atomic_init(&g->n_users, 1);
    for (size_t i = 0; i < b->n_rules; i++) g->rules[i] = b->rules[i].rule;
    g->n_rules = b->n_rules;
    g->root = root;
    g->states = s->states;
    g->n_states = s->n_states;
    g->edges = s->edges;
    g->n_edges = s->n_edges;
    g->words = b->words;
    g->n_words = b->n_words;
    g->vocab = b->vocab;
    s->states = NULL;
    s->edges = NULL;
    b->words = NULL;
    b->n_words = 0;
}

void nib_grammar_destroy(nib_grammar *g) {
    if (!g) return;
    pthread_mutex_destroy(&g->lock);
    nib_free(g->rules);
    nib_free(g->states);
    nib_free(g->edges);
    nib_free(g->words);
    nib_buf_free(&g->names);
    nib_buf_free(&g->text);
    nib_free(g);
}

static void make_grammar(finish *f, uint32_t root) {
    state_list s = {0};
    make_states(f, &s, root);
    if (f->b->status == NIB_OK) take_over(f, &s, root);
    nib_free(s.states);
    nib_free(s.edges);
    nib_free(s.of_node);
    nib_free(s.nodes);
    nib_free(s.stamp);
    if (f->b->status != NIB_OK || !f->g) return;
    nib_free(f->stack);
    f->stack = take(f, f->g->n_states, sizeof *f->stack);
    if (f->b->status == NIB_OK) rank_rules(f);
    if (f->b->status == NIB_OK && !nib_grammar_merge(f->g))
        nib_grammar_build_fail(f->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory to merge %zu states", f->g->n_states);
    if (f->b->status == NIB_OK) nib_grammar_classify(f->g);
}

nib_status nib_grammar_finish(nib_grammar_build *b, uint32_t root, nib_grammar **out, nib_error *err) {
    finish f = {.b = b};
    *out = NULL;
    if (b->status == NIB_OK && prepare(&f)) {
        if (!f.rule_ends[root])
            nib_grammar_build_fail(b, NIB_E_FORMAT, NIB_NO_OFFSET, "no text matches this grammar");
        else
            make_grammar(&f, root);
    }
    free_reverse(&f.rev);
    nib_free(f.stack);
    nib_free(f.may_be_empty);
    nib_free(f.can_end);
    nib_free(f.rule_empty);
    nib_free(f.rule_ends);
    nib_free(f.starts);
    if (b->status == NIB_OK && f.g) {
        f.g->names = b->names;
        b->names = (nib_buf){0};
        *out = f.g;
        return NIB_OK;
    }
    nib_grammar_destroy(f.g);
    return nib_fail_at(err, b->status, b->error.offset, "%s", b->error.message);
}
