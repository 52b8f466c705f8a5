/* grammar/schema_scalar.c - strings, numbers, enum and const of a schema -> pieces. */
#include "base/status.h"
#include "base/utf8.h"
#include "grammar/number.h"
#include "grammar/run.h"
#include "grammar/schema.h"

#include <string.h>

/* ---- strings */

static const char *format_expression(nib_str name) {
    static const struct {
        const char *name, *expression;
    } formats[] = {
#define FORMAT(name, expression) {name, expression},
#include "grammar/formats.def"
#undef FORMAT
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (nib_grammar_json_is(name, formats[i].name)) return formats[i].expression;
    return NULL;
}

/* Puts the place of a schema before an error of its pattern. */
static void name_place(nib_grammar_schema *s, const nib_grammar_json *at) {
    nib_buf pointer = {0};
    char message[sizeof s->b->error.message];
    if (!nib_grammar_schema_failed(s) || s->b->error.message[0] == '#') return;
    nib_grammar_json_pointer(at, &pointer);
    strcpy(message, s->b->error.message);
    nib_fail_at(&s->b->error, s->b->status, at->offset, "%.*s: %s", NIB_STR_ARG(pointer), message);
    nib_buf_free(&pointer);
}

static void meet(nib_grammar_schema *s, nib_grammar_pattern *all, bool *has_one, nib_grammar_pattern *one) {
    if (!*has_one) {
        *all = *one;
        *has_one = true;
        return;
    }
    nib_grammar_pattern_meet(s->b, all, one);
    nib_grammar_pattern_free(one);
}

/* pattern and format of all members together; false: there is none. */
static bool read_patterns(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_pattern *all) {
    bool has_one = false;
    for (size_t i = 0; i < conj->n && !nib_grammar_schema_failed(s); i++) {
        const nib_grammar_json *pattern = nib_grammar_json_get(conj->terms[i].schema, "pattern");
        const nib_grammar_json *format = nib_grammar_json_get(conj->terms[i].schema, "format");
        nib_grammar_pattern one = {0};
        if (pattern && pattern->kind != NIB_GRAMMAR_JSON_STRING)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, pattern, "a pattern is a string");
        if (pattern && !nib_grammar_schema_failed(s)) {
            nib_grammar_pattern_read(s->b, pattern->text, 0, true, &one);
            meet(s, all, &has_one, &one);
            name_place(s, pattern);
        }
        if (!format || nib_grammar_schema_failed(s)) continue;
        const char *expression = format_expression(format->text);
        if (!expression) {
            nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, format, "the format \"%.*s\" is not supported",
                                    NIB_STR_ARG(format->text));
            break;
        }
        one = (nib_grammar_pattern){0};
        nib_grammar_pattern_read(s->b, (nib_str){expression, strlen(expression)}, 0, false, &one);
        meet(s, all, &has_one, &one);
        name_place(s, format);
    }
    return has_one;
}

bool nib_grammar_schema_text(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_pattern *out) {
    uint32_t min = nib_grammar_conj_greatest(s, conj, "minLength"), max = nib_grammar_conj_least(s, conj, "maxLength");
    bool is_cut = min > 0 || max != NIB_GRAMMAR_NO;
    nib_grammar_pattern pattern = {0};
    bool has_one = read_patterns(s, conj, &pattern);
    if (!has_one && is_cut) nib_grammar_pattern_except(s->b, NULL, 0, &pattern);
    if (is_cut) nib_grammar_pattern_cut(s->b, &pattern, min, max);
    if (conj->n) name_place(s, conj->terms[0].schema);
    if (has_one || is_cut) *out = pattern;
    else nib_grammar_pattern_free(&pattern);
    return has_one || is_cut;
}

static bool has_pattern(const nib_grammar_conj *conj) {
    size_t i = 0, k = 0;
    return nib_grammar_conj_next(conj, &i, "pattern") || nib_grammar_conj_next(conj, &k, "format");
}

nib_grammar_piece nib_grammar_schema_string(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    nib_grammar_pattern pattern = {0};
    if (has_pattern(conj) && nib_grammar_schema_text(s, conj, &pattern)) return nib_grammar_schema_strings(s, &pattern);
    uint32_t min = nib_grammar_conj_greatest(s, conj, "minLength"), max = nib_grammar_conj_least(s, conj, "maxLength");
    if (min > max) return (nib_grammar_piece){nib_grammar_node(s->b), nib_grammar_node(s->b)}; /* none */
    if (min == 0 && max == NIB_GRAMMAR_NO) return nib_grammar_schema_any_string(s);
    return nib_grammar_schema_counted_string(s, min, max);
}

/* ---- numbers */

/* The tightest bound of one side. */
static void read_bound(nib_grammar_schema *s, const nib_grammar_conj *conj, bool is_low, nib_grammar_decimal *out) {
    static const char *const words[2][2] = {{"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}};
    const nib_grammar_json *value;
    nib_grammar_decimal d;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; (value = nib_grammar_conj_next(conj, &i, words[is_low][k])) != NULL;) {
            if (value->kind != NIB_GRAMMAR_JSON_NUMBER)
                nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "a bound is a number");
            else if (!nib_grammar_decimal_read(value->text, &d))
                nib_grammar_fail_at(s->b, NIB_E_LIMIT, value, "a bound of more than %d digits",
                                        NIB_GRAMMAR_MAX_DIGITS);
            if (nib_grammar_schema_failed(s)) return;
            int c = out->is_set ? nib_grammar_decimal_compare(&d, out) : 0;
            d.is_exclusive = k;
            if (!out->is_set || (is_low ? c > 0 : c < 0))
                *out = d;
            else if (c == 0 && k)
                out->is_exclusive = true;
        }
}

static uint32_t read_multiple(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    const nib_grammar_json *value;
    uint64_t all = 1;
    for (size_t i = 0; (value = nib_grammar_conj_next(conj, &i, "multipleOf")) != NULL;) {
        nib_grammar_decimal d = {0};
        bool is_whole =
            value->kind == NIB_GRAMMAR_JSON_NUMBER && nib_grammar_decimal_read(value->text, &d) && !d.n_frac;
        if (!is_whole)
            nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, value, "multipleOf is supported with whole numbers only");
        uint32_t n = is_whole ? nib_grammar_schema_count(s, value) : 1;
        if (!n) nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "multipleOf is greater than 0");
        uint64_t a = all, b = n ? n : 1;
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        all = all / a * (n ? n : 1);
        if (all > 100000) nib_grammar_fail_at(s->b, NIB_E_LIMIT, value, "multiples of more than 100000");
        if (nib_grammar_schema_failed(s)) return 1;
    }
    return (uint32_t)all;
}

static nib_grammar_piece plain_number(nib_grammar_build *b, bool is_integer) {
    static const char integer[] = "-?(?:0|[1-9][0-9]*)",
                      fraction[] = "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?";
    const char *expression = is_integer ? integer : fraction;
    nib_grammar_pattern p = {0};
    nib_grammar_piece piece = {0, 0};
    nib_grammar_pattern_read(b, (nib_str){expression, strlen(expression)}, 0, false, &p);
    if (b->status == NIB_OK) piece = nib_grammar_pattern_draw(b, &p, nib_grammar_charset_draw);
    nib_grammar_pattern_free(&p);
    return piece;
}

nib_grammar_piece nib_grammar_schema_number(nib_grammar_schema *s, const nib_grammar_conj *conj, unsigned types) {
    nib_grammar_number n = {.multiple = read_multiple(s, conj)};
    n.is_integer = !(types & NIB_GRAMMAR_T_FRACTION) || n.multiple > 1;
    for (size_t i = 0; nib_grammar_conj_next(conj, &i, "multipleOf");) n.is_integer = true;
    read_bound(s, conj, true, &n.low);
    read_bound(s, conj, false, &n.high);
    if (nib_grammar_schema_failed(s)) return (nib_grammar_piece){0, 0};
    if (n.multiple <= 1 && !n.low.is_set && !n.high.is_set) return plain_number(s->b, n.is_integer);
    return nib_grammar_number_draw(s->b, &n);
}

/* ---- enum and const */

/* A value as JSON; between its parts there may be space. */
nib_grammar_piece nib_grammar_schema_value(nib_grammar_schema *s, const nib_grammar_json *v) {
    static const char *const words[] = {"null", "false", "true"};
    nib_grammar_build *b = s->b;
    if (v->kind == NIB_GRAMMAR_JSON_NUMBER) return nib_grammar_text(b, v->text);
    if (v->kind == NIB_GRAMMAR_JSON_STRING) return nib_grammar_schema_literal(s, v->text);
    if (v->kind <= NIB_GRAMMAR_JSON_TRUE) return nib_grammar_text(b, (nib_str){words[v->kind], strlen(words[v->kind])});
    bool is_object = v->kind == NIB_GRAMMAR_JSON_OBJECT;
    nib_grammar_piece piece = nib_grammar_text(b, (nib_str){is_object ? "{" : "[", 1});
    uint32_t at = nib_grammar_node(b);
    nib_grammar_schema_space(s, piece.end, at);
    for (const nib_grammar_json *c = v->first; c && b->status == NIB_OK; c = c->next) {
        if (c->index) {
            uint32_t next = nib_grammar_node(b);
            nib_grammar_schema_sign(s, at, next, ',');
            at = next;
        }
        if (is_object) {
            nib_grammar_piece key = nib_grammar_schema_key(s, c->key);
            uint32_t next = nib_grammar_node(b);
            nib_grammar_empty(b, at, key.start);
            nib_grammar_schema_sign(s, key.end, next, ':');
            at = next;
        }
        nib_grammar_piece value = nib_grammar_schema_value(s, c);
        nib_grammar_empty(b, at, value.start);
        at = value.end;
    }
    nib_grammar_piece close = nib_grammar_text(b, (nib_str){is_object ? "}" : "]", 1});
    if (v->n)
        nib_grammar_schema_space(s, at, close.start);
    else
        nib_grammar_empty(b, at, close.start);
    return (nib_grammar_piece){piece.start, close.end};
}

static bool in_list(const nib_grammar_json *list, const nib_grammar_json *v) {
    const nib_grammar_json *w = list->first;
    while (w && !nib_grammar_json_equal(v, w)) w = w->next;
    return w != NULL;
}

/* By the other enum and const. */
static bool is_in_all(const nib_grammar_conj *conj, const nib_grammar_json *v) {
    for (size_t i = 0; i < conj->n; i++) {
        const nib_grammar_json *one = nib_grammar_json_get(conj->terms[i].schema, "const");
        const nib_grammar_json *list = nib_grammar_json_get(conj->terms[i].schema, "enum");
        if ((one && !nib_grammar_json_equal(one, v)) || (list && list != v->parent && !in_list(list, v))) return false;
    }
    return true;
}

/* Whether more than types, enum and const is said of the value. */
static bool needs_probe(const nib_grammar_conj *conj) {
    static const char *const others[] = {"properties",
                                         "required",
                                         "additionalProperties",
                                         "patternProperties",
                                         "propertyNames",
                                         "minProperties",
                                         "maxProperties",
                                         "items",
                                         "prefixItems",
                                         "additionalItems",
                                         "minItems",
                                         "maxItems",
                                         "uniqueItems",
                                         "minLength",
                                         "maxLength",
                                         "pattern",
                                         "format",
                                         "minimum",
                                         "maximum",
                                         "exclusiveMinimum",
                                         "exclusiveMaximum",
                                         "multipleOf"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        size_t i = 0;
        if (nib_grammar_conj_next(conj, &i, others[k])) return true;
    }
    return false;
}

/* A grammar of the conjunction without enum and const, which tells of each value whether it fits the rest. */
static nib_grammar *make_probe(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    nib_grammar_build b = {.limits = s->b->limits};
    nib_grammar_config config = *s->config;
    nib_grammar_schema probe = {
        .b = &b, .config = &config, .root = s->root, .space = NIB_GRAMMAR_NO, .any_string = NIB_GRAMMAR_NO}; /* in JSON */
    nib_grammar *g = NULL;
    nib_error err = {0};
    config.key_order = false;
    config.space = NIB_JSON_SPACE_COMPACT;
    nib_grammar_conj rest = nib_grammar_conj_copy(&probe, conj);
    for (size_t i = 0; i < rest.n; i++) rest.terms[i].done |= NIB_GRAMMAR_VALUES_DONE;
    uint32_t root = nib_grammar_schema_rule_for(&probe, &rest);
    nib_grammar_schema_fill(&probe);
    nib_status status = nib_grammar_finish(&b, root, &g, &err);
    if (status != NIB_OK &&
        !(status == NIB_E_FORMAT && b.error.offset == NIB_NO_OFFSET)) /* … but for "no text matches" */
        nib_grammar_build_fail(s->b, status, err.offset, "%s", err.message);
    nib_grammar_schema_free(&probe);
    nib_grammar_build_free(&b);
    if (g) g->max_items = s->config->max_items;
    if (g && (g->run = nib_grammar_run_new(g)) == NULL)
        nib_grammar_build_fail(s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a schema");
    return g;
}

static void put_value(nib_buf *out, const nib_grammar_json *v) {
    static const char *const words[] = {"null", "false", "true"};
    if (v->kind <= NIB_GRAMMAR_JSON_TRUE) nib_buf_str(out, words[v->kind]);
    if (v->kind == NIB_GRAMMAR_JSON_NUMBER) nib_buf_append(out, v->text.ptr, v->text.len);
    if (v->kind == NIB_GRAMMAR_JSON_STRING) {
        nib_buf_char(out, '"');
        for (size_t i = 0; i < v->text.len; i++) {
            unsigned char c = (unsigned char)v->text.ptr[i];
            if (c < 0x20)
                nib_buf_printf(out, "\\u%04x", c);
            else if (c == '"' || c == '\\')
                nib_buf_printf(out, "\\%c", c);
            else
                nib_buf_char(out, (char)c);
        }
        nib_buf_char(out, '"');
    }
    if (v->kind < NIB_GRAMMAR_JSON_ARRAY) return;
    nib_buf_char(out, v->kind == NIB_GRAMMAR_JSON_OBJECT ? '{' : '[');
    for (const nib_grammar_json *c = v->first; c; c = c->next) {
        if (c->index) nib_buf_char(out, ',');
        nib_grammar_json key = {.kind = NIB_GRAMMAR_JSON_STRING, .text = c->key};
        if (v->kind == NIB_GRAMMAR_JSON_OBJECT) {
            put_value(out, &key);
            nib_buf_char(out, ':');
        }
        put_value(out, c);
    }
    nib_buf_char(out, v->kind == NIB_GRAMMAR_JSON_OBJECT ? '}' : ']');
}

static bool fits(nib_grammar_schema *s, nib_grammar *probe, const nib_grammar_json *v) {
    nib_buf text = {0};
    nib_grammar_run *r = probe ? probe->run : NULL;
    if (!r) return false;
    put_value(&text, v);
    uint32_t at = text.failed ? NIB_GRAMMAR_UNKNOWN : r->start;
    for (size_t i = 0; i < text.len && at > NIB_GRAMMAR_DEAD; i++)
        at = nib_grammar_run_step(r, at, (uint8_t)text.ptr[i]);
    nib_buf_free(&text);
    if (at == NIB_GRAMMAR_UNKNOWN) nib_grammar_build_fail(s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a schema");
    return at > NIB_GRAMMAR_DEAD && r->configs[at].may_end;
}

/* The enum or const that the values are taken from. */
static const nib_grammar_json *find_values(nib_grammar_schema *s, const nib_grammar_conj *conj, bool *is_const) {
    const nib_grammar_json *found = NULL;
    for (size_t i = 0; i < conj->n; i++) {
        if (conj->terms[i].done & NIB_GRAMMAR_VALUES_DONE) continue;
        const nib_grammar_json *one = nib_grammar_json_get(conj->terms[i].schema, "const");
        const nib_grammar_json *list = nib_grammar_json_get(conj->terms[i].schema, "enum");
        if (list && list->kind != NIB_GRAMMAR_JSON_ARRAY)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, list, "enum is a list of values");
        *is_const = one != NULL;
        if (one) return one;
        if (list) found = list;
    }
    return found;
}

bool nib_grammar_schema_each_value(nib_grammar_schema *s, const nib_grammar_conj *conj,
                                   void (*take)(void *user, const nib_grammar_json *value), void *user) {
    bool is_const = false;
    const nib_grammar_json *values = find_values(s, conj, &is_const);
    if (!values) return false;
    bool asks = needs_probe(conj) && !nib_grammar_schema_failed(s);
    nib_grammar *probe = asks ? make_probe(s, conj) : NULL;
    unsigned types = nib_grammar_conj_types(s, conj);
    for (const nib_grammar_json *v = is_const ? values : values->first; v && !nib_grammar_schema_failed(s);
         v = is_const ? NULL : v->next)
        if (types & nib_grammar_value_type(v) && is_in_all(conj, v) && (!asks || fits(s, probe, v))) take(user, v);
    nib_grammar_free(probe);
    return true;
}

typedef struct values {
    nib_grammar_schema *s;
    nib_grammar_piece piece;
} values;

static void add_value(void *user, const nib_grammar_json *v) {
    values *all = user;
    nib_grammar_piece piece = nib_grammar_schema_value(all->s, v);
    nib_grammar_empty(all->s->b, all->piece.start, piece.start);
    nib_grammar_empty(all->s->b, piece.end, all->piece.end);
}

bool nib_grammar_schema_values(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_piece *out) {
    values all = {s, {nib_grammar_node(s->b), nib_grammar_node(s->b)}};
    *out = all.piece;
    return nib_grammar_schema_each_value(s, conj, add_value, &all);
}
