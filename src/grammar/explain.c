/* grammar/explain.c - rules and states -> lines of text. */
#include "grammar/explain.h"

#include <string.h>

static void put_byte(nib_buf *out, unsigned c) {
    static const char letters[] = "\t\r\n", names[] = "trn";
    const char *found = c ? strchr(letters, (int)c) : NULL;
    if (found)
        nib_buf_printf(out, "'\\%c'", names[found - letters]);
    else if (c == '\'' || c == '\\')
        nib_buf_printf(out, "'\\%c'", (int)c);
    else if (c >= 0x20 && c < 0x7F)
        nib_buf_printf(out, "'%c'", (int)c);
    else
        nib_buf_printf(out, "%02X", c);
}

static void put_range(nib_buf *out, unsigned lo, unsigned hi) {
    put_byte(out, lo);
    if (hi == lo) return;
    nib_buf_str(out, hi == lo + 1 ? ", " : "-");
    put_byte(out, hi);
}

/* Classes lo … hi as bytes. */
static void put_classes(const nib_grammar *g, nib_buf *out, unsigned lo, unsigned hi) {
    unsigned first = 0, last = 255;
    while (g->class_of[first] < lo) first++;
    while (g->class_of[last] > hi) last--;
    put_range(out, first, last);
}

static void put_edge(const nib_grammar *g, const nib_grammar_edge *e, nib_buf *out) {
    const nib_grammar_rule *rule;
    switch ((nib_grammar_edge_kind)e->kind) {
    case NIB_GRAMMAR_BYTES:
        put_classes(g, out, e->lo, e->hi);
        break;
    case NIB_GRAMMAR_TOKEN:
        nib_buf_printf(out, "%s<[%u]>", e->lo ? "!" : "", e->arg);
        break;
    case NIB_GRAMMAR_CALL:
        rule = &g->rules[e->arg];
        nib_buf_printf(out, "%.*s(%u)", (int)rule->name_len, g->names.ptr + rule->name, e->arg);
        break;
    case NIB_GRAMMAR_CHECK:
        nib_buf_str(out, "if enough");
        break;
    case NIB_GRAMMAR_INC:
        nib_buf_str(out, "turn");
        break;
    case NIB_GRAMMAR_MARK:
        if (e->arg == NIB_GRAMMAR_NO)
            nib_buf_str(out, "other key");
        else
            nib_buf_printf(out, "key %u", e->arg);
        break;
    case NIB_GRAMMAR_EMPTY:
        break;
    }
    nib_buf_printf(out, " -> %u", e->to);
}

static void put_rule(const nib_grammar *g, size_t i, nib_buf *out) {
    const nib_grammar_rule *r = &g->rules[i];
    nib_buf_printf(out, "rule %zu %.*s: state %u", i, (int)r->name_len, g->names.ptr + r->name, r->start);
    if (r->min || r->max != NIB_GRAMMAR_NO) nib_buf_printf(out, ", at least %u turns", r->min);
    if (r->max != NIB_GRAMMAR_NO) nib_buf_printf(out, ", at most %u", r->max);
    if (r->n_keys) nib_buf_printf(out, ", %u keys%s", r->n_keys, r->in_order ? " in order" : "");
    nib_buf_char(out, '\n');
}

bool nib_grammar_explain(nib_grammar *g) {
    nib_buf *out = &g->text;
    nib_buf_printf(out, "%zu states, %zu edges, %u classes of bytes; begins with rule %u\n", g->n_states, g->n_edges,
                   g->n_classes, g->root);
    for (size_t i = 0; i < g->n_rules; i++)
        if (g->rules[i].start != NIB_GRAMMAR_NO) put_rule(g, i, out);
    for (size_t i = 0; i < g->n_states; i++) {
        const nib_grammar_state *s = &g->states[i];
        nib_buf_printf(out, "state %zu:%s", i, s->flags & NIB_GRAMMAR_ENDS ? " end" : "");
        for (uint32_t e = 0; e < s->n_edges; e++) {
            nib_buf_str(out, e || s->flags & NIB_GRAMMAR_ENDS ? ", " : " ");
            put_edge(g, &g->edges[s->edges + e], out);
        }
        nib_buf_char(out, '\n');
    }
    return !out->failed;
}

void nib_grammar_explain_config(const nib_grammar_run *r, uint32_t config, nib_buf *out) {
    const nib_grammar *g = r->g;
    bool taken[257] = {false};
    if (config <= NIB_GRAMMAR_DEAD) {
        nib_buf_str(out, "the end");
        return;
    }
    const nib_grammar_place *c = &r->configs[config];
    for (uint32_t i = 0; i < c->n_items; i++) {
        const nib_grammar_state *s = &g->states[r->items[c->items + i].state];
        for (uint32_t e = s->edges; e < s->edges + s->n_edges; e++) {
            const nib_grammar_edge *edge = &g->edges[e];
            for (unsigned b = 0; edge->kind == NIB_GRAMMAR_BYTES && b < 256; b++)
                taken[b] |= g->class_of[b] >= edge->lo && g->class_of[b] <= edge->hi;
            if (edge->kind != NIB_GRAMMAR_TOKEN) continue;
            if (out->len) nib_buf_str(out, ", ");
            nib_buf_printf(out, "%s<[%u]>", edge->lo ? "!" : "", edge->arg);
        }
    }
    for (unsigned lo = 0, hi; lo < 256; lo = hi + 1) {
        for (hi = lo; taken[lo] && taken[hi + 1];) hi++;
        if (!taken[lo]) continue;
        if (out->len) nib_buf_str(out, ", ");
        put_range(out, lo, hi);
    }
    if (c->may_end) nib_buf_str(out, out->len ? " or the end" : "the end");
}
