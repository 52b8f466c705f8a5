/* jinja/access.c - members: x.name, x[key], slices. As in jinja2 a dot looks for a method first and for a key then, brackets
 * the other way round; what is missing is an undefined value that says what it was. */
#include "jinja/chars.h"
#include "jinja/eval.h"

static bool missing(jinja *j, const jinja_value *object, const jinja_value *name, jinja_value *out) {
    return nib_jinja_undefined(j, JINJA_NO_MEMBER, object, name, out);
}

/* A method or attribute of the object; *found: there is one. */
static bool get_method(jinja *j, const jinja_value *object, const jinja_value *name, jinja_value *out, bool *found) {
    const jinja_builtin *row = nib_jinja_find_method(object, (nib_str){name->as.ptr, name->len});
    bool is_hidden = name->len >= 2 && name->as.ptr[0] == '_' && name->as.ptr[1] == '_';
    *found = row != NULL;
    if (!row) return true;
    if (row->is_unsafe || is_hidden) return nib_jinja_undefined(j, JINJA_UNSAFE, object, name, out);
    jinja_method *method = nib_jinja_alloc(j, sizeof *method);
    if (!method) return false;
    *method = (jinja_method){*object, row};
    *out = (jinja_value){.type = JINJA_METHOD, .is_trusted = true, .as.method = method};
    return true;
}

static bool param_names(jinja *j, const jinja_node *macro, jinja_value *out) {
    jinja_value names;
    if (!nib_jinja_list_new(j, JINJA_AS_TUPLE, 0, &names)) return false;
    for (const jinja_node *param = macro->list; param; param = param->next)
        if (!nib_jinja_list_add(j, &names, &param->value)) return false;
    *out = names;
    return true;
}

static bool macro_attr(jinja *j, const jinja_value *macro, const jinja_value *name, jinja_value *out) {
    const jinja_node *node = macro->as.macro->node;
    if (jinja_str_is(name, "name", 4)) *out = node->value;
    else if (jinja_str_is(name, "catch_varargs", 13)) *out = jinja_bool(node->flag);
    else if (jinja_str_is(name, "catch_kwargs", 12)) *out = jinja_bool(node->flag2);
    else if (!jinja_str_is(name, "arguments", 9)) return missing(j, macro, name, out);
    else return param_names(j, node, out);
    return true;
}

bool nib_jinja_get_attr(jinja *j, const jinja_value *object, const jinja_value *name, jinja_value *out) {
    jinja_value self = *object; /* out may be the object */
    const jinja_pair *pair = NULL;
    bool found;
    switch (self.type) {
    case JINJA_UNDEFINED: return nib_jinja_fail_undefined(j, &self);
    case JINJA_LOOP: return nib_jinja_loop_attr(j, &self, name, out);
    case JINJA_MACRO: return macro_attr(j, &self, name, out);
    default: break;
    }
    if (self.type != JINJA_NAMESPACE) {
        if (!get_method(j, &self, name, out, &found)) return false;
        if (found) return true;
    }
    if (self.type == JINJA_CYCLER && jinja_str_is(name, "current", 7)) {
        *out = self.as.cycler->items[self.as.cycler->at];
        return true;
    }
    bool has_keys = self.type == JINJA_DICT || self.type == JINJA_NAMESPACE;
    if (has_keys && !nib_jinja_find_key(j, self.as.dict, name, &pair)) return false;
    if (!pair) return missing(j, &self, name, out);
    *out = pair->value;
    return true;
}

/* The character with this number, counted from the end when negative. */
static bool get_character(jinja *j, const jinja_value *s, int64_t at, jinja_value *out, bool *found) {
    int64_t n = (int64_t)nib_jinja_count(s->as.ptr, s->len);
    uint32_t cp;
    if (at < 0) at += n;
    *found = at >= 0 && at < n;
    if (!*found) return true;
    size_t from = nib_jinja_offset(s->as.ptr, s->len, (size_t)at);
    *out = jinja_part(*s, from, from + nib_jinja_char(s->as.ptr + from, s->len - from, &cp));
    return nib_jinja_work(j, s->len);
}

static bool get_listed(const jinja_list *list, int64_t at, jinja_value *out) {
    bool has_items = list->flavor == JINJA_AS_LIST || list->flavor == JINJA_AS_TUPLE || list->flavor == JINJA_AS_RANGE;
    if (at < 0) at += list->n;
    if (!has_items || at < 0 || at >= list->n) return false;
    *out = list->items[at];
    return true;
}

bool nib_jinja_get_item(jinja *j, const jinja_value *object, const jinja_value *key, jinja_value *out) {
    jinja_value self = *object, name = *key;
    bool found = false;
    if (self.type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &self);
    if (self.type == JINJA_DICT && nib_jinja_is_hashable(&name)) {
        const jinja_pair *pair;
        if (!nib_jinja_find_key(j, self.as.dict, &name, &pair)) return false;
        found = pair != NULL;
        if (pair) *out = pair->value;
    } else if (self.type == JINJA_LIST && jinja_is_integer(&name)) {
        found = get_listed(self.as.list, jinja_as_int(&name), out);
    } else if (self.type == JINJA_STR && jinja_is_integer(&name)) {
        if (!get_character(j, &self, jinja_as_int(&name), out, &found)) return false;
    }
    if (found) return true;
    if (name.type != JINJA_STR || self.type == JINJA_DICT) {
        if (name.type == JINJA_STR) {
            if (!get_method(j, &self, &name, out, &found)) return false;
            if (found) return true;
        }
        return missing(j, &self, &name, out);
    }
    return nib_jinja_get_attr(j, &self, &name, out);
}

/* ---- slices */

/* One end of a slice, clamped as Python does. */
static int64_t clamp(const jinja_value *part, int64_t n, int64_t low, int64_t high, int64_t fallback) {
    if (part->type == JINJA_NONE) return fallback;
    int64_t x = jinja_as_int(part);
    if (x < 0) x = x < -n ? low : x + n;
    return x < low ? low : x > high ? high : x;
}

static bool slice_string(jinja *j, const jinja_value *s, int64_t start, int64_t step, int64_t count, jinja_value *out) {
    uint32_t cp;
    if (count == 0) {
        *out = jinja_part(*s, 0, 0);
        return true;
    }
    size_t from = nib_jinja_offset(s->as.ptr, s->len, (size_t)start);
    if (step == 1) {
        size_t n = nib_jinja_offset(s->as.ptr + from, s->len - from, (size_t)count);
        *out = jinja_part(*s, from, from + n);
        return true;
    }
    size_t mark = nib_jinja_mark(j);
    for (int64_t i = 0; i < count; i++) {
        jinja_value c = jinja_part(*s, from, from + nib_jinja_char(s->as.ptr + from, s->len - from, &cp));
        if (!nib_jinja_put_str(j, &c)) return false;
        for (int64_t k = step; k < 0 && from > 0 && i + 1 < count; k++) from = nib_jinja_char_before(s->as.ptr, from);
        if (step > 0 && i + 1 < count) from += nib_jinja_offset(s->as.ptr + from, s->len - from, (size_t)step);
    }
    return nib_jinja_take(j, mark, out);
}

bool nib_jinja_slice(jinja *j, const jinja_value *object, const jinja_value parts[3], jinja_value *out) {
    jinja_value self = *object;
    bool is_list = self.type == JINJA_LIST && (self.as.list->flavor <= JINJA_AS_TUPLE || self.as.list->flavor == JINJA_AS_RANGE);
    if (self.type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &self);
    if (!is_list && self.type != JINJA_STR)
        return nib_jinja_fail(j, "TypeError: '%s' object cannot be sliced", nib_jinja_type_name(&self));
    for (int i = 0; i < 3; i++)
        if (parts[i].type != JINJA_NONE && !jinja_is_integer(&parts[i]))
            return nib_jinja_fail(j, "TypeError: slice indices must be integers or None");
    int64_t n, step = parts[2].type == JINJA_NONE ? 1 : jinja_as_int(&parts[2]);
    if (!nib_jinja_length(j, &self, &n)) return false;
    if (step == 0) return nib_jinja_fail(j, "ValueError: slice step cannot be zero");
    if (step < -(n + 1)) step = -(n + 1); /* as far as any: no overflow below */
    if (step > n + 1) step = n + 1;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t start = clamp(&parts[0], n, low, high, step < 0 ? high : low);
    int64_t stop = clamp(&parts[1], n, low, high, step < 0 ? low : high);
    int64_t count = step > 0 ? (stop - start + step - 1) / step : step < 0 ? (start - stop - step - 1) / -step : 0;
    if (count < 0 || (step > 0 ? start >= stop : start <= stop)) count = 0;
    if (self.type == JINJA_STR) return slice_string(j, &self, start, step, count, out);
    const jinja_list *list = self.as.list;
    if (!nib_jinja_list_new(j, list->flavor, (uint32_t)count, out)) return false;
    for (int64_t i = 0; i < count; i++) nib_jinja_list_add(j, out, &list->items[start + i * step]);
    out->as.list->start = list->start + start * list->step; /* of a range */
    out->as.list->stop = list->start + stop * list->step;
    out->as.list->step = list->step * step;
    out->is_trusted = self.is_trusted;
    return true;
}
