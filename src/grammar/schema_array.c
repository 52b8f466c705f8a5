/* grammar/schema_array.c - arrays of a schema -> pieces: a chain of the items that have schemas of their own, then a
 * counted repetition of the rest. */
#include "grammar/schema.h"

enum { MAX_PREFIX = 4096 };

/* prefixItems, or items as a list (draft-07). */
static const nib_grammar_json *prefix_of(const nib_grammar_json *schema) {
    const nib_grammar_json *prefix = nib_grammar_json_get(schema, "prefixItems"),
                           *items = nib_grammar_json_get(schema, "items");
    if (prefix) return prefix;
    return items && items->kind == NIB_GRAMMAR_JSON_ARRAY ? items : NULL;
}

/* What a schema says of items behind its prefix; NULL: nothing. */
static const nib_grammar_json *rest_of(const nib_grammar_json *schema) {
    const nib_grammar_json *items = nib_grammar_json_get(schema, "items");
    return items && items->kind == NIB_GRAMMAR_JSON_ARRAY ? nib_grammar_json_get(schema, "additionalItems") : items;
}

/* What is said of item i. */
static nib_grammar_conj item_of(nib_grammar_schema *s, const nib_grammar_conj *conj, uint32_t i) {
    nib_grammar_conj item = {0};
    for (size_t k = 0; k < conj->n; k++) {
        const nib_grammar_json *prefix = prefix_of(conj->terms[k].schema),
                               *own = prefix && i < prefix->n ? prefix->first : NULL;
        while (own && own->index < i) own = own->next;
        if (!own) own = rest_of(conj->terms[k].schema);
        if (own) nib_grammar_conj_add(s, &item, own, 0);
    }
    return item;
}

static uint32_t item_rule(nib_grammar_schema *s, const nib_grammar_conj *conj, uint32_t i) {
    nib_grammar_conj item = item_of(s, conj, i);
    return nib_grammar_schema_rule_for(s, &item);
}

static uint32_t prefix_length(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    uint32_t n = 0;
    for (size_t k = 0; k < conj->n; k++) {
        const nib_grammar_json *schema = conj->terms[k].schema, *prefix = prefix_of(schema);
        if (prefix && prefix->kind != NIB_GRAMMAR_JSON_ARRAY)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, prefix, "a list of schemas was expected");
        else if (prefix && prefix->n > MAX_PREFIX)
            nib_grammar_fail_at(s->b, NIB_E_LIMIT, prefix, "more than %d items with schemas of their own", MAX_PREFIX);
        else if (prefix && prefix->n > n)
            n = prefix->n;
    }
    return n;
}

static void check_unique(nib_grammar_schema *s, const nib_grammar_conj *conj, uint32_t max) {
    const nib_grammar_json *unique;
    for (size_t i = 0; (unique = nib_grammar_conj_next(conj, &i, "uniqueItems")) != NULL;)
        if (unique->kind == NIB_GRAMMAR_JSON_TRUE && max > 1)
            nib_grammar_fail_at(s->b, NIB_E_UNSUPPORTED, unique,
                                    "uniqueItems is supported with maxItems 1 or less only");
}

bool nib_grammar_schema_items(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_conj *item, uint32_t *min,
                              uint32_t *max) {
    *min = nib_grammar_conj_greatest(s, conj, "minItems");
    *max = nib_grammar_conj_least(s, conj, "maxItems");
    check_unique(s, conj, *max);
    if (prefix_length(s, conj) || nib_grammar_schema_failed(s) || *min > *max) return false;
    *item = item_of(s, conj, 0);
    return true;
}

nib_grammar_piece nib_grammar_schema_array(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    nib_grammar_build *b = s->b;
    uint32_t min = nib_grammar_conj_greatest(s, conj, "minItems"), max = nib_grammar_conj_least(s, conj, "maxItems");
    uint32_t n_prefix = prefix_length(s, conj), i = 0;
    nib_grammar_piece open = nib_grammar_text(b, (nib_str){"[", 1}), close = nib_grammar_text(b, (nib_str){"]", 1});
    uint32_t last = nib_grammar_node(b), at = nib_grammar_node(b); /* last: before the space in front of the bracket */
    check_unique(s, conj, max);
    if (nib_grammar_schema_failed(s) || min > max) return (nib_grammar_piece){open.start, nib_grammar_node(b)};
    nib_grammar_schema_space(s, last, close.start);
    nib_grammar_schema_space(s, open.end, at);
    if (min == 0) nib_grammar_empty(b, at, close.start);
    for (; i < n_prefix && i < max && b->status == NIB_OK; i++) {
        uint32_t before = at;
        if (i) {
            before = nib_grammar_node(b);
            nib_grammar_schema_sign(s, at, before, ',');
        }
        at = nib_grammar_node(b);
        nib_grammar_call(b, before, at, item_rule(s, conj, i));
        if (i + 1 >= min) nib_grammar_empty(b, at, last);
    }
    if (i == max || b->status != NIB_OK) return (nib_grammar_piece){open.start, close.end};
    uint32_t rule = item_rule(s, conj, n_prefix);
    if (i == 0) {
        uint32_t first = nib_grammar_node(b);
        nib_grammar_call(b, at, first, rule);
        at = first;
        i = 1;
    }
    nib_grammar_piece more = {nib_grammar_node(b), nib_grammar_node(b)};
    uint32_t behind_comma = nib_grammar_node(b);
    nib_grammar_schema_sign(s, more.start, behind_comma, ',');
    nib_grammar_call(b, behind_comma, more.end, rule);
    more = nib_grammar_repeat(b, more, min > i ? min - i : 0, max == NIB_GRAMMAR_NO ? max : max - i);
    nib_grammar_empty(b, at, more.start);
    nib_grammar_empty(b, more.end, last);
    return (nib_grammar_piece){open.start, close.end};
}
