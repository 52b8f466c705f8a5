/* jinja/dict.c - ordered hash tables over values. Small ones are searched, larger ones have an index; nothing is ever
 * deleted, as templates may not change dicts. */
#include "jinja/dict.h"

#include <math.h>
#include <string.h>

enum { SEARCHED = 8, MAX_NESTING = 32 };

static uint64_t mix(uint64_t hash, uint64_t x) {
    hash = (hash ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_number(const jinja_value *v) {
    double f = jinja_as_float(v);
    bool is_int = v->type != JINJA_FLOAT || (f >= -9.2e18 && f <= 9.2e18 && f == floor(f));
    if (is_int) return mix(1, (uint64_t)(v->type == JINJA_FLOAT ? (int64_t)f : jinja_as_int(v)));
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return mix(2, bits);
}

static uint64_t hash(const jinja_value *v, int depth) {
    uint64_t h = 14695981039346656037u;
    if (jinja_is_number(v)) return hash_number(v);
    if (v->type == JINJA_STR)
        for (uint32_t i = 0; i < v->len; i++) h = (h ^ (unsigned char)v->as.ptr[i]) * 1099511628211u;
    if (v->type == JINJA_LIST && depth < MAX_NESTING)
        for (uint32_t i = 0; i < v->as.list->n; i++) h = mix(h, hash(&v->as.list->items[i], depth + 1));
    return mix(h, v->type);
}

bool nib_jinja_is_hashable(const jinja_value *v) {
    if (v->type == JINJA_DICT) return false;
    if (v->type != JINJA_LIST || v->as.list->flavor == JINJA_AS_RANGE) return true;
    if (v->as.list->flavor != JINJA_AS_TUPLE) return false;
    for (uint32_t i = 0; i < v->as.list->n; i++) {
        const jinja_value *item = &v->as.list->items[i];
        if (item->type == JINJA_DICT || (item->type == JINJA_LIST && item->as.list->flavor != JINJA_AS_TUPLE)) return false;
    }
    return true;
}

bool nib_jinja_key_equal(const jinja_value *a, const jinja_value *b, int depth) {
    if (jinja_is_number(a) && jinja_is_number(b)) {
        if (a->type == JINJA_FLOAT || b->type == JINJA_FLOAT)
            return (a->type == JINJA_FLOAT ? (long double)a->as.f : (long double)jinja_as_int(a)) ==
                   (b->type == JINJA_FLOAT ? (long double)b->as.f : (long double)jinja_as_int(b));
        return jinja_as_int(a) == jinja_as_int(b);
    }
    if (a->type != b->type) return false;
    if (a->type == JINJA_STR) return a->len == b->len && (a->len == 0 || memcmp(a->as.ptr, b->as.ptr, a->len) == 0);
    if (a->type == JINJA_NONE || a->type == JINJA_UNDEFINED) return true;
    if (a->type != JINJA_LIST) return a->as.ptr == b->as.ptr;
    const jinja_list *x = a->as.list, *y = b->as.list;
    if (x->n != y->n || x->flavor != y->flavor || depth >= MAX_NESTING) return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!nib_jinja_key_equal(&x->items[i], &y->items[i], depth + 1)) return false;
    return true;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *find_slot(const jinja_dict *dict, const jinja_value *key, uint32_t *n_probes) {
    uint32_t mask = dict->n_slots - 1, at = (uint32_t)hash(key, 0) & mask;
    for (*n_probes = 1; dict->slots[at] && !nib_jinja_key_equal(&dict->pairs[dict->slots[at] - 1].key, key, 0); ++*n_probes)
        at = (at + 1) & mask;
    return &dict->slots[at];
}

/* Enters a pair in the index. */
static bool enter(jinja_dict *dict, uint32_t at) {
    uint32_t n_probes;
    *find_slot(dict, &dict->pairs[at].key, &n_probes) = at + 1;
    if (n_probes > dict->n_probes) dict->n_probes = n_probes;
    return n_probes < JINJA_MAX_PROBES;
}

const jinja_pair *nib_jinja_dict_find(const jinja_dict *dict, const jinja_value *key) {
    uint32_t n_probes;
    if (dict->n_slots) {
        uint32_t slot = *find_slot(dict, key, &n_probes);
        return slot ? &dict->pairs[slot - 1] : NULL;
    }
    for (uint32_t i = 0; i < dict->n; i++)
        if (nib_jinja_key_equal(&dict->pairs[i].key, key, 0)) return &dict->pairs[i];
    return NULL;
}

const jinja_value *nib_jinja_dict_get(const jinja_dict *dict, const char *name) {
    jinja_value key = jinja_str(name, strlen(name));
    const jinja_pair *pair = nib_jinja_dict_find(dict, &key);
    return pair ? &pair->value : NULL;
}

/* At most half of the slots are taken. */
static bool grow(nib_arena *arena, jinja_dict *dict) {
    uint32_t capacity = dict->capacity ? dict->capacity * 2 : 4;
    if (capacity > UINT32_MAX / 64) return false;
    jinja_pair *pairs = nib_arena_alloc(arena, capacity * sizeof *pairs);
    uint32_t *slots = capacity > SEARCHED ? nib_arena_alloc(arena, (size_t)capacity * 2 * sizeof *slots) : NULL;
    if (!pairs || (capacity > SEARCHED && !slots)) return false;
    if (dict->pairs) memcpy(pairs, dict->pairs, dict->n * sizeof *pairs);
    dict->pairs = pairs;
    dict->capacity = capacity;
    if (!slots) return true;
    memset(slots, 0, (size_t)capacity * 2 * sizeof *slots);
    dict->slots = slots;
    dict->n_slots = capacity * 2;
    for (uint32_t i = 0; i < dict->n; i++)
        if (!enter(dict, i)) return false;
    return true;
}

bool nib_jinja_dict_set(nib_arena *arena, jinja_dict *dict, const jinja_value *key, const jinja_value *value) {
    const jinja_pair *known = nib_jinja_dict_find(dict, key);
    if (known) {
        dict->pairs[known - dict->pairs].value = *value;
        return true;
    }
    if ((dict->n == dict->capacity || !dict->pairs) && !grow(arena, dict)) return false;
    dict->pairs[dict->n++] = (jinja_pair){*key, *value};
    return dict->n_slots == 0 || enter(dict, dict->n - 1);
}
