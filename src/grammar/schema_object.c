/* grammar/schema_object.c - objects of a schema -> rules.
 *
 * The keys that properties and required name are numbered; each is a MARK edge, then the key, a colon and the rule of
 * its value. All other keys fall into classes by the patterns that they match, and each class is a pattern of keys with
 * the rule of its values. MARK stands before the comma and CHECK before the closing brace, so that neither is written
 * where it would lead to nothing. */
#include "base/utf8.h"
#include "grammar/schema.h"

#include <string.h>

enum { MAX_KEYS = 4096, MAX_PATTERNS = 5 };

typedef struct keys {
    nib_str *names;
    size_t n, capacity;
    uint32_t required; /* of words */
} keys;

typedef struct key_patterns { /* all expressions of patternProperties */
    nib_grammar_pattern patterns[MAX_PATTERNS];
    nib_str texts[MAX_PATTERNS];
    size_t n;
} key_patterns;

typedef struct object {
    nib_grammar_schema *s;
    const nib_grammar_conj *conj;
    keys keys;
    key_patterns patterns;
    nib_grammar_pattern names; /* of propertyNames */
    bool has_names;
    uint32_t first, next, last; /* nodes: before the first member, behind one, where the brace may come */
} object;

static bool same(nib_str a, nib_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void add_key(object *o, nib_str name, const nib_grammar_json *at) {
    for (size_t i = 0; i < o->keys.n; i++)
        if (same(o->keys.names[i], name)) return;
    if (o->keys.n >= MAX_KEYS)
        nib_grammar_fail_at(o->s->b, NIB_E_LIMIT, at, "more than %d keys", MAX_KEYS);
    else if (!nib_grow(&o->keys.names, &o->keys.capacity, o->keys.n + 1, sizeof *o->keys.names))
        nib_grammar_build_fail(o->s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for keys");
    else
        o->keys.names[o->keys.n++] = name;
}

static bool is_required(const object *o, nib_str name) {
    const nib_grammar_json *list;
    for (size_t i = 0; (list = nib_grammar_conj_next(o->conj, &i, "required")) != NULL;)
        for (const nib_grammar_json *c = list->first; c; c = c->next)
            if (same(c->text, name)) return true;
    return false;
}

static void find_keys(object *o) {
    const nib_grammar_json *value;
    nib_grammar_schema *s = o->s;
    for (size_t i = 0; (value = nib_grammar_conj_next(o->conj, &i, "properties")) != NULL;) {
        if (value->kind != NIB_GRAMMAR_JSON_OBJECT)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "properties is an object of schemas");
        for (const nib_grammar_json *c = value->first; c && !nib_grammar_schema_failed(s); c = c->next)
            add_key(o, c->key, c);
    }
    for (size_t i = 0; (value = nib_grammar_conj_next(o->conj, &i, "required")) != NULL;) {
        if (value->kind != NIB_GRAMMAR_JSON_ARRAY)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "required is a list of keys");
        for (const nib_grammar_json *c = value->first; c && !nib_grammar_schema_failed(s); c = c->next) {
            if (c->kind != NIB_GRAMMAR_JSON_STRING) nib_grammar_fail_at(s->b, NIB_E_FORMAT, c, "a key is a string");
            add_key(o, c->text, c);
        }
    }
}

/* ---- patterns of keys */

static void find_patterns(object *o) {
    const nib_grammar_json *value;
    nib_grammar_schema *s = o->s;
    for (size_t i = 0; (value = nib_grammar_conj_next(o->conj, &i, "patternProperties")) != NULL;) {
        if (value->kind != NIB_GRAMMAR_JSON_OBJECT)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, value, "patternProperties is an object of schemas");
        for (const nib_grammar_json *c = value->first; c && !nib_grammar_schema_failed(s); c = c->next) {
            size_t k = 0;
            while (k < o->patterns.n && !same(o->patterns.texts[k], c->key)) k++;
            if (k < o->patterns.n) continue;
            if (k == MAX_PATTERNS) {
                nib_grammar_fail_at(s->b, NIB_E_LIMIT, c, "more than %d patterns of keys", MAX_PATTERNS);
                return;
            }
            o->patterns.texts[k] = c->key;
            nib_grammar_pattern_read(s->b, c->key, c->offset, true, &o->patterns.patterns[k]);
            o->patterns.n++;
        }
    }
}

static void meet_names(object *o, nib_grammar_pattern *one) {
    if (o->has_names) {
        nib_grammar_pattern_meet(o->s->b, &o->names, one);
        nib_grammar_pattern_free(one);
    } else {
        o->names = *one;
    }
    o->has_names = true;
}

static void names_of_list(object *o, const nib_grammar_json *list) {
    nib_grammar_build *b = o->s->b;
    nib_grammar_pattern p = {0};
    uint32_t start = nib_grammar_pattern_state(b, &p);
    (void)start;
    for (const nib_grammar_json *v = list->first; v && b->status == NIB_OK; v = v->next) {
        uint32_t at = 0;
        if (v->kind != NIB_GRAMMAR_JSON_STRING) continue; /* no key is a number */
        for (size_t i = 0, len; i < v->text.len && b->status == NIB_OK; i += len) {
            uint32_t c = 0, next = nib_grammar_pattern_state(b, &p);
            nib_grammar_charset one = {0};
            len = nib_utf8_char(v->text.ptr + i, v->text.len - i, &c);
            nib_grammar_charset_add(&one, c, c);
            uint32_t set = nib_grammar_pattern_set(b, &p, &one);
            nib_grammar_pattern_edge_add(b, &p, (nib_grammar_pattern_edge){at, next, set});
            at = next;
            if (!len) break;
        }
        if (b->status == NIB_OK) p.ends[at] = 1;
    }
    nib_grammar_pattern_sort(b, &p);
    meet_names(o, &p);
}

/* propertyNames: enum, const, pattern, minLength and maxLength of it. */
static void find_names(object *o) {
    const nib_grammar_json *value;
    nib_grammar_schema *s = o->s;
    nib_grammar_conj conj = {0};
    for (size_t i = 0; (value = nib_grammar_conj_next(o->conj, &i, "propertyNames")) != NULL;)
        nib_grammar_conj_add(s, &conj, value, 0);
    nib_grammar_conj_close(s, &conj);
    for (size_t i = 0; i < conj.n && !nib_grammar_schema_failed(s); i++) {
        const nib_grammar_json *schema = conj.terms[i].schema;
        for (const nib_grammar_json *k = schema->first; k && !nib_grammar_schema_failed(s); k = k->next) {
            static const char *const known[] = {"type", "enum",  "const",       "pattern", "minLength", "maxLength",
                                                "$ref", "allOf", "description", "title",   "$comment"};
            size_t n = 0;
            while (n < sizeof known / sizeof *known && !nib_grammar_json_is(k->key, known[n])) n++;
            if (n == sizeof known / sizeof *known)
                nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, k,
                                        "not supported in propertyNames; enum, const, pattern and lengths are");
            nib_grammar_pattern p = {0};
            if (nib_grammar_json_is(k->key, "enum")) names_of_list(o, k);
            if (nib_grammar_json_is(k->key, "const")) {
                nib_grammar_json list = {.kind = NIB_GRAMMAR_JSON_ARRAY}, only = *k;
                only.next = NULL;
                list.first = &only;
                names_of_list(o, &list);
            }
            if (nib_grammar_json_is(k->key, "pattern")) {
                nib_grammar_pattern_read(s->b, k->text, k->offset, true, &p);
                meet_names(o, &p);
            }
        }
    }
    uint32_t min = nib_grammar_conj_greatest(s, &conj, "minLength"),
             max = nib_grammar_conj_least(s, &conj, "maxLength");
    if ((min || max != NIB_GRAMMAR_NO || conj.is_never) && !nib_grammar_schema_failed(s)) {
        nib_grammar_pattern all = {0};
        if (!o->has_names) nib_grammar_pattern_except(s->b, NULL, 0, &all);
        if (!o->has_names) meet_names(o, &all);
        nib_grammar_pattern_cut(s->b, &o->names, conj.is_never ? 1 : min, conj.is_never ? 0 : max);
    }
    if (!(nib_grammar_conj_types(s, &conj) & NIB_GRAMMAR_T_STRING) && !nib_grammar_schema_failed(s) && conj.n)
        nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, conj.terms[0].schema, "propertyNames that are no strings");
    nib_grammar_conj_free(&conj);
}

/* ---- values */

static bool matches(object *o, nib_str pattern, nib_str name) {
    for (size_t k = 0; k < o->patterns.n; k++)
        if (same(o->patterns.texts[k], pattern))
            return nib_grammar_pattern_matches(o->s->b, &o->patterns.patterns[k], name);
    return false;
}

/* What all members say of the value of a key that is named. */
static nib_grammar_conj value_of(object *o, nib_str name) {
    nib_grammar_conj value = {0};
    for (size_t i = 0; i < o->conj->n; i++) {
        const nib_grammar_json *schema = o->conj->terms[i].schema, *props = nib_grammar_json_get(schema, "properties");
        const nib_grammar_json *patterns = nib_grammar_json_get(schema, "patternProperties");
        const nib_grammar_json *others = nib_grammar_json_get(schema, "additionalProperties");
        bool is_known = false;
        for (const nib_grammar_json *c = props ? props->first : NULL; c; c = c->next) {
            if (!same(c->key, name)) continue;
            nib_grammar_conj_add(o->s, &value, c, 0);
            is_known = true;
        }
        for (const nib_grammar_json *c = patterns ? patterns->first : NULL; c; c = c->next) {
            if (!matches(o, c->key, name)) continue;
            nib_grammar_conj_add(o->s, &value, c, 0);
            is_known = true;
        }
        if (!is_known && others) nib_grammar_conj_add(o->s, &value, others, 0);
    }
    return value;
}

/* Of the keys that match the patterns in `class` and no others. */
static nib_grammar_conj value_of_class(object *o, unsigned class) {
    nib_grammar_conj value = {0};
    for (size_t i = 0; i < o->conj->n; i++) {
        const nib_grammar_json *schema = o->conj->terms[i].schema,
                               *patterns = nib_grammar_json_get(schema, "patternProperties");
        const nib_grammar_json *others = nib_grammar_json_get(schema, "additionalProperties");
        bool is_known = false;
        for (const nib_grammar_json *c = patterns ? patterns->first : NULL; c; c = c->next)
            for (size_t k = 0; k < o->patterns.n; k++) {
                if (!(class >> k & 1) || !same(o->patterns.texts[k], c->key)) continue;
                nib_grammar_conj_add(o->s, &value, c, 0);
                is_known = true;
            }
        if (!is_known && others) nib_grammar_conj_add(o->s, &value, others, 0);
    }
    return value;
}

/* ---- members */

/* From `first` and `next` to a key (numbered or not) and its value, back to `next`. */
static void draw_member(object *o, uint32_t number, nib_grammar_piece key, uint32_t rule) {
    nib_grammar_build *b = o->s->b;
    uint32_t comma = nib_grammar_node(b), value = nib_grammar_node(b);
    nib_grammar_mark(b, o->first, key.start, number);
    nib_grammar_mark(b, o->next, comma, number);
    nib_grammar_schema_sign(o->s, comma, key.start, ',');
    nib_grammar_schema_sign(o->s, key.end, value, ':');
    nib_grammar_call(b, value, o->next, rule);
}

/* Space in front of a sign follows the value or key before it; in front of a closing brace as well. */
static void draw_keys(object *o) {
    nib_grammar_schema *s = o->s;
    for (size_t i = 0; i < o->keys.n && !nib_grammar_schema_failed(s); i++) {
        nib_str name = o->keys.names[i];
        if (o->has_names && !nib_grammar_pattern_matches(s->b, &o->names, name))
            continue; /* a required one then makes all fail */
        nib_grammar_conj value = value_of(o, name);
        uint32_t rule = nib_grammar_schema_rule_for(s, &value);
        draw_member(o, (uint32_t)i, nib_grammar_schema_key(s, name), rule);
    }
}

/* Keys without a number that match the patterns of the class. Returns whether there are any. */
static bool draw_class(object *o, unsigned class, const nib_grammar_pattern *unnamed) {
    nib_grammar_build *b = o->s->b;
    nib_grammar_conj value = value_of_class(o, class);
    nib_grammar_pattern names = {0}, all = {0};
    if (value.is_never || b->status != NIB_OK) {
        nib_grammar_conj_free(&value);
        return false;
    }
    nib_grammar_pattern_except(b, NULL, 0, &names);
    nib_grammar_pattern_meet(b, &names, unnamed);
    if (o->has_names) nib_grammar_pattern_meet(b, &names, &o->names);
    for (size_t k = 0; k < o->patterns.n && b->status == NIB_OK; k++) {
        if (class >> k & 1) {
            nib_grammar_pattern_meet(b, &names, &o->patterns.patterns[k]);
            continue;
        }
        nib_grammar_pattern_read(b, o->patterns.texts[k], 0, true, &all);
        nib_grammar_pattern_negate(b, &all);
        nib_grammar_pattern_meet(b, &names, &all);
        nib_grammar_pattern_free(&all);
    }
    bool has_any = b->status == NIB_OK && !nib_grammar_pattern_is_empty(&names);
    if (has_any) {
        nib_grammar_piece key = nib_grammar_schema_keys(o->s, &names);
        draw_member(o, NIB_GRAMMAR_NO, key, nib_grammar_schema_rule_for(o->s, &value));
    }
    nib_grammar_pattern_free(&names);
    nib_grammar_conj_free(&value);
    return has_any;
}

static bool draw_others(object *o) {
    nib_grammar_pattern unnamed = {0};
    bool has_any = false;
    nib_grammar_pattern_except(o->s->b, o->keys.names, o->keys.n, &unnamed);
    for (unsigned class = 0; class < 1u << o->patterns.n && !nib_grammar_schema_failed(o->s); class ++)
        has_any = draw_class(o, class, &unnamed) || has_any;
    nib_grammar_pattern_free(&unnamed);
    return has_any;
}

/* ---- the object */

static void set_required(object *o, nib_grammar_rule *rule) {
    nib_grammar_build *b = o->s->b;
    size_t n_words = (o->keys.n + 63) / 64;
    if (!n_words) return;
    if (!nib_grow(&b->words, &b->words_capacity, b->n_words + n_words, sizeof *b->words)) {
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for keys");
        return;
    }
    rule->required = (uint32_t)b->n_words;
    rule->n_keys = (uint32_t)o->keys.n;
    memset(b->words + b->n_words, 0, n_words * sizeof *b->words);
    for (size_t i = 0; i < o->keys.n; i++)
        if (is_required(o, o->keys.names[i])) b->words[b->n_words + i / 64] |= UINT64_C(1) << i % 64;
    b->n_words += n_words;
}

static void draw_object(object *o, uint32_t rule) {
    nib_grammar_schema *s = o->s;
    nib_grammar_build *b = s->b;
    nib_grammar_piece open = nib_grammar_text(b, (nib_str){"{", 1}), close = nib_grammar_text(b, (nib_str){"}", 1});
    uint32_t min = nib_grammar_conj_greatest(s, o->conj, "minProperties"),
             max = nib_grammar_conj_least(s, o->conj, "maxProperties");
    size_t i = 0;
    const nib_grammar_json *least = nib_grammar_conj_next(o->conj, &i, "minProperties");
    o->first = nib_grammar_node(b);
    o->next = nib_grammar_node(b);
    o->last = nib_grammar_node(b);
    nib_grammar_schema_space(s, open.end, o->first);
    nib_grammar_check(b, o->first, close.start);
    nib_grammar_check(b, o->next, o->last);
    nib_grammar_schema_space(s, o->last, close.start);
    draw_keys(o);
    bool is_open = draw_others(o);
    if (is_open && min > 1 && !nib_grammar_schema_failed(s)) /* a key that stands twice would count twice */
        nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, least,
                                "minProperties above 1 needs additionalProperties: false, and no patternProperties");
    if (nib_grammar_schema_failed(s) || min > max || (!is_open && min > o->keys.n)) return; /* none */
    nib_grammar_rule *r = &b->rules[rule].rule;
    r->min = min;
    r->max = max;
    r->in_order = s->config->key_order && min <= 1;
    set_required(o, r);
    nib_grammar_empty(b, b->rules[rule].rule.start, open.start);
    nib_grammar_empty(b, close.end, b->rules[rule].end);
}

static object begin_object(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    object o = {.s = s, .conj = conj};
    find_keys(&o);
    find_patterns(&o);
    find_names(&o);
    return o;
}

static void free_object(object *o) {
    nib_free(o->keys.names);
    for (size_t k = 0; k < o->patterns.n; k++) nib_grammar_pattern_free(&o->patterns.patterns[k]);
    nib_grammar_pattern_free(&o->names);
}

nib_grammar_piece nib_grammar_schema_object(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    uint32_t rule = nib_grammar_rule_new(s->b, (nib_str){"object", 6});
    object o = begin_object(s, conj);
    if (!nib_grammar_schema_failed(s)) draw_object(&o, rule);
    free_object(&o);
    return nib_grammar_calls(s->b, rule);
}

/* ---- members in another notation */

static void draw_members(object *o, uint32_t rule, const char *between, nib_grammar_member_fn draw, void *user) {
    nib_grammar_schema *s = o->s;
    nib_grammar_build *b = s->b;
    uint32_t min = nib_grammar_conj_greatest(s, o->conj, "minProperties"),
             max = nib_grammar_conj_least(s, o->conj, "maxProperties");
    bool needs_none = min == 0;
    o->first = b->rules[rule].rule.start;
    o->next = nib_grammar_node(b);
    for (size_t i = 0; i < o->keys.n && !nib_grammar_schema_failed(s); i++) {
        nib_str name = o->keys.names[i];
        needs_none = needs_none && !is_required(o, name);
        if (o->has_names && !nib_grammar_pattern_matches(b, &o->names, name)) continue;
        nib_grammar_conj value = value_of(o, name);
        nib_grammar_piece member = draw(user, name, &value), sign = nib_grammar_text(b, (nib_str){between, strlen(between)});
        nib_grammar_mark(b, o->first, member.start, (uint32_t)i);
        nib_grammar_mark(b, o->next, sign.start, (uint32_t)i);
        nib_grammar_empty(b, sign.end, member.start);
        nib_grammar_empty(b, member.end, o->next);
        nib_grammar_conj_free(&value);
    }
    if (nib_grammar_schema_failed(s) || min > max || min > o->keys.n) return;
    nib_grammar_rule *r = &b->rules[rule].rule;
    r->min = min;
    r->max = max;
    r->in_order = s->config->key_order && min <= 1;
    set_required(o, r);
    nib_grammar_check(b, o->next, b->rules[rule].end);
    if (needs_none) nib_grammar_empty(b, o->first, b->rules[rule].end);
}

uint32_t nib_grammar_schema_members(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *between,
                                    nib_grammar_member_fn draw, void *user) {
    uint32_t rule = nib_grammar_rule_new(s->b, (nib_str){"members", 7});
    object o = begin_object(s, conj);
    if (!nib_grammar_schema_failed(s)) draw_members(&o, rule, between, draw, user);
    free_object(&o);
    return rule;
}
