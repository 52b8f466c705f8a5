/* jinja/parse_stmt.c - tokens of a template -> statements. Tags are rows of a table; what is nested is bounded by
 * max_depth. */
#include "base/status.h"
#include "jinja/parse.h"
#include "jinja/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what both halves of the parser use */

void *nib_jinja_parse_fail(jinja_parser *p, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    nib_fail_at(p->err, NIB_E_FORMAT, p->at->offset, "%s", text);
    return NULL;
}

void *nib_jinja_parse_fail_memory(jinja_parser *p) {
    nib_fail_at(p->err, NIB_E_LIMIT, p->at->offset, "the parts of the template need more than %zu bytes", p->arena->limit);
    return NULL;
}

void *nib_jinja_parse_unexpected(jinja_parser *p, const char *expected) {
    const jinja_token *t = p->at;
    if (t->kind == JINJA_TOKEN_NAME)
        return nib_jinja_parse_fail(p, "unexpected '%.*s', expected %s", (int)(t->value.len < 60 ? t->value.len : 60),
                                    t->value.as.ptr, expected);
    return nib_jinja_parse_fail(p, "unexpected '%s', expected %s", nib_jinja_token_name(t->kind), expected);
}

jinja_node *nib_jinja_node_new(jinja_parser *p, int kind) {
    jinja_node *node = nib_arena_alloc(p->arena, sizeof *node);
    if (!node) return nib_jinja_parse_fail_memory(p);
    *node = (jinja_node){.kind = (uint8_t)kind, .offset = p->at->offset};
    return node;
}

jinja_node *nib_jinja_node_of(jinja_parser *p, int kind, jinja_node *a, jinja_node *b) {
    jinja_node *node = a ? nib_jinja_node_new(p, kind) : NULL;
    if (!node) return NULL;
    node->a = a;
    node->b = b;
    return node;
}

bool nib_jinja_nodes_add(jinja_nodes *list, jinja_node *node) {
    if (!node) return false;
    if (list->last) list->last->next = node;
    else list->first = node;
    list->last = node;
    list->n++;
    return true;
}

bool nib_jinja_parse_enter(jinja_parser *p) {
    if (++p->depth <= p->max_depth) return true;
    nib_jinja_parse_fail(p, "nested deeper than %u", p->max_depth);
    return false;
}

bool nib_jinja_parse_is_name(const jinja_parser *p, const char *name) {
    return p->at->kind == JINJA_TOKEN_NAME && jinja_str_is(&p->at->value, name, strlen(name));
}

bool nib_jinja_parse_skip(jinja_parser *p, int kind) {
    if (p->at->kind != kind) return false;
    p->at++;
    return true;
}

bool nib_jinja_parse_skip_name(jinja_parser *p, const char *name) {
    if (!nib_jinja_parse_is_name(p, name)) return false;
    p->at++;
    return true;
}

bool nib_jinja_parse_expect(jinja_parser *p, int kind) {
    char expected[40];
    if (nib_jinja_parse_skip(p, kind)) return true;
    snprintf(expected, sizeof expected, "'%s'", nib_jinja_token_name(kind));
    nib_jinja_parse_unexpected(p, expected);
    return false;
}

bool nib_jinja_parse_name(jinja_parser *p, jinja_value *name) {
    if (p->at->kind != JINJA_TOKEN_NAME) return nib_jinja_parse_unexpected(p, "a name") != NULL;
    *name = p->at->value;
    p->at++;
    return true;
}

/* ---- bodies */

static jinja_node *parse_statement(jinja_parser *p);

static bool is_one_of(const jinja_parser *p, const char *const *words) {
    for (; *words; words++)
        if (nib_jinja_parse_is_name(p, *words)) return true;
    return false;
}

/* Statements up to a tag whose name is in `ends`, at which it stands then; NULL: up to the end of the template. */
static bool parse_until(jinja_parser *p, const char *const *ends, jinja_node **out) {
    jinja_nodes body = {0};
    for (;;) {
        jinja_node *node = NULL;
        switch (p->at->kind) {
        case JINJA_TOKEN_END:
            *out = body.first;
            if (ends) nib_jinja_parse_fail(p, "the template ends, expected '%s'", ends[0]);
            return !ends;
        case JINJA_TOKEN_DATA:
            if ((node = nib_jinja_node_new(p, JINJA_NODE_DATA))) node->value = p->at->value;
            p->at++;
            break;
        case JINJA_TOKEN_VAR_BEGIN:
            p->at++;
            node = nib_jinja_node_new(p, JINJA_NODE_PRINT);
            if (!node || !(node->list = nib_jinja_parse_tuple(p)) || !nib_jinja_parse_expect(p, JINJA_TOKEN_VAR_END)) return false;
            break;
        default:
            p->at++; /* BLOCK_BEGIN: the lexer gives nothing else between tags */
            *out = body.first;
            if (ends && is_one_of(p, ends)) return true;
            node = parse_statement(p);
            if (!node || !nib_jinja_parse_expect(p, JINJA_TOKEN_BLOCK_END)) return false;
        }
        if (!nib_jinja_nodes_add(&body, node)) return false;
    }
}

/* The rest of a tag, then statements up to "end…". */
static bool parse_body(jinja_parser *p, const char *end, jinja_node **out) {
    const char *const ends[] = {end, NULL};
    if (!nib_jinja_parse_expect(p, JINJA_TOKEN_BLOCK_END) || !parse_until(p, ends, out)) return false;
    p->at++;
    return true;
}

/* ---- tags: each is called behind its name, with a node of its kind */

static bool parse_for(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endfor", "else", NULL};
    bool was_in_condition = p->in_condition;
    if (!(node->a = nib_jinja_parse_target(p, "in", false))) return false;
    if (!nib_jinja_parse_skip_name(p, "in")) return nib_jinja_parse_unexpected(p, "'in'") != NULL;
    if (!(node->b = nib_jinja_parse_plain_tuple(p, "recursive"))) return false;
    if (nib_jinja_parse_skip_name(p, "if") && !(node->c = nib_jinja_parse_expression(p))) return false;
    node->flag = nib_jinja_parse_skip_name(p, "recursive");
    if (!nib_jinja_parse_expect(p, JINJA_TOKEN_BLOCK_END)) return false;
    p->in_condition = false;
    p->loops++;
    bool ok = parse_until(p, ends, &node->body);
    p->loops--;
    if (ok && nib_jinja_parse_is_name(p, "else")) {
        p->at++;
        ok = parse_body(p, "endfor", &node->other);
    } else if (ok) {
        p->at++;
    }
    p->in_condition = was_in_condition;
    return ok;
}

static bool parse_branches(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    for (;;) {
        if (!(node->a = nib_jinja_parse_plain_tuple(p, NULL)) || !nib_jinja_parse_expect(p, JINJA_TOKEN_BLOCK_END)) return false;
        if (!parse_until(p, ends, &node->body)) return false;
        if (nib_jinja_parse_skip_name(p, "elif")) {
            node->flag = true;
            node = node->other = nib_jinja_node_new(p, JINJA_NODE_IF);
            if (!node) return false;
            continue;
        }
        if (nib_jinja_parse_skip_name(p, "else")) return parse_body(p, "endif", &node->other);
        p->at++;
        return true;
    }
}

static bool parse_if(jinja_parser *p, jinja_node *node) {
    bool was_in_condition = p->in_condition;
    p->in_condition = true;
    bool ok = parse_branches(p, node);
    p->in_condition = was_in_condition;
    return ok;
}

static bool parse_set(jinja_parser *p, jinja_node *node) {
    if (!(node->a = nib_jinja_parse_target(p, NULL, true))) return false;
    if (nib_jinja_parse_skip(p, JINJA_TOKEN_ASSIGN)) return (node->b = nib_jinja_parse_tuple(p)) != NULL;
    node->kind = JINJA_NODE_SET_BLOCK;
    if (nib_jinja_parse_is(p, JINJA_TOKEN_PIPE) && !(node->b = nib_jinja_parse_filters(p, NULL, false))) return false;
    return parse_body(p, "endset", &node->body);
}

/* (a, b=1): ARG nodes, defaults in a. */
static bool parse_signature(jinja_parser *p, jinja_node **out) {
    jinja_nodes params = {0};
    if (!nib_jinja_parse_expect(p, JINJA_TOKEN_LPAREN)) return false;
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_RPAREN)) {
        if (params.n && !nib_jinja_parse_expect(p, JINJA_TOKEN_COMMA)) return false;
        jinja_node *param = nib_jinja_node_new(p, JINJA_NODE_ARG);
        bool has_defaults = params.last && params.last->a;
        if (!param || !nib_jinja_parse_name(p, &param->value)) return false;
        if (nib_jinja_parse_skip(p, JINJA_TOKEN_ASSIGN)) {
            if (!(param->a = nib_jinja_parse_expression(p))) return false;
        } else if (has_defaults) {
            return nib_jinja_parse_fail(p, "a parameter without default after one with default") != NULL;
        }
        nib_jinja_nodes_add(&params, param);
    }
    p->at++;
    *out = params.first;
    return true;
}

/* A macro that mentions varargs, kwargs or caller takes arguments that it does not name: found in its tokens. */
static void find_extra_arguments(const jinja_token *from, const jinja_token *to, jinja_node *macro) {
    for (; from < to; from++) {
        if (from->kind != JINJA_TOKEN_NAME) continue;
        if (jinja_str_is(&from->value, "varargs", 7)) macro->flag = true;
        if (jinja_str_is(&from->value, "kwargs", 6)) macro->flag2 = true;
        if (jinja_str_is(&from->value, "caller", 6)) macro->op = 1;
    }
}

static bool parse_macro_body(jinja_parser *p, jinja_node *macro, const char *end) {
    const jinja_token *from = p->at;
    uint32_t loops = p->loops;
    bool was_in_condition = p->in_condition;
    p->loops = 0;
    p->in_condition = false;
    bool ok = parse_body(p, end, &macro->body);
    p->loops = loops;
    p->in_condition = was_in_condition;
    find_extra_arguments(from, p->at, macro);
    return ok;
}

static bool parse_macro(jinja_parser *p, jinja_node *node) {
    return nib_jinja_parse_name(p, &node->value) && parse_signature(p, &node->list) && parse_macro_body(p, node, "endmacro");
}

static bool parse_call_block(jinja_parser *p, jinja_node *node) {
    jinja_node *macro = node->b = nib_jinja_node_new(p, JINJA_NODE_MACRO);
    if (!macro) return false;
    macro->value = jinja_str("caller", 6);
    if (nib_jinja_parse_is(p, JINJA_TOKEN_LPAREN) && !parse_signature(p, &macro->list)) return false;
    if (!(node->a = nib_jinja_parse_expression(p))) return false;
    if (node->a->kind != JINJA_NODE_CALL) return nib_jinja_parse_unexpected(p, "a call") != NULL;
    return parse_macro_body(p, macro, "endcall");
}

static bool parse_filter_block(jinja_parser *p, jinja_node *node) {
    return (node->a = nib_jinja_parse_filters(p, NULL, true)) && parse_body(p, "endfilter", &node->body);
}

static bool parse_with(jinja_parser *p, jinja_node *node) {
    jinja_nodes pairs = {0};
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_BLOCK_END)) {
        if (pairs.n && !nib_jinja_parse_expect(p, JINJA_TOKEN_COMMA)) return false;
        jinja_node *target = nib_jinja_parse_target(p, NULL, false);
        jinja_node *pair = nib_jinja_node_of(p, JINJA_NODE_PAIR, target, NULL);
        if (!pair || !nib_jinja_parse_expect(p, JINJA_TOKEN_ASSIGN)) return false;
        if (!(pair->b = nib_jinja_parse_expression(p))) return false;
        nib_jinja_nodes_add(&pairs, pair);
    }
    node->list = pairs.first;
    return parse_body(p, "endwith", &node->body);
}

static bool parse_print(jinja_parser *p, jinja_node *node) {
    jinja_nodes items = {0};
    while (!nib_jinja_parse_is(p, JINJA_TOKEN_BLOCK_END)) {
        if (items.n && !nib_jinja_parse_expect(p, JINJA_TOKEN_COMMA)) return false;
        if (!nib_jinja_nodes_add(&items, nib_jinja_parse_expression(p))) return false;
    }
    node->list = items.first;
    return true;
}

/* {% generation %} marks what a model is trained on; the text is the same. */
static bool parse_generation(jinja_parser *p, jinja_node *node) {
    node->flag = true;
    return parse_body(p, "endgeneration", &node->body);
}

/* Without inheritance a block is printed where it stands. */
static bool parse_block(jinja_parser *p, jinja_node *node) {
    jinja_value name = {0};
    if (!nib_jinja_parse_name(p, &name)) return false;
    node->flag = true;
    nib_jinja_parse_skip_name(p, "scoped");
    if (!parse_body(p, "endblock", &node->body)) return false;
    if (nib_jinja_parse_is(p, JINJA_TOKEN_NAME) && jinja_str_is(&p->at->value, name.as.ptr, name.len)) p->at++;
    return true;
}

static bool parse_leave(jinja_parser *p, jinja_node *node) {
    (void)node;
    return p->loops > 0 || nib_jinja_parse_fail(p, "break and continue stand in loops only") != NULL;
}

static bool parse_refused(jinja_parser *p, jinja_node *node) {
    (void)node;
    return nib_jinja_parse_fail(p, "a chat template stands alone: include, import and extends are not supported") != NULL;
}

static bool parse_autoescape(jinja_parser *p, jinja_node *node) {
    (void)node;
    return nib_jinja_parse_fail(p, "autoescape is not supported: a prompt is no HTML") != NULL;
}

static const struct {
    const char *name;
    uint8_t kind;
    bool (*parse)(jinja_parser *, jinja_node *);
} tags[] = {
    {"if", JINJA_NODE_IF, parse_if},
    {"for", JINJA_NODE_FOR, parse_for},
    {"set", JINJA_NODE_SET, parse_set},
    {"macro", JINJA_NODE_MACRO, parse_macro},
    {"call", JINJA_NODE_CALL_BLOCK, parse_call_block},
    {"filter", JINJA_NODE_FILTER_BLOCK, parse_filter_block},
    {"with", JINJA_NODE_WITH, parse_with},
    {"print", JINJA_NODE_PRINT, parse_print},
    {"generation", JINJA_NODE_BODY, parse_generation},
    {"block", JINJA_NODE_BODY, parse_block},
    {"break", JINJA_NODE_BREAK, parse_leave},
    {"continue", JINJA_NODE_CONTINUE, parse_leave},
    {"include", JINJA_NODE_BODY, parse_refused},
    {"import", JINJA_NODE_BODY, parse_refused},
    {"from", JINJA_NODE_BODY, parse_refused},
    {"extends", JINJA_NODE_BODY, parse_refused},
    {"autoescape", JINJA_NODE_BODY, parse_autoescape},
};

static jinja_node *parse_statement(jinja_parser *p) {
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!nib_jinja_parse_is_name(p, tags[i].name)) continue;
        jinja_node *node = nib_jinja_node_new(p, tags[i].kind);
        p->at++;
        if (!node || !nib_jinja_parse_enter(p) || !tags[i].parse(p, node)) return NULL;
        p->depth--;
        return node;
    }
    return nib_jinja_parse_unexpected(p, "a tag such as if, for, set, macro");
}

nib_status nib_jinja_parse(nib_str source, uint32_t max_depth, nib_arena *arena, jinja_node **out, nib_error *err) {
    jinja_tokens tokens = {0};
    nib_error local;
    jinja_parser p = {.arena = arena, .max_depth = max_depth, .err = err ? err : &local};
    nib_status status = nib_jinja_lex(source, arena, &tokens, p.err);
    if (status == NIB_OK) {
        p.at = tokens.items;
        jinja_node *root = nib_jinja_node_new(&p, JINJA_NODE_BODY);
        status = root && parse_until(&p, NULL, &root->body) && nib_jinja_parse_names(&p, root) ? NIB_OK : p.err->code;
        *out = root;
    }
    nib_free(tokens.items);
    return status;
}
