/* jinja/builtin/methods_text.c - the methods of strings. v[0] is the string. */
#include "jinja/builtin/internal.h"
#include "jinja/chars.h"

#define MAPS_CASE(name, how)                                                                                           \
    bool nib_jinja_method_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                   \
        return nib_jinja_map_case(j, v, how, out);                                                                     \
    }
MAPS_CASE(lower, JINJA_LOWER)
MAPS_CASE(upper, JINJA_UPPER)
MAPS_CASE(swapcase, JINJA_SWAP)
MAPS_CASE(capitalize, JINJA_CAPITALIZE)
MAPS_CASE(title, JINJA_TITLE)
#undef MAPS_CASE

#define STRIPS(name, sides)                                                                                            \
    bool nib_jinja_method_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                   \
        return nib_jinja_strip(j, &v[0], &v[1], sides, out);                                                           \
    }
STRIPS(strip, JINJA_LEFT | JINJA_RIGHT)
STRIPS(lstrip, JINJA_LEFT)
STRIPS(rstrip, JINJA_RIGHT)
#undef STRIPS

static bool pad(jinja *j, const jinja_value *v, int sides, jinja_value *out) {
    jinja_value fill;
    int64_t width;
    return nib_jinja_want_int(j, &v[1], 0, &width) && nib_jinja_want_str(j, &v[2], " ", &fill) &&
           nib_jinja_pad(j, &v[0], width, &fill, sides, out);
}

bool nib_jinja_method_center(jinja *j, const jinja_value *v, jinja_value *out) {
    return pad(j, v, JINJA_LEFT | JINJA_RIGHT, out);
}

bool nib_jinja_method_ljust(jinja *j, const jinja_value *v, jinja_value *out) {
    return pad(j, v, JINJA_RIGHT, out);
}

bool nib_jinja_method_rjust(jinja *j, const jinja_value *v, jinja_value *out) {
    return pad(j, v, JINJA_LEFT, out);
}

bool nib_jinja_method_zfill(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value zero = jinja_str("0", 1), rest = v[0];
    int64_t width;
    if (!nib_jinja_want_int(j, &v[1], 0, &width)) return false;
    bool has_sign = rest.len > 0 && (rest.as.ptr[0] == '-' || rest.as.ptr[0] == '+');
    jinja_value sign = jinja_part(v[0], 0, has_sign);
    rest = jinja_part(v[0], has_sign, v[0].len);
    size_t mark = nib_jinja_mark(j);
    return nib_jinja_pad(j, &rest, width - has_sign, &zero, JINJA_LEFT, &rest) && nib_jinja_put_str(j, &sign) &&
           nib_jinja_put_str(j, &rest) && nib_jinja_take(j, mark, out);
}

bool nib_jinja_method_replace(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value old, new;
    int64_t count;
    return nib_jinja_want_str(j, &v[1], "", &old) && nib_jinja_want_str(j, &v[2], "", &new) &&
           nib_jinja_want_int(j, &v[3], -1, &count) && nib_jinja_replace(j, &v[0], &old, &new, count, out);
}

bool nib_jinja_method_join(jinja *j, const jinja_value *v, jinja_value *out) {
    return nib_jinja_join(j, &v[0], &v[1], false, out);
}

bool nib_jinja_method_format(jinja *j, const jinja_value *v, jinja_value *out) {
    return nib_jinja_brace_format(j, &v[0], &v[1], v[2].as.dict, out);
}

bool nib_jinja_method_splitlines(jinja *j, const jinja_value *v, jinja_value *out) {
    return nib_jinja_split_lines(j, &v[0], nib_jinja_is_true(&v[1]), out);
}

/* ---- searching */

/* The part of the string between the characters v[2] and v[3], which may be negative; *first: where it begins. */
static bool window(jinja *j, const jinja_value *v, jinja_value *part, int64_t *first) {
    jinja_value ends[3] = {jinja_is_given(&v[2]) ? v[2] : jinja_none(), jinja_is_given(&v[3]) ? v[3] : jinja_none(), jinja_none()};
    *first = 0;
    *part = v[0];
    if (ends[0].type == JINJA_NONE && ends[1].type == JINJA_NONE) return true;
    if (!nib_jinja_slice(j, &v[0], ends, part)) return false;
    if (part->type != JINJA_STR) return nib_jinja_fail_undefined(j, part);
    *first = (int64_t)nib_jinja_count(v[0].as.ptr, (size_t)(part->as.ptr - v[0].as.ptr));
    return true;
}

/* Where it last stands before this byte. */
static bool search_last(jinja *j, const jinja_value *s, size_t end, const jinja_value *what, size_t *at) {
    *at = SIZE_MAX;
    for (size_t p = end - what->len + 1; what->len <= end && p-- > 0;) {
        bool may_be = what->len == 0 || s->as.ptr[p] == what->as.ptr[0];
        if (p % 64 == 0 && !nib_jinja_work_on_chars(j, 64)) return false;
        if (!may_be) continue;
        if (!nib_jinja_work(j, what->len)) return false;
        if (what->len == 0 || __builtin_memcmp(s->as.ptr + p, what->as.ptr, what->len) == 0) {
            *at = p;
            break;
        }
    }
    return true;
}

/* The position of v[1] in characters, -1: it is not there. */
static bool find(jinja *j, const jinja_value *v, bool is_last, int64_t *at) {
    jinja_value part, what;
    int64_t first;
    if (!nib_jinja_want_str(j, &v[1], "", &what) || !window(j, v, &part, &first)) return false;
    size_t found;
    if (!(is_last ? search_last(j, &part, part.len, &what, &found) : nib_jinja_search(j, &part, 0, &what, &found))) return false;
    *at = found == SIZE_MAX ? -1 : first + (int64_t)nib_jinja_count(part.as.ptr, found);
    return true;
}

#define FINDS(name, is_last, must_be_there)                                                                            \
    bool nib_jinja_method_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                   \
        int64_t at;                                                                                                    \
        if (!find(j, v, is_last, &at)) return false;                                                                   \
        if (at < 0 && must_be_there) return nib_jinja_fail(j, "ValueError: substring not found");                      \
        *out = jinja_int(at);                                                                                          \
        return true;                                                                                                   \
    }
FINDS(find, false, false)
FINDS(index, false, true)
FINDS(rfind, true, false)
FINDS(rindex, true, true)
#undef FINDS

bool nib_jinja_method_count(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value part, what;
    int64_t first, n = 0;
    if (!nib_jinja_want_str(j, &v[1], "", &what) || !window(j, v, &part, &first)) return false;
    if (what.len == 0) {
        *out = jinja_int((int64_t)nib_jinja_count(part.as.ptr, part.len) + 1);
        return true;
    }
    for (size_t at = 0;; at += what.len, n++) {
        if (!nib_jinja_search(j, &part, at, &what, &at)) return false;
        if (at == SIZE_MAX) break;
    }
    *out = jinja_int(n);
    return true;
}

static bool has_edge(const jinja_value *s, const jinja_value *edge, bool at_end) {
    return edge->type == JINJA_STR && edge->len <= s->len &&
           (edge->len == 0 || __builtin_memcmp(s->as.ptr + (at_end ? s->len - edge->len : 0), edge->as.ptr, edge->len) == 0);
}

/* v[1]: a string or a tuple of them. */
static bool test_edge(jinja *j, const jinja_value *v, bool at_end, jinja_value *out) {
    jinja_value part;
    int64_t first;
    bool is_tuple = v[1].type == JINJA_LIST && v[1].as.list->flavor == JINJA_AS_TUPLE;
    if (v[1].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[1]);
    if (!is_tuple && v[1].type != JINJA_STR)
        return nib_jinja_fail(j, "TypeError: %s first arg must be str or a tuple of str, not %s", at_end ? "endswith" : "startswith",
                              nib_jinja_type_name(&v[1]));
    if (!window(j, v, &part, &first)) return false;
    const jinja_value *edges = is_tuple ? v[1].as.list->items : &v[1];
    bool holds = false;
    for (uint32_t i = 0, n = is_tuple ? v[1].as.list->n : 1; i < n && !holds; i++) {
        if (!nib_jinja_work(j, edges[i].type == JINJA_STR ? edges[i].len : 0)) return false;
        holds = has_edge(&part, &edges[i], at_end);
    }
    *out = jinja_bool(holds);
    return true;
}

bool nib_jinja_method_startswith(jinja *j, const jinja_value *v, jinja_value *out) {
    return test_edge(j, v, false, out);
}

bool nib_jinja_method_endswith(jinja *j, const jinja_value *v, jinja_value *out) {
    return test_edge(j, v, true, out);
}

bool nib_jinja_method_removeprefix(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value edge, self = v[0];
    if (!nib_jinja_want_str(j, &v[1], "", &edge) || !nib_jinja_work(j, edge.len)) return false;
    *out = jinja_part(self, has_edge(&self, &edge, false) ? edge.len : 0, self.len);
    return true;
}

bool nib_jinja_method_removesuffix(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value edge, self = v[0];
    if (!nib_jinja_want_str(j, &v[1], "", &edge) || !nib_jinja_work(j, edge.len)) return false;
    *out = jinja_part(self, 0, self.len - (has_edge(&self, &edge, true) ? edge.len : 0));
    return true;
}

/* ---- what all characters are */

static bool all(jinja *j, const jinja_value *s, bool (*is_kind)(uint32_t), jinja_value *out) {
    uint32_t cp;
    bool holds = s->len > 0;
    if (!nib_jinja_work_on_chars(j, s->len)) return false;
    for (size_t i = 0, n; i < s->len && holds; i += n) {
        n = nib_jinja_char(s->as.ptr + i, s->len - i, &cp);
        holds = is_kind(cp);
    }
    *out = jinja_bool(holds);
    return true;
}

static bool is_alphanumeric(uint32_t cp) {
    return nib_jinja_is_alpha(cp) || nib_jinja_is_decimal(cp);
}

bool nib_jinja_method_isalpha(jinja *j, const jinja_value *v, jinja_value *out) {
    return all(j, v, nib_jinja_is_alpha, out);
}

bool nib_jinja_method_isdigit(jinja *j, const jinja_value *v, jinja_value *out) {
    return all(j, v, nib_jinja_is_decimal, out);
}

bool nib_jinja_method_isalnum(jinja *j, const jinja_value *v, jinja_value *out) {
    return all(j, v, is_alphanumeric, out);
}

bool nib_jinja_method_isspace(jinja *j, const jinja_value *v, jinja_value *out) {
    return all(j, v, nib_jinja_is_space, out);
}

static bool call_test(jinja *j, const char *name, const jinja_value *v, jinja_value *out) {
    const jinja_builtin *row = nib_jinja_find_test((nib_str){name, 5});
    return row->call(j, v, out);
}

bool nib_jinja_method_islower(jinja *j, const jinja_value *v, jinja_value *out) {
    return call_test(j, "lower", v, out);
}

bool nib_jinja_method_isupper(jinja *j, const jinja_value *v, jinja_value *out) {
    return call_test(j, "upper", v, out);
}

/* ---- splitting */

static bool add_part(jinja *j, jinja_value *list, const jinja_value *s, size_t from, size_t to) {
    jinja_value part = jinja_part(*s, from, to);
    return nib_jinja_list_add(j, list, &part);
}

/* At runs of blanks, which fall away at both ends, but not at the end of a rest that is left whole. */
static bool split_blanks(jinja *j, const jinja_value *s, int64_t max, jinja_value *list) {
    size_t at = 0, n;
    uint32_t cp;
    for (int64_t count = 0;; count++) {
        while (at < s->len && (n = nib_jinja_space(s->as.ptr + at, s->len - at)) > 0) at += n;
        if (at >= s->len) return true;
        size_t from = at;
        if (max >= 0 && count == max) return add_part(j, list, s, from, s->len);
        while (at < s->len && nib_jinja_space(s->as.ptr + at, s->len - at) == 0)
            at += nib_jinja_char(s->as.ptr + at, s->len - at, &cp);
        if (!add_part(j, list, s, from, at)) return false;
    }
}

static bool split_at(jinja *j, const jinja_value *s, const jinja_value *sep, int64_t max, jinja_value *list) {
    size_t from = 0;
    for (int64_t count = 0; max < 0 || count < max; count++) {
        size_t found;
        if (!nib_jinja_search(j, s, from, sep, &found)) return false;
        if (found == SIZE_MAX) break;
        if (!add_part(j, list, s, from, found)) return false;
        from = found + sep->len;
    }
    return add_part(j, list, s, from, s->len);
}

static void reverse(jinja_list *list) {
    for (uint32_t i = 0; i < list->n / 2; i++) {
        jinja_value item = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = item;
    }
}

/* The same from the right; sep NULL: at blanks. */
static bool split_right(jinja *j, const jinja_value *s, const jinja_value *sep, int64_t max, jinja_value *list) {
    size_t to = s->len;
    for (int64_t count = 0;; count++) {
        if (!sep) to = nib_jinja_rstrip(s->as.ptr, to);
        if (!sep && to == 0) break;
        bool is_last = max >= 0 && count == max;
        size_t from = to, next = 0;
        if (sep) {
            size_t found = SIZE_MAX;
            if (!is_last && !search_last(j, s, to, sep, &found)) return false;
            from = found == SIZE_MAX ? 0 : found + sep->len;
            next = found;
            is_last = found == SIZE_MAX;
        } else {
            if (is_last) from = 0;
            while (from > 0) {
                size_t at = nib_jinja_char_before(s->as.ptr, from);
                if (nib_jinja_space(s->as.ptr + at, from - at)) break;
                from = at;
            }
            next = from;
        }
        if (!add_part(j, list, s, from, to)) return false;
        if (is_last) break;
        to = next;
    }
    reverse(list->as.list);
    return true;
}

static bool split(jinja *j, const jinja_value *v, bool from_right, jinja_value *out) {
    jinja_value s = v[0], sep;
    int64_t max;
    bool at_blanks = !jinja_is_given(&v[1]) || v[1].type == JINJA_NONE;
    if (!nib_jinja_want_int(j, &v[2], -1, &max) || !nib_jinja_list_new(j, JINJA_AS_LIST, 0, out)) return false;
    if (!at_blanks && !nib_jinja_want_str(j, &v[1], "", &sep)) return false;
    if (!at_blanks && sep.len == 0) return nib_jinja_fail(j, "ValueError: empty separator");
    if (at_blanks && !nib_jinja_work_on_chars(j, s.len)) return false;
    if (from_right) return split_right(j, &s, at_blanks ? NULL : &sep, max, out);
    return at_blanks ? split_blanks(j, &s, max, out) : split_at(j, &s, &sep, max, out);
}

bool nib_jinja_method_split(jinja *j, const jinja_value *v, jinja_value *out) {
    return split(j, v, false, out);
}

bool nib_jinja_method_rsplit(jinja *j, const jinja_value *v, jinja_value *out) {
    return split(j, v, true, out);
}

static bool partition(jinja *j, const jinja_value *v, bool from_right, jinja_value *out) {
    jinja_value s = v[0], sep, tuple;
    if (!nib_jinja_want_str(j, &v[1], "", &sep) || !nib_jinja_list_new(j, JINJA_AS_TUPLE, 3, &tuple)) return false;
    if (sep.len == 0) return nib_jinja_fail(j, "ValueError: empty separator");
    size_t at;
    if (!(from_right ? search_last(j, &s, s.len, &sep, &at) : nib_jinja_search(j, &s, 0, &sep, &at))) return false;
    size_t before = at != SIZE_MAX ? at : from_right ? 0 : s.len, after = at != SIZE_MAX ? at + sep.len : before;
    *out = tuple;
    return add_part(j, out, &s, 0, before) && add_part(j, out, &s, before, after) && add_part(j, out, &s, after, s.len);
}

bool nib_jinja_method_partition(jinja *j, const jinja_value *v, jinja_value *out) {
    return partition(j, v, false, out);
}

bool nib_jinja_method_rpartition(jinja *j, const jinja_value *v, jinja_value *out) {
    return partition(j, v, true, out);
}
