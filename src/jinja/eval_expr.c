/* jinja/eval_expr.c - nodes of expressions -> values. One function for each row of nodes.def. */
#include "jinja/eval.h"
#include "jinja/lex.h"

typedef bool (*eval_fn)(jinja *j, const jinja_node *node, jinja_value *out);

static bool eval_constant(jinja *j, const jinja_node *node, jinja_value *out) {
    (void)j;
    *out = node->value;
    return true;
}

bool nib_jinja_lookup(jinja *j, const jinja_value *name, jinja_value *out) {
    uint32_t n = 0;
    for (const jinja_scope *scope = j->scope; scope; scope = scope->parent, n++)
        for (const jinja_binding *b = scope->first; b; b = b->next, n++)
            if (jinja_str_is(&b->name, name->as.ptr, name->len)) {
                *out = b->value;
                bool is_hidden = b->value.type == JINJA_MISSING;
                return nib_jinja_work(j, n * 8) && (!is_hidden || nib_jinja_undefined(j, JINJA_NO_NAME, NULL, name, out));
            }
    const jinja_pair *pair;
    if (!nib_jinja_work(j, n * 8) || !nib_jinja_find_key(j, j->context, name, &pair)) return false;
    if (pair) {
        *out = pair->value;
        return true;
    }
    const jinja_builtin *function = nib_jinja_find_function((nib_str){name->as.ptr, name->len});
    if (!function) return nib_jinja_undefined(j, JINJA_NO_NAME, NULL, name, out);
    *out = (jinja_value){.type = JINJA_FUNCTION, .is_trusted = true, .as.function = function};
    return true;
}

static bool eval_name(jinja *j, const jinja_node *node, jinja_value *out) {
    return nib_jinja_lookup(j, &node->value, out);
}

static bool eval_items(jinja *j, const jinja_node *node, int flavor, jinja_value *out) {
    jinja_value list, item;
    if (!nib_jinja_list_new(j, flavor, 0, &list)) return false;
    for (const jinja_node *n = node->list; n; n = n->next)
        if (!nib_jinja_eval(j, n, &item) || !nib_jinja_list_add(j, &list, &item)) return false;
    *out = list;
    return true;
}

static bool eval_tuple(jinja *j, const jinja_node *node, jinja_value *out) {
    return eval_items(j, node, JINJA_AS_TUPLE, out);
}

static bool eval_list(jinja *j, const jinja_node *node, jinja_value *out) {
    return eval_items(j, node, JINJA_AS_LIST, out);
}

static bool eval_dict(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value dict, key, value;
    if (!nib_jinja_dict_new(j, &dict)) return false;
    for (const jinja_node *pair = node->list; pair; pair = pair->next)
        if (!nib_jinja_eval(j, pair->a, &key) || !nib_jinja_eval(j, pair->b, &value) ||
            !nib_jinja_set(j, dict.as.dict, &key, &value))
            return false;
    *out = dict;
    return true;
}

static bool eval_attribute(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value object;
    if (!nib_jinja_eval(j, node->a, &object)) return false;
    j->at = node;
    return nib_jinja_get_attr(j, &object, &node->value, out);
}

static bool eval_item(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value object, key, parts[3];
    if (!nib_jinja_eval(j, node->a, &object)) return false;
    if (node->b->kind != JINJA_NODE_SLICE) {
        if (!nib_jinja_eval(j, node->b, &key)) return false;
        j->at = node;
        return nib_jinja_get_item(j, &object, &key, out);
    }
    const jinja_node *nodes[] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        parts[i] = jinja_none();
        if (nodes[i] && !nib_jinja_eval(j, nodes[i], &parts[i])) return false;
    }
    j->at = node;
    return nib_jinja_slice(j, &object, parts, out);
}

/* ---- calls */

static bool add_named(jinja *j, jinja_args *args, const jinja_value *name, const jinja_value *value) {
    if (!args->named) {
        jinja_value dict;
        if (!nib_jinja_dict_new(j, &dict)) return false;
        args->named = dict.as.dict;
    }
    return nib_jinja_set(j, args->named, name, value);
}

static bool add_all_named(jinja *j, jinja_args *args, const jinja_value *dict) {
    if (dict->type != JINJA_DICT)
        return nib_jinja_fail(j, "TypeError: argument after ** must be a mapping, not %s", nib_jinja_type_name(dict));
    for (uint32_t i = 0; i < dict->as.dict->n; i++) {
        const jinja_pair *pair = &dict->as.dict->pairs[i];
        if (pair->key.type != JINJA_STR) return nib_jinja_fail(j, "TypeError: keywords must be strings");
        if (!add_named(j, args, &pair->key, &pair->value)) return false;
    }
    return true;
}

bool nib_jinja_eval_args(jinja *j, const jinja_node *list, jinja_args *args) {
    jinja_value plain, value, *items;
    uint32_t n;
    *args = (jinja_args){0};
    if (!list) return true;
    if (!nib_jinja_list_new(j, JINJA_AS_LIST, 4, &plain)) return false;
    for (const jinja_node *arg = list; arg; arg = arg->next) {
        if (!nib_jinja_eval(j, arg->a, &value)) return false;
        bool ok = true;
        if (arg->op == JINJA_ARG_PLAIN) ok = nib_jinja_list_add(j, &plain, &value);
        else if (arg->op == JINJA_ARG_NAMED) ok = add_named(j, args, &arg->value, &value);
        else if (arg->op == JINJA_ARG_DICT) ok = add_all_named(j, args, &value);
        else if ((ok = nib_jinja_items(j, &value, &items, &n)))
            for (uint32_t i = 0; i < n && ok; i++) ok = nib_jinja_list_add(j, &plain, &items[i]);
        if (!ok) return false;
    }
    args->items = plain.as.list->items;
    args->n = plain.as.list->n;
    return true;
}

static bool eval_call(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value callee;
    jinja_args args;
    if (!nib_jinja_eval(j, node->a, &callee) || !nib_jinja_eval_args(j, node->list, &args)) return false;
    j->at = node;
    return nib_jinja_call(j, &callee, &args, out);
}

static bool call_row(jinja *j, const jinja_node *node, const char *what, jinja_value *out) {
    jinja_value input;
    jinja_args args;
    if (!node->row) return nib_jinja_fail(j, "No %s named '%.*s' found.", what, (int)node->value.len, node->value.as.ptr);
    if (!node->a) input = *j->block_text;
    else if (!nib_jinja_eval(j, node->a, &input)) return false;
    if (!nib_jinja_eval_args(j, node->list, &args)) return false;
    j->at = node;
    return nib_jinja_call_builtin(j, node->row, &input, &args, out);
}

static bool eval_filter(jinja *j, const jinja_node *node, jinja_value *out) {
    return call_row(j, node, "filter", out);
}

static bool eval_test(jinja *j, const jinja_node *node, jinja_value *out) {
    return call_row(j, node, "test", out);
}

/* ---- operators */

static bool eval_not(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value v;
    if (!nib_jinja_eval(j, node->a, &v)) return false;
    if (v.type == JINJA_UNDEFINED && v.as.undefined->why == JINJA_UNSAFE) return nib_jinja_fail_undefined(j, &v);
    *out = jinja_bool(!nib_jinja_is_true(&v));
    return true;
}

static bool eval_sign(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value v;
    if (!nib_jinja_eval(j, node->a, &v)) return false;
    bool is_minus = node->kind == JINJA_NODE_NEG;
    if (v.type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v);
    if (!jinja_is_number(&v))
        return nib_jinja_fail(j, "TypeError: bad operand type for unary %c: '%s'", is_minus ? '-' : '+', nib_jinja_type_name(&v));
    if (v.type == JINJA_FLOAT) *out = jinja_float(is_minus ? -v.as.f : v.as.f);
    else if (is_minus && jinja_as_int(&v) == INT64_MIN) return nib_jinja_fail(j, "OverflowError: an integer beyond 64 bits");
    else *out = jinja_int(is_minus ? -jinja_as_int(&v) : jinja_as_int(&v));
    out->is_trusted = v.is_trusted;
    return true;
}

static bool eval_binary(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value a, b;
    if (!nib_jinja_eval(j, node->a, &a) || !nib_jinja_eval(j, node->b, &b)) return false;
    j->at = node;
    return nib_jinja_binary(j, node->op, &a, &b, out);
}

static bool eval_concat(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value first, v;
    size_t mark = nib_jinja_mark(j);
    if (!nib_jinja_eval(j, node->list, &first)) return false;
    bool is_long = first.type == JINJA_STR && first.len >= JINJA_LONG;
    if (!is_long && !nib_jinja_put_value(j, &first)) return false;
    for (const jinja_node *n = node->list->next; n; n = n->next)
        if (!nib_jinja_eval(j, n, &v) || !nib_jinja_put_value(j, &v)) return false;
    return is_long ? nib_jinja_take_behind(j, mark, &first, out) : nib_jinja_take(j, mark, out);
}

static bool eval_compare(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_value left, right;
    bool holds = true;
    if (!nib_jinja_eval(j, node->a, &left)) return false;
    for (const jinja_node *n = node->list; n && holds; n = n->next) {
        if (!nib_jinja_eval(j, n->a, &right)) return false;
        j->at = node;
        if (!nib_jinja_compare(j, n->op, &left, &right, &holds)) return false;
        left = right;
    }
    *out = jinja_bool(holds);
    return true;
}

static bool eval_and_or(jinja *j, const jinja_node *node, jinja_value *out) {
    if (!nib_jinja_eval(j, node->a, out)) return false;
    bool decides = nib_jinja_is_true(out) == (node->kind == JINJA_NODE_OR);
    return decides || nib_jinja_eval(j, node->b, out);
}

static bool eval_condition(jinja *j, const jinja_node *node, jinja_value *out) {
    static const char why[] = "the inline if-expression evaluated to false and no else section was defined.";
    jinja_value test, message = jinja_str(why, sizeof why - 1);
    if (!nib_jinja_eval(j, node->a, &test)) return false;
    if (nib_jinja_is_true(&test)) return nib_jinja_eval(j, node->b, out);
    return node->c ? nib_jinja_eval(j, node->c, out) : nib_jinja_undefined(j, JINJA_EMPTY, NULL, &message, out);
}

bool nib_jinja_eval(jinja *j, const jinja_node *node, jinja_value *out) {
    static const eval_fn functions[JINJA_N_NODES] = {
#define EXPR(id, eval) [JINJA_NODE_##id] = eval_##eval,
#define STMT(id, exec)
#define PART(id)
#include "jinja/nodes.def"
#undef EXPR
#undef STMT
#undef PART
    };
    j->at = node;
    bool ok = nib_jinja_enter(j) && functions[node->kind](j, node, out);
    j->depth--;
    return ok;
}
