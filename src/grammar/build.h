/* grammar/build.h - drawing the rules of a grammar as nodes and edges, for the front ends.
 *
 * A failure (memory, a limit) sticks: later calls do nothing and return node 0, and nib_grammar_finish reports it. So
 * front ends check b->status in their loops only. */
#ifndef NIB_GRAMMAR_BUILD_H
#define NIB_GRAMMAR_BUILD_H

#include "grammar/grammar.h"

typedef struct nib_grammar_limits {
    uint32_t max_states; /* nodes */
    uint32_t max_edges;
    uint32_t max_depth;   /* nesting of groups, schemas, JSON */
    uint64_t deadline_ms; /* by nib_grammar_clock_ms */
} nib_grammar_limits;

typedef struct nib_grammar_draft_edge {
    nib_grammar_edge edge;
    uint32_t next; /* of the same node; NIB_GRAMMAR_NO: the last */
} nib_grammar_draft_edge;

typedef struct nib_grammar_draft_rule {
    nib_grammar_rule rule;   /* start: a node */
    uint32_t end;            /* the node where it ends */
    uint32_t body, body_end; /* of a repetition, from start to start; NIB_GRAMMAR_NO: none */
    uint64_t offset;         /* in the text, for messages */
} nib_grammar_draft_rule;

typedef struct nib_grammar_build {
    const nib_grammar_limits *limits;
    nib_status status;
    nib_error error; /* when status is not NIB_OK */
    uint32_t *nodes; /* first edge */
    size_t n_nodes, nodes_capacity;
    nib_grammar_draft_edge *edges;
    size_t n_edges, edges_capacity;
    nib_grammar_draft_rule *rules;
    size_t n_rules, rules_capacity;
    uint64_t *words;
    size_t n_words, words_capacity;
    nib_buf names;
    uint64_t offset; /* in the text, given to new rules */
    const nib_grammar_vocab *vocab;
} nib_grammar_build;

/* A piece of automaton: what leads from one node to another. */
typedef struct nib_grammar_piece {
    uint32_t start, end;
} nib_grammar_piece;

uint64_t nib_grammar_clock_ms(void);

void nib_grammar_build_free(nib_grammar_build *b);
/* Records the failure (offset NIB_NO_OFFSET: none) unless there is one already. */
void nib_grammar_build_fail(nib_grammar_build *b, nib_status code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

uint32_t nib_grammar_node(nib_grammar_build *b);
void nib_grammar_draw(nib_grammar_build *b, uint32_t from, nib_grammar_edge edge);
void nib_grammar_empty(nib_grammar_build *b, uint32_t from, uint32_t to);
void nib_grammar_bytes(nib_grammar_build *b, uint32_t from, uint32_t to, uint8_t lo, uint8_t hi);
void nib_grammar_call(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t rule);
void nib_grammar_check(nib_grammar_build *b, uint32_t from, uint32_t to);
void nib_grammar_mark(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t key);

/* Pieces: each makes fresh nodes. */
nib_grammar_piece nib_grammar_nothing(nib_grammar_build *b); /* the empty text */
nib_grammar_piece nib_grammar_text(nib_grammar_build *b, nib_str text);
nib_grammar_piece nib_grammar_calls(nib_grammar_build *b, uint32_t rule);
nib_grammar_piece nib_grammar_then(nib_grammar_build *b, nib_grammar_piece x, nib_grammar_piece y);
/* min … max times (max NIB_GRAMMAR_NO: without end); uses up x. */
nib_grammar_piece nib_grammar_repeat(nib_grammar_build *b, nib_grammar_piece x, uint32_t min, uint32_t max);

/* A new rule with fresh start and end nodes; its name is for messages. */
uint32_t nib_grammar_rule_new(nib_grammar_build *b, nib_str name);
uint32_t nib_grammar_rule_of(nib_grammar_build *b, nib_str name, nib_grammar_piece piece);
nib_str nib_grammar_rule_name(const nib_grammar_build *b, uint32_t rule);

/* The automaton of all that `root` calls. b may be freed afterwards. */
nib_status nib_grammar_finish(nib_grammar_build *b, uint32_t root, nib_grammar **out, nib_error *err);

#endif
