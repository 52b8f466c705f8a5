/* jinja/parse_expr.c - tokens of an expression -> nodes, by recursive descent with jinja2's precedence, from the loosest:
 * if-else, or, and, not, comparisons, + -, ~, * / // %, **, signs, then members, calls, filters and tests. */
#include "base/status.h"
#include "jinja/builtin.h"
#include "jinja/parser.h"

static jinja_node *parse_unary(jinja_parser *p, bool with_filters);
static jinja_node *parse_or(jinja_parser *p);

static bool parse_arguments(jinja_parser *p, jinja_node **out);

/* ---- literals */

static bool skip_comma(jinja_parser *p, const jinja_nodes *items) {
    return items->n == 0 || nib_jinja_parse_expect(p, JINJA_TOKEN_COMMA);
}

static jinja_node *parse_list(jinja_parser *p) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_LIST);
    jinja_nodes items = {0};
    p->at++;
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_RBRACKET)) {
        if (!skip_comma(p, &items)) return NULL;
        if (nib_jinja_parse_is(p, JINJA_TOKEN_RBRACKET)) break;
        if (!nib_jinja_nodes_add(&items, nib_jinja_parse_expression(p))) return NULL;
    }
    p->at++;
    if (node) node->list = items.first;
    return node;
}

static jinja_node *parse_dict(jinja_parser *p) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_DICT);
    jinja_nodes items = {0};
    p->at++;
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_RBRACE)) {
        if (!skip_comma(p, &items)) return NULL;
        if (nib_jinja_parse_is(p, JINJA_TOKEN_RBRACE)) break;
        jinja_node *key = nib_jinja_parse_expression(p);
        if (!key || !nib_jinja_parse_expect(p, JINJA_TOKEN_COLON)) return NULL;
        if (!nib_jinja_nodes_add(&items, nib_jinja_node_of(p, JINJA_NODE_PAIR, key, nib_jinja_parse_expression(p))))
            return NULL;
        if (!items.last->b) return NULL;
    }
    p->at++;
    if (node) node->list = items.first;
    return node;
}

/* Strings side by side are one. */
static jinja_node *parse_string(jinja_parser *p) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_CONST);
    size_t len = 0, n = 0;
    for (; p->at[n].kind == JINJA_TOKEN_STRING; n++) len += p->at[n].value.len;
    if (!node) return NULL;
    node->value = p->at->value;
    if (n > 1) {
        char *text = nib_arena_alloc(p->arena, len);
        if (!text) return nib_jinja_parse_fail_memory(p);
        node->value = jinja_str(text, len);
        for (size_t i = 0; i < n; text += p->at[i++].value.len)
            if (p->at[i].value.len) __builtin_memcpy(text, p->at[i].value.as.ptr, p->at[i].value.len);
    }
    p->at += n;
    return node;
}

static jinja_node *parse_name(jinja_parser *p) {
    static const struct {
        const char *name;
        uint8_t type;
        bool is_true;
    } words[] = {{"true", JINJA_BOOL, true}, {"True", JINJA_BOOL, true}, {"false", JINJA_BOOL, false},
                 {"False", JINJA_BOOL, false}, {"none", JINJA_NONE, false}, {"None", JINJA_NONE, false}};
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_NAME);
    if (!node) return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!nib_jinja_parse_is_name(p, words[i].name)) continue;
        node->kind = JINJA_NODE_CONST;
        node->value = words[i].type == JINJA_NONE ? jinja_none() : jinja_bool(words[i].is_true);
        p->at++;
        return node;
    }
    return nib_jinja_parse_name(p, &node->value) ? node : NULL;
}

/* ---- tuples */

static bool is_tuple_end(const jinja_parser *p, const char *end) {
    int kind = p->at->kind;
    return kind == JINJA_TOKEN_VAR_END || kind == JINJA_TOKEN_BLOCK_END || kind == JINJA_TOKEN_RPAREN ||
           (end && nib_jinja_parse_is_name(p, end));
}

static jinja_node *parse_primary(jinja_parser *p);

enum { FULL, WITHOUT_IF, TARGET };

static jinja_node *parse_tuple_of(jinja_parser *p, int what, const char *end, bool in_parentheses) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_TUPLE);
    jinja_nodes items = {0};
    bool has_comma = false;
    while (node) {
        if (items.n && !nib_jinja_parse_expect(p, JINJA_TOKEN_COMMA)) return NULL;
        if (is_tuple_end(p, end)) break;
        jinja_node *item = what == TARGET ? parse_primary(p) : what == FULL ? nib_jinja_parse_expression(p) : parse_or(p);
        if (!nib_jinja_nodes_add(&items, item)) return NULL;
        if (!nib_jinja_parse_is(p, JINJA_TOKEN_COMMA)) break;
        has_comma = true;
    }
    if (!node) return NULL;
    if (items.n == 1 && !has_comma) return items.first;
    if (items.n == 0 && !in_parentheses) return nib_jinja_parse_unexpected(p, "an expression");
    node->list = items.first;
    return node;
}

jinja_node *nib_jinja_parse_plain_tuple(jinja_parser *p, const char *end) {
    return parse_tuple_of(p, WITHOUT_IF, end, false);
}

jinja_node *nib_jinja_parse_tuple(jinja_parser *p) {
    return parse_tuple_of(p, FULL, NULL, false);
}

static bool is_target(jinja_parser *p, jinja_node *node, bool with_members) {
    if (node->kind == JINJA_NODE_NAME || (node->kind == JINJA_NODE_MEMBER && with_members)) return true;
    if (node->kind != JINJA_NODE_TUPLE) {
        nib_jinja_parse_fail(p, "cannot assign to this expression, expected a name");
        return false;
    }
    if (!nib_jinja_parse_enter(p)) return false;
    for (jinja_node *item = node->list; item; item = item->next)
        if (!is_target(p, item, with_members)) return false;
    p->depth--;
    return true;
}

/* name.attribute, as a target; anything else is read as parse_primary does. */
static jinja_node *parse_member(jinja_parser *p) {
    if (!nib_jinja_parse_is(p, JINJA_TOKEN_NAME) || p->at[1].kind != JINJA_TOKEN_DOT) return NULL;
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_MEMBER), *attribute = nib_jinja_node_new(p, JINJA_NODE_CONST);
    if (!node || !attribute || !nib_jinja_parse_name(p, &node->value)) return NULL;
    p->at++;
    if (!nib_jinja_parse_name(p, &attribute->value)) return NULL;
    node->a = attribute;
    return node;
}

jinja_node *nib_jinja_parse_target(jinja_parser *p, const char *end, bool with_members) {
    bool is_member = with_members && nib_jinja_parse_is(p, JINJA_TOKEN_NAME) && p->at[1].kind == JINJA_TOKEN_DOT;
    jinja_node *node = is_member ? parse_member(p) : parse_tuple_of(p, TARGET, end, false);
    return node && is_target(p, node, with_members) ? node : NULL;
}

static jinja_node *parse_parentheses(jinja_parser *p) {
    p->at++;
    jinja_node *node = parse_tuple_of(p, FULL, NULL, true);
    return node && nib_jinja_parse_expect(p, JINJA_TOKEN_RPAREN) ? node : NULL;
}

static jinja_node *parse_number(jinja_parser *p) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_CONST);
    if (node) node->value = p->at++->value;
    return node;
}

static jinja_node *parse_primary(jinja_parser *p) {
    static jinja_node *(*const parsers[JINJA_N_TOKENS])(jinja_parser *) = {
        [JINJA_TOKEN_NAME] = parse_name,       [JINJA_TOKEN_STRING] = parse_string,
        [JINJA_TOKEN_INTEGER] = parse_number,  [JINJA_TOKEN_FLOAT] = parse_number,
        [JINJA_TOKEN_LPAREN] = parse_parentheses, [JINJA_TOKEN_LBRACKET] = parse_list,
        [JINJA_TOKEN_LBRACE] = parse_dict,
    };
    if (!parsers[p->at->kind]) return nib_jinja_parse_unexpected(p, "an expression");
    if (!nib_jinja_parse_enter(p)) return NULL;
    jinja_node *node = parsers[p->at->kind](p);
    p->depth--;
    return node;
}

/* ---- members, calls, filters, tests */

/* One of "a", "a:b", "a:b:c" with any part left out. */
static jinja_node *parse_subscript(jinja_parser *p) {
    jinja_node *parts[3] = {NULL}, *slice = nib_jinja_node_new(p, JINJA_NODE_SLICE);
    size_t n = 0;
    for (;;) {
        bool is_empty = nib_jinja_parse_is(p, JINJA_TOKEN_COLON) || nib_jinja_parse_is(p, JINJA_TOKEN_RBRACKET) ||
                        nib_jinja_parse_is(p, JINJA_TOKEN_COMMA);
        if ((!is_empty || n == 0) && !(n == 0 && nib_jinja_parse_is(p, JINJA_TOKEN_COLON)) &&
            !(parts[n] = nib_jinja_parse_expression(p)))
            return NULL;
        if (n == 2 || !nib_jinja_parse_skip(p, JINJA_TOKEN_COLON)) break;
        n++;
    }
    if (n == 0 || !slice) return slice ? parts[0] : NULL;
    slice->a = parts[0];
    slice->b = parts[1];
    slice->c = parts[2];
    return slice;
}

static jinja_node *parse_item(jinja_parser *p, jinja_node *object) {
    jinja_node *node = nib_jinja_node_of(p, JINJA_NODE_ITEM, object, NULL);
    jinja_nodes items = {0};
    p->at++;
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_RBRACKET)) {
        if (!skip_comma(p, &items)) return NULL;
        if (!nib_jinja_nodes_add(&items, parse_subscript(p))) return NULL;
    }
    p->at++;
    if (!node || items.n == 1) {
        if (node) node->b = items.first;
        return node;
    }
    for (jinja_node *item = items.first; item; item = item->next)
        if (item->kind == JINJA_NODE_SLICE) return nib_jinja_parse_fail(p, "a slice among several subscripts");
    node->b = nib_jinja_node_new(p, JINJA_NODE_TUPLE);
    if (node->b) node->b->list = items.first;
    return node->b ? node : NULL;
}

static jinja_node *parse_attribute(jinja_parser *p, jinja_node *object) {
    jinja_node *node = nib_jinja_node_of(p, JINJA_NODE_ATTR, object, NULL);
    p->at++;
    if (!node) return NULL;
    if (nib_jinja_parse_is(p, JINJA_TOKEN_INTEGER)) {
        node->kind = JINJA_NODE_ITEM;
        node->b = parse_number(p);
        return node->b ? node : NULL;
    }
    return nib_jinja_parse_name(p, &node->value) ? node : NULL;
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *callee) {
    jinja_node *node = nib_jinja_node_of(p, JINJA_NODE_CALL, callee, NULL);
    return node && parse_arguments(p, &node->list) ? node : NULL;
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *node) {
    while (node) {
        if (nib_jinja_parse_is(p, JINJA_TOKEN_DOT)) node = parse_attribute(p, node);
        else if (nib_jinja_parse_is(p, JINJA_TOKEN_LBRACKET)) node = parse_item(p, node);
        else if (nib_jinja_parse_is(p, JINJA_TOKEN_LPAREN)) node = parse_call(p, node);
        else break;
    }
    return node;
}

/* One argument, in the order that Python allows: plain ones, named ones, *list, **dict. */
static jinja_node *parse_argument(jinja_parser *p, int *last_op) {
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_ARG);
    if (!node) return NULL;
    node->op = JINJA_ARG_PLAIN;
    if (nib_jinja_parse_skip(p, JINJA_TOKEN_MUL)) node->op = JINJA_ARG_LIST;
    else if (nib_jinja_parse_skip(p, JINJA_TOKEN_POW)) node->op = JINJA_ARG_DICT;
    else if (nib_jinja_parse_is(p, JINJA_TOKEN_NAME) && p->at[1].kind == JINJA_TOKEN_ASSIGN) node->op = JINJA_ARG_NAMED;
    bool is_misplaced = node->op == JINJA_ARG_PLAIN   ? *last_op != JINJA_ARG_PLAIN
                        : node->op == JINJA_ARG_NAMED ? *last_op == JINJA_ARG_DICT
                                                      : *last_op >= node->op;
    if (is_misplaced) return nib_jinja_parse_fail(p, "arguments in a wrong order");
    if (*last_op < node->op) *last_op = node->op;
    if (node->op == JINJA_ARG_NAMED) {
        if (!nib_jinja_parse_name(p, &node->value)) return NULL;
        p->at++;
    }
    node->a = nib_jinja_parse_expression(p);
    return node->a ? node : NULL;
}

static bool parse_arguments(jinja_parser *p, jinja_node **out) {
    jinja_nodes items = {0};
    int last_op = JINJA_ARG_PLAIN;
    p->at++;
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_RPAREN)) {
        if (!skip_comma(p, &items)) return false;
        if (items.n && nib_jinja_parse_is(p, JINJA_TOKEN_RPAREN)) break;
        if (!nib_jinja_nodes_add(&items, parse_argument(p, &last_op))) return false;
    }
    p->at++;
    *out = items.first;
    return true;
}

/* The name of a filter or test, with its row. One that nobody knows is an error now, or where it stands behind a
 * condition, when it is evaluated. */
static bool parse_row(jinja_parser *p, jinja_node *node, const jinja_builtin *(*find)(nib_str), const char *what) {
    if (!nib_jinja_parse_name(p, &node->value)) return false;
    node->row = find((nib_str){node->value.as.ptr, node->value.len});
    if (node->row || p->in_condition) return true;
    p->at--;
    nib_jinja_parse_fail(p, "No %s named '%.*s' found.", what, (int)node->value.len, node->value.as.ptr);
    return false;
}

jinja_node *nib_jinja_parse_filters(jinja_parser *p, jinja_node *input, bool without_bar) {
    jinja_node *node = input;
    while (without_bar || nib_jinja_parse_skip(p, JINJA_TOKEN_PIPE)) {
        jinja_node *filter = nib_jinja_node_new(p, JINJA_NODE_FILTER);
        if (!filter || !parse_row(p, filter, nib_jinja_find_filter, "filter")) return NULL;
        filter->a = node;
        if (nib_jinja_parse_is(p, JINJA_TOKEN_LPAREN) && !parse_arguments(p, &filter->list)) return NULL;
        node = filter;
        without_bar = false;
    }
    return node;
}

static bool begins_operand(const jinja_parser *p) {
    switch (p->at->kind) {
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
    case JINJA_TOKEN_LBRACKET:
    case JINJA_TOKEN_LBRACE: return true;
    case JINJA_TOKEN_NAME:
        return !nib_jinja_parse_is_name(p, "else") && !nib_jinja_parse_is_name(p, "or") && !nib_jinja_parse_is_name(p, "and");
    default: return false;
    }
}

static jinja_node *parse_test(jinja_parser *p, jinja_node *operand) {
    jinja_node *node = nib_jinja_node_of(p, JINJA_NODE_TEST, operand, NULL);
    p->at++;
    bool is_negated = nib_jinja_parse_skip_name(p, "not");
    if (!node || !parse_row(p, node, nib_jinja_find_test, "test")) return NULL;
    if (nib_jinja_parse_is(p, JINJA_TOKEN_LPAREN)) {
        if (!parse_arguments(p, &node->list)) return NULL;
    } else if (begins_operand(p)) {
        if (nib_jinja_parse_is_name(p, "is")) return nib_jinja_parse_fail(p, "tests cannot be chained with is");
        node->list = nib_jinja_node_new(p, JINJA_NODE_ARG);
        if (!node->list || !(node->list->a = parse_postfix(p, parse_primary(p)))) return NULL;
    }
    return is_negated ? nib_jinja_node_of(p, JINJA_NODE_NOT, node, NULL) : node;
}

static jinja_node *parse_filters_and_tests(jinja_parser *p, jinja_node *node) {
    while (node) {
        if (nib_jinja_parse_is(p, JINJA_TOKEN_PIPE)) node = nib_jinja_parse_filters(p, node, false);
        else if (nib_jinja_parse_is_name(p, "is")) node = parse_test(p, node);
        else if (nib_jinja_parse_is(p, JINJA_TOKEN_LPAREN)) node = parse_call(p, node);
        else break;
    }
    return node;
}

/* ---- operators */

static jinja_node *parse_unary(jinja_parser *p, bool with_filters) {
    int kind = p->at->kind;
    jinja_node *node;
    if (kind == JINJA_TOKEN_SUB || kind == JINJA_TOKEN_ADD) {
        if (!nib_jinja_parse_enter(p)) return NULL;
        node = nib_jinja_node_new(p, kind == JINJA_TOKEN_SUB ? JINJA_NODE_NEG : JINJA_NODE_POS);
        p->at++;
        if (!node || !(node->a = parse_unary(p, false))) return NULL;
        p->depth--;
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}

static jinja_node *parse_operand(jinja_parser *p) {
    return parse_unary(p, true);
}

/* "x op y op z" from the left, with these operators. */
static jinja_node *parse_left(jinja_parser *p, jinja_node *(*operand)(jinja_parser *), const uint8_t *ops) {
    jinja_node *left = operand(p);
    while (left && __builtin_strchr((const char *)ops, p->at->kind) && p->at->kind) {
        jinja_node *node = nib_jinja_node_of(p, JINJA_NODE_BINARY, left, NULL);
        if (!node) return NULL;
        node->op = p->at++->kind;
        if (!(node->b = operand(p))) return NULL;
        left = node;
    }
    return left;
}

static jinja_node *parse_power(jinja_parser *p) {
    static const uint8_t ops[] = {JINJA_TOKEN_POW, 0};
    return parse_left(p, parse_operand, ops);
}

static jinja_node *parse_product(jinja_parser *p) {
    static const uint8_t ops[] = {JINJA_TOKEN_MUL, JINJA_TOKEN_DIV, JINJA_TOKEN_FLOORDIV, JINJA_TOKEN_MOD, 0};
    return parse_left(p, parse_power, ops);
}

static jinja_node *parse_concat(jinja_parser *p) {
    jinja_node *first = parse_product(p), *node;
    jinja_nodes items = {0};
    if (!first || !nib_jinja_parse_is(p, JINJA_TOKEN_TILDE)) return first;
    if (!(node = nib_jinja_node_new(p, JINJA_NODE_CONCAT))) return NULL;
    nib_jinja_nodes_add(&items, first);
    while (nib_jinja_parse_skip(p, JINJA_TOKEN_TILDE))
        if (!nib_jinja_nodes_add(&items, parse_product(p))) return NULL;
    node->list = items.first;
    return node;
}

static jinja_node *parse_sum(jinja_parser *p) {
    static const uint8_t ops[] = {JINJA_TOKEN_ADD, JINJA_TOKEN_SUB, 0};
    return parse_left(p, parse_concat, ops);
}

/* The operator of a comparison, stepped over; 0: there is none. */
static int comparison(jinja_parser *p) {
    static const uint8_t ops[] = {JINJA_TOKEN_EQ, JINJA_TOKEN_NE, JINJA_TOKEN_LT, JINJA_TOKEN_LE, JINJA_TOKEN_GT, JINJA_TOKEN_GE};
    for (size_t i = 0; i < sizeof ops; i++)
        if (nib_jinja_parse_skip(p, ops[i])) return ops[i];
    if (nib_jinja_parse_skip_name(p, "in")) return JINJA_TOKEN_IN;
    if (!nib_jinja_parse_is_name(p, "not")) return 0;
    p->at++;
    if (nib_jinja_parse_skip_name(p, "in")) return JINJA_TOKEN_NOT_IN;
    p->at--;
    return 0;
}

static jinja_node *parse_compare(jinja_parser *p) {
    jinja_node *first = parse_sum(p), *node = NULL;
    jinja_nodes items = {0};
    for (int op; first && (op = comparison(p)) != 0;) {
        if (!node && !(node = nib_jinja_node_of(p, JINJA_NODE_COMPARE, first, NULL))) return NULL;
        jinja_node *operand = nib_jinja_node_new(p, JINJA_NODE_OPERAND);
        if (!operand || !(operand->a = parse_sum(p))) return NULL;
        operand->op = (uint8_t)op;
        nib_jinja_nodes_add(&items, operand);
    }
    if (!node) return first;
    node->list = items.first;
    return node;
}

static jinja_node *parse_not(jinja_parser *p) {
    if (!nib_jinja_parse_is_name(p, "not")) return parse_compare(p);
    if (!nib_jinja_parse_enter(p)) return NULL;
    jinja_node *node = nib_jinja_node_new(p, JINJA_NODE_NOT);
    p->at++;
    if (node && !(node->a = parse_not(p))) return NULL;
    p->depth--;
    return node;
}

static jinja_node *parse_words(jinja_parser *p, jinja_node *(*operand)(jinja_parser *), const char *word, int kind) {
    jinja_node *left = operand(p);
    while (left && nib_jinja_parse_skip_name(p, word)) {
        jinja_node *node = nib_jinja_node_of(p, kind, left, NULL);
        if (!node || !(node->b = operand(p))) return NULL;
        left = node;
    }
    return left;
}

static jinja_node *parse_and(jinja_parser *p) {
    return parse_words(p, parse_not, "and", JINJA_NODE_AND);
}

static jinja_node *parse_or(jinja_parser *p) {
    return parse_words(p, parse_and, "or", JINJA_NODE_OR);
}

/* The parts of a condition may name filters that nobody knows; whether "if" follows is seen only after the first part. */
static bool is_condition(const jinja_parser *p) {
    int open = 0;
    for (const jinja_token *t = p->at; t->kind != JINJA_TOKEN_END; t++) {
        if (t->kind == JINJA_TOKEN_LPAREN || t->kind == JINJA_TOKEN_LBRACKET || t->kind == JINJA_TOKEN_LBRACE) open++;
        if (t->kind == JINJA_TOKEN_RPAREN || t->kind == JINJA_TOKEN_RBRACKET || t->kind == JINJA_TOKEN_RBRACE) open--;
        if (open < 0 || t->kind == JINJA_TOKEN_VAR_END || t->kind == JINJA_TOKEN_BLOCK_END) return false;
        if (open == 0 && (t->kind == JINJA_TOKEN_COMMA || t->kind == JINJA_TOKEN_COLON)) return false;
        if (open == 0 && t->kind == JINJA_TOKEN_NAME && jinja_str_is(&t->value, "if", 2)) return true;
    }
    return false;
}

jinja_node *nib_jinja_parse_expression(jinja_parser *p) {
    if (!nib_jinja_parse_enter(p)) return NULL;
    bool was_in_condition = p->in_condition;
    p->in_condition = was_in_condition || is_condition(p);
    jinja_node *value = parse_or(p);
    while (value && nib_jinja_parse_skip_name(p, "if")) {
        jinja_node *test = parse_or(p), *node = nib_jinja_node_of(p, JINJA_NODE_COND, test, value);
        if (!node) return NULL;
        if (nib_jinja_parse_skip_name(p, "else") && !(node->c = nib_jinja_parse_expression(p))) return NULL;
        value = node;
    }
    p->in_condition = was_in_condition;
    p->depth--;
    return value;
}
