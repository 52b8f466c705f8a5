/* jinja/builtin/methods.c - the methods of dicts, lists, loops and cyclers, and the table of all methods by type. */
#include "jinja/builtin/internal.h"

/* ---- dicts */

bool nib_jinja_method_get(jinja *j, const jinja_value *v, jinja_value *out) {
    if (!nib_jinja_is_hashable(&v[1])) return nib_jinja_fail(j, "TypeError: unhashable type: '%s'", nib_jinja_type_name(&v[1]));
    const jinja_pair *pair;
    if (!nib_jinja_find_key(j, v[0].as.dict, &v[1], &pair)) return false;
    *out = pair ? pair->value : jinja_is_given(&v[2]) ? v[2] : jinja_none();
    return true;
}

enum { KEYS, VALUES, ITEMS };

static bool view(jinja *j, const jinja_value *v, int what, int flavor, jinja_value *out) {
    const jinja_value self = v[0];
    const jinja_dict *dict = self.as.dict;
    jinja_value list, item;
    if (!nib_jinja_list_new(j, flavor, dict->n, &list)) return false;
    for (uint32_t i = 0; i < dict->n; i++) {
        item = what == KEYS ? dict->pairs[i].key : dict->pairs[i].value;
        if (what == ITEMS && !nib_jinja_tuple_of(j, &dict->pairs[i].key, &dict->pairs[i].value, &item)) return false;
        nib_jinja_list_add(j, &list, &item);
    }
    *out = list;
    out->is_trusted = self.is_trusted;
    return true;
}

bool nib_jinja_method_keys(jinja *j, const jinja_value *v, jinja_value *out) {
    return view(j, v, KEYS, JINJA_AS_KEYS, out);
}

bool nib_jinja_method_values(jinja *j, const jinja_value *v, jinja_value *out) {
    return view(j, v, VALUES, JINJA_AS_VALUES, out);
}

bool nib_jinja_method_items(jinja *j, const jinja_value *v, jinja_value *out) {
    return view(j, v, ITEMS, JINJA_AS_ITEMS, out);
}

/* What nobody can change needs no copy. */
bool nib_jinja_method_copy(jinja *j, const jinja_value *v, jinja_value *out) {
    (void)j;
    *out = v[0];
    return true;
}

/* ---- lists */

bool nib_jinja_method_list_count(jinja *j, const jinja_value *v, jinja_value *out) {
    const jinja_list *list = v[0].as.list;
    int64_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        bool is_equal;
        if (!nib_jinja_equal(j, &list->items[i], &v[1], &is_equal)) return false;
        n += is_equal;
    }
    *out = jinja_int(n);
    return true;
}

bool nib_jinja_method_list_index(jinja *j, const jinja_value *v, jinja_value *out) {
    const jinja_list *list = v[0].as.list;
    for (uint32_t i = 0; i < list->n; i++) {
        bool is_equal;
        if (!nib_jinja_equal(j, &list->items[i], &v[1], &is_equal)) return false;
        if (!is_equal) continue;
        *out = jinja_int(i);
        return true;
    }
    return nib_jinja_fail(j, "ValueError: the value is not in the list");
}

/* ---- loop, cycler */

bool nib_jinja_method_cycle(jinja *j, const jinja_value *v, jinja_value *out) {
    const jinja_list *values = v[1].as.list;
    if (values->n == 0) return nib_jinja_fail(j, "TypeError: no items for cycling given");
    *out = values->items[v[0].as.loop->at % values->n];
    return true;
}

bool nib_jinja_method_changed(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_loop *loop = v[0].as.loop;
    bool is_same = jinja_is_given(&loop->changed);
    if (is_same && !nib_jinja_equal(j, &loop->changed, &v[1], &is_same)) return false;
    loop->changed = v[1];
    *out = jinja_bool(!is_same);
    return true;
}

bool nib_jinja_method_next(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_cycler *cycler = v[0].as.cycler;
    (void)j;
    *out = cycler->items[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->n;
    return true;
}

bool nib_jinja_method_reset(jinja *j, const jinja_value *v, jinja_value *out) {
    (void)j;
    v[0].as.cycler->at = 0;
    *out = jinja_none();
    return true;
}

/* ---- the table */

static bool takes(const jinja_value *object, uint8_t type) {
    return object->type == type && (type != JINJA_LIST || object->as.list->flavor == JINJA_AS_LIST);
}

const jinja_builtin *nib_jinja_find_method(const jinja_value *object, nib_str name) {
    static const struct {
        uint8_t type;
        jinja_builtin row;
    } rows[] = {
#define METHOD(type, name, params, n_required, function)                                                               \
    {JINJA_##type, {name, params, n_required, false, nib_jinja_method_##function}},
#define UNSAFE(type, name) {JINJA_##type, {name, "*", 0, true, NULL}},
#include "jinja/builtin/methods.def"
#undef METHOD
#undef UNSAFE
    };
    bool is_tuple = object->type == JINJA_LIST &&
                    (object->as.list->flavor == JINJA_AS_TUPLE || object->as.list->flavor == JINJA_AS_RANGE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_of_tuples = rows[i].row.call == nib_jinja_method_list_count || rows[i].row.call == nib_jinja_method_list_index;
        if (!takes(object, rows[i].type) && !(is_tuple && rows[i].type == JINJA_LIST && is_of_tuples)) continue;
        if (nib_jinja_find_row(&rows[i].row, 1, name)) return &rows[i].row;
    }
    return NULL;
}
