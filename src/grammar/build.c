/* grammar/build.c - nodes, edges and rules of a grammar that is being drawn. */
#include "grammar/build.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"

#include <stdarg.h>
#include <stdio.h>

enum { NODES_PER_LOOK = 4096 }; /* at the clock */

uint64_t nib_grammar_clock_ms(void) {
    return (uint64_t)(nib_sys_now() * 1e3);
}

void nib_grammar_build_free(nib_grammar_build *b) {
    nib_free(b->nodes);
    nib_free(b->edges);
    nib_free(b->rules);
    nib_free(b->words);
    nib_buf_free(&b->names);
}

void nib_grammar_build_fail(nib_grammar_build *b, nib_status code, uint64_t offset, const char *format, ...) {
    char message[sizeof b->error.message];
    va_list args;
    if (b->status != NIB_OK) return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    b->status = nib_fail_at(&b->error, code, offset, "%s", message);
}

uint32_t nib_grammar_node(nib_grammar_build *b) {
    if (b->status != NIB_OK) return 0;
    if (b->n_nodes >= b->limits->max_states)
        nib_grammar_build_fail(b, NIB_E_LIMIT, b->offset, "the grammar needs more than %u states (max_states)",
                               b->limits->max_states);
    else if (!nib_grow(&b->nodes, &b->nodes_capacity, b->n_nodes + 1, sizeof *b->nodes))
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu states", b->n_nodes);
    else if (b->n_nodes % NODES_PER_LOOK == 0 && nib_grammar_clock_ms() > b->limits->deadline_ms)
        nib_grammar_build_fail(b, NIB_E_LIMIT, b->offset, "compiling the grammar takes longer than allowed (max_ms)");
    if (b->status != NIB_OK) return 0;
    b->nodes[b->n_nodes] = NIB_GRAMMAR_NO;
    return (uint32_t)b->n_nodes++;
}

void nib_grammar_draw(nib_grammar_build *b, uint32_t from, nib_grammar_edge edge) {
    if (b->status != NIB_OK) return;
    if (b->n_edges >= b->limits->max_edges)
        nib_grammar_build_fail(b, NIB_E_LIMIT, b->offset, "the grammar needs more than %u edges (max_edges)",
                               b->limits->max_edges);
    else if (!nib_grow(&b->edges, &b->edges_capacity, b->n_edges + 1, sizeof *b->edges))
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu edges", b->n_edges);
    if (b->status != NIB_OK) return;
    b->edges[b->n_edges] = (nib_grammar_draft_edge){edge, b->nodes[from]};
    b->nodes[from] = (uint32_t)b->n_edges++;
}

void nib_grammar_empty(nib_grammar_build *b, uint32_t from, uint32_t to) {
    nib_grammar_draw(b, from, (nib_grammar_edge){.to = to, .kind = NIB_GRAMMAR_EMPTY});
}

void nib_grammar_bytes(nib_grammar_build *b, uint32_t from, uint32_t to, uint8_t lo, uint8_t hi) {
    nib_grammar_draw(b, from, (nib_grammar_edge){.to = to, .kind = NIB_GRAMMAR_BYTES, .lo = lo, .hi = hi});
}

void nib_grammar_call(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t rule) {
    nib_grammar_draw(b, from, (nib_grammar_edge){.to = to, .arg = rule, .kind = NIB_GRAMMAR_CALL});
}

void nib_grammar_mark(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t key) {
    nib_grammar_draw(b, from, (nib_grammar_edge){.to = to, .arg = key, .kind = NIB_GRAMMAR_MARK});
}

void nib_grammar_check(nib_grammar_build *b, uint32_t from, uint32_t to) {
    nib_grammar_draw(b, from, (nib_grammar_edge){.to = to, .kind = NIB_GRAMMAR_CHECK});
}

nib_grammar_piece nib_grammar_nothing(nib_grammar_build *b) {
    nib_grammar_piece piece = {nib_grammar_node(b), nib_grammar_node(b)};
    nib_grammar_empty(b, piece.start, piece.end);
    return piece;
}

nib_grammar_piece nib_grammar_text(nib_grammar_build *b, nib_str text) {
    uint32_t start = nib_grammar_node(b), at = start;
    for (size_t i = 0; i < text.len && b->status == NIB_OK; i++) {
        uint32_t next = nib_grammar_node(b);
        nib_grammar_bytes(b, at, next, (uint8_t)text.ptr[i], (uint8_t)text.ptr[i]);
        at = next;
    }
    return (nib_grammar_piece){start, at};
}

nib_grammar_piece nib_grammar_calls(nib_grammar_build *b, uint32_t rule) {
    nib_grammar_piece piece = {nib_grammar_node(b), nib_grammar_node(b)};
    nib_grammar_call(b, piece.start, piece.end, rule);
    return piece;
}

nib_grammar_piece nib_grammar_then(nib_grammar_build *b, nib_grammar_piece x, nib_grammar_piece y) {
    nib_grammar_empty(b, x.end, y.start);
    return (nib_grammar_piece){x.start, y.end};
}

/* x? x* x+ without counting */
static nib_grammar_piece loop(nib_grammar_build *b, nib_grammar_piece x, bool may_skip, bool may_repeat) {
    nib_grammar_piece piece = {nib_grammar_node(b), nib_grammar_node(b)};
    nib_grammar_empty(b, piece.start, x.start);
    nib_grammar_empty(b, x.end, piece.end);
    if (may_repeat) nib_grammar_empty(b, x.end, x.start);
    if (may_skip) nib_grammar_empty(b, piece.start, piece.end);
    return piece;
}

nib_grammar_piece nib_grammar_repeat(nib_grammar_build *b, nib_grammar_piece x, uint32_t min, uint32_t max) {
    if (max == 0) return nib_grammar_nothing(b);
    if (min == 1 && max == 1) return x;
    if (min <= 1 && (max == 1 || max == NIB_GRAMMAR_NO)) return loop(b, x, min == 0, max != 1);
    uint32_t rule = nib_grammar_rule_new(b, (nib_str){"a repetition", 12});
    if (b->status != NIB_OK) return x;
    nib_grammar_draft_rule *r = &b->rules[rule];
    r->end = r->rule.start;
    r->body = x.start;
    r->body_end = x.end;
    r->rule.min = min;
    r->rule.max = max;
    return nib_grammar_calls(b, rule);
}

uint32_t nib_grammar_rule_new(nib_grammar_build *b, nib_str name) {
    nib_grammar_draft_rule r = {.body = NIB_GRAMMAR_NO, .body_end = NIB_GRAMMAR_NO, .offset = b->offset};
    r.rule.start = nib_grammar_node(b);
    r.end = nib_grammar_node(b);
    r.rule.max = NIB_GRAMMAR_NO;
    r.rule.name = (uint32_t)b->names.len;
    r.rule.name_len = (uint32_t)name.len;
    if (b->status == NIB_OK && (!nib_buf_append(&b->names, name.ptr, name.len) ||
                                !nib_grow(&b->rules, &b->rules_capacity, b->n_rules + 1, sizeof *b->rules)))
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu rules", b->n_rules);
    if (b->status != NIB_OK) return 0;
    b->rules[b->n_rules] = r;
    return (uint32_t)b->n_rules++;
}

uint32_t nib_grammar_rule_of(nib_grammar_build *b, nib_str name, nib_grammar_piece piece) {
    uint32_t rule = nib_grammar_rule_new(b, name);
    if (b->status != NIB_OK) return 0;
    nib_grammar_empty(b, b->rules[rule].rule.start, piece.start);
    nib_grammar_empty(b, piece.end, b->rules[rule].end);
    return rule;
}

nib_str nib_grammar_rule_name(const nib_grammar_build *b, uint32_t rule) {
    const nib_grammar_rule *r = &b->rules[rule].rule;
    return (nib_str){b->names.ptr + r->name, r->name_len};
}
