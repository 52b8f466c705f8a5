/* jinja/value.c - what values are and how they compare: truth, ==, <, in, len, iteration, as in Python. */
#include "jinja/eval.h"

#include "jinja/chars.h"

#include <string.h>

const char *nib_jinja_type_name(const jinja_value *v) {
    static const char *const types[] = {
#define TYPE(id, name) name,
#include "jinja/types.def"
#undef TYPE
    };
    static const char *const flavors[] = {
#define FLAVOR(id, name, opening, closing) name,
#include "jinja/flavors.def"
#undef FLAVOR
    };
    if (v->type == JINJA_LIST) return flavors[v->as.list->flavor];
    return v->is_markup && v->type == JINJA_STR ? "Markup" : types[v->type];
}

/* ---- undefined */

bool nib_jinja_undefined(jinja *j, int why, const jinja_value *object, const jinja_value *name, jinja_value *out) {
    jinja_undefined *undefined = nib_jinja_alloc(j, sizeof *undefined);
    if (!undefined) return false;
    undefined->why = why;
    undefined->object = object ? *object : jinja_none();
    undefined->name = *name;
    *out = (jinja_value){.type = JINJA_UNDEFINED, .is_trusted = true, .as.undefined = undefined};
    return true;
}

bool nib_jinja_fail_undefined(jinja *j, const jinja_value *v) {
    const jinja_undefined *u = v->as.undefined;
    const char *type = nib_jinja_type_name(&u->object), *object = u->object.type == JINJA_NONE ? "" : " object";
    int len = u->name.type == JINJA_STR ? (int)(u->name.len < 200 ? u->name.len : 200) : 0;
    const char *name = u->name.type == JINJA_STR ? u->name.as.ptr : "";
    if (u->object.type == JINJA_NONE) type = "None";
    switch (u->why) {
    case JINJA_NO_NAME: return nib_jinja_fail(j, "'%.*s' is undefined", len, name);
    case JINJA_EMPTY: return nib_jinja_fail(j, "%.*s", len, name);
    case JINJA_UNSAFE: return nib_jinja_fail(j, "access to attribute '%.*s' of '%s' object is unsafe.", len, name, type);
    case JINJA_NO_MEMBER: break;
    }
    if (u->name.type == JINJA_STR) return nib_jinja_fail(j, "'%s%s' has no attribute '%.*s'", type, object, len, name);
    jinja_value text;
    size_t mark = nib_jinja_mark(j);
    if (!nib_jinja_put_repr(j, &u->name) || !nib_jinja_take(j, mark, &text)) return false;
    return nib_jinja_fail(j, "%s%s has no element %.*s", type, object, (int)(text.len < 200 ? text.len : 200), text.as.ptr);
}

/* ---- truth and comparison */

bool nib_jinja_is_true(const jinja_value *v) {
    switch (v->type) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v->as.b;
    case JINJA_INT: return v->as.i != 0;
    case JINJA_FLOAT: return v->as.f != 0;
    case JINJA_STR: return v->len > 0;
    case JINJA_LIST: return v->as.list->flavor == JINJA_AS_GENERATOR || v->as.list->n > 0;
    case JINJA_DICT: return v->as.dict->n > 0;
    case JINJA_LOOP: return v->as.loop->n > 0;
    default: return true;
    }
}

static bool lists_equal(jinja *j, const jinja_list *a, const jinja_list *b, bool *out) {
    *out = a == b;
    if (a == b || a->n != b->n || a->flavor != b->flavor || a->flavor == JINJA_AS_GENERATOR) return true;
    *out = true;
    for (uint32_t i = 0; i < a->n && *out; i++)
        if (!nib_jinja_equal(j, &a->items[i], &b->items[i], out)) return false;
    return true;
}

static bool dicts_equal(jinja *j, const jinja_dict *a, const jinja_dict *b, bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; i < a->n && *out; i++) {
        const jinja_pair *pair;
        if (!nib_jinja_find_key(j, b, &a->pairs[i].key, &pair)) return false;
        if (!pair) *out = false;
        else if (!nib_jinja_equal(j, &a->pairs[i].value, &pair->value, out)) return false;
    }
    return true;
}

bool nib_jinja_equal(jinja *j, const jinja_value *a, const jinja_value *b, bool *out) {
    bool ok = true;
    *out = false;
    if (!nib_jinja_work(j, a->type == JINJA_STR && b->type == JINJA_STR && a->len == b->len ? a->len : 0)) return false;
    if (a->type != b->type || (a->type != JINJA_LIST && a->type != JINJA_DICT)) {
        *out = nib_jinja_key_equal(a, b, 0);
        return true;
    }
    if (nib_jinja_enter(j))
        ok = a->type == JINJA_LIST ? lists_equal(j, a->as.list, b->as.list, out) : dicts_equal(j, a->as.dict, b->as.dict, out);
    else
        ok = false;
    j->depth--;
    return ok;
}

static int order_numbers(const jinja_value *a, const jinja_value *b) {
    if (a->type != JINJA_FLOAT && b->type != JINJA_FLOAT) {
        int64_t x = jinja_as_int(a), y = jinja_as_int(b);
        return (x > y) - (x < y);
    }
    long double x = a->type == JINJA_FLOAT ? (long double)a->as.f : (long double)jinja_as_int(a);
    long double y = b->type == JINJA_FLOAT ? (long double)b->as.f : (long double)jinja_as_int(b);
    return (x > y) - (x < y);
}

/* UTF-8 sorts as its characters do. */
static int order_strings(const jinja_value *a, const jinja_value *b) {
    uint32_t n = a->len < b->len ? a->len : b->len;
    int order = n ? memcmp(a->as.ptr, b->as.ptr, n) : 0;
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static bool order_lists(jinja *j, const jinja_list *a, const jinja_list *b, int *order) {
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        bool is_equal;
        if (!nib_jinja_equal(j, &a->items[i], &b->items[i], &is_equal)) return false;
        if (!is_equal) return nib_jinja_order(j, &a->items[i], &b->items[i], order);
    }
    *order = (a->n > b->n) - (a->n < b->n);
    return true;
}

bool nib_jinja_order(jinja *j, const jinja_value *a, const jinja_value *b, int *order) {
    if (jinja_is_number(a) && jinja_is_number(b)) {
        *order = order_numbers(a, b);
        return nib_jinja_work(j, 0);
    }
    if (a->type == JINJA_STR && b->type == JINJA_STR) {
        *order = order_strings(a, b);
        return nib_jinja_work(j, a->len < b->len ? a->len : b->len);
    }
    if (a->type == JINJA_UNDEFINED || b->type == JINJA_UNDEFINED)
        return nib_jinja_fail_undefined(j, a->type == JINJA_UNDEFINED ? a : b);
    bool are_lists = a->type == JINJA_LIST && b->type == JINJA_LIST && a->as.list->flavor == b->as.list->flavor &&
                     a->as.list->flavor <= JINJA_AS_TUPLE;
    if (!are_lists)
        return nib_jinja_fail(j, "TypeError: '<' not supported between instances of '%s' and '%s'", nib_jinja_type_name(a),
                              nib_jinja_type_name(b));
    bool ok = nib_jinja_enter(j) && order_lists(j, a->as.list, b->as.list, order);
    j->depth--;
    return ok;
}

static bool list_contains(jinja *j, const jinja_value *container, const jinja_value *v, bool *out) {
    jinja_value *items;
    uint32_t n;
    if (!nib_jinja_items(j, container, &items, &n)) return false;
    *out = false;
    for (uint32_t i = 0; i < n && !*out; i++)
        if (!nib_jinja_equal(j, &items[i], v, out)) return false;
    return true;
}

bool nib_jinja_contains(jinja *j, const jinja_value *container, const jinja_value *v, bool *out) {
    const jinja_pair *pair;
    size_t at;
    *out = false;
    switch (container->type) {
    case JINJA_UNDEFINED: return container->as.undefined->why != JINJA_UNSAFE || nib_jinja_fail_undefined(j, container);
    case JINJA_DICT:
        if (!nib_jinja_is_hashable(v)) return nib_jinja_fail(j, "TypeError: unhashable type: '%s'", nib_jinja_type_name(v));
        if (!nib_jinja_find_key(j, container->as.dict, v, &pair)) return false;
        *out = pair != NULL;
        return true;
    case JINJA_LIST: return list_contains(j, container, v, out);
    case JINJA_STR:
        if (v->type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, v);
        if (v->type != JINJA_STR)
            return nib_jinja_fail(j, "TypeError: 'in <string>' requires string as left operand, not %s", nib_jinja_type_name(v));
        if (!nib_jinja_search(j, container, 0, v, &at)) return false;
        *out = at != SIZE_MAX;
        return true;
    default:
        return nib_jinja_fail(j, "TypeError: argument of type '%s' is not iterable", nib_jinja_type_name(container));
    }
}

/* Plain, as the texts are: what is slow counts as such. */
bool nib_jinja_search(jinja *j, const jinja_value *s, size_t from, const jinja_value *what, size_t *at) {
    const char *p = s->as.ptr + from, *end = s->as.ptr + s->len;
    *at = what->len ? SIZE_MAX : from;
    while (what->len && (size_t)(end - p) >= what->len) {
        size_t n_starts = (size_t)(end - p) - what->len + 1;
        const char *q = memchr(p, what->as.ptr[0], n_starts);
        if (!nib_jinja_work(j, q ? (size_t)(q - p) + what->len : n_starts)) return false;
        if (!q) break;
        if (memcmp(q, what->as.ptr, what->len) == 0) {
            *at = (size_t)(q - s->as.ptr);
            break;
        }
        p = q + 1;
    }
    return true;
}

/* ---- lists and dicts */

bool nib_jinja_list_new(jinja *j, int flavor, uint32_t capacity, jinja_value *out) {
    jinja_list *list = nib_jinja_alloc(j, sizeof *list + capacity * sizeof *list->items);
    if (!list) return false;
    *list = (jinja_list){.flavor = (uint8_t)flavor, .items = (jinja_value *)(list + 1), .capacity = capacity};
    *out = (jinja_value){.type = JINJA_LIST, .is_trusted = true, .as.list = list};
    return true;
}

bool nib_jinja_list_add(jinja *j, jinja_value *value, const jinja_value *item) {
    jinja_list *list = value->as.list;
    if (list->n == list->capacity) {
        uint32_t capacity = list->capacity < 4 ? 8 : list->capacity * 2;
        if (capacity < list->capacity) return nib_jinja_fail(j, "a list of more than %u items", list->n);
        jinja_value *items = nib_jinja_alloc(j, capacity * sizeof *items);
        if (!items) return false;
        if (list->n) memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = *item;
    return true;
}

bool nib_jinja_tuple_of(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    jinja_value x = *a, y = *b; /* out may be one of them */
    return nib_jinja_list_new(j, JINJA_AS_TUPLE, 2, out) && nib_jinja_list_add(j, out, &x) && nib_jinja_list_add(j, out, &y);
}

bool nib_jinja_dict_new(jinja *j, jinja_value *out) {
    jinja_dict *dict = nib_jinja_alloc(j, sizeof *dict);
    if (!dict) return false;
    *dict = (jinja_dict){0};
    *out = (jinja_value){.type = JINJA_DICT, .is_trusted = true, .as.dict = dict};
    return true;
}

static bool characters(jinja *j, const jinja_value *s, jinja_value **items, uint32_t *n) {
    *n = (uint32_t)nib_jinja_count(s->as.ptr, s->len);
    jinja_value *list = *items = nib_jinja_alloc(j, *n * sizeof *list);
    if (!list) return false;
    uint32_t cp, count = 0;
    for (size_t at = 0, len; at < s->len && count < *n; at += len) {
        len = nib_jinja_char(s->as.ptr + at, s->len - at, &cp);
        list[count++] = jinja_part(*s, at, at + len);
    }
    return true;
}

bool nib_jinja_items(jinja *j, const jinja_value *v, jinja_value **items, uint32_t *n) {
    *items = NULL;
    *n = 0;
    switch (v->type) {
    case JINJA_UNDEFINED: return v->as.undefined->why != JINJA_UNSAFE || nib_jinja_fail_undefined(j, v);
    case JINJA_STR: return characters(j, v, items, n);
    case JINJA_LIST:
        *items = v->as.list->items + v->as.list->next;
        *n = v->as.list->n - v->as.list->next;
        if (v->as.list->flavor == JINJA_AS_GENERATOR) v->as.list->next = v->as.list->n;
        return true;
    case JINJA_DICT:
        *items = nib_jinja_alloc(j, v->as.dict->n * sizeof **items);
        for (; *items && *n < v->as.dict->n; ++*n) (*items)[*n] = v->as.dict->pairs[*n].key;
        return *items != NULL;
    default: return nib_jinja_fail(j, "TypeError: '%s' object is not iterable", nib_jinja_type_name(v));
    }
}

bool nib_jinja_length(jinja *j, const jinja_value *v, int64_t *n) {
    *n = 0;
    switch (v->type) {
    case JINJA_UNDEFINED: return v->as.undefined->why != JINJA_UNSAFE || nib_jinja_fail_undefined(j, v);
    case JINJA_STR: *n = (int64_t)nib_jinja_count(v->as.ptr, v->len); return nib_jinja_work(j, v->len);
    case JINJA_DICT: *n = v->as.dict->n; return true;
    case JINJA_LOOP: *n = v->as.loop->n; return true;
    case JINJA_LIST:
        *n = v->as.list->n;
        if (v->as.list->flavor != JINJA_AS_GENERATOR) return true;
        break;
    default: break;
    }
    return nib_jinja_fail(j, "TypeError: object of type '%s' has no len()", nib_jinja_type_name(v));
}
