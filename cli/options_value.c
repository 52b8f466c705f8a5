/* cli/options_value.c - the value of one option: text in -> field of nib_cli_options out, or an error that says what is
 * allowed; and the field as text. Two functions per kind (kinds.def). Called by options.c for what the user types and for
 * the defaults, and by chat_params.c. */
#include "options.h"

#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct value {
    const nib_cli_option *option;
    nib_str name;
    const char *text;
    void *field;
    nib_error *err;
} value;

static nib_status wrong(const value *v, const char *wanted) {
    return nib_fail(v->err, NIB_E_ARG, "%.*s %s: expected %s", NIB_STR_ARG(v->name), *v->text ? v->text : "''", wanted);
}

static nib_status out_of_range(const value *v) {
    return nib_fail(v->err, NIB_E_ARG, "%.*s %s: expected a number from %.10g to %.10g", NIB_STR_ARG(v->name), v->text,
                    v->option->low, v->option->high);
}

/* A whole decimal number that ends at `end` (or at the end of the text). */
static bool whole(const char *text, char end, long long *out, const char **rest) {
    if (*text == ' ' || *text == '+') return false; /* strtoll would skip them */
    char *stop;
    errno = 0;
    *out = strtoll(text, &stop, 10);
    *rest = stop;
    return stop != text && !errno && (*stop == 0 || *stop == end);
}

static nib_status parse_FLAG(const value *v) {
    *(bool *)v->field = !strcmp(v->text, "on");
    return NIB_OK;
}

static nib_status parse_INT(const value *v) {
    long long x;
    const char *rest;
    if (!whole(v->text, 0, &x, &rest)) return wrong(v, "a whole number");
    if ((double)x < v->option->low || (double)x > v->option->high) return out_of_range(v);
    *(int32_t *)v->field = (int32_t)x;
    return NIB_OK;
}

static nib_status parse_UINT(const value *v) {
    long long x;
    const char *rest;
    if (!whole(v->text, 0, &x, &rest)) return wrong(v, "a whole number");
    if ((double)x < v->option->low || (double)x > v->option->high) return out_of_range(v);
    *(uint32_t *)v->field = (uint32_t)x;
    return NIB_OK;
}

static nib_status parse_FLOAT(const value *v) {
    char *end;
    double x = strtod(v->text, &end);
    if (end == v->text || *end || !isfinite(x)) return wrong(v, "a number");
    if (x < v->option->low || x > v->option->high) return out_of_range(v);
    *(float *)v->field = (float)x;
    return NIB_OK;
}

static nib_status parse_STRING(const value *v) {
    if (!*v->text && !strcmp(v->option->arg, "FILE")) return wrong(v, "the path of a file");
    *(const char **)v->field = v->text;
    return NIB_OK;
}

static nib_status parse_WORD(const value *v) {
    nib_str left = {0}, word;
    while (nib_cli_word_next(v->option, &left, &word))
        if (strlen(v->text) == word.len && !memcmp(v->text, word.ptr, word.len)) return parse_STRING(v);
    return wrong(v, v->option->arg);
}

static nib_status parse_CHOICE(const value *v) {
    nib_str left = {0}, word;
    for (int32_t i = 0; nib_cli_word_next(v->option, &left, &word); i++)
        if (strlen(v->text) == word.len && !memcmp(v->text, word.ptr, word.len)) {
            *(int32_t *)v->field = i;
            return NIB_OK;
        }
    return wrong(v, v->option->arg);
}

static nib_status append(const value *v, const void *item, size_t size) {
    return nib_cli_list_append(v->field, item, 1, size) ? NIB_OK : nib_fail_nomem(v->err, size, "options");
}

static nib_status parse_STRINGS(const value *v) {
    nib_str item = {v->text, strlen(v->text)};
    return append(v, &item, sizeof item);
}

static nib_status parse_COUNTS(const value *v) {
    const char *at = v->text;
    for (;;) {
        long long x;
        if (!whole(at, ',', &x, &at)) return wrong(v, "whole numbers joined by commas");
        if ((double)x < v->option->low || (double)x > v->option->high) return out_of_range(v);
        uint32_t count = (uint32_t)x;
        NIB_TRY(append(v, &count, sizeof count));
        if (!*at++) return NIB_OK;
    }
}

static nib_status parse_BIASES(const value *v) {
    char *sign, *end;
    errno = 0;
    long long id = strtoll(v->text, &sign, 10);
    if (sign == v->text || errno || id < 0 || id > INT32_MAX || (*sign != '+' && *sign != '-'))
        return wrong(v, "ID+BIAS or ID-BIAS, for instance 15043-1.5 or 15043-inf");
    float bias = strtof(sign, &end);
    if (end == sign + 1 || *end || isnan(bias) || bias == INFINITY)
        return wrong(v, "a finite bias, or -inf, after the id");
    nib_logit_bias item = {(nib_token)id, bias};
    return append(v, &item, sizeof item);
}

static nib_status parse_IGNORED(const value *v) {
    *(bool *)v->field = true;
    return NIB_OK;
}

static nib_status (*const parsers[])(const value *) = {
#define KIND(id, takes_value, is_list, type) parse_##id,
#include "kinds.def"
#undef KIND
};

nib_status nib_cli_value_parse(const nib_cli_option *option, nib_str name, const char *text, nib_cli_options *opt,
                               nib_error *err) {
    return parsers[option->kind](&(value){option, name, text, (char *)opt + option->offset, err});
}

/* ---- values as text */

static void print_FLAG(const nib_cli_option *option, const void *field, nib_buf *out) {
    (void)option;
    nib_buf_str(out, *(const bool *)field ? "on" : "off");
}

static void print_INT(const nib_cli_option *option, const void *field, nib_buf *out) {
    (void)option;
    nib_buf_printf(out, "%d", *(const int32_t *)field);
}

static void print_UINT(const nib_cli_option *option, const void *field, nib_buf *out) {
    uint32_t x = *(const uint32_t *)field;
    nib_buf_printf(out, option->low < 0 && x == UINT32_MAX ? "-1" : "%u", x);
}

static void print_FLOAT(const nib_cli_option *option, const void *field, nib_buf *out) {
    (void)option;
    nib_buf_printf(out, "%.6g", (double)*(const float *)field);
}

static void print_STRING(const nib_cli_option *option, const void *field, nib_buf *out) {
    const char *text = *(const char *const *)field;
    (void)option;
    nib_buf_str(out, text ? text : "");
}

#define print_WORD print_STRING

static void print_CHOICE(const nib_cli_option *option, const void *field, nib_buf *out) {
    nib_str left = {0}, word;
    for (int32_t i = 0; nib_cli_word_next(option, &left, &word); i++)
        if (i == *(const int32_t *)field) nib_buf_append(out, word.ptr, word.len);
}

static void print_STRINGS(const nib_cli_option *option, const void *field, nib_buf *out) {
    (void)option;
    nib_buf_printf(out, "(%zu)", ((const nib_cli_list *)field)->n);
}

#define print_COUNTS print_STRINGS
#define print_BIASES print_STRINGS
#define print_IGNORED print_FLAG

void nib_cli_value_print(const nib_cli_option *option, const nib_cli_options *opt, nib_buf *out) {
    static void (*const printers[])(const nib_cli_option *, const void *, nib_buf *) = {
#define KIND(id, takes_value, is_list, type) print_##id,
#include "kinds.def"
#undef KIND
    };
    printers[option->kind](option, (const char *)opt + option->offset, out);
}
