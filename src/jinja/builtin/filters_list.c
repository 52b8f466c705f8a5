/* jinja/builtin/filters_list.c - the filters that run over items: choosing, mapping, grouping, adding up. */
#include "jinja/builtin/internal.h"
#include "jinja/chars.h"
#include "jinja/lex.h"

#include <string.h>

/* ---- attributes by name */

static bool get_part(jinja *j, const jinja_value *v, const jinja_value *part, jinja_value *out) {
    bool is_number = part->len > 0 && part->len < 10;
    int64_t number = 0;
    for (uint32_t i = 0; i < part->len && is_number; i++) {
        is_number = nib_jinja_is_digit(part->as.ptr[i]);
        number = number * 10 + part->as.ptr[i] - '0';
    }
    jinja_value key = is_number ? jinja_int(number) : *part;
    return nib_jinja_get_item(j, v, &key, out);
}

bool nib_jinja_get_path(jinja *j, const jinja_value *v, const jinja_value *path, const jinja_value *fallback, jinja_value *out) {
    jinja_value at = *v;
    if (path->type == JINJA_INT) {
        if (!nib_jinja_get_item(j, v, path, &at)) return false;
        if (at.type == JINJA_UNDEFINED && fallback) at = *fallback;
    }
    for (uint32_t from = 0; path->type == JINJA_STR && from <= path->len;) {
        const char *dot = from < path->len ? memchr(path->as.ptr + from, '.', path->len - from) : NULL;
        uint32_t to = dot ? (uint32_t)(dot - path->as.ptr) : path->len;
        jinja_value part = jinja_part(*path, from, to);
        if (!get_part(j, &at, &part, &at)) return false;
        if (at.type == JINJA_UNDEFINED && fallback) at = *fallback;
        from = to + 1;
    }
    *out = at;
    return true;
}

/* What an item is sorted or compared by: its attribute, strings in lower case unless case_sensitive. */
static bool get_key(jinja *j, const jinja_value *item, const jinja_value *path, bool is_sensitive, jinja_value *out) {
    if (!nib_jinja_get_path(j, item, path, NULL, out)) return false;
    return is_sensitive || out->type != JINJA_STR || nib_jinja_map_case(j, out, JINJA_LOWER, out);
}

static bool has_generator(jinja *j, uint32_t capacity, jinja_value *out) {
    return nib_jinja_list_new(j, JINJA_AS_GENERATOR, capacity, out);
}

/* ---- one item */

static bool no_item(jinja *j, const char *what, jinja_value *out) {
    jinja_value message = jinja_str(what, strlen(what));
    return nib_jinja_undefined(j, JINJA_EMPTY, NULL, &message, out);
}

bool nib_jinja_filter_first(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items;
    uint32_t n;
    if (v[0].type == JINJA_LIST && v[0].as.list->flavor == JINJA_AS_GENERATOR && v[0].as.list->next < v[0].as.list->n) {
        *out = v[0].as.list->items[v[0].as.list->next++];
        return true;
    }
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (n == 0) return no_item(j, "No first item, sequence was empty.", out);
    *out = items[0];
    return true;
}

bool nib_jinja_filter_last(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items;
    uint32_t n;
    if (v[0].type == JINJA_LIST && v[0].as.list->flavor == JINJA_AS_GENERATOR)
        return nib_jinja_fail(j, "TypeError: 'generator' object is not reversible");
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (n == 0) return no_item(j, "No last item, sequence was empty.", out);
    *out = items[n - 1];
    return true;
}

static bool extreme(jinja *j, const jinja_value *v, bool is_max, jinja_value *out) {
    jinja_value *items, best, key;
    uint32_t n, at = 0;
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (n == 0) return no_item(j, "No aggregated item, sequence was empty.", out);
    for (uint32_t i = 0; i < n; i++) {
        int order = 0;
        if (!get_key(j, &items[i], &v[2], nib_jinja_is_true(&v[1]), &key)) return false;
        if (i && !nib_jinja_order(j, &key, &best, &order)) return false;
        if (i && !(is_max ? order > 0 : order < 0)) continue;
        best = key;
        at = i;
    }
    *out = items[at];
    return true;
}

bool nib_jinja_filter_min(jinja *j, const jinja_value *v, jinja_value *out) {
    return extreme(j, v, false, out);
}

bool nib_jinja_filter_max(jinja *j, const jinja_value *v, jinja_value *out) {
    return extreme(j, v, true, out);
}

bool nib_jinja_filter_sum(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, item, total = jinja_is_given(&v[2]) ? v[2] : jinja_int(0);
    uint32_t n;
    bool has_path = jinja_is_given(&v[1]) && v[1].type != JINJA_NONE;
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (total.type == JINJA_STR) return nib_jinja_fail(j, "TypeError: sum() can't sum strings [use ''.join(seq) instead]");
    for (uint32_t i = 0; i < n; i++) {
        item = items[i];
        if (has_path && !nib_jinja_get_path(j, &items[i], &v[1], NULL, &item)) return false;
        if (!nib_jinja_binary(j, JINJA_TOKEN_ADD, &total, &item, &total)) return false;
    }
    *out = total;
    return true;
}

bool nib_jinja_filter_length(jinja *j, const jinja_value *v, jinja_value *out) {
    int64_t n;
    if (!nib_jinja_length(j, &v[0], &n)) return false;
    *out = jinja_int(n);
    return true;
}

/* ---- the same items otherwise */

static bool copy_items(jinja *j, const jinja_value *v, int flavor, jinja_value *out) {
    jinja_value *items, list;
    uint32_t n;
    if (!nib_jinja_items(j, v, &items, &n) || !nib_jinja_list_new(j, flavor, n, &list)) return false;
    for (uint32_t i = 0; i < n; i++) nib_jinja_list_add(j, &list, &items[i]);
    list.is_trusted = v->is_trusted;
    *out = list;
    return true;
}

bool nib_jinja_filter_list(jinja *j, const jinja_value *v, jinja_value *out) {
    return copy_items(j, &v[0], JINJA_AS_LIST, out);
}

bool nib_jinja_filter_reverse(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value parts[3] = {jinja_none(), jinja_none(), jinja_int(-1)};
    if (v[0].type == JINJA_STR) return nib_jinja_slice(j, &v[0], parts, out);
    if (!copy_items(j, &v[0], JINJA_AS_GENERATOR, out)) return false;
    jinja_list *list = out->as.list;
    for (uint32_t i = 0; i < list->n / 2; i++) {
        jinja_value item = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = item;
    }
    return true;
}

bool nib_jinja_filter_items(jinja *j, const jinja_value *v, jinja_value *out) {
    if (v[0].type == JINJA_UNDEFINED) return has_generator(j, 0, out);
    if (v[0].type != JINJA_DICT) return nib_jinja_fail(j, "TypeError: Can only get item pairs from a mapping.");
    if (!nib_jinja_method_items(j, v, out)) return false;
    out->as.list->flavor = JINJA_AS_GENERATOR;
    return true;
}

/* A stable merge sort of n items by their keys: order[i] is the number of the item at place i. */
static bool merge_sort(jinja *j, const jinja_value *keys, uint32_t *order, uint32_t *scratch, uint32_t n, bool is_reverse) {
    for (uint32_t width = 1; width < n; width = width > n / 2 ? n : width * 2) {
        for (uint32_t from = 0; from < n; from += 2 * width) {
            uint32_t mid = n - from < width ? n : from + width, to = n - mid < width ? n : mid + width;
            for (uint32_t a = from, b = mid, k = from; k < to; k++) {
                int comes_first = 0; /* > 0: b does */
                if (a < mid && b < to && !nib_jinja_order(j, &keys[order[a]], &keys[order[b]], &comes_first)) return false;
                if (is_reverse) comes_first = -comes_first;
                scratch[k] = a < mid && (b >= to || comes_first <= 0) ? order[a++] : order[b++];
            }
            if (to >= n) break;
        }
        memcpy(order, scratch, n * sizeof *order);
    }
    return true;
}

/* Items by keys, into a new list. */
static bool sorted(jinja *j, const jinja_value *items, const jinja_value *keys, uint32_t n, bool is_reverse, jinja_value *out) {
    uint32_t *order = nib_jinja_alloc(j, 2 * (size_t)n * sizeof *order);
    if (!order || !nib_jinja_list_new(j, JINJA_AS_LIST, n, out)) return false;
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    if (!merge_sort(j, keys, order, order + n, n, is_reverse)) return false;
    for (uint32_t i = 0; i < n; i++) nib_jinja_list_add(j, out, &items[order[i]]);
    return true;
}

bool nib_jinja_filter_dictsort(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value by, pairs, none = {.type = JINJA_MISSING};
    if (v[0].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[0]);
    if (v[0].type != JINJA_DICT) return nib_jinja_fail(j, "'%s object' has no attribute 'items'", nib_jinja_type_name(&v[0]));
    if (!nib_jinja_want_str(j, &v[2], "key", &by) || !nib_jinja_method_items(j, v, &pairs)) return false;
    bool by_value = jinja_str_is(&by, "value", 5);
    if (!by_value && !jinja_str_is(&by, "key", 3)) return nib_jinja_fail(j, "You can only sort by either \"key\" or \"value\"");
    uint32_t n = pairs.as.list->n;
    jinja_value *keys = nib_jinja_alloc(j, n * sizeof *keys);
    for (uint32_t i = 0; keys && i < n; i++)
        if (!get_key(j, &pairs.as.list->items[i].as.list->items[by_value], &none, nib_jinja_is_true(&v[1]), &keys[i])) return false;
    return keys && sorted(j, pairs.as.list->items, keys, n, nib_jinja_is_true(&v[3]), out);
}

/* "a,b" sorts by a, then by b. The key is a list in any case: what is equal in lists is never asked for its order. */
static bool get_sort_key(jinja *j, const jinja_value *item, const jinja_value *paths, bool is_sensitive, jinja_value *out) {
    jinja_value list, whole;
    if (!nib_jinja_list_new(j, JINJA_AS_LIST, 2, &list)) return false;
    if (paths->type != JINJA_STR) {
        *out = list;
        return get_key(j, item, paths, is_sensitive, &whole) && nib_jinja_list_add(j, out, &whole);
    }
    for (uint32_t from = 0; from <= paths->len;) {
        const char *comma = from < paths->len ? memchr(paths->as.ptr + from, ',', paths->len - from) : NULL;
        uint32_t to = comma ? (uint32_t)(comma - paths->as.ptr) : paths->len;
        jinja_value path = jinja_part(*paths, from, to), key;
        if (!get_key(j, item, &path, is_sensitive, &key) || !nib_jinja_list_add(j, &list, &key)) return false;
        from = to + 1;
    }
    *out = list;
    return true;
}

bool nib_jinja_filter_sort(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, *keys;
    uint32_t n;
    if (!nib_jinja_items(j, &v[0], &items, &n) || !(keys = nib_jinja_alloc(j, n * sizeof *keys))) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!get_sort_key(j, &items[i], &v[3], nib_jinja_is_true(&v[2]), &keys[i])) return false;
    return sorted(j, items, keys, n, nib_jinja_is_true(&v[1]), out);
}

bool nib_jinja_filter_unique(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, key, none = jinja_none();
    jinja_dict seen = {0};
    uint32_t n;
    if (!nib_jinja_items(j, &v[0], &items, &n) || !has_generator(j, 0, out)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!get_key(j, &items[i], &v[2], nib_jinja_is_true(&v[1]), &key)) return false;
        uint32_t before = seen.n;
        if (!nib_jinja_set(j, &seen, &key, &none)) return false;
        if (seen.n > before && !nib_jinja_list_add(j, out, &items[i])) return false;
    }
    return true;
}

bool nib_jinja_filter_groupby(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, *keys, list, group, grouper, tuple;
    uint32_t n;
    bool is_sensitive = nib_jinja_is_true(&v[3]);
    if (!nib_jinja_items(j, &v[0], &items, &n) || !(keys = nib_jinja_alloc(j, n * sizeof *keys))) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!get_key(j, &items[i], &v[1], is_sensitive, &keys[i])) return false;
        if (keys[i].type == JINJA_UNDEFINED && jinja_is_given(&v[2])) keys[i] = v[2];
    }
    if (!sorted(j, items, keys, n, false, &list) || !sorted(j, keys, keys, n, false, &grouper) ||
        !nib_jinja_list_new(j, JINJA_AS_LIST, 0, out))
        return false;
    const jinja_value *in_order = list.as.list->items, *key_of = grouper.as.list->items;
    for (uint32_t i = 0; i < n;) {
        bool is_same = true;
        uint32_t from = i;
        if (!nib_jinja_list_new(j, JINJA_AS_LIST, 4, &group)) return false;
        for (; i < n && is_same; i += is_same) {
            if (!nib_jinja_equal(j, &key_of[from], &key_of[i], &is_same)) return false;
            if (is_same && !nib_jinja_list_add(j, &group, &in_order[i])) return false;
        }
        if (!nib_jinja_get_path(j, &in_order[from], &v[1], jinja_is_given(&v[2]) ? &v[2] : NULL, &tuple)) return false;
        if (!nib_jinja_tuple_of(j, &tuple, &group, &tuple) || !nib_jinja_list_add(j, out, &tuple)) return false;
    }
    return true;
}

/* ---- pieces */

bool nib_jinja_filter_batch(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, row;
    int64_t size;
    uint32_t n;
    if (!nib_jinja_want_int(j, &v[1], 0, &size) || !nib_jinja_items(j, &v[0], &items, &n) || !has_generator(j, 0, out)) return false;
    if (size < 1 && n) return nib_jinja_fail(j, "batch of %lld items", (long long)size);
    for (uint32_t i = 0; i < n; i++) {
        if (i % size == 0 && (!nib_jinja_list_new(j, JINJA_AS_LIST, 4, &row) || !nib_jinja_list_add(j, out, &row))) return false;
        if (!nib_jinja_list_add(j, &row, &items[i])) return false;
    }
    bool fills = jinja_is_given(&v[2]) && v[2].type != JINJA_NONE;
    while (n && fills && row.as.list->n < size)
        if (!nib_jinja_list_add(j, &row, &v[2])) return false;
    return true;
}

bool nib_jinja_filter_slice(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, column;
    int64_t slices;
    uint32_t n, at = 0;
    if (!nib_jinja_want_int(j, &v[1], 0, &slices) || !nib_jinja_items(j, &v[0], &items, &n) || !has_generator(j, 0, out)) return false;
    if (slices == 0) return nib_jinja_fail(j, "ZeroDivisionError: integer division or modulo by zero");
    bool fills = jinja_is_given(&v[2]) && v[2].type != JINJA_NONE;
    for (int64_t i = 0; i < slices; i++) {
        if (!nib_jinja_list_new(j, JINJA_AS_LIST, 4, &column)) return false;
        for (int64_t k = n / slices + (i < n % slices); k > 0; k--)
            if (!nib_jinja_list_add(j, &column, &items[at++])) return false;
        if (fills && i >= n % slices && !nib_jinja_list_add(j, &column, &v[2])) return false;
        if (!nib_jinja_list_add(j, out, &column)) return false;
    }
    return true;
}

/* ---- map, select, reject: v[1] plain arguments, v[2] named ones */

static jinja_args rest_of(const jinja_value *v, uint32_t from) {
    const jinja_list *args = v[1].as.list;
    return (jinja_args){args->items + from, args->n > from ? args->n - from : 0, v[2].as.dict->n ? v[2].as.dict : NULL};
}

static const jinja_builtin *find_named(jinja *j, const jinja_value *name, const jinja_builtin *(*find)(nib_str), const char *what) {
    const jinja_builtin *row = name->type == JINJA_STR ? find((nib_str){name->as.ptr, name->len}) : NULL;
    if (!row) nib_jinja_fail(j, "No %s named '%.*s'.", what, name->type == JINJA_STR ? (int)name->len : 0, name->as.ptr);
    return row;
}

static bool map_attribute(jinja *j, const jinja_value *v, const jinja_value *items, uint32_t n, jinja_value *out) {
    const jinja_value *path = nib_jinja_dict_get(v[2].as.dict, "attribute"), *fallback = nib_jinja_dict_get(v[2].as.dict, "default");
    jinja_value item;
    if (v[2].as.dict->n != 1u + (fallback != NULL)) return nib_jinja_fail(j, "Unexpected keyword argument of map");
    for (uint32_t i = 0; i < n; i++) {
        if (!nib_jinja_get_path(j, &items[i], path, fallback && fallback->type != JINJA_NONE ? fallback : NULL, &item)) return false;
        if (!nib_jinja_list_add(j, out, &item)) return false;
    }
    return true;
}

bool nib_jinja_filter_map(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value *items, item;
    uint32_t n;
    if (!has_generator(j, 0, out)) return false;
    if (!nib_jinja_is_true(&v[0])) return true;
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (v[1].as.list->n == 0 && nib_jinja_dict_get(v[2].as.dict, "attribute")) return map_attribute(j, v, items, n, out);
    if (v[1].as.list->n == 0) return nib_jinja_fail(j, "map requires a filter argument");
    const jinja_builtin *row = find_named(j, &v[1].as.list->items[0], nib_jinja_find_filter, "filter");
    jinja_args args = rest_of(v, 1);
    for (uint32_t i = 0; row && i < n; i++)
        if (!nib_jinja_call_builtin(j, row, &items[i], &args, &item) || !nib_jinja_list_add(j, out, &item)) return false;
    return row != NULL;
}

/* Whether the test holds for the item, or it is true where there is no test. */
static bool holds(jinja *j, const jinja_builtin *test, const jinja_value *item, const jinja_args *args, bool *out) {
    jinja_value result = *item;
    if (test && !nib_jinja_call_builtin(j, test, item, args, &result)) return false;
    *out = nib_jinja_is_true(&result);
    return true;
}

static bool choose(jinja *j, const jinja_value *v, bool by_attribute, bool wanted, jinja_value *out) {
    jinja_value *items, key;
    const jinja_list *given = v[1].as.list;
    uint32_t n, n_before = by_attribute;
    bool is_chosen;
    if (!has_generator(j, 0, out)) return false;
    if (!nib_jinja_is_true(&v[0])) return true;
    if (!nib_jinja_items(j, &v[0], &items, &n)) return false;
    if (given->n < n_before) return nib_jinja_fail(j, "Missing parameter for attribute name");
    bool has_test = given->n > n_before;
    const jinja_builtin *test = has_test ? find_named(j, &given->items[n_before], nib_jinja_find_test, "test") : NULL;
    if (has_test && !test) return false;
    jinja_args args = rest_of(v, n_before + 1);
    for (uint32_t i = 0; i < n; i++) {
        key = items[i];
        if (by_attribute && !nib_jinja_get_path(j, &items[i], &given->items[0], NULL, &key)) return false;
        if (!holds(j, test, &key, &args, &is_chosen)) return false;
        if (is_chosen == wanted && !nib_jinja_list_add(j, out, &items[i])) return false;
    }
    return true;
}

bool nib_jinja_filter_select(jinja *j, const jinja_value *v, jinja_value *out) {
    return choose(j, v, false, true, out);
}

bool nib_jinja_filter_reject(jinja *j, const jinja_value *v, jinja_value *out) {
    return choose(j, v, false, false, out);
}

bool nib_jinja_filter_selectattr(jinja *j, const jinja_value *v, jinja_value *out) {
    return choose(j, v, true, true, out);
}

bool nib_jinja_filter_rejectattr(jinja *j, const jinja_value *v, jinja_value *out) {
    return choose(j, v, true, false, out);
}
