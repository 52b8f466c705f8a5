/* jinja/eval_stmt.c - nodes of statements -> text, bindings. One function for each row of nodes.def. A loop, a macro and a
 * captured block have a scope of their own, each round of a loop a new one; if has none. */
#include "jinja/eval.h"

typedef bool (*exec_fn)(jinja *j, const jinja_node *node);

/* ---- scopes */

bool nib_jinja_bind(jinja *j, jinja_scope *scope, const jinja_value *name, const jinja_value *value) {
    jinja_binding *b = scope->first;
    uint32_t n = 0;
    for (; b && !jinja_str_is(&b->name, name->as.ptr, name->len); b = b->next) n++;
    if (!nib_jinja_work(j, n * 8)) return false;
    if (!b) {
        b = j->spare;
        if (b) j->spare = b->next;
        else if (!(b = nib_jinja_alloc(j, sizeof *b))) return false;
        *b = (jinja_binding){scope->first, *name, {0}};
        scope->first = b;
    }
    b->value = *value;
    return true;
}

/* Forgets the names of a scope, unless a macro may still ask for them. */
static void drop(jinja *j, jinja_scope *scope) {
    while (!scope->is_shared && scope->first) {
        jinja_binding *b = scope->first;
        scope->first = b->next;
        b->next = j->spare;
        j->spare = b;
    }
}

static jinja_scope *push(jinja *j, jinja_scope *parent) {
    jinja_scope *scope = nib_jinja_alloc(j, sizeof *scope);
    if (scope) *scope = (jinja_scope){.parent = parent};
    return scope;
}

static bool assign(jinja *j, const jinja_node *target, const jinja_value *value);

static bool unpack(jinja *j, const jinja_node *target, const jinja_value *value) {
    jinja_value *items;
    uint32_t n, at = 0;
    if (value->type != JINJA_STR && value->type != JINJA_LIST && value->type != JINJA_DICT && value->type != JINJA_UNDEFINED)
        return nib_jinja_fail(j, "TypeError: cannot unpack non-iterable %s object", nib_jinja_type_name(value));
    if (!nib_jinja_items(j, value, &items, &n)) return false;
    for (const jinja_node *part = target->list; part; part = part->next, at++)
        if (at >= n) return nib_jinja_fail(j, "ValueError: not enough values to unpack, found %u", n);
    if (at < n) return nib_jinja_fail(j, "ValueError: too many values to unpack, expected %u", at);
    at = 0;
    for (const jinja_node *part = target->list; part; part = part->next)
        if (!assign(j, part, &items[at++])) return false;
    return true;
}

static bool assign_member(jinja *j, const jinja_node *target, const jinja_value *value) {
    jinja_value object;
    if (!nib_jinja_lookup(j, &target->value, &object)) return false;
    if (object.type != JINJA_NAMESPACE) return nib_jinja_fail(j, "cannot assign attribute on non-namespace object");
    return nib_jinja_set(j, object.as.dict, &target->a->value, value);
}

static bool assign(jinja *j, const jinja_node *target, const jinja_value *value) {
    if (target->kind == JINJA_NODE_NAME) return nib_jinja_bind(j, j->scope, &target->value, value);
    if (target->kind == JINJA_NODE_MEMBER) return assign_member(j, target, value);
    bool ok = nib_jinja_enter(j) && unpack(j, target, value);
    j->depth--;
    return ok;
}

/* Runs a body in a new scope. */
static bool exec_inside(jinja *j, const jinja_node *body) {
    jinja_scope *outer = j->scope, *scope = push(j, outer);
    if (!scope) return false;
    j->scope = scope;
    bool ok = nib_jinja_exec(j, body);
    j->scope = outer;
    drop(j, scope);
    return ok;
}

static bool capture(jinja *j, const jinja_node *body, jinja_value *out) {
    size_t mark = nib_jinja_mark(j);
    return exec_inside(j, body) && nib_jinja_take(j, mark, out);
}

/* ---- text */

static bool exec_data(jinja *j, const jinja_node *node) {
    return nib_jinja_put_str(j, &node->value);
}

static bool exec_print(jinja *j, const jinja_node *node) {
    jinja_value v;
    for (const jinja_node *n = node->list; n; n = n->next)
        if (!nib_jinja_eval(j, n, &v) || !nib_jinja_put_value(j, &v)) return false;
    return true;
}

static bool exec_body(jinja *j, const jinja_node *node) {
    return node->flag ? exec_inside(j, node->body) : nib_jinja_exec(j, node->body);
}

static bool filtered(jinja *j, const jinja_node *filters, const jinja_node *body, jinja_value *out) {
    const jinja_value *outer = j->block_text;
    jinja_value text;
    if (!capture(j, body, &text)) return false;
    *out = text;
    if (!filters) return true;
    j->block_text = &text;
    bool ok = nib_jinja_eval(j, filters, out);
    j->block_text = outer;
    return ok;
}

static bool exec_filter_block(jinja *j, const jinja_node *node) {
    jinja_value v;
    return filtered(j, node->a, node->body, &v) && nib_jinja_put_value(j, &v);
}

/* ---- names */

static bool exec_hide(jinja *j, const jinja_node *node) {
    jinja_value missing = {.type = JINJA_MISSING};
    for (const jinja_node *name = node->list; name; name = name->next)
        if (!nib_jinja_bind(j, j->scope, &name->value, &missing)) return false;
    return true;
}

static bool exec_set(jinja *j, const jinja_node *node) {
    jinja_value v;
    if (!nib_jinja_eval(j, node->b, &v)) return false;
    j->at = node;
    return assign(j, node->a, &v);
}

static bool exec_set_block(jinja *j, const jinja_node *node) {
    jinja_value v;
    if (!filtered(j, node->b, node->body, &v)) return false;
    j->at = node;
    return assign(j, node->a, &v);
}

static bool exec_with(jinja *j, const jinja_node *node) {
    jinja_scope *outer = j->scope, *scope = push(j, outer);
    bool ok = scope != NULL;
    for (const jinja_node *pair = node->list; pair && ok; pair = pair->next) {
        jinja_value v;
        ok = nib_jinja_eval(j, pair->b, &v); /* values see the names outside */
        j->scope = scope;
        ok = ok && assign(j, pair->a, &v);
        j->scope = outer;
    }
    j->scope = scope;
    ok = ok && nib_jinja_exec(j, node->body);
    j->scope = outer;
    if (scope) drop(j, scope);
    return ok;
}

static bool make_macro(jinja *j, const jinja_node *node, jinja_value *out) {
    jinja_macro *macro = nib_jinja_alloc(j, sizeof *macro);
    if (!macro) return false;
    *macro = (jinja_macro){node, j->scope};
    for (jinja_scope *scope = j->scope; scope && !scope->is_shared; scope = scope->parent) scope->is_shared = true;
    *out = (jinja_value){.type = JINJA_MACRO, .is_trusted = true, .as.macro = macro};
    return true;
}

static bool exec_macro(jinja *j, const jinja_node *node) {
    jinja_value macro;
    return make_macro(j, node, &macro) && nib_jinja_bind(j, j->scope, &node->value, &macro);
}

static bool exec_call_block(jinja *j, const jinja_node *node) {
    jinja_value callee, caller, text, dict, name = jinja_str("caller", 6);
    jinja_args args;
    if (!make_macro(j, node->b, &caller) || !nib_jinja_eval(j, node->a->a, &callee)) return false;
    if (!nib_jinja_eval_args(j, node->a->list, &args)) return false;
    if (!args.named) {
        if (!nib_jinja_dict_new(j, &dict)) return false;
        args.named = dict.as.dict;
    }
    j->at = node;
    return nib_jinja_set(j, args.named, &name, &caller) && nib_jinja_call(j, &callee, &args, &text) &&
           nib_jinja_put_value(j, &text);
}

/* ---- control */

static bool exec_if(jinja *j, const jinja_node *node) {
    for (;; node = node->other) {
        jinja_value test;
        if (!nib_jinja_eval(j, node->a, &test)) return false;
        if (test.type == JINJA_UNDEFINED && test.as.undefined->why == JINJA_UNSAFE) return nib_jinja_fail_undefined(j, &test);
        if (nib_jinja_is_true(&test)) return nib_jinja_exec(j, node->body);
        if (!node->flag) return nib_jinja_exec(j, node->other);
    }
}

static bool exec_break(jinja *j, const jinja_node *node) {
    (void)node;
    j->leave = JINJA_BREAK;
    return true;
}

static bool exec_continue(jinja *j, const jinja_node *node) {
    (void)node;
    j->leave = JINJA_CONTINUE;
    return true;
}

/* The items for which the loop's condition holds. */
static bool keep_wanted(jinja *j, const jinja_node *node, jinja_scope *scope, jinja_value **items, uint32_t *n) {
    jinja_value kept, test;
    if (!nib_jinja_list_new(j, JINJA_AS_LIST, 0, &kept)) return false;
    for (uint32_t i = 0; i < *n; i++) {
        if (!assign(j, node->a, &(*items)[i]) || !nib_jinja_eval(j, node->c, &test)) return false;
        if (nib_jinja_is_true(&test) && !nib_jinja_list_add(j, &kept, &(*items)[i])) return false;
        drop(j, scope);
    }
    *items = kept.as.list->items;
    *n = kept.as.list->n;
    return true;
}

static bool run_rounds(jinja *j, jinja_loop *loop, jinja_scope *scope) {
    const jinja_node *node = loop->node;
    jinja_value self = {.type = JINJA_LOOP, .is_trusted = true, .as.loop = loop}, name = jinja_str("loop", 4);
    for (; loop->at < loop->n; loop->at++) {
        if (scope->is_shared) {
            if (!(scope = push(j, scope->parent))) return false;
            j->scope = scope;
        }
        j->at = node;
        if (!assign(j, node->a, &loop->items[loop->at]) || !nib_jinja_bind(j, scope, &name, &self)) return false;
        if (!nib_jinja_work(j, 0) || !nib_jinja_exec(j, node->body)) return false;
        drop(j, scope);
        bool ends = j->leave == JINJA_BREAK;
        j->leave = JINJA_GO_ON;
        if (ends) break;
    }
    return true;
}

bool nib_jinja_run_loop(jinja *j, const jinja_node *node, const jinja_value *iterable, jinja_scope *parent, uint32_t depth) {
    jinja_loop *loop = nib_jinja_alloc(j, sizeof *loop);
    jinja_scope *outer = j->scope, *scope = push(j, parent);
    if (!loop || !scope) return false;
    *loop = (jinja_loop){.depth = depth, .node = node, .scope = parent, .changed = {.type = JINJA_MISSING}};
    if (!nib_jinja_items(j, iterable, &loop->items, &loop->n)) return false;
    j->scope = scope;
    bool ok = !node->c || keep_wanted(j, node, scope, &loop->items, &loop->n);
    if (ok && loop->n > 0) ok = run_rounds(j, loop, scope);
    j->scope = parent;
    if (ok && loop->n == 0) ok = exec_inside(j, node->other);
    j->scope = outer;
    return ok;
}

static bool exec_for(jinja *j, const jinja_node *node) {
    jinja_value iterable;
    if (!nib_jinja_eval(j, node->b, &iterable)) return false;
    j->at = node;
    return nib_jinja_run_loop(j, node, &iterable, j->scope, 0);
}

bool nib_jinja_exec(jinja *j, const jinja_node *node) {
    static const exec_fn functions[JINJA_N_NODES] = {
#define EXPR(id, eval)
#define STMT(id, exec) [JINJA_NODE_##id] = exec_##exec,
#define PART(id)
#include "jinja/nodes.def"
#undef EXPR
#undef STMT
#undef PART
    };
    bool ok = nib_jinja_enter(j);
    for (; node && ok && j->leave == JINJA_GO_ON; node = node->next) {
        j->at = node;
        ok = functions[node->kind](j, node);
    }
    j->depth--;
    return ok;
}
