/* jinja/names.c - which names have no value at first: a parsed template -> the same with HIDE statements. jinja2 decides before a
 * block runs whether a name is its own: one that it sets without having read it before and that no block around it mentions.
 * Loops, macros and captured text that come before the set then see no value, even where the data has one. What a block says
 * itself is looked at first, then the blocks inside it, as jinja2 does. */
#include "jinja/dict.h"
#include "jinja/parser.h"

/* What a block says of names. A branch of an if is a part of its block. */
typedef struct block {
    struct block *outer;
    jinja_dict names;   /* NONE: its value comes from outside, or it is a parameter; INT: hidden up to this offset */
    jinja_nodes hidden; /* NAME nodes: what blocks inside ask for before */
    bool is_branch;
} block;

typedef struct names {
    jinja_parser *p;
    nib_arena work;
} names;

static bool note(names *n, block *b, const jinja_value *name, jinja_value what) {
    return nib_jinja_dict_set(&n->work, &b->names, name, &what) || nib_jinja_parse_fail_memory(n->p);
}

static bool hide(names *n, block *b, const jinja_value *name) {
    jinja_node *node = nib_jinja_node_new(n->p, JINJA_NODE_NAME);
    if (node) node->value = *name;
    return nib_jinja_nodes_add(&b->hidden, node) && note(n, b, name, jinja_none());
}

/* Notes a name that the block and the blocks around it did not mention before. */
static bool mention(names *n, block *b, const jinja_node *name, jinja_value what) {
    bool is_outside = false;
    for (block *at = b; at; at = at->outer) {
        const jinja_pair *pair = nib_jinja_dict_find(&at->names, &name->value);
        bool comes_later = pair && pair->value.type == JINJA_INT && name->offset < pair->value.as.i;
        if (pair) return !is_outside || !comes_later || hide(n, at, &name->value);
        is_outside |= !at->is_branch;
    }
    return note(n, b, &name->value, what);
}

/* ---- what a block says itself */

/* Chains from the left are as long as the template; all else is as deep as the parser lets it be. */
static bool scan_expression(names *n, block *b, const jinja_node *node) {
    while (node) {
        bool is_condition = node->kind == JINJA_NODE_COND; /* a chain in b */
        if (node->kind == JINJA_NODE_NAME && !mention(n, b, node, jinja_none())) return false;
        if (!scan_expression(n, b, is_condition ? node->a : node->b) || !scan_expression(n, b, node->c)) return false;
        for (const jinja_node *item = node->list; item; item = item->next)
            if (!scan_expression(n, b, item)) return false;
        node = is_condition ? node->b : node->a;
    }
    return true;
}

static bool scan_target(names *n, block *b, const jinja_node *node, bool is_param) {
    if (node->kind == JINJA_NODE_MEMBER) return mention(n, b, node, jinja_none());
    if (node->kind == JINJA_NODE_NAME)
        return is_param ? note(n, b, &node->value, jinja_none()) : mention(n, b, node, jinja_int(node->offset));
    for (const jinja_node *item = node->list; item; item = item->next)
        if (!scan_target(n, b, item, is_param)) return false;
    return true;
}

static bool scan(names *n, block *b, const jinja_node *body);

/* A name that not all of if, elif and else set has its value from outside where they do not. */
static bool join(names *n, block *b, const block parts[3]) {
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < parts[i].names.n; k++) {
            const jinja_value *name = &parts[i].names.pairs[k].key;
            uint32_t n_sets = 0;
            for (uint32_t m = 0; m < 3; m++) {
                const jinja_pair *pair = nib_jinja_dict_find(&parts[m].names, name);
                n_sets += pair && pair->value.type == JINJA_INT;
            }
            if (!note(n, b, name, n_sets == 3 ? jinja_int(UINT32_MAX) : jinja_none())) return false;
        }
    return true;
}

static bool scan_if(names *n, block *b, const jinja_node *node) {
    block parts[3] = {{.outer = b, .is_branch = true}, {.outer = b, .is_branch = true}, {.outer = b, .is_branch = true}};
    if (!scan_expression(n, b, node->a) || !scan(n, &parts[0], node->body)) return false;
    while (node->flag) {
        node = node->other;
        if (!scan_expression(n, &parts[1], node->a) || !scan(n, &parts[1], node->body)) return false;
    }
    return scan(n, &parts[2], node->other) && join(n, b, parts);
}

static bool scan_statement(names *n, block *b, const jinja_node *node) {
    switch (node->kind) {
    case JINJA_NODE_IF: return scan_if(n, b, node);
    case JINJA_NODE_FOR: return scan_expression(n, b, node->b);
    case JINJA_NODE_SET: return scan_expression(n, b, node->b) && scan_target(n, b, node->a, false);
    case JINJA_NODE_SET_BLOCK: return scan_target(n, b, node->a, false);
    case JINJA_NODE_MACRO: return mention(n, b, node, jinja_int(node->offset));
    case JINJA_NODE_CALL_BLOCK: return scan_expression(n, b, node->a);
    case JINJA_NODE_WITH:
        for (const jinja_node *pair = node->list; pair; pair = pair->next)
            if (!scan_expression(n, b, pair->b)) return false;
        return true;
    default: return scan_expression(n, b, node);
    }
}

static bool scan(names *n, block *b, const jinja_node *body) {
    for (; body; body = body->next)
        if (!scan_statement(n, b, body)) return false;
    return true;
}

/* ---- the blocks inside it */

static bool enter(names *n, block *b, jinja_node *body);

/* A block whose parameters are noted already. */
static bool resolve(names *n, block *b, jinja_node **body) {
    if (!scan(n, b, *body) || !enter(n, b, *body)) return false;
    if (!b->hidden.first) return true;
    jinja_node *node = nib_jinja_node_new(n->p, JINJA_NODE_HIDE);
    if (!node) return false;
    node->list = b->hidden.first;
    node->next = *body;
    *body = node;
    return true;
}

static bool enter_for(names *n, block *outer, jinja_node *node) {
    block body = {.outer = outer}, test = {.outer = outer}, other = {.outer = outer};
    jinja_value loop = jinja_str("loop", 4);
    return note(n, &body, &loop, jinja_none()) && scan_target(n, &body, node->a, true) && resolve(n, &body, &node->body) &&
           scan_target(n, &test, node->a, true) && scan_expression(n, &test, node->c) && resolve(n, &other, &node->other);
}

static bool enter_macro(names *n, block *outer, jinja_node *node) {
    static const char *const extra[] = {"caller", "varargs", "kwargs"};
    block b = {.outer = outer};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        jinja_value name = jinja_str(extra[i], __builtin_strlen(extra[i]));
        if (!note(n, &b, &name, jinja_none())) return false;
    }
    for (const jinja_node *param = node->list; param; param = param->next)
        if (!note(n, &b, &param->value, jinja_none())) return false;
    for (const jinja_node *param = node->list; param; param = param->next)
        if (!scan_expression(n, &b, param->a)) return false;
    return resolve(n, &b, &node->body);
}

static bool enter_statement(names *n, block *b, jinja_node *node) {
    block inner = {.outer = b};
    switch (node->kind) {
    case JINJA_NODE_FOR: return enter_for(n, b, node);
    case JINJA_NODE_MACRO: return enter_macro(n, b, node);
    case JINJA_NODE_CALL_BLOCK: return enter_macro(n, b, node->b);
    case JINJA_NODE_SET_BLOCK: return resolve(n, &inner, &node->body) && scan_expression(n, &inner, node->b);
    case JINJA_NODE_FILTER_BLOCK:
    case JINJA_NODE_BODY: return resolve(n, &inner, &node->body);
    case JINJA_NODE_WITH:
        for (const jinja_node *pair = node->list; pair; pair = pair->next)
            if (!scan_target(n, &inner, pair->a, true)) return false;
        return resolve(n, &inner, &node->body);
    default: return true;
    }
}

static bool enter(names *n, block *b, jinja_node *body) {
    for (; body; body = body->next) {
        jinja_node *node = body;
        for (; node->kind == JINJA_NODE_IF; node = node->other) {
            if (!enter(n, b, node->body)) return false;
            if (!node->flag) break;
        }
        bool is_if = body->kind == JINJA_NODE_IF;
        if (is_if ? !enter(n, b, node->other) : !enter_statement(n, b, node)) return false;
    }
    return true;
}

bool nib_jinja_parse_names(jinja_parser *p, jinja_node *root) {
    names n = {.p = p, .work.limit = p->arena->limit};
    block b = {0};
    bool ok = resolve(&n, &b, &root->body);
    nib_arena_free(&n.work);
    return ok;
}
