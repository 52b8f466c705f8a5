/* grammar/mask.c - configuration in -> bits of tokens out. */
#include "grammar/mask.h"

#include "base/mem.h"

#include <string.h>

typedef struct mask_entry {
    uint32_t *bits;       /* all of them; NULL: those of the base and the ids */
    const uint32_t *base; /* of the vocabulary; NULL: none */
    uint32_t ids, n_ids;
} mask_entry;

typedef struct nib_grammar_mask_store {
    mask_entry *entries; /* entry 0 is not used */
    size_t n_entries, entries_capacity;
    nib_token *ids;
    size_t n_ids, ids_capacity;
    uint32_t *path; /* configurations on the way down a tree */
    size_t n_bits_bytes;
} store;

void nib_grammar_mask_store_free(nib_grammar_run *r) {
    store *s = r->masks;
    if (!s) return;
    for (size_t i = 1; i < s->n_entries; i++) nib_free(s->entries[i].bits);
    nib_free(s->entries);
    nib_free(s->ids);
    nib_free(s->path);
    nib_free(s);
    r->masks = NULL;
}

size_t nib_grammar_mask_bytes(const nib_grammar_run *r) {
    const store *s = r->masks;
    return s ? s->entries_capacity * sizeof *s->entries + s->ids_capacity * sizeof *s->ids + s->n_bits_bytes : 0;
}

static store *get_store(nib_grammar_run *r) {
    if (r->masks) return r->masks;
    store *s = r->masks = nib_calloc(1, sizeof *s);
    if (s) s->path = nib_calloc((size_t)r->g->vocab->max_len + 1, sizeof *s->path);
    if (s && s->path && nib_grow(&s->entries, &s->entries_capacity, 1, sizeof *s->entries)) {
        s->n_entries = 1;
        return s;
    }
    nib_grammar_mask_store_free(r);
    return NULL;
}

static bool add_ids(store *s, const nib_token *ids, size_t n) {
    if (!n) return true;
    if (!nib_grow(&s->ids, &s->ids_capacity, s->n_ids + n, sizeof *s->ids)) return false;
    memcpy(s->ids + s->n_ids, ids, n * sizeof *ids);
    s->n_ids += n;
    return true;
}

/* Whether every byte of the groups leads from a configuration to itself. */
static bool repeats(nib_grammar_run *r, uint32_t config, unsigned groups) {
    for (unsigned c = 0x21; c < 0x7F && groups & ~(unsigned)r->configs[config].known_loops; c++) {
        unsigned group = nib_grammar_group((uint8_t)c), bit = 1u << group;
        bool is_last = c == 'z' || c == 'Z' || c == '9' || c == '~';
        if (!(groups & bit) || r->configs[config].known_loops & bit) continue;
        bool leads_back = nib_grammar_run_step(r, config, (uint8_t)c) == config;
        if (is_last || !leads_back) r->configs[config].known_loops |= (uint8_t)bit;
        if (is_last && leads_back) r->configs[config].loops |= (uint8_t)bit;
    }
    return (groups & ~(unsigned)r->configs[config].loops) == 0;
}

/* All tokens of a tree whose bytes the configuration takes. */
static bool walk(nib_grammar_run *r, store *s, const nib_grammar_tree *t, uint32_t config) {
    const nib_grammar *g = r->g;
    s->path[0] = config;
    for (uint32_t i = 0; i < t->n_nodes;) {
        const nib_grammar_tree_node *node = &t->nodes[i];
        uint32_t at = s->path[node->depth - 1], next = r->steps[(size_t)at * g->n_classes + g->class_of[node->byte]];
        if (next == NIB_GRAMMAR_UNKNOWN) {
            next = nib_grammar_run_step(r, at, node->byte);
            if (next == NIB_GRAMMAR_UNKNOWN) return false;
        }
        if (next == NIB_GRAMMAR_DEAD) {
            i = node->end;
            continue;
        }
        s->path[node->depth] = next;
        if (node->end > i + 1 && !(node->groups >> NIB_GRAMMAR_OTHERS) && repeats(r, next, node->groups)) {
            uint32_t end = node->end < t->n_nodes ? t->nodes[node->end].ids : (uint32_t)t->n_ids;
            if (!add_ids(s, t->ids + node->ids, end - node->ids)) return false;
            i = node->end;
            continue;
        }
        if (node->n_ids && !add_ids(s, t->ids + node->ids, node->n_ids)) return false;
        i++;
    }
    return true;
}

static bool reads_plain_otherwise(const nib_grammar_run *r, nib_grammar_item item) {
    uint32_t flags = r->g->states[item.state].flags;
    return flags & NIB_GRAMMAR_READS_PLAIN && !(flags & (NIB_GRAMMAR_LOOPS | NIB_GRAMMAR_LOOPS_COUNTED));
}

/* Most plain characters that a looping item takes; 0: none loops. */
static uint64_t longest_loop(const nib_grammar_run *r, const nib_grammar_place *c, bool *has_others) {
    uint64_t longest = 0;
    for (uint32_t i = 0; i < c->n_items; i++) {
        nib_grammar_item item = r->items[c->items + i];
        uint32_t flags = r->g->states[item.state].flags;
        const nib_grammar_frame *f = &r->frames[item.frame];
        uint32_t max = r->g->rules[f->rule].max;
        bool counts = flags & NIB_GRAMMAR_LOOPS_COUNTED && max != NIB_GRAMMAR_NO;
        uint64_t n = counts ? (uint64_t)max - f->count + 1 : UINT64_MAX; /* this one is counted already */
        if (flags & (NIB_GRAMMAR_LOOPS | NIB_GRAMMAR_LOOPS_COUNTED) && n > longest) longest = n;
        *has_others |= reads_plain_otherwise(r, item);
    }
    return longest;
}

static bool add_plain(nib_grammar_run *r, store *s, uint32_t config, mask_entry *entry) {
    const nib_grammar_vocab *v = r->g->vocab;
    bool has_others = false;
    uint64_t longest = longest_loop(r, &r->configs[config], &has_others);
    size_t slice = longest < NIB_GRAMMAR_SLICES ? (size_t)longest : NIB_GRAMMAR_SLICES;
    if (longest) entry->base = v->slices[v->n_by_length && longest >= v->lengths[v->n_by_length - 1] ? 0 : slice];
    if (longest && entry->base != v->slices[0] && longest > slice)
        for (size_t i = 0; i < v->n_by_length && v->lengths[i] <= longest; i++)
            if (v->lengths[i] > slice && !add_ids(s, &v->by_length[i], 1)) return false;
    if (!has_others || (longest && entry->base == v->slices[0])) return true;
    uint32_t others = longest ? nib_grammar_run_filter(r, config, reads_plain_otherwise) : config;
    return others != NIB_GRAMMAR_UNKNOWN && walk(r, s, &v->plain, others);
}

/* Tokens that the grammar names. */
static bool add_tokens(nib_grammar_run *r, store *s, uint32_t config, uint32_t **bits) {
    const nib_grammar *g = r->g;
    const nib_grammar_place c = r->configs[config];
    for (uint32_t i = 0; i < c.n_items; i++) {
        const nib_grammar_state *state = &g->states[r->items[c.items + i].state];
        for (uint32_t e = state->edges; e < state->edges + state->n_edges; e++) {
            const nib_grammar_edge *edge = &g->edges[e];
            nib_token id = (nib_token)edge->arg;
            if (edge->kind != NIB_GRAMMAR_TOKEN) continue;
            if (edge->lo == 0 && !add_ids(s, &id, 1)) return false;
            if (edge->lo == 0) continue;
            if (!*bits) *bits = nib_calloc(g->vocab->n_mask_words + 1, sizeof **bits);
            if (!*bits) return false;
            bool had = (*bits)[edge->arg / 32] >> edge->arg % 32 & 1;
            for (size_t w = 0; w < g->vocab->n_mask_words; w++) (*bits)[w] |= g->vocab->all[w];
            if (!had) (*bits)[edge->arg / 32] &= ~(1u << edge->arg % 32);
        }
    }
    return true;
}

/* Turns a long list of ids into bits. */
static bool keep(store *s, const nib_grammar_vocab *v, mask_entry entry, uint32_t *bits) {
    size_t n = s->n_ids - entry.ids;
    if (!bits && n > v->n_mask_words && (bits = nib_calloc(v->n_mask_words + 1, sizeof *bits)) == NULL) return false;
    if (bits) {
        for (size_t w = 0; entry.base && w < v->n_mask_words; w++) bits[w] |= entry.base[w];
        for (size_t i = entry.ids; i < s->n_ids; i++) bits[s->ids[i] / 32] |= 1u << s->ids[i] % 32;
        s->n_ids = entry.ids;
        n = 0;
    }
    entry.bits = bits;
    entry.n_ids = (uint32_t)n;
    if (!nib_grow(&s->entries, &s->entries_capacity, s->n_entries + 1, sizeof *s->entries)) {
        nib_free(bits);
        return false;
    }
    s->n_bits_bytes += bits ? v->n_mask_words * sizeof *bits : 0;
    s->entries[s->n_entries++] = entry;
    return true;
}

static bool compute(nib_grammar_run *r, store *s, uint32_t config) {
    const nib_grammar_vocab *v = r->g->vocab;
    mask_entry entry = {.ids = (uint32_t)s->n_ids};
    uint32_t *bits = NULL;
    bool has_bytes = false;
    for (uint32_t i = 0; i < r->configs[config].n_items; i++)
        has_bytes |= (r->g->states[r->items[r->configs[config].items + i].state].flags & NIB_GRAMMAR_HAS_BYTES) != 0;
    bool ok = !has_bytes || (add_plain(r, s, config, &entry) && walk(r, s, &v->rest, config));
    if (ok && r->configs[config].has_tokens) ok = add_tokens(r, s, config, &bits);
    if (ok && r->configs[config].may_end) ok = add_ids(s, v->eog, v->n_eog);
    if (ok && keep(s, v, entry, bits)) return true;
    if (!ok) nib_free(bits);
    s->n_ids = entry.ids;
    if (r->status == NIB_OK) r->status = NIB_E_NOMEM;
    return false;
}

bool nib_grammar_mask_write(nib_grammar_run *r, uint32_t config, uint32_t *bits, size_t n_words) {
    const nib_grammar_vocab *v = r->g->vocab;
    store *s = get_store(r);
    r->status = NIB_OK;
    if (!s) {
        r->status = NIB_E_NOMEM;
        return false;
    }
    uint32_t far = nib_grammar_run_far(r, config, v->max_len);
    r->status = NIB_OK;
    if (!r->configs[far].mask) {
        if (!compute(r, s, far)) return false;
        r->configs[far].mask = (uint32_t)(s->n_entries - 1);
    }
    const mask_entry *entry = &s->entries[r->configs[far].mask];
    const uint32_t *from = entry->bits ? entry->bits : entry->base;
    size_t n = n_words < v->n_mask_words ? n_words : v->n_mask_words;
    if (from)
        memcpy(bits, from, n * sizeof *bits);
    else
        memset(bits, 0, n * sizeof *bits);
    memset(bits + n, 0, (n_words - n) * sizeof *bits);
    for (uint32_t i = 0; i < entry->n_ids; i++) {
        uint32_t id = (uint32_t)s->ids[entry->ids + i];
        if (id / 32 < n_words) bits[id / 32] |= 1u << id % 32;
    }
    return true;
}

uint32_t nib_grammar_mask_accept(nib_grammar_run *r, uint32_t config, nib_token id) {
    const nib_grammar_vocab *v = r->g->vocab;
    nib_str bytes = v->bytes[id];
    uint32_t at = bytes.len ? config : NIB_GRAMMAR_DEAD;
    r->status = NIB_OK;
    for (size_t i = 0; i < bytes.len && at > NIB_GRAMMAR_DEAD; i++)
        at = nib_grammar_run_step(r, at, (uint8_t)bytes.ptr[i]);
    if (!r->configs[config].has_tokens || at == NIB_GRAMMAR_UNKNOWN || !(v->all[id / 32] >> id % 32 & 1)) return at;
    uint32_t as_token = nib_grammar_run_token(r, config, id);
    return as_token == NIB_GRAMMAR_UNKNOWN ? as_token : nib_grammar_run_union(r, at, as_token);
}
