/* grammar/run.c - configuration and byte in -> configuration out. */
#include "base/mem.h"
#include "grammar/intern.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_TABLE = 256, FIRST_BYTES = 8 << 20 };

/* ---- life */

static bool grow_table(uint32_t **table, size_t *n, size_t want) {
    if (*n >= want) return false;
    size_t size = *n ? *n * 2 : FIRST_TABLE;
    uint32_t *fresh = nib_alloc(size, sizeof *fresh);
    if (!fresh) return false; /* chains get longer, that is all */
    memset(fresh, 0xFF, size * sizeof *fresh);
    nib_free(*table);
    *table = fresh;
    *n = size;
    return true;
}

static bool fail(nib_grammar_run *r, nib_status status) {
    if (r->status == NIB_OK) r->status = status;
    return false;
}

#define RESERVE(r, array, n)                                                                                           \
    (nib_grow(&(r)->array, &(r)->array##_capacity, (n), sizeof *(r)->array) || fail(r, NIB_E_NOMEM))

void nib_grammar_run_free(nib_grammar_run *r) {
    if (!r) return;
    nib_free(r->frames);
    nib_free(r->links);
    nib_free(r->configs);
    nib_free(r->items);
    nib_free(r->steps);
    nib_free(r->marks);
    nib_free(r->frame_table);
    nib_free(r->config_table);
    nib_free(r->work);
    nib_free(r->found);
    nib_free(r->calls);
    nib_free(r->gathered);
    nib_free(r->seen);
    nib_free(r->seen_stamp);
    nib_free(r);
}

size_t nib_grammar_run_bytes(const nib_grammar_run *r) {
    return r->frames_capacity * sizeof *r->frames + r->links_capacity * sizeof *r->links +
           r->configs_capacity * sizeof *r->configs + r->items_capacity * sizeof *r->items +
           r->steps_capacity * sizeof *r->steps + r->marks_capacity * sizeof *r->marks;
}

/* ---- interning */

bool nib_grammar_reserve_gathered(nib_grammar_run *r, size_t n) {
    return RESERVE(r, gathered, n);
}

bool nib_grammar_reserve_found(nib_grammar_run *r, size_t n) {
    return RESERVE(r, found, n);
}

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 32;
}

/* Pairs of numbers: links or items. */
static uint64_t hash_pairs(uint64_t h, const void *pairs, size_t n) {
    const char *p = pairs;
    for (size_t i = 0; i < n; i++) {
        uint64_t x;
        memcpy(&x, p + i * sizeof x, sizeof x);
        h = mix(h, x);
    }
    return h;
}

_Static_assert(sizeof(nib_grammar_link) == sizeof(uint64_t) && sizeof(nib_grammar_item) == sizeof(uint64_t), "pairs");

static int compare_pairs(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

size_t nib_grammar_sort_pairs(void *pairs, size_t n) {
    nib_grammar_item *p = pairs;
    size_t to = 0;
    if (n < 2) return n;
    if (n == 2) {
        if (compare_pairs(&p[0], &p[1]) > 0) {
            nib_grammar_item first = p[0];
            p[0] = p[1];
            p[1] = first;
        }
    } else {
        qsort(p, n, sizeof *p, compare_pairs);
    }
    for (size_t i = 1; i < n; i++)
        if (compare_pairs(&p[to], &p[i]) != 0) p[++to] = p[i];
    return to + 1;
}

static size_t frame_hash(const nib_grammar_frame *f, const nib_grammar_link *links) {
    uint64_t h = mix(mix(f->rule, f->count), f->marks);
    return (size_t)hash_pairs(h, links, f->n_links);
}

static void rehash_frames(nib_grammar_run *r) {
    if (!grow_table(&r->frame_table, &r->n_frame_table, r->n_frames + 1)) return;
    for (uint32_t i = 0; i < r->n_frames; i++) {
        nib_grammar_frame *f = &r->frames[i];
        size_t at = frame_hash(f, r->links + f->links) & (r->n_frame_table - 1);
        f->next = r->frame_table[at];
        r->frame_table[at] = i;
    }
}

uint32_t nib_grammar_intern_frame(nib_grammar_run *r, nib_grammar_frame f, const nib_grammar_link *links) {
    rehash_frames(r);
    if (!r->n_frame_table) {
        fail(r, NIB_E_NOMEM);
        return NIB_GRAMMAR_NO;
    }
    size_t at = frame_hash(&f, links) & (r->n_frame_table - 1);
    for (uint32_t i = r->frame_table[at]; i != NIB_GRAMMAR_NO; i = r->frames[i].next) {
        const nib_grammar_frame *x = &r->frames[i];
        if (x->rule == f.rule && x->count == f.count && x->marks == f.marks && x->n_links == f.n_links &&
            memcmp(r->links + x->links, links, f.n_links * sizeof *links) == 0)
            return i;
    }
    if (!RESERVE(r, frames, r->n_frames + 1) || !RESERVE(r, links, r->n_links + f.n_links)) return NIB_GRAMMAR_NO;
    memcpy(r->links + r->n_links, links, f.n_links * sizeof *links);
    f.links = (uint32_t)r->n_links;
    r->n_links += f.n_links;
    f.next = r->frame_table[at];
    f.far = NIB_GRAMMAR_NO;
    r->frames[r->n_frames] = f;
    return r->frame_table[at] = (uint32_t)r->n_frames++;
}

/* A frame with the links of another one. */
static uint32_t change_frame(nib_grammar_run *r, uint32_t frame, uint32_t count, uint32_t marks) {
    nib_grammar_frame f = r->frames[frame];
    f.count = count;
    f.marks = marks;
    if (!nib_grow(&r->gathered, &r->gathered_capacity, f.n_links, sizeof *r->gathered)) fail(r, NIB_E_NOMEM);
    if (r->status != NIB_OK) return NIB_GRAMMAR_NO;
    memcpy(r->gathered, r->links + f.links, f.n_links * sizeof *r->links);
    return nib_grammar_intern_frame(r, f, r->gathered);
}

static size_t config_hash(const nib_grammar_item *items, size_t n, bool may_end) {
    return (size_t)hash_pairs(may_end ? 7 : 3, items, n);
}

static void rehash_configs(nib_grammar_run *r) {
    if (!grow_table(&r->config_table, &r->n_config_table, r->n_configs + 1)) return;
    for (uint32_t i = 2; i < r->n_configs; i++) {
        nib_grammar_place *c = &r->configs[i];
        size_t at = config_hash(r->items + c->items, c->n_items, c->may_end) & (r->n_config_table - 1);
        c->next = r->config_table[at];
        r->config_table[at] = i;
    }
}

uint32_t nib_grammar_intern_config(nib_grammar_run *r, nib_grammar_item *items, size_t n, bool may_end) {
    n = nib_grammar_sort_pairs(items, n);
    if (n == 0 && !may_end) return NIB_GRAMMAR_DEAD;
    rehash_configs(r);
    if (!r->n_config_table) fail(r, NIB_E_NOMEM);
    if (r->status != NIB_OK) return NIB_GRAMMAR_UNKNOWN;
    size_t at = config_hash(items, n, may_end) & (r->n_config_table - 1);
    for (uint32_t i = r->config_table[at]; i != NIB_GRAMMAR_NO; i = r->configs[i].next) {
        const nib_grammar_place *c = &r->configs[i];
        bool is_alike = c->n_items == n && c->may_end == may_end;
        if (is_alike && (n == 0 || memcmp(r->items + c->items, items, n * sizeof *items) == 0)) return i;
    }
    size_t n_steps = r->n_steps + r->g->n_classes;
    if (!RESERVE(r, configs, r->n_configs + 1) || !RESERVE(r, items, r->n_items + n) || !RESERVE(r, steps, n_steps))
        return NIB_GRAMMAR_UNKNOWN;
    nib_grammar_place c = {.items = (uint32_t)r->n_items, .n_items = (uint32_t)n, .may_end = may_end};
    for (size_t i = 0; i < n; i++) c.has_tokens |= (r->g->states[items[i].state].flags & NIB_GRAMMAR_HAS_TOKENS) != 0;
    if (n) memcpy(r->items + r->n_items, items, n * sizeof *items);
    memset(r->steps + r->n_steps, 0, r->g->n_classes * sizeof *r->steps);
    r->n_items += n;
    r->n_steps = n_steps;
    c.next = r->config_table[at];
    r->configs[r->n_configs] = c;
    return r->config_table[at] = (uint32_t)r->n_configs++;
}

/* ---- sets of keys */

static bool has_key(const nib_grammar_run *r, uint32_t marks, uint32_t key) {
    return marks != NIB_GRAMMAR_NO && r->marks[marks + key / 64] >> key % 64 & 1;
}

/* The first place where these words stand is the number of the set. Sets are few: as many as prefixes of objects. */
uint32_t nib_grammar_with_key(nib_grammar_run *r, uint32_t marks, uint32_t key, uint32_t n_words) {
    size_t end = r->n_marks;
    if (!RESERVE(r, marks, end + n_words)) return NIB_GRAMMAR_NO;
    if (marks == NIB_GRAMMAR_NO)
        memset(r->marks + end, 0, n_words * sizeof *r->marks);
    else
        memcpy(r->marks + end, r->marks + marks, n_words * sizeof *r->marks);
    r->marks[end + key / 64] |= UINT64_C(1) << key % 64;
    for (size_t at = 0; at < end; at++)
        if (memcmp(r->marks + at, r->marks + end, n_words * sizeof *r->marks) == 0) return (uint32_t)at;
    r->n_marks += n_words;
    return (uint32_t)end;
}

/* Required keys that are missing, `key` not counted; below: only those before it. */
static uint32_t n_missing(const nib_grammar_run *r, const nib_grammar_rule *rule, uint32_t marks, uint32_t key,
                          uint32_t below) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < rule->n_keys && k < below; k++)
        n += k != key && (r->g->words[rule->required + k / 64] >> k % 64 & 1) && !has_key(r, marks, k);
    return n;
}

static bool key_allowed(const nib_grammar_run *r, const nib_grammar_frame *f, uint32_t key) {
    const nib_grammar_rule *rule = &r->g->rules[f->rule];
    bool is_numbered = key != NIB_GRAMMAR_NO;
    if (is_numbered && has_key(r, f->marks, key)) return false;
    if (rule->in_order) {
        if (n_missing(r, rule, f->marks, key, is_numbered ? key : rule->n_keys)) return false;
        for (uint32_t k = key + 1; is_numbered && k <= rule->n_keys; k++) /* n_keys stands for those without a number */
            if (has_key(r, f->marks, k)) return false;
    }
    if (rule->max == NIB_GRAMMAR_NO) return true;
    return f->count + 1 + (uint64_t)n_missing(r, rule, f->marks, key, rule->n_keys) <= rule->max;
}

static bool frame_may_end(const nib_grammar_run *r, const nib_grammar_frame *f) {
    const nib_grammar_rule *rule = &r->g->rules[f->rule];
    return f->count >= rule->min && (!rule->n_keys || n_missing(r, rule, f->marks, NIB_GRAMMAR_NO, rule->n_keys) == 0);
}

/* ---- closure */

void nib_grammar_begin(nib_grammar_run *r) {
    r->n_work = r->n_found = r->n_calls = 0;
    r->may_end = false;
    r->status = NIB_OK;
    if (++r->stamp == 0 && r->n_seen) {
        memset(r->seen_stamp, 0, r->n_seen * sizeof *r->seen_stamp);
        r->stamp = 1;
    }
}

static size_t seen_slot(const nib_grammar_run *r, nib_grammar_item item) {
    size_t at = (size_t)mix(item.state, item.frame) & (r->n_seen - 1);
    while (r->seen_stamp[at] == r->stamp &&
           (r->work[r->seen[at]].state != item.state || r->work[r->seen[at]].frame != item.frame))
        at = (at + 1) & (r->n_seen - 1);
    return at;
}

static bool grow_seen(nib_grammar_run *r) {
    size_t n = r->n_seen ? r->n_seen * 2 : FIRST_TABLE;
    uint32_t *seen = nib_calloc(n, sizeof *seen), *stamps = nib_calloc(n, sizeof *stamps);
    if (!seen || !stamps) {
        nib_free(seen);
        nib_free(stamps);
        return fail(r, NIB_E_NOMEM);
    }
    nib_free(r->seen);
    nib_free(r->seen_stamp);
    r->seen = seen;
    r->seen_stamp = stamps;
    r->n_seen = n;
    r->stamp = 1;
    for (size_t i = 0; i < r->n_work; i++) {
        size_t at = seen_slot(r, r->work[i]);
        r->seen[at] = (uint32_t)i;
        r->seen_stamp[at] = r->stamp;
    }
    return true;
}

bool nib_grammar_push(nib_grammar_run *r, uint32_t state, uint32_t frame) {
    nib_grammar_item item = {state, frame};
    if (r->status != NIB_OK) return false;
    if (r->n_work >= r->g->max_items) return fail(r, NIB_E_LIMIT);
    if ((r->n_work * 2 >= r->n_seen && !grow_seen(r)) || !RESERVE(r, work, r->n_work + 1)) return false;
    size_t at = seen_slot(r, item);
    if (r->seen_stamp[at] == r->stamp) return true;
    r->seen_stamp[at] = r->stamp;
    r->seen[at] = (uint32_t)r->n_work;
    r->work[r->n_work++] = item;
    return true;
}

static void add_call(nib_grammar_run *r, uint32_t rule, nib_grammar_link link) {
    if (!RESERVE(r, calls, r->n_calls + 1)) return;
    r->calls[r->n_calls++] = (nib_grammar_call_at){rule, r->g->rules[rule].rank, link};
}

/* A state that can only end hands its callers on: no frame is kept for it. */
static void call(nib_grammar_run *r, const nib_grammar_edge *edge, uint32_t frame) {
    const nib_grammar_frame *f = &r->frames[frame];
    const nib_grammar_rule *rule = &r->g->rules[f->rule];
    bool only_ends = r->g->states[edge->to].flags == NIB_GRAMMAR_ENDS && rule->min == 0 && !rule->n_keys;
    if (!only_ends) add_call(r, edge->arg, (nib_grammar_link){edge->to, frame});
    for (uint32_t i = 0; only_ends && i < f->n_links; i++) add_call(r, edge->arg, r->links[f->links + i]);
}

static void move(nib_grammar_run *r, const nib_grammar_edge *edge, uint32_t frame) {
    nib_grammar_frame f = r->frames[frame];
    const nib_grammar_rule *rule = &r->g->rules[f.rule];
    uint32_t marks = f.marks, count = f.count;
    bool counts = rule->min > 0 || rule->max != NIB_GRAMMAR_NO, marks_key = edge->kind == NIB_GRAMMAR_MARK;
    if (marks_key && !key_allowed(r, &f, edge->arg)) return;
    if (!marks_key && f.count >= rule->max) return;
    uint32_t key = edge->arg == NIB_GRAMMAR_NO && rule->in_order ? rule->n_keys : edge->arg;
    if (marks_key && key != NIB_GRAMMAR_NO && rule->n_keys)
        marks = nib_grammar_with_key(r, marks, key, rule->n_keys / 64 + 1);
    if (counts && (rule->max != NIB_GRAMMAR_NO || count < rule->min)) count++;
    uint32_t to = count == f.count && marks == f.marks ? frame : change_frame(r, frame, count, marks);
    if (r->status == NIB_OK) nib_grammar_push(r, edge->to, to);
}

static void moves(nib_grammar_run *r, const nib_grammar_state *s, uint32_t frame) {
    for (uint32_t e = s->edges; e < s->edges + s->n_edges && r->status == NIB_OK; e++) {
        const nib_grammar_edge *edge = &r->g->edges[e];
        if (edge->kind == NIB_GRAMMAR_CALL)
            call(r, edge, frame);
        else if (edge->kind == NIB_GRAMMAR_CHECK && frame_may_end(r, &r->frames[frame]))
            nib_grammar_push(r, edge->to, frame);
        else if (edge->kind == NIB_GRAMMAR_INC || edge->kind == NIB_GRAMMAR_MARK)
            move(r, edge, frame);
    }
}

static void keep_if_reads(nib_grammar_run *r, nib_grammar_item item) {
    if (!(r->g->states[item.state].flags & (NIB_GRAMMAR_HAS_BYTES | NIB_GRAMMAR_HAS_TOKENS))) return;
    if (RESERVE(r, found, r->n_found + 1)) r->found[r->n_found++] = item;
}

/* What can be done from work[*at …] without reading: ends, counts and marks; calls are collected. */
static void settle(nib_grammar_run *r, size_t *at) {
    for (; *at < r->n_work && r->status == NIB_OK; ++*at) {
        nib_grammar_item item = r->work[*at];
        const nib_grammar_state *s = &r->g->states[item.state];
        keep_if_reads(r, item);
        if (s->flags & NIB_GRAMMAR_HAS_MOVES) moves(r, s, item.frame);
        const nib_grammar_frame *f = &r->frames[item.frame];
        if (!(s->flags & NIB_GRAMMAR_ENDS) || !frame_may_end(r, f)) continue;
        for (uint32_t i = 0; i < f->n_links; i++) {
            nib_grammar_link link = r->links[f->links + i];
            if (link.ret == NIB_GRAMMAR_NO)
                r->may_end = true;
            else
                nib_grammar_push(r, link.ret, link.frame);
        }
    }
}

/* All calls of the rule of lowest rank, which nothing to come can call any more, become one frame. */
static uint32_t next_callee(nib_grammar_run *r, uint32_t *rule) {
    uint32_t rank = UINT32_MAX;
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].rank < rank) rank = r->calls[i].rank;
    if (!RESERVE(r, gathered, r->n_calls)) return NIB_GRAMMAR_NO;
    for (size_t i = 0; i < r->n_calls; i++) {
        if (r->calls[i].rank != rank) {
            r->calls[kept++] = r->calls[i];
            continue;
        }
        *rule = r->calls[i].rule;
        r->gathered[n++] = r->calls[i].link;
    }
    r->n_calls = kept;
    nib_grammar_frame f = {.rule = *rule, .marks = NIB_GRAMMAR_NO};
    f.n_links = (uint32_t)nib_grammar_sort_pairs(r->gathered, n);
    return nib_grammar_intern_frame(r, f, r->gathered);
}

/* The configuration of everything in work. */
static uint32_t settle_all(nib_grammar_run *r) {
    size_t at = 0;
    settle(r, &at);
    while (r->n_calls && r->status == NIB_OK) {
        uint32_t rule = 0, frame = next_callee(r, &rule);
        if (frame == NIB_GRAMMAR_NO) break;
        /* The callee has read nothing yet, so it does not end here: its caller has the way around it. */
        nib_grammar_item item = {r->g->rules[rule].start, frame};
        keep_if_reads(r, item);
        moves(r, &r->g->states[item.state], frame);
        settle(r, &at);
    }
    return r->status == NIB_OK ? nib_grammar_intern_config(r, r->found, r->n_found, r->may_end) : NIB_GRAMMAR_UNKNOWN;
}

/* Room for many configurations at once: it costs nothing before it is used, and moving them would take longer than a
 * mask. */
static bool reserve_first(nib_grammar_run *r) {
    size_t bytes = r->g->max_run_bytes / 4 < FIRST_BYTES ? r->g->max_run_bytes / 4 : FIRST_BYTES;
    size_t n = bytes / (sizeof *r->steps * (r->g->n_classes + 16)) + 2;
    return RESERVE(r, configs, n) && RESERVE(r, items, n) && RESERVE(r, frames, n) && RESERVE(r, links, n) &&
           RESERVE(r, steps, n * r->g->n_classes);
}

nib_grammar_run *nib_grammar_run_new(const nib_grammar *g) {
    nib_grammar_run *r = nib_calloc(1, sizeof *r);
    nib_grammar_link end = {NIB_GRAMMAR_NO, NIB_GRAMMAR_NO};
    if (!r) return NULL;
    r->g = g;
    r->n_users = 1;
    nib_grammar_begin(r);
    if (reserve_first(r)) {
        memset(r->configs, 0, 2 * sizeof *r->configs);
        r->n_configs = 2;
        r->n_steps = 2 * (size_t)g->n_classes;
        memset(r->steps, 0, r->n_steps * sizeof *r->steps);
        add_call(r, g->root, end);
        /* The empty text may be all: then the start of the root ends, which no caller says. */
        r->may_end = g->states[g->rules[g->root].start].flags & NIB_GRAMMAR_ENDS && g->rules[g->root].min == 0;
        if (r->status == NIB_OK) r->start = settle_all(r);
    }
    if (r->status == NIB_OK) return r;
    nib_grammar_run_free(r);
    return NULL;
}

uint32_t nib_grammar_run_step(nib_grammar_run *r, uint32_t config, uint8_t byte) {
    const nib_grammar *g = r->g;
    uint8_t class = g->class_of[byte];
    uint32_t known = r->steps[(size_t)config * g->n_classes + class];
    if (known != NIB_GRAMMAR_UNKNOWN || config <= NIB_GRAMMAR_DEAD) return known ? known : config;
    const nib_grammar_place c = r->configs[config];
    uint32_t first = 0, last = g->n_classes - 1; /* the classes that all edges take or leave as they do this one */
    nib_grammar_begin(r);
    for (uint32_t i = 0; i < c.n_items; i++) {
        nib_grammar_item item = r->items[c.items + i];
        const nib_grammar_state *s = &g->states[item.state];
        for (uint32_t e = s->edges; e < s->edges + s->n_edges && g->edges[e].kind == NIB_GRAMMAR_BYTES; e++) {
            uint32_t lo = g->edges[e].lo, hi = g->edges[e].hi;
            if (lo > class) {
                if (last >= lo) last = lo - 1;
                break; /* sorted by lo */
            }
            if (hi < class) {
                if (first <= hi) first = hi + 1;
                continue;
            }
            if (first < lo) first = lo;
            if (last > hi) last = hi;
            nib_grammar_push(r, g->edges[e].to, item.frame);
        }
    }
    uint32_t next = settle_all(r);
    for (uint32_t i = first; i <= last; i++) r->steps[(size_t)config * g->n_classes + i] = next;
    return next;
}

uint32_t nib_grammar_run_token(nib_grammar_run *r, uint32_t config, nib_token id) {
    const nib_grammar *g = r->g;
    const nib_grammar_place c = r->configs[config];
    nib_grammar_begin(r);
    for (uint32_t i = 0; i < c.n_items; i++) {
        nib_grammar_item item = r->items[c.items + i];
        const nib_grammar_state *s = &g->states[item.state];
        for (uint32_t e = s->edges; e < s->edges + s->n_edges; e++) {
            const nib_grammar_edge *edge = &g->edges[e];
            if (edge->kind == NIB_GRAMMAR_TOKEN && (edge->arg == (uint32_t)id) == (edge->lo == 0))
                nib_grammar_push(r, edge->to, item.frame);
        }
    }
    return settle_all(r);
}

uint32_t nib_grammar_run_union(nib_grammar_run *r, uint32_t a, uint32_t b) {
    if (a <= NIB_GRAMMAR_DEAD || a == b) return b;
    if (b <= NIB_GRAMMAR_DEAD) return a;
    const nib_grammar_place x = r->configs[a], y = r->configs[b];
    nib_grammar_begin(r);
    if (!RESERVE(r, found, (size_t)x.n_items + y.n_items)) return NIB_GRAMMAR_UNKNOWN;
    memcpy(r->found, r->items + x.items, x.n_items * sizeof *r->items);
    memcpy(r->found + x.n_items, r->items + y.items, y.n_items * sizeof *r->items);
    return nib_grammar_intern_config(r, r->found, (size_t)x.n_items + y.n_items, x.may_end || y.may_end);
}

uint32_t nib_grammar_run_last_turn(nib_grammar_run *r, nib_grammar_item item) {
    const nib_grammar_frame f = r->frames[item.frame];
    nib_grammar_begin(r);
    item.frame = change_frame(r, item.frame, r->g->rules[f.rule].max, f.marks);
    return item.frame == NIB_GRAMMAR_NO ? NIB_GRAMMAR_UNKNOWN : nib_grammar_intern_config(r, &item, 1, false);
}
