/* jinja/ops.c - arithmetic and comparison operators: Python's, on 64-bit integers. */
#include "jinja/eval.h"
#include "jinja/lex.h"
#include "jinja/markup.h"

#include <math.h>

static bool fail_overflow(jinja *j) {
    return nib_jinja_fail(j, "OverflowError: an integer beyond 64 bits");
}

static bool fail_types(jinja *j, int op, const jinja_value *a, const jinja_value *b) {
    if (a->type == JINJA_UNDEFINED || b->type == JINJA_UNDEFINED)
        return nib_jinja_fail_undefined(j, a->type == JINJA_UNDEFINED ? a : b);
    if (op == JINJA_TOKEN_ADD && (a->type == JINJA_STR || a->type == JINJA_LIST))
        return nib_jinja_fail(j, "TypeError: can only concatenate %s (not \"%s\") to %s", nib_jinja_type_name(a),
                              nib_jinja_type_name(b), nib_jinja_type_name(a));
    return nib_jinja_fail(j, "TypeError: unsupported operand type(s) for %s: '%s' and '%s'", nib_jinja_token_name(op),
                          nib_jinja_type_name(a), nib_jinja_type_name(b));
}

/* ---- integers */

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b) {
    int64_t r = b == -1 ? 0 : a % b; /* INT64_MIN % -1 traps */
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool int_power(jinja *j, int64_t base, int64_t exponent, jinja_value *out) {
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0) return nib_jinja_fail(j, "ZeroDivisionError: 0.0 cannot be raised to a negative power");
        *out = jinja_float(pow((double)base, (double)exponent));
        return true;
    }
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return fail_overflow(j);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return fail_overflow(j);
    }
    *out = jinja_int(result);
    return true;
}

/* a / b, rounded once: beyond 53 bits neither may become a float before. */
static double int_div(int64_t a, int64_t b) {
    int64_t exact = INT64_C(1) << 53;
    if (a == 0 || (a > -exact && a < exact && b > -exact && b < exact)) return (double)a / (double)b;
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    int shift = __builtin_clzll(x) + 64 - __builtin_clzll(y); /* the quotient has 64 bits or more */
    unsigned __int128 n = (unsigned __int128)x << shift;
    double quotient = ldexp((double)(n / y | (n % y != 0)), -shift);
    return (a < 0) != (b < 0) ? -quotient : quotient;
}

static bool int_binary(jinja *j, int op, int64_t a, int64_t b, jinja_value *out) {
    int64_t x = 0;
    bool overflows = false;
    switch (op) {
    case JINJA_TOKEN_ADD: overflows = __builtin_add_overflow(a, b, &x); break;
    case JINJA_TOKEN_SUB: overflows = __builtin_sub_overflow(a, b, &x); break;
    case JINJA_TOKEN_MUL: overflows = __builtin_mul_overflow(a, b, &x); break;
    case JINJA_TOKEN_POW: return int_power(j, a, b, out);
    default:
        if (b == 0) return nib_jinja_fail(j, "ZeroDivisionError: division by zero");
        if (op == JINJA_TOKEN_DIV) {
            *out = jinja_float(int_div(a, b));
            return true;
        }
        overflows = a == INT64_MIN && b == -1 && op == JINJA_TOKEN_FLOORDIV;
        if (!overflows) x = op == JINJA_TOKEN_FLOORDIV ? floor_div(a, b) : floor_mod(a, b);
    }
    if (overflows) return fail_overflow(j);
    *out = jinja_int(x);
    return true;
}

/* ---- floats */

static double float_mod(double a, double b) {
    double r = fmod(a, b);
    if (r != 0 && (r < 0) != (b < 0)) return r + b;
    return r == 0 ? copysign(0, b) : r;
}

static double float_div(double a, double b) {
    double q = (a - float_mod(a, b)) / b, whole = floor(q);
    if (q == 0) return copysign(0, a / b);
    return q - whole > 0.5 ? whole + 1 : whole;
}

static bool float_binary(jinja *j, int op, double a, double b, jinja_value *out) {
    bool divides = op == JINJA_TOKEN_DIV || op == JINJA_TOKEN_FLOORDIV || op == JINJA_TOKEN_MOD;
    if (divides && b == 0) return nib_jinja_fail(j, "ZeroDivisionError: float division by zero");
    if (op == JINJA_TOKEN_POW && a == 0 && b < 0)
        return nib_jinja_fail(j, "ZeroDivisionError: 0.0 cannot be raised to a negative power");
    if (op == JINJA_TOKEN_POW && a < 0 && isfinite(b) && b != floor(b))
        return nib_jinja_fail(j, "a power that is a complex number");
    double x = op == JINJA_TOKEN_ADD ? a + b : op == JINJA_TOKEN_SUB ? a - b : op == JINJA_TOKEN_MUL ? a * b :
               op == JINJA_TOKEN_DIV ? a / b : op == JINJA_TOKEN_FLOORDIV ? float_div(a, b) :
               op == JINJA_TOKEN_MOD ? float_mod(a, b) : pow(a, b);
    if (op == JINJA_TOKEN_POW && isinf(x) && isfinite(a) && isfinite(b))
        return nib_jinja_fail(j, "OverflowError: a power beyond the range of floats");
    *out = jinja_float(x);
    return true;
}

/* ---- strings and lists */

static bool concat(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    if (a->is_markup != b->is_markup) return nib_jinja_concat_markup(j, a, b, out);
    size_t mark = nib_jinja_mark(j);
    bool is_markup = a->is_markup, is_long = a->len >= JINJA_LONG;
    if ((!is_long && !nib_jinja_put_str(j, a)) || !nib_jinja_put_str(j, b)) return false;
    if (!(is_long ? nib_jinja_take_behind(j, mark, a, out) : nib_jinja_take(j, mark, out))) return false;
    out->is_markup = is_markup;
    return true;
}

static bool concat_lists(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    const jinja_list *x = a->as.list, *y = b->as.list;
    bool is_trusted = a->is_trusted && b->is_trusted;
    if (x->n > UINT32_MAX / 2 - y->n || !nib_jinja_list_new(j, x->flavor, x->n + y->n, out)) return false;
    for (uint32_t i = 0; i < x->n; i++) nib_jinja_list_add(j, out, &x->items[i]);
    for (uint32_t i = 0; i < y->n; i++) nib_jinja_list_add(j, out, &y->items[i]);
    out->is_trusted = is_trusted;
    return true;
}

static bool repeat(jinja *j, const jinja_value *v, int64_t n, jinja_value *out) {
    jinja_value of = *v;
    if (n < 0) n = 0;
    uint64_t one = of.type == JINJA_STR ? of.len : of.as.list->n * sizeof(jinja_value);
    if (one && (uint64_t)n > j->max_bytes / one) return nib_jinja_alloc(j, SIZE_MAX / 2) != NULL;
    if (of.type == JINJA_STR) {
        size_t mark = nib_jinja_mark(j);
        for (int64_t i = 0; i < n && one; i++)
            if (!nib_jinja_put_str(j, &of)) return false;
        return nib_jinja_take(j, mark, out);
    }
    if (!nib_jinja_list_new(j, of.as.list->flavor, (uint32_t)(one ? (uint64_t)n * of.as.list->n : 0), out)) return false;
    for (int64_t i = 0; i < n && one; i++)
        for (uint32_t k = 0; k < of.as.list->n; k++) nib_jinja_list_add(j, out, &of.as.list->items[k]);
    return true;
}

static bool is_sequence(const jinja_value *v) {
    return v->type == JINJA_STR || (v->type == JINJA_LIST && v->as.list->flavor <= JINJA_AS_TUPLE);
}

bool nib_jinja_binary(jinja *j, int op, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    bool is_trusted = a->is_trusted && b->is_trusted;
    if (jinja_is_number(a) && jinja_is_number(b)) {
        bool ok = jinja_is_integer(a) && jinja_is_integer(b) ? int_binary(j, op, jinja_as_int(a), jinja_as_int(b), out)
                                                            : float_binary(j, op, jinja_as_float(a), jinja_as_float(b), out);
        out->is_trusted = is_trusted;
        return ok;
    }
    if (op == JINJA_TOKEN_ADD && a->type == JINJA_STR && b->type == JINJA_STR) return concat(j, a, b, out);
    if (op == JINJA_TOKEN_ADD && a->type == JINJA_LIST && b->type == JINJA_LIST && is_sequence(a) &&
        a->as.list->flavor == b->as.list->flavor)
        return concat_lists(j, a, b, out);
    if (op == JINJA_TOKEN_MUL && is_sequence(a) && jinja_is_integer(b)) return repeat(j, a, jinja_as_int(b), out);
    if (op == JINJA_TOKEN_MUL && is_sequence(b) && jinja_is_integer(a)) return repeat(j, b, jinja_as_int(a), out);
    if (op == JINJA_TOKEN_MOD && a->type == JINJA_STR) return nib_jinja_percent(j, a, b, NULL, out);
    return fail_types(j, op, a, b);
}

bool nib_jinja_compare(jinja *j, int op, const jinja_value *a, const jinja_value *b, bool *out) {
    int order = 0;
    bool ok = true;
    switch (op) {
    case JINJA_TOKEN_EQ:
    case JINJA_TOKEN_NE:
        ok = nib_jinja_equal(j, a, b, out);
        *out ^= op == JINJA_TOKEN_NE;
        return ok;
    case JINJA_TOKEN_IN:
    case JINJA_TOKEN_NOT_IN:
        ok = nib_jinja_contains(j, b, a, out);
        *out ^= op == JINJA_TOKEN_NOT_IN;
        return ok;
    default: break;
    }
    *out = false;
    if (jinja_is_number(a) && jinja_is_number(b) && (isnan(jinja_as_float(a)) || isnan(jinja_as_float(b)))) return true;
    if (!nib_jinja_order(j, a, b, &order)) return false;
    *out = op == JINJA_TOKEN_LT ? order < 0 : op == JINJA_TOKEN_LE ? order <= 0 : op == JINJA_TOKEN_GT ? order > 0 : order >= 0;
    return true;
}
