/* jinja/builtin/tests.c - the tests behind `is` and in select(). */
#include "jinja/chars.h"
#include "jinja/eval.h"
#include "jinja/lex.h"

#define TYPE_TEST(name, condition)                                                                                     \
    static bool test_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                        \
        (void)j;                                                                                                       \
        *out = jinja_bool(condition);                                                                                  \
        return true;                                                                                                   \
    }
TYPE_TEST(boolean, v->type == JINJA_BOOL)
TYPE_TEST(callable, v->type >= JINJA_MACRO || v->type == JINJA_LOOP || v->type == JINJA_UNDEFINED)
TYPE_TEST(defined, v->type != JINJA_UNDEFINED)
TYPE_TEST(undefined, v->type == JINJA_UNDEFINED)
TYPE_TEST(escaped, v->type == JINJA_STR && v->is_markup)
TYPE_TEST(false, v->type == JINJA_BOOL && !v->as.b)
TYPE_TEST(true, v->type == JINJA_BOOL && v->as.b)
TYPE_TEST(float, v->type == JINJA_FLOAT)
TYPE_TEST(integer, v->type == JINJA_INT)
TYPE_TEST(iterable, v->type == JINJA_STR || v->type == JINJA_LIST || v->type == JINJA_DICT || v->type == JINJA_UNDEFINED ||
                        v->type == JINJA_LOOP)
TYPE_TEST(mapping, v->type == JINJA_DICT)
TYPE_TEST(none, v->type == JINJA_NONE)
TYPE_TEST(number, jinja_is_number(v))
TYPE_TEST(string, v->type == JINJA_STR)
TYPE_TEST(filter, v->type == JINJA_STR && nib_jinja_find_filter((nib_str){v->as.ptr, v->len}))
TYPE_TEST(test, v->type == JINJA_STR && nib_jinja_find_test((nib_str){v->as.ptr, v->len}))
/* What has a length and items. */
TYPE_TEST(sequence, v->type == JINJA_STR || v->type == JINJA_DICT || v->type == JINJA_UNDEFINED ||
                        (v->type == JINJA_LIST && (v->as.list->flavor <= JINJA_AS_TUPLE || v->as.list->flavor == JINJA_AS_RANGE)))
#undef TYPE_TEST

#define COMPARISON(name, op)                                                                                           \
    static bool test_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                        \
        bool holds;                                                                                                    \
        if (!nib_jinja_compare(j, JINJA_TOKEN_##op, &v[0], &v[1], &holds)) return false;                               \
        *out = jinja_bool(holds);                                                                                      \
        return true;                                                                                                   \
    }
COMPARISON(eq, EQ)
COMPARISON(ne, NE)
COMPARISON(lt, LT)
COMPARISON(le, LE)
COMPARISON(gt, GT)
COMPARISON(ge, GE)
COMPARISON(in, IN)
#undef COMPARISON

static bool remainder_is(jinja *j, const jinja_value *v, const jinja_value *by, int64_t wanted, jinja_value *out) {
    jinja_value rest, want = jinja_int(wanted);
    bool holds;
    if (!nib_jinja_binary(j, JINJA_TOKEN_MOD, v, by, &rest) || !nib_jinja_equal(j, &rest, &want, &holds)) return false;
    *out = jinja_bool(holds);
    return true;
}

static bool test_divisibleby(jinja *j, const jinja_value *v, jinja_value *out) {
    return remainder_is(j, &v[0], &v[1], 0, out);
}

static bool test_even(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value two = jinja_int(2);
    return remainder_is(j, v, &two, 0, out);
}

static bool test_odd(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value two = jinja_int(2);
    return remainder_is(j, v, &two, 1, out);
}

/* Identity, which for what templates compare this way (None, booleans, small numbers) is equality of one type. */
static bool test_sameas(jinja *j, const jinja_value *v, jinja_value *out) {
    bool holds = v[0].type == v[1].type;
    if (holds && (v[0].type == JINJA_LIST || v[0].type == JINJA_DICT)) holds = v[0].as.ptr == v[1].as.ptr;
    else if (holds && !nib_jinja_equal(j, &v[0], &v[1], &holds)) return false;
    *out = jinja_bool(holds);
    return true;
}

static bool has_case(jinja *j, const jinja_value *v, bool (*is_other)(uint32_t), bool (*is_wanted)(uint32_t), jinja_value *out) {
    jinja_value s;
    uint32_t cp;
    bool found = false;
    if (!nib_jinja_to_str(j, v, &s) || !nib_jinja_work_on_chars(j, s.len)) return false;
    for (size_t i = 0; i < s.len; i += nib_jinja_char(s.as.ptr + i, s.len - i, &cp)) {
        nib_jinja_char(s.as.ptr + i, s.len - i, &cp);
        if (is_other(cp)) {
            found = false;
            break;
        }
        found |= is_wanted(cp);
    }
    *out = jinja_bool(found);
    return true;
}

static bool test_lower(jinja *j, const jinja_value *v, jinja_value *out) {
    return has_case(j, v, nib_jinja_is_upper, nib_jinja_is_lower, out);
}

static bool test_upper(jinja *j, const jinja_value *v, jinja_value *out) {
    return has_case(j, v, nib_jinja_is_lower, nib_jinja_is_upper, out);
}

const jinja_builtin *nib_jinja_find_test(nib_str name) {
    static const jinja_builtin rows[] = {
#define TEST(test_name, params, n_required, function) {test_name, params, n_required, false, test_##function},
#include "jinja/builtin/tests.def"
#undef TEST
    };
    return nib_jinja_find_row(rows, sizeof rows / sizeof *rows, name);
}
