/* jinja/parser.h - private to parse_expr.c, parse_stmt.c and names.c: the state of the parser, and what they call of each other.
 * Functions return NULL (or false) after an error, which is in p->err. */
#ifndef NIB_JINJA_PARSER_H
#define NIB_JINJA_PARSER_H

#include "jinja/ast.h"
#include "jinja/lex.h"

typedef struct jinja_parser {
    const jinja_token *at; /* the token to be read */
    nib_arena *arena;
    uint32_t depth, max_depth;
    bool in_condition; /* an unknown filter is an error only when it is reached */
    uint32_t loops;    /* that break and continue may leave */
    nib_error *err;
} jinja_parser;

/* A list under construction: zero-initialise; `first` is the result. */
typedef struct jinja_nodes {
    jinja_node *first, *last;
    uint32_t n;
} jinja_nodes;

void *nib_jinja_parse_fail(jinja_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *nib_jinja_parse_fail_memory(jinja_parser *p);
/* "unexpected X, expected Y" */
void *nib_jinja_parse_unexpected(jinja_parser *p, const char *expected);
jinja_node *nib_jinja_node_new(jinja_parser *p, int kind);
/* A node with up to three children; NULL when `a` is. */
jinja_node *nib_jinja_node_of(jinja_parser *p, int kind, jinja_node *a, jinja_node *b);
bool nib_jinja_nodes_add(jinja_nodes *list, jinja_node *node); /* false when node is NULL */
bool nib_jinja_parse_enter(jinja_parser *p);

static inline bool nib_jinja_parse_is(const jinja_parser *p, int kind) {
    return p->at->kind == kind;
}
bool nib_jinja_parse_is_name(const jinja_parser *p, const char *name);
bool nib_jinja_parse_skip(jinja_parser *p, int kind);
bool nib_jinja_parse_skip_name(jinja_parser *p, const char *name);
bool nib_jinja_parse_expect(jinja_parser *p, int kind);
bool nib_jinja_parse_name(jinja_parser *p, jinja_value *name);

/* Puts HIDE statements where they belong (names.c). */
bool nib_jinja_parse_names(jinja_parser *p, jinja_node *root);

jinja_node *nib_jinja_parse_expression(jinja_parser *p);
/* Without "x if y"; `end`: a name that ends it. */
jinja_node *nib_jinja_parse_plain_tuple(jinja_parser *p, const char *end);
jinja_node *nib_jinja_parse_tuple(jinja_parser *p);
/* Names, tuples of them, members of namespaces where with_members. */
jinja_node *nib_jinja_parse_target(jinja_parser *p, const char *end, bool with_members);
/* "|name(…)|…" after a node (NULL: the text of a block), the first without its bar. */
jinja_node *nib_jinja_parse_filters(jinja_parser *p, jinja_node *node, bool without_bar);

#endif
