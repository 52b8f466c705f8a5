/* jinja/call.c - calls of builtins, macros and recursive loops: arguments -> parameters, and the attributes of `loop`. */
#include "jinja/eval.h"

#include <string.h>

/* ---- builtins */

/* The number of the parameter with this name among "a b c"; -1: none. */
static int find_param(const char *params, const jinja_value *name) {
    int i = 0;
    for (const char *p = params; *p; i++) {
        size_t n = strcspn(p, " ");
        if (jinja_str_is(name, p, n)) return i;
        p += n + (p[n] == ' ');
    }
    return -1;
}

static uint32_t count_params(const char *params) {
    uint32_t n = *params != 0;
    for (const char *p = params; *p; p++) n += *p == ' ';
    return n;
}

static bool bind_any(jinja *j, const jinja_args *args, jinja_value *v) {
    if (!nib_jinja_list_new(j, JINJA_AS_TUPLE, args->n, &v[0]) || !nib_jinja_dict_new(j, &v[1])) return false;
    for (uint32_t i = 0; i < args->n; i++) nib_jinja_list_add(j, &v[0], &args->items[i]);
    if (args->named) *v[1].as.dict = *args->named;
    return true;
}

static bool bind_params(jinja *j, const jinja_builtin *row, const jinja_args *args, jinja_value *v) {
    uint32_t n = count_params(row->params);
    if (args->n > n) return nib_jinja_fail(j, "TypeError: %s() takes at most %u arguments, found %u", row->name, n, args->n);
    if (args->n) memcpy(v, args->items, args->n * sizeof *v);
    for (uint32_t i = 0; args->named && i < args->named->n; i++) {
        const jinja_value *name = &args->named->pairs[i].key;
        int at = find_param(row->params, name);
        if (at < 0 || jinja_is_given(&v[at]))
            return nib_jinja_fail(j, "TypeError: %s() got %s keyword argument '%.*s'", row->name,
                                  at < 0 ? "an unexpected" : "a second", (int)(name->len < 100 ? name->len : 100), name->as.ptr);
        v[at] = args->named->pairs[i].value;
    }
    for (uint32_t i = 0; i < row->n_required; i++)
        if (!jinja_is_given(&v[i])) return nib_jinja_fail(j, "TypeError: %s() lacks its argument %u", row->name, i + 1);
    return true;
}

bool nib_jinja_call_builtin(jinja *j, const jinja_builtin *row, const jinja_value *self, const jinja_args *args,
                            jinja_value *out) {
    jinja_value v[JINJA_MAX_PARAMS + 1];
    for (int i = 0; i <= JINJA_MAX_PARAMS; i++) v[i] = (jinja_value){.type = JINJA_MISSING};
    if (self) v[0] = *self;
    if (!(strcmp(row->params, "*") == 0 ? bind_any(j, args, v + 1) : bind_params(j, row, args, v + 1))) return false;
    bool ok = nib_jinja_enter(j) && row->call(j, v, out);
    j->depth--;
    return ok;
}

/* ---- macros */

/* What args give this parameter: by its place or its name; NULL: nothing. */
static const jinja_value *argument(const jinja_args *args, uint32_t at, const jinja_node *param) {
    if (at < args->n) return &args->items[at];
    const jinja_pair *pair = args->named ? nib_jinja_dict_find(args->named, &param->value) : NULL;
    return pair ? &pair->value : NULL;
}

static bool is_param(const jinja_node *macro, const jinja_value *name) {
    for (const jinja_node *param = macro->list; param; param = param->next)
        if (jinja_str_is(name, param->value.as.ptr, param->value.len)) return true;
    return jinja_str_is(name, "caller", 6);
}

/* varargs and kwargs: what the parameters do not name. */
static bool bind_extra(jinja *j, const jinja_node *macro, jinja_scope *scope, const jinja_args *args, uint32_t n_params) {
    static const char *const names[] = {"varargs", "kwargs"};
    jinja_value extra[2];
    if (!nib_jinja_list_new(j, JINJA_AS_TUPLE, args->n > n_params ? args->n - n_params : 0, &extra[0])) return false;
    for (uint32_t i = n_params; i < args->n; i++) nib_jinja_list_add(j, &extra[0], &args->items[i]);
    if (!nib_jinja_dict_new(j, &extra[1])) return false;
    for (uint32_t i = 0; args->named && i < args->named->n; i++) {
        const jinja_pair *pair = &args->named->pairs[i];
        if (!nib_jinja_work(j, n_params * 8)) return false;
        if (!is_param(macro, &pair->key) && !nib_jinja_set(j, extra[1].as.dict, &pair->key, &pair->value)) return false;
    }
    if (args->n > n_params && !macro->flag)
        return nib_jinja_fail(j, "TypeError: macro '%.*s' takes not more than %u argument(s)", (int)macro->value.len,
                              macro->value.as.ptr, n_params);
    if (extra[1].as.dict->n && !macro->flag2) {
        const jinja_value *name = &extra[1].as.dict->pairs[0].key;
        return nib_jinja_fail(j, "TypeError: macro '%.*s' takes no keyword argument '%.*s'", (int)macro->value.len,
                              macro->value.as.ptr, (int)(name->len < 100 ? name->len : 100), name->as.ptr);
    }
    if (args->named && !macro->op && nib_jinja_dict_get(args->named, "caller"))
        return nib_jinja_fail(j, "TypeError: macro '%.*s' takes no keyword argument 'caller'", (int)macro->value.len,
                              macro->value.as.ptr);
    for (int i = 0; i < 2; i++) {
        jinja_value name = jinja_str(names[i], strlen(names[i]));
        if (!nib_jinja_bind(j, scope, &name, &extra[i])) return false;
    }
    return true;
}

static bool bind_macro(jinja *j, const jinja_node *macro, jinja_scope *scope, const jinja_args *args) {
    uint32_t n_params = 0;
    for (const jinja_node *param = macro->list; param; param = param->next, n_params++) {
        const jinja_value *given = argument(args, n_params, param);
        jinja_value value;
        bool ok = true;
        if (given) value = *given;
        else ok = param->a ? nib_jinja_eval(j, param->a, &value)
                           : nib_jinja_undefined(j, JINJA_NO_NAME, NULL, &param->value, &value);
        if (!ok || !nib_jinja_bind(j, scope, &param->value, &value)) return false;
    }
    const jinja_value *caller = args->named ? nib_jinja_dict_get(args->named, "caller") : NULL;
    jinja_value name = jinja_str("caller", 6), none;
    if (!caller) {
        if (!nib_jinja_undefined(j, JINJA_NO_NAME, NULL, &name, &none)) return false;
        caller = &none;
    }
    return nib_jinja_bind(j, scope, &name, caller) && bind_extra(j, macro, scope, args, n_params);
}

static bool call_macro(jinja *j, const jinja_macro *macro, const jinja_args *args, jinja_value *out) {
    jinja_scope *scope = nib_jinja_alloc(j, sizeof *scope), *outer = j->scope;
    if (!scope) return false;
    *scope = (jinja_scope){.parent = macro->scope};
    size_t mark = nib_jinja_mark(j);
    j->scope = scope;
    bool ok = bind_macro(j, macro->node, scope, args) && nib_jinja_exec(j, macro->node->body);
    j->scope = outer;
    return ok && nib_jinja_take(j, mark, out);
}

/* loop(items) of a recursive loop. */
static bool call_loop(jinja *j, const jinja_loop *loop, const jinja_args *args, jinja_value *out) {
    if (!loop->node->flag) return nib_jinja_fail(j, "TypeError: The loop must have the 'recursive' marker to be called recursively.");
    if (args->n != 1 || args->named) return nib_jinja_fail(j, "TypeError: loop() takes one argument");
    size_t mark = nib_jinja_mark(j);
    return nib_jinja_run_loop(j, loop->node, &args->items[0], loop->scope, loop->depth + 1) && nib_jinja_take(j, mark, out);
}

/* Nothing at the first call, then the separator. */
static bool call_joiner(jinja_cycler *joiner, jinja_value *out) {
    *out = joiner->at ? joiner->items[0] : jinja_str("", 0);
    joiner->at = 1;
    return true;
}

static bool call_kind(jinja *j, const jinja_value *callee, const jinja_args *args, jinja_value *out) {
    switch (callee->type) {
    case JINJA_MACRO: return call_macro(j, callee->as.macro, args, out);
    case JINJA_METHOD: return nib_jinja_call_builtin(j, callee->as.method->row, &callee->as.method->self, args, out);
    case JINJA_FUNCTION: return nib_jinja_call_builtin(j, callee->as.function, NULL, args, out);
    case JINJA_LOOP: return call_loop(j, callee->as.loop, args, out);
    case JINJA_JOINER: return call_joiner(callee->as.cycler, out);
    case JINJA_UNDEFINED: return nib_jinja_fail_undefined(j, callee);
    default: return nib_jinja_fail(j, "TypeError: '%s' object is not callable", nib_jinja_type_name(callee));
    }
}

bool nib_jinja_call(jinja *j, const jinja_value *callee, const jinja_args *args, jinja_value *out) {
    jinja_value self = *callee;
    bool ok = nib_jinja_enter(j) && call_kind(j, &self, args, out);
    j->depth--;
    return ok;
}

/* ---- loop.… */

bool nib_jinja_loop_attr(jinja *j, const jinja_value *v, const jinja_value *name, jinja_value *out) {
    const jinja_loop *loop = v->as.loop;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"index", (int64_t)loop->at + 1},       {"index0", loop->at}, {"revindex", (int64_t)loop->n - loop->at},
        {"revindex0", (int64_t)loop->n - loop->at - 1}, {"length", loop->n},  {"depth", (int64_t)loop->depth + 1},
        {"depth0", loop->depth},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!jinja_str_is(name, numbers[i].name, strlen(numbers[i].name))) continue;
        *out = jinja_int(numbers[i].value);
        return true;
    }
    if (jinja_str_is(name, "first", 5)) {
        *out = jinja_bool(loop->at == 0);
    } else if (jinja_str_is(name, "last", 4)) {
        *out = jinja_bool(loop->at + 1 >= loop->n);
    } else if (jinja_str_is(name, "previtem", 8) && loop->at > 0) {
        *out = loop->items[loop->at - 1];
    } else if (jinja_str_is(name, "nextitem", 8) && loop->at + 1 < loop->n) {
        *out = loop->items[loop->at + 1];
    } else {
        const jinja_builtin *row = nib_jinja_find_method(v, (nib_str){name->as.ptr, name->len});
        if (!row) return nib_jinja_undefined(j, JINJA_NO_MEMBER, v, name, out);
        jinja_method *method = nib_jinja_alloc(j, sizeof *method);
        if (!method) return false;
        *method = (jinja_method){*v, row};
        *out = (jinja_value){.type = JINJA_METHOD, .is_trusted = true, .as.method = method};
    }
    return true;
}
