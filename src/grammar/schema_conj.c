/* grammar/schema_conj.c - conjunctions of schemas: what belongs to them, what they say together, and whether two
 * schemas are apart. */
#include "base/hex.h"
#include "base/status.h"
#include "grammar/number.h"
#include "grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 1000, MAX_REFS = 100, MAX_APART_DEPTH = 8 };

bool nib_grammar_schema_failed(const nib_grammar_schema *s) {
    return s->b->status != NIB_OK;
}

void nib_grammar_fail_at(nib_grammar_build *b, nib_status code, const nib_grammar_json *at, const char *format, ...) {
    char message[256];
    nib_buf pointer = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    nib_grammar_json_pointer(at, &pointer);
    nib_grammar_build_fail(b, code, at->offset, "%.*s: %s", NIB_STR_ARG(pointer), message);
    nib_buf_free(&pointer);
}

void nib_grammar_conj_free(nib_grammar_conj *conj) {
    nib_free(conj->terms);
    *conj = (nib_grammar_conj){0};
}

void nib_grammar_conj_add(nib_grammar_schema *s, nib_grammar_conj *conj, const nib_grammar_json *schema,
                          uint32_t done) {
    if (schema->kind == NIB_GRAMMAR_JSON_TRUE || (schema->kind == NIB_GRAMMAR_JSON_OBJECT && !schema->n)) return;
    if (schema->kind == NIB_GRAMMAR_JSON_FALSE) {
        conj->is_never = true;
        return;
    }
    if (schema->kind != NIB_GRAMMAR_JSON_OBJECT) {
        nib_grammar_fail_at(s->b, NIB_E_FORMAT, schema, "a schema was expected: an object, true or false");
        return;
    }
    for (size_t i = 0; i < conj->n; i++)
        if (conj->terms[i].schema == schema) {
            conj->terms[i].done |= done;
            return;
        }
    if (conj->n >= MAX_TERMS)
        nib_grammar_fail_at(s->b, NIB_E_LIMIT, schema, "more than %d schemas for one value", MAX_TERMS);
    else if (!nib_grow(&conj->terms, &conj->capacity, conj->n + 1, sizeof *conj->terms))
        nib_grammar_build_fail(s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a schema");
    else
        conj->terms[conj->n++] = (nib_grammar_term){schema, done};
}

nib_grammar_conj nib_grammar_conj_copy(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    nib_grammar_conj out = {.is_never = conj->is_never};
    for (size_t i = 0; i < conj->n; i++) nib_grammar_conj_add(s, &out, conj->terms[i].schema, conj->terms[i].done);
    return out;
}

/* ---- references */

/* One step of a pointer, with %HH, ~1 and ~0 read, in out. Returns its length, or SIZE_MAX when it is malformed or
 * long. */
static size_t read_step(nib_str *left, char *out, size_t size) {
    size_t n = 0;
    while (left->len && *left->ptr != '/') {
        char c = *left->ptr++;
        left->len--;
        if (n == size) return SIZE_MAX;
        if (c == '%') {
            if (left->len < 2 || nib_hex_digit(left->ptr[0]) < 0 || nib_hex_digit(left->ptr[1]) < 0) return SIZE_MAX;
            c = (char)(nib_hex_digit(left->ptr[0]) << 4 | nib_hex_digit(left->ptr[1]));
            left->ptr += 2;
            left->len -= 2;
        } else if (c == '~') {
            if (!left->len || (*left->ptr != '0' && *left->ptr != '1')) return SIZE_MAX;
            c = *left->ptr == '0' ? '~' : '/';
            left->ptr++;
            left->len--;
        }
        out[n++] = c;
    }
    return n;
}

static const nib_grammar_json *child(const nib_grammar_json *node, nib_str step) {
    const nib_grammar_json *c = node->first;
    if (node->kind == NIB_GRAMMAR_JSON_ARRAY) {
        uint64_t index = 0;
        for (size_t i = 0; i < step.len; i++) {
            if (step.ptr[i] < '0' || step.ptr[i] > '9' || index > UINT32_MAX) return NULL;
            index = index * 10 + (uint64_t)(step.ptr[i] - '0');
        }
        while (step.len && c && c->index < index) c = c->next;
        return step.len ? c : NULL;
    }
    if (node->kind != NIB_GRAMMAR_JSON_OBJECT) return NULL;
    while (c && (c->key.len != step.len || (step.len && memcmp(c->key.ptr, step.ptr, step.len) != 0))) c = c->next;
    return c;
}

/* The object that has this $anchor. Objects are walked in the order of the text. */
static const nib_grammar_json *find_anchor(const nib_grammar_json *root, nib_str name) {
    for (const nib_grammar_json *n = root; n;) {
        const nib_grammar_json *anchor = nib_grammar_json_get(n, "$anchor");
        if (anchor && anchor->text.len == name.len && memcmp(anchor->text.ptr, name.ptr, name.len) == 0) return n;
        const nib_grammar_json *next = n->first;
        for (; !next && n; n = n->parent) next = n->next;
        n = next;
    }
    return NULL;
}

const nib_grammar_json *nib_grammar_schema_resolve(nib_grammar_schema *s, const nib_grammar_json *ref) {
    const nib_grammar_json *id = nib_grammar_json_get(s->root, "$id"), *node = s->root;
    nib_str left = ref->text;
    char step[512];
    if (ref->kind != NIB_GRAMMAR_JSON_STRING) {
        nib_grammar_fail_at(s->b, NIB_E_FORMAT, ref, "a reference is a string");
        return NULL;
    }
    if (id && id->text.len && left.len >= id->text.len && memcmp(left.ptr, id->text.ptr, id->text.len) == 0 &&
        (left.len == id->text.len || left.ptr[id->text.len] == '#')) { /* by the schema's own name */
        left.ptr += id->text.len;
        left.len -= id->text.len;
    } else if (!left.len || *left.ptr != '#') {
        nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, ref,
                                "only references into the schema itself are followed: #/$defs/…");
        return NULL;
    }
    if (left.len) left.ptr++, left.len--;
    if (left.len && *left.ptr != '/')
        node = find_anchor(s->root, left);
    else
        while (node && left.len) {
            left.ptr++, left.len--;
            size_t n = read_step(&left, step, sizeof step);
            node = n == SIZE_MAX ? NULL : child(node, (nib_str){step, n});
        }
    if (!node) nib_grammar_fail_at(s->b, NIB_E_FORMAT, ref, "nothing stands at %.*s", NIB_STR_ARG(ref->text));
    return node;
}

/* ---- keywords */

typedef enum treatment { USED, NOTE, HOLDER, REFUSED } treatment;

static void check_keywords(nib_grammar_schema *s, const nib_grammar_json *schema) {
    static const struct {
        const char *name;
        treatment treatment;
    } keywords[] = {
#define KEYWORD(name, treatment) {name, treatment},
#include "grammar/keywords.def"
#undef KEYWORD
    };
    for (const nib_grammar_json *k = schema->first; k && !nib_grammar_schema_failed(s); k = k->next) {
        size_t i = 0, n = sizeof keywords / sizeof *keywords;
        while (i < n && !nib_grammar_json_is(k->key, keywords[i].name)) i++;
        if (i == n || keywords[i].treatment == REFUSED)
            nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, k, "the keyword \"%.*s\" is not %s", NIB_STR_ARG(k->key),
                                    i == n ? "known" : "supported");
    }
}

static int by_schema(const void *a, const void *b) {
    const nib_grammar_term *x = a, *y = b;
    return x->schema->offset < y->schema->offset ? -1 : x->schema->offset > y->schema->offset;
}

void nib_grammar_conj_close(nib_grammar_schema *s, nib_grammar_conj *conj) {
    for (size_t i = 0; i < conj->n && !nib_grammar_schema_failed(s); i++) {
        const nib_grammar_json *schema = conj->terms[i].schema, *all = nib_grammar_json_get(schema, "allOf");
        const nib_grammar_json *ref = nib_grammar_json_get(schema, "$ref");
        check_keywords(s, schema);
        const nib_grammar_json *target =
            ref && !nib_grammar_schema_failed(s) ? nib_grammar_schema_resolve(s, ref) : NULL;
        if (target == schema)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, ref, "the reference leads back to itself");
        else if (target)
            nib_grammar_conj_add(s, conj, target, 0);
        if (all && (all->kind != NIB_GRAMMAR_JSON_ARRAY || !all->n))
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, all, "allOf is a list of schemas");
        for (const nib_grammar_json *c = all ? all->first : NULL; c && !nib_grammar_schema_failed(s); c = c->next)
            nib_grammar_conj_add(s, conj, c, 0);
    }
    if (conj->n) qsort(conj->terms, conj->n, sizeof *conj->terms, by_schema);
}

const nib_grammar_json *nib_grammar_conj_next(const nib_grammar_conj *conj, size_t *i, const char *keyword) {
    while (*i < conj->n) {
        const nib_grammar_json *value = nib_grammar_json_get(conj->terms[(*i)++].schema, keyword);
        if (value) return value;
    }
    return NULL;
}

uint32_t nib_grammar_schema_count(nib_grammar_schema *s, const nib_grammar_json *value) {
    nib_grammar_decimal d;
    uint64_t n = 0;
    bool ok = value->kind == NIB_GRAMMAR_JSON_NUMBER && nib_grammar_decimal_read(value->text, &d) && !d.is_negative &&
              !d.n_frac;
    for (size_t i = 0; ok && i < d.n_int && n < UINT32_MAX; i++) n = n * 10 + (uint64_t)(d.digits[i] - '0');
    if (!ok) nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "a whole number from 0 on was expected");
    return n < NIB_GRAMMAR_NO ? (uint32_t)n : NIB_GRAMMAR_NO - 1;
}

uint32_t nib_grammar_conj_greatest(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *keyword) {
    const nib_grammar_json *value;
    uint32_t most = 0;
    for (size_t i = 0; (value = nib_grammar_conj_next(conj, &i, keyword)) != NULL;) {
        uint32_t n = nib_grammar_schema_count(s, value);
        if (n > most) most = n;
    }
    return most;
}

uint32_t nib_grammar_conj_least(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *keyword) {
    const nib_grammar_json *value;
    uint32_t least = NIB_GRAMMAR_NO;
    for (size_t i = 0; (value = nib_grammar_conj_next(conj, &i, keyword)) != NULL;) {
        uint32_t n = nib_grammar_schema_count(s, value);
        if (n < least) least = n;
    }
    return least;
}

/* ---- types */

unsigned nib_grammar_value_type(const nib_grammar_json *value) {
    nib_grammar_decimal d;
    switch (value->kind) {
    case NIB_GRAMMAR_JSON_NULL:
        return NIB_GRAMMAR_T_NULL;
    case NIB_GRAMMAR_JSON_FALSE:
    case NIB_GRAMMAR_JSON_TRUE:
        return NIB_GRAMMAR_T_BOOLEAN;
    case NIB_GRAMMAR_JSON_STRING:
        return NIB_GRAMMAR_T_STRING;
    case NIB_GRAMMAR_JSON_ARRAY:
        return NIB_GRAMMAR_T_ARRAY;
    case NIB_GRAMMAR_JSON_OBJECT:
        return NIB_GRAMMAR_T_OBJECT;
    case NIB_GRAMMAR_JSON_NUMBER:
        break;
    }
    bool is_integer = nib_grammar_decimal_read(value->text, &d) && !d.n_frac;
    return is_integer ? NIB_GRAMMAR_T_INTEGER : NIB_GRAMMAR_T_FRACTION;
}

static unsigned type_bits(nib_grammar_schema *s, const nib_grammar_json *name) {
    static const struct {
        const char *name;
        unsigned bits;
    } types[] = {{"null", NIB_GRAMMAR_T_NULL},
                 {"boolean", NIB_GRAMMAR_T_BOOLEAN},
                 {"object", NIB_GRAMMAR_T_OBJECT},
                 {"array", NIB_GRAMMAR_T_ARRAY},
                 {"string", NIB_GRAMMAR_T_STRING},
                 {"integer", NIB_GRAMMAR_T_INTEGER},
                 {"number", NIB_GRAMMAR_T_INTEGER | NIB_GRAMMAR_T_FRACTION}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (name->kind == NIB_GRAMMAR_JSON_STRING && nib_grammar_json_is(name->text, types[i].name))
            return types[i].bits;
    nib_grammar_fail_at(s->b, NIB_E_FORMAT, name,
                            "no type: null, boolean, object, array, string, number or integer was expected");
    return 0;
}

static unsigned type_list(nib_grammar_schema *s, const nib_grammar_json *type) {
    unsigned bits = 0;
    if (type->kind != NIB_GRAMMAR_JSON_ARRAY) return type_bits(s, type);
    for (const nib_grammar_json *c = type->first; c; c = c->next) bits |= type_bits(s, c);
    return bits;
}

/* not: everything, or nothing, or types. */
static unsigned types_not_excluded(nib_grammar_schema *s, const nib_grammar_json * not ) {
    const nib_grammar_json *type = nib_grammar_json_get(not, "type");
    if (not ->kind == NIB_GRAMMAR_JSON_FALSE) return NIB_GRAMMAR_T_ALL;
    if (not ->kind == NIB_GRAMMAR_JSON_TRUE || (not ->kind == NIB_GRAMMAR_JSON_OBJECT && !not ->n)) return 0;
    unsigned bits = type && not ->n == 1 ? type_list(s, type) : 0;
    bool is_split = bits & NIB_GRAMMAR_T_INTEGER && !(bits & NIB_GRAMMAR_T_FRACTION);
    if (!type || not ->n != 1 || is_split)
        nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, not,
                                "not is supported with true, false, {} and types other than integer only");
    return NIB_GRAMMAR_T_ALL & ~bits;
}

unsigned nib_grammar_conj_types(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    unsigned types = conj->is_never ? 0 : NIB_GRAMMAR_T_ALL;
    for (size_t i = 0; i < conj->n && !nib_grammar_schema_failed(s); i++) {
        const nib_grammar_json *schema = conj->terms[i].schema, *type = nib_grammar_json_get(schema, "type");
        const nib_grammar_json *nullable = nib_grammar_json_get(schema, "nullable"),
                               *not = nib_grammar_json_get(schema, "not");
        bool may_be_null = nullable && nullable->kind == NIB_GRAMMAR_JSON_TRUE;
        if (type) types &= type_list(s, type) | (may_be_null ? NIB_GRAMMAR_T_NULL : 0);
        if (not ) types &= types_not_excluded(s, not );
    }
    return types;
}

/* ---- apart */

/* Whether every value that a allows by name is wrong for b. */
static bool values_apart(const nib_grammar_conj *a, const nib_grammar_conj *b) {
    size_t i = 0;
    const nib_grammar_json *x = nib_grammar_conj_next(a, &i, "const"), *y;
    i = 0;
    const nib_grammar_json *list = x ? NULL : nib_grammar_conj_next(a, &i, "enum");
    if (!x && !list) return false;
    for (const nib_grammar_json *v = x ? x : list->first; v; v = x ? NULL : v->next) {
        bool is_other = false;
        for (i = 0; !is_other && (y = nib_grammar_conj_next(b, &i, "const")) != NULL;)
            is_other = !nib_grammar_json_equal(v, y);
        for (i = 0; !is_other && (y = nib_grammar_conj_next(b, &i, "enum")) != NULL;) {
            const nib_grammar_json *w = y->first;
            while (w && !nib_grammar_json_equal(v, w)) w = w->next;
            is_other = !w;
        }
        if (!is_other) return false;
    }
    return true;
}

static bool requires(const nib_grammar_conj *conj, nib_str key) {
    const nib_grammar_json *list;
    for (size_t i = 0; (list = nib_grammar_conj_next(conj, &i, "required")) != NULL;)
        for (const nib_grammar_json *c = list->first; c; c = c->next)
            if (c->text.len == key.len && memcmp(c->text.ptr, key.ptr, key.len) == 0) return true;
    return false;
}

/* A key that both must have, with values that are apart; or one that one must have and the other cannot. */
static bool objects_apart(nib_grammar_schema *s, const nib_grammar_conj *a, const nib_grammar_conj *b, unsigned depth) {
    const nib_grammar_json *props, *others;
    for (size_t i = 0; (props = nib_grammar_conj_next(a, &i, "properties")) != NULL;)
        for (const nib_grammar_json *p = props->first; p; p = p->next) {
            if (!requires(a, p->key)) continue;
            for (size_t k = 0; (others = nib_grammar_conj_next(b, &k, "properties")) != NULL;) {
                const nib_grammar_json *q = child(others, p->key);
                if (q && (requires(b, p->key) || q->kind == NIB_GRAMMAR_JSON_FALSE) &&
                    nib_grammar_schema_apart(s, p, q, NIB_GRAMMAR_T_ALL, depth + 1))
                    return true;
            }
        }
    return false;
}

static bool closed_without(const nib_grammar_conj *a, const nib_grammar_conj *b) {
    for (size_t i = 0; i < a->n; i++) {
        const nib_grammar_json *schema = a->terms[i].schema,
                               *extra = nib_grammar_json_get(schema, "additionalProperties");
        const nib_grammar_json *props = nib_grammar_json_get(schema, "properties"), *list;
        if (!extra || extra->kind != NIB_GRAMMAR_JSON_FALSE || nib_grammar_json_get(schema, "patternProperties"))
            continue;
        for (size_t k = 0; (list = nib_grammar_conj_next(b, &k, "required")) != NULL;)
            for (const nib_grammar_json *c = list->first; c; c = c->next)
                if (!props || !child(props, c->text)) return true;
    }
    return false;
}

static bool numbers_apart(const nib_grammar_conj *a, const nib_grammar_conj *b) {
    static const char *const lows[] = {"minimum", "exclusiveMinimum"}, *const highs[] = {"maximum", "exclusiveMaximum"};
    const nib_grammar_json *x, *y;
    nib_grammar_decimal low, high;
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; (x = nib_grammar_conj_next(a, &i, lows[k & 1])) != NULL;)
            for (size_t j = 0; (y = nib_grammar_conj_next(b, &j, highs[k >> 1])) != NULL;) {
                if (!nib_grammar_decimal_read(x->text, &low) || !nib_grammar_decimal_read(y->text, &high)) continue;
                int c = nib_grammar_decimal_compare(&high, &low);
                if (c < 0 || (c == 0 && k > 0)) return true;
            }
    return false;
}

bool nib_grammar_schema_apart(nib_grammar_schema *s, const nib_grammar_json *a, const nib_grammar_json *b,
                              unsigned types, unsigned depth) {
    nib_grammar_conj x = {0}, y = {0};
    if (depth > MAX_APART_DEPTH) return false;
    nib_grammar_conj_add(s, &x, a, 0);
    nib_grammar_conj_add(s, &y, b, 0);
    nib_grammar_conj_close(s, &x);
    nib_grammar_conj_close(s, &y);
    bool apart = values_apart(&x, &y) || values_apart(&y, &x);
    if (!apart) {
        unsigned both = types & nib_grammar_conj_types(s, &x) & nib_grammar_conj_types(s, &y),
                 numbers = NIB_GRAMMAR_T_INTEGER | NIB_GRAMMAR_T_FRACTION;
        if (both & NIB_GRAMMAR_T_OBJECT && (objects_apart(s, &x, &y, depth) || objects_apart(s, &y, &x, depth) ||
                                            closed_without(&x, &y) || closed_without(&y, &x)))
            both &= ~(unsigned)NIB_GRAMMAR_T_OBJECT;
        if (both & numbers && (numbers_apart(&x, &y) || numbers_apart(&y, &x))) both &= ~numbers;
        apart = both == 0;
    }
    nib_grammar_conj_free(&x);
    nib_grammar_conj_free(&y);
    return apart;
}
