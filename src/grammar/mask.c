/* grammar/mask.c - configuration in -> bits of tokens out. */
#include "grammar/mask.h"

#include "base/mem.h"
#include "grammar/reach.h"

#include <string.h>

typedef struct mask_entry {
    uint32_t *bits;        /* all of them; NULL: those of the base and the ids */
    const uint32_t *base;  /* of the vocabulary, as far as they are in slice as well; NULL: none */
    const uint32_t *slice; /* NULL: all */
    uint32_t ids, n_ids;
} mask_entry;

typedef struct level { /* of a walk: nodes to come, and the configuration before them */
    uint32_t node, end, ids_end, config;
    unsigned missing; /* groups of which each token has a character from here on */
} level;

typedef struct nib_grammar_mask_store {
    mask_entry *entries; /* entry 0 is not used */
    size_t n_entries, entries_capacity;
    nib_token *ids;
    size_t n_ids, ids_capacity;
    level *path;
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
    if (s->n_ids + n > s->ids_capacity && !nib_grow(&s->ids, &s->ids_capacity, s->n_ids + n, sizeof *s->ids))
        return false;
    memcpy(s->ids + s->n_ids, ids, n * sizeof *ids);
    s->n_ids += n;
    return true;
}

/* ---- walks */

enum { MANY = 64 }; /* tokens for which it is worth while to ask whether all of them fit */
typedef enum verdict { LOOK, TAKE, LEAVE } verdict;

static bool is_known(const nib_grammar_reach *known, unsigned groups, uint32_t max_chars) {
    return (groups & ~(known->groups | known->never)) == 0 && (known->is_all || max_chars <= known->chars);
}

/* Whether all n tokens below a node fit, or none, by their groups and lengths alone. Each of them has a character of
 * each group that is missing, and its bytes so far have none. */
static verdict judge(nib_grammar_run *r, uint32_t config, const nib_grammar_tree_node *node, uint32_t n,
                     unsigned missing) {
    if (node->n_children == 0) return TAKE;
    if (node->groups >> NIB_GRAMMAR_OTHER) return LOOK;
    if (n >= MANY) nib_grammar_reach_loops(r, config);
    const nib_grammar_place *c = &r->configs[config];
    if (c->knows_loops && (node->groups & ~(c->loops | c->never)) == 0) {
        if (missing & c->never) return LEAVE;
        if ((node->groups & ~c->loops) == 0) return TAKE;
    }
    uint32_t most = (uint32_t)node->max_chars - node->n_chars;
    if (nib_grammar_reach_is_free(r, config, node->groups, most)) return TAKE;
    return n >= MANY && nib_grammar_reach_takes(r, config, node->groups, most) ? TAKE : LOOK;
}

static bool walk_branch(nib_grammar_run *r, store *s, const nib_grammar_tree *t, const nib_grammar_branch *branch,
                        const nib_grammar_reach *known) {
    bool may_be_known = (branch->groups & ~(known->groups | known->never)) == 0;
    for (size_t depth = 1; depth > 0;) {
        level *l = &s->path[depth - 1];
        if (l->node == l->end) {
            depth--;
            continue;
        }
        const nib_grammar_tree_node *node = &t->nodes[l->node];
        uint8_t byte = t->bytes[l->node++];
        uint32_t next = r->steps[(size_t)l->config * r->g->n_classes + r->g->class_of[byte]];
        if (next == NIB_GRAMMAR_DEAD || (may_be_known && node->max_chars <= known->chars)) continue;
        if (next == NIB_GRAMMAR_UNKNOWN) next = nib_grammar_run_step(r, l->config, byte);
        if (next == NIB_GRAMMAR_UNKNOWN) return false;
        if (next == NIB_GRAMMAR_DEAD) continue;
        uint32_t ids_end = l->node < l->end ? t->nodes[l->node].ids : l->ids_end;
        unsigned missing = l->missing & ~(1u << nib_grammar_group(byte));
        verdict all = judge(r, next, node, ids_end - node->ids, missing);
        if (all == LEAVE) continue;
        uint32_t end = all == TAKE ? ids_end : t->nodes[node->first].ids;
        if (!add_ids(s, t->ids + node->ids, end - node->ids)) return false;
        if (all == LOOK) s->path[depth++] = (level){node->first, node->first + node->n_children, ids_end, next, missing};
    }
    return true;
}

/* All tokens of a tree whose bytes the configuration takes, but for those that are known. */
static bool walk(nib_grammar_run *r, store *s, const nib_grammar_tree *t, uint32_t config,
                 const nib_grammar_reach *known) {
    for (unsigned byte = 0; byte < 256; byte++) {
        for (uint32_t i = t->roots[byte]; i < t->roots[byte + 1]; i++) {
            const nib_grammar_branch *branch = &t->branches[i];
            if (is_known(known, branch->groups, branch->max_chars)) continue;
            uint32_t next = nib_grammar_run_step(r, config, (uint8_t)byte);
            if (next == NIB_GRAMMAR_UNKNOWN) return false;
            if (next == NIB_GRAMMAR_DEAD) break;
            s->path[0] = (level){branch->node, branch->node + 1, branch->ids_end, config, branch->groups};
            if (!walk_branch(r, s, t, branch, known)) return false;
        }
    }
    return true;
}

static bool add_plain(nib_grammar_run *r, store *s, uint32_t config, mask_entry *entry) {
    const nib_grammar_vocab *v = r->g->vocab;
    nib_grammar_reach known = nib_grammar_reach_plain(r, config);
    if (known.groups) entry->base = v->within[known.groups];
    if (known.groups && known.chars < v->max_chars) {
        entry->slice = v->slices[known.chars < NIB_GRAMMAR_SHORT ? known.chars : NIB_GRAMMAR_SHORT];
        for (size_t i = 0; i < v->n_lengthy && known.chars > NIB_GRAMMAR_SHORT; i++) {
            uint32_t id = (uint32_t)v->lengthy[i].id;
            bool fits = v->lengthy[i].n_chars <= known.chars && entry->base[id / 32] >> id % 32 & 1;
            if (fits && !add_ids(s, &v->lengthy[i].id, 1)) return false;
        }
    }
    return is_known(&known, NIB_GRAMMAR_ALL_GROUPS, UINT32_MAX) || walk(r, s, &v->plain, config, &known);
}

/* ---- entries */

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
        for (size_t w = 0; entry.base && w < v->n_mask_words; w++)
            bits[w] |= entry.base[w] & (entry.slice ? entry.slice[w] : UINT32_MAX);
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
    const nib_grammar_reach none = {0};
    mask_entry entry = {.ids = (uint32_t)s->n_ids};
    uint32_t *bits = NULL;
    bool has_bytes = false;
    for (uint32_t i = 0; i < r->configs[config].n_items; i++)
        has_bytes |= (r->g->states[r->items[r->configs[config].items + i].state].flags & NIB_GRAMMAR_HAS_BYTES) != 0;
    bool ok = !has_bytes || (add_plain(r, s, config, &entry) && walk(r, s, &v->rest, config, &none));
    if (ok && r->configs[config].has_tokens) ok = add_tokens(r, s, config, &bits);
    if (ok && r->configs[config].may_end) ok = add_ids(s, v->eog, v->n_eog);
    if (ok && keep(s, v, entry, bits)) return true;
    if (!ok) nib_free(bits);
    s->n_ids = entry.ids;
    if (r->status == NIB_OK) r->status = NIB_E_NOMEM;
    return false;
}

static void put_bits(const mask_entry *entry, uint32_t *bits, size_t n) {
    if (entry->bits)
        memcpy(bits, entry->bits, n * sizeof *bits);
    else if (entry->base && entry->slice)
        for (size_t w = 0; w < n; w++) bits[w] = entry->base[w] & entry->slice[w];
    else if (entry->base)
        memcpy(bits, entry->base, n * sizeof *bits);
    else
        memset(bits, 0, n * sizeof *bits);
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
    size_t n = n_words < v->n_mask_words ? n_words : v->n_mask_words;
    put_bits(entry, bits, n);
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
