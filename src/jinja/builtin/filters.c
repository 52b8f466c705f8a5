/* jinja/builtin/filters.c - the filters for numbers and single values, and the table of all filters. */
#include "jinja/builtin/internal.h"
#include "jinja/chars.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nib_jinja_filter_default(jinja *j, const jinja_value *v, jinja_value *out) {
    (void)j;
    bool is_lacking = v[0].type == JINJA_UNDEFINED || (nib_jinja_is_true(&v[2]) && !nib_jinja_is_true(&v[0]));
    *out = !is_lacking ? v[0] : jinja_is_given(&v[1]) ? v[1] : jinja_str("", 0);
    return true;
}

bool nib_jinja_filter_attr(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value name;
    if (!nib_jinja_want_str(j, &v[1], "", &name)) return false;
    bool has_keys_only = v[0].type == JINJA_DICT && !nib_jinja_find_method(&v[0], (nib_str){name.as.ptr, name.len});
    if (has_keys_only) return nib_jinja_undefined(j, JINJA_NO_MEMBER, &v[0], &name, out);
    return nib_jinja_get_attr(j, &v[0], &name, out);
}

/* ---- numbers from text */

/* The text without blanks around it and underscores between digits, as a C string; false: too long or a stray underscore. */
static bool copy_number(const jinja_value *s, char *text, size_t size) {
    const char *p = s->as.ptr;
    size_t end = nib_jinja_rstrip(p, s->len), from = 0, n = 0, len;
    while (from < end && (len = nib_jinja_space(p + from, end - from)) > 0) from += len;
    for (size_t i = from; i < end; i++) {
        bool is_between = i > from && i + 1 < end && nib_jinja_digit(p[i - 1]) >= 0 && nib_jinja_digit(p[i + 1]) >= 0;
        if (p[i] == '_' && !is_between) return false;
        if (p[i] == '_') continue;
        if (n + 1 >= size || p[i] == 0) return false;
        text[n++] = p[i];
    }
    text[n] = 0;
    return n > 0;
}

static bool parse_float(const jinja_value *s, double *x) {
    char text[400], *end;
    if (!copy_number(s, text, sizeof text) || strpbrk(text, "xX(")) return false;
    *x = strtod(text, &end);
    return *end == 0;
}

/* *overflows: it is a whole number, but a larger one. */
static bool parse_int(const jinja_value *s, int base, int64_t *x, bool *overflows) {
    char text[400], *end;
    *overflows = false;
    if (!copy_number(s, text, sizeof text)) return false;
    char *digits = text + (text[0] == '-' || text[0] == '+');
    char prefix = digits[0] == '0' ? (char)(digits[1] | 0x20) : 0;
    int prefix_base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (prefix_base && (base == prefix_base || base == 0)) {
        if (nib_jinja_digit(digits[2]) < 0) return false;
        memmove(digits, digits + 2, strlen(digits + 2) + 1);
        base = prefix_base;
    } else if (base == 0) {
        base = 10;
    }
    if (nib_jinja_digit(digits[0]) < 0 || (base == 16 && (digits[1] | 0x20) == 'x')) return false;
    errno = 0;
    *x = strtoll(text, &end, base);
    *overflows = errno == ERANGE && *end == 0;
    return *end == 0;
}

bool nib_jinja_filter_int(jinja *j, const jinja_value *v, jinja_value *out) {
    int64_t x = 0, base;
    double f = 0;
    bool overflows = false;
    if (v[0].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[0]);
    if (!nib_jinja_want_int(j, &v[2], 10, &base)) return false;
    *out = jinja_is_given(&v[1]) ? v[1] : jinja_int(0);
    if (v[0].type == JINJA_FLOAT) f = v[0].as.f;
    else if (jinja_is_integer(&v[0])) x = jinja_as_int(&v[0]);
    else if (v[0].type != JINJA_STR) return true;
    else if (base != 0 && (base < 2 || base > 36)) return true;
    else if (!parse_int(&v[0], (int)base, &x, &overflows) && !parse_float(&v[0], &f)) return true;
    if (v[0].type == JINJA_FLOAT && isinf(f)) return nib_jinja_fail(j, "OverflowError: cannot convert float infinity to integer");
    if (isnan(f) || isinf(f)) return true;
    if (overflows || f >= 9223372036854775808.0 || f < -9223372036854775808.0)
        return nib_jinja_fail(j, "OverflowError: an integer beyond 64 bits");
    *out = jinja_int(f != 0 ? (int64_t)f : x);
    out->is_trusted = v[0].is_trusted;
    return true;
}

bool nib_jinja_filter_float(jinja *j, const jinja_value *v, jinja_value *out) {
    double x;
    if (v[0].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[0]);
    if (jinja_is_number(&v[0])) *out = jinja_float(jinja_as_float(&v[0]));
    else if (v[0].type == JINJA_STR && parse_float(&v[0], &x)) *out = jinja_float(x);
    else *out = jinja_is_given(&v[1]) ? v[1] : jinja_float(0);
    return true;
}

/* ---- arithmetic */

bool nib_jinja_filter_abs(jinja *j, const jinja_value *v, jinja_value *out) {
    if (v[0].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[0]);
    if (!jinja_is_number(&v[0])) return nib_jinja_fail(j, "TypeError: bad operand type for abs(): '%s'", nib_jinja_type_name(&v[0]));
    if (v[0].type == JINJA_FLOAT) *out = jinja_float(fabs(v[0].as.f));
    else if (jinja_as_int(&v[0]) == INT64_MIN) return nib_jinja_fail(j, "OverflowError: an integer beyond 64 bits");
    else *out = jinja_int(llabs(jinja_as_int(&v[0])));
    return true;
}

/* Correct rounding, half to even, is what printf does. */
static double round_decimal(double x, int precision) {
    char text[400];
    if (!isfinite(x) || precision > 300 || (precision >= 0 && fabs(x) > 1e16)) return x;
    if (precision < 0) {
        double unit = pow(10, -precision);
        return isfinite(unit) ? rint(x / unit) * unit : copysign(0, x);
    }
    snprintf(text, sizeof text, "%.*f", precision < 60 ? precision : 60, x);
    return strtod(text, NULL);
}

bool nib_jinja_filter_round(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value method;
    int64_t precision;
    if (!nib_jinja_want_int(j, &v[1], 0, &precision) || !nib_jinja_want_str(j, &v[2], "common", &method)) return false;
    if (v[0].type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v[0]);
    if (!jinja_is_number(&v[0])) return nib_jinja_fail(j, "TypeError: type %s doesn't define __round__ method", nib_jinja_type_name(&v[0]));
    if (precision > 1000 || precision < -1000) return nib_jinja_fail(j, "round to %lld digits", (long long)precision);
    if (!nib_jinja_work(j, JINJA_FLOAT_WORK)) return false;
    double x = jinja_as_float(&v[0]), unit = pow(10, (double)precision);
    if (jinja_str_is(&method, "common", 6)) {
        bool stays = jinja_is_integer(&v[0]);
        if (stays && precision < 0) *out = jinja_int((int64_t)round_decimal(x, (int)precision));
        else *out = stays ? jinja_int(jinja_as_int(&v[0])) : jinja_float(round_decimal(x, (int)precision));
        return true;
    }
    bool is_ceil = jinja_str_is(&method, "ceil", 4);
    if (!is_ceil && !jinja_str_is(&method, "floor", 5)) return nib_jinja_fail(j, "method must be common, ceil or floor");
    *out = jinja_float((is_ceil ? ceil(x * unit) : floor(x * unit)) / unit + 0.0);
    return true;
}

bool nib_jinja_filter_filesizeformat(jinja *j, const jinja_value *v, jinja_value *out) {
    static const char letters[] = "kMGTPEZY";
    jinja_value number = {0};
    bool is_binary = nib_jinja_is_true(&v[1]);
    size_t mark = nib_jinja_mark(j);
    if (!nib_jinja_filter_float(j, (jinja_value[2]){v[0], jinja_none()}, &number)) return false;
    if (number.type != JINJA_FLOAT) return nib_jinja_fail(j, "TypeError: a number expected, found '%s'", nib_jinja_type_name(&v[0]));
    double bytes = number.as.f, base = is_binary ? 1024 : 1000, unit = base;
    bool ok;
    if (bytes == 1) {
        ok = nib_jinja_put(j, "1 Byte", 6, true);
    } else if (bytes < base) {
        ok = nib_jinja_put_format(j, true, "%.0f Bytes", trunc(bytes) + 0.0);
    } else {
        size_t i = 0;
        while (i < sizeof letters - 2 && bytes >= unit * base) {
            unit *= base;
            i++;
        }
        char letter = is_binary && i == 0 ? 'K' : letters[i];
        ok = nib_jinja_put_format(j, true, "%.1f %c%sB", bytes / unit, letter, is_binary ? "i" : "");
    }
    return ok && nib_jinja_take(j, mark, out);
}

/* ---- filters of jinja2 that are none of a prompt's: known, so that the error can say why */

#define REFUSES(name, why)                                                                                             \
    bool nib_jinja_filter_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                   \
        (void)v, (void)out;                                                                                            \
        return nib_jinja_fail(j, "the filter " #name " is not supported: " why);                                       \
    }
REFUSES(pprint, "tojson(indent=2) shows data")
REFUSES(random, "a prompt must not depend on chance")
REFUSES(urlize, "a prompt is no HTML")
REFUSES(wordwrap, "the lines of a prompt are not wrapped")
#undef REFUSES

const jinja_builtin *nib_jinja_find_filter(nib_str name) {
    static const jinja_builtin rows[] = {
#define FILTER(filter_name, params, n_required, function)                                                              \
    {filter_name, params, n_required, false, nib_jinja_filter_##function},
#include "jinja/builtin/filters.def"
#undef FILTER
    };
    return nib_jinja_find_row(rows, sizeof rows / sizeof *rows, name);
}
