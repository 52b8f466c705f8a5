/* jinja/ast.h - a parsed template: nodes in an arena. Rows of nodes.def say which fields a kind uses and which function
 * evaluates it. */
#ifndef NIB_JINJA_AST_H
#define NIB_JINJA_AST_H

#include "jinja/value.h"

enum {
#define EXPR(id, eval) JINJA_NODE_##id,
#define STMT(id, exec) JINJA_NODE_##id,
#define PART(id) JINJA_NODE_##id,
#include "jinja/nodes.def"
#undef EXPR
#undef STMT
#undef PART
    JINJA_N_NODES
};

/* How an argument is given: f(x, name=x, *x, **x). */
enum { JINJA_ARG_PLAIN, JINJA_ARG_NAMED, JINJA_ARG_LIST, JINJA_ARG_DICT };

typedef struct jinja_node jinja_node;
struct jinja_node {
    uint8_t kind; /* JINJA_NODE_NAME … */
    uint8_t op;   /* JINJA_TOKEN_ADD … of BINARY and OPERAND; JINJA_ARG_PLAIN … of ARG; MACRO: 1: mentions caller */
    bool flag;    /* FOR: recursive; IF: elif follows; MACRO: takes more positional arguments than it names; BODY: a scope of its own */
    bool flag2;   /* MACRO: takes more named ones */
    uint32_t offset; /* in the source */
    jinja_node *a, *b, *c;
    jinja_node *list;  /* arguments, items, pairs */
    jinja_node *body;  /* statements */
    jinja_node *other; /* statements of else */
    jinja_node *next;  /* in the list this one is in */
    jinja_value value; /* constant, text or name */
    const struct jinja_builtin *row; /* of FILTER and TEST; NULL: no such, an error when it is evaluated */
};

#endif
