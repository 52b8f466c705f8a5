/* grammar/reach.c - configuration and groups of characters in -> how many of them may follow. */
#include "grammar/reach.h"

#include "grammar/vocab.h"

enum { LINE_ENDS = 0x2028 >> 6 }; /* the code of what U+2028 and U+2029 begin with */

/* All characters that begin with `code`, with lead.n bytes to come, must lead to *next; UNKNOWN: to one and the same,
 * which becomes *next. */
static bool follow(nib_grammar_run *r, uint32_t at, nib_grammar_lead lead, uint32_t code, uint32_t *next) {
    if (lead.n == 0 || at == NIB_GRAMMAR_DEAD) {
        if (*next == NIB_GRAMMAR_UNKNOWN) *next = at;
        return *next == at;
    }
    const nib_grammar_lead rest = {(uint8_t)(lead.n - 1), 0x80, 0xBF};
    uint32_t followed = NIB_GRAMMAR_UNKNOWN;
    for (unsigned c = lead.lo, last = 256; c <= lead.hi; c++) {
        uint32_t longer = code << 6 | (c & 0x3F);
        bool is_line_end = lead.n == 1 && nib_grammar_is_line_end(longer);
        if (is_line_end || r->g->class_of[c] == last) continue;
        last = r->g->class_of[c];
        uint32_t to = nib_grammar_run_step(r, at, (uint8_t)c);
        if (to == followed) continue;
        if (to == NIB_GRAMMAR_UNKNOWN || !follow(r, to, rest, longer, next)) return false;
        if (longer != LINE_ENDS) followed = to;
    }
    return true;
}

uint32_t nib_grammar_reach_next(nib_grammar_run *r, uint32_t config, unsigned group) {
    uint32_t next = r->configs[config].group_next[group];
    if (next != NIB_GRAMMAR_UNKNOWN) return next;
    bool is_one = true;
    for (uint32_t i = 0; i < r->g->n_leads && is_one; i++) {
        uint8_t c = r->g->leads[i];
        if (nib_grammar_group(c) != group) continue;
        nib_grammar_lead lead = nib_grammar_lead_of(c);
        uint32_t to = nib_grammar_run_step(r, config, c);
        is_one = to != NIB_GRAMMAR_UNKNOWN && follow(r, to, lead, c & 0x3Fu >> lead.n, &next);
    }
    if (!is_one) next = NIB_GRAMMAR_NO;
    return r->configs[config].group_next[group] = next;
}

/* The configuration after any character of the groups; DEAD: none may come; NIB_GRAMMAR_NO: that depends. */
static uint32_t next_of_groups(nib_grammar_run *r, uint32_t config, unsigned groups) {
    uint32_t next = NIB_GRAMMAR_UNKNOWN;
    for (unsigned g = 0; groups >> g; g++) {
        if (!(groups >> g & 1)) continue;
        uint32_t to = nib_grammar_reach_next(r, config, g);
        if (to == NIB_GRAMMAR_NO || (next != NIB_GRAMMAR_UNKNOWN && to != next)) return NIB_GRAMMAR_NO;
        next = to;
    }
    return next;
}

static bool loops(const nib_grammar_state *s, unsigned groups) {
    return (groups & ~s->loops) == 0 || (groups & ~s->loops_counted) == 0;
}

/* Most characters of the groups that an item which repeats them takes; 0: none does. *only: the item, if no other one
 * reads such characters; else NIB_GRAMMAR_NO. */
static uint32_t longest_loop(const nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t *only) {
    const nib_grammar_place *c = &r->configs[config];
    uint32_t longest = 0, n_readers = 0;
    *only = NIB_GRAMMAR_NO;
    for (uint32_t i = 0; i < c->n_items; i++) {
        nib_grammar_item item = r->items[c->items + i];
        const nib_grammar_state *s = &r->g->states[item.state];
        const nib_grammar_frame *f = &r->frames[item.frame];
        uint32_t max = r->g->rules[f->rule].max, n = NIB_GRAMMAR_NO;
        if (!(s->reads & groups)) continue;
        *only = n_readers++ ? NIB_GRAMMAR_NO : c->items + i;
        if (!loops(s, groups)) continue;
        if (groups & ~s->loops && max != NIB_GRAMMAR_NO) n = max - f->count + 1; /* this one is counted */
        if (n > longest) longest = n;
    }
    return longest;
}

void nib_grammar_reach_loops(nib_grammar_run *r, uint32_t config) {
    unsigned loops = 0, never = 0;
    if (r->configs[config].knows_loops) return;
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++) {
        uint32_t next = nib_grammar_reach_next(r, config, g);
        loops |= (unsigned)(next == config) << g;
        never |= (unsigned)(next == NIB_GRAMMAR_DEAD) << g;
    }
    nib_grammar_place *c = &r->configs[config];
    c->loops = (uint8_t)loops;
    c->never = (uint8_t)never;
    c->knows_loops = true;
}

static unsigned dead_groups(nib_grammar_run *r, uint32_t config) {
    nib_grammar_reach_loops(r, config);
    return r->configs[config].never;
}

/* The groups that can follow neither the present turn of a counted loop nor, if no turn is left, the last one. */
static unsigned never_after(nib_grammar_run *r, nib_grammar_item item, unsigned groups) {
    uint32_t config = nib_grammar_run_last_turn(r, item);
    uint32_t next = config == NIB_GRAMMAR_UNKNOWN ? NIB_GRAMMAR_NO : next_of_groups(r, config, groups);
    return next == NIB_GRAMMAR_NO     ? 0
           : next == NIB_GRAMMAR_DEAD ? NIB_GRAMMAR_ALL_GROUPS
                                      : dead_groups(r, next);
}

bool nib_grammar_reach_is_free(const nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t n) {
    const nib_grammar_place *c = &r->configs[config];
    int kind = (int)(groups >> NIB_GRAMMAR_SPACE & 1);
    for (uint32_t i = 0; i < c->n_items; i++)
        if (n <= r->g->states[r->items[c->items + i].state].free_chars[kind]) return true;
    return false;
}

bool nib_grammar_reach_takes(nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t n) {
    uint32_t only;
    if (longest_loop(r, config, groups, &only) >= n) return true;
    for (uint32_t next; n > 0; n--, config = next) {
        next = next_of_groups(r, config, groups);
        if (next == config) return true;
        if (next == NIB_GRAMMAR_DEAD || next == NIB_GRAMMAR_NO) return false;
    }
    return true;
}

/* How many characters of the groups may come, in any order, up to `most`. */
static nib_grammar_reach reach_far(nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t most) {
    nib_grammar_reach reach = {groups, most, true, dead_groups(r, config)};
    uint32_t only, loop = longest_loop(r, config, groups, &only), next = next_of_groups(r, config, groups);
    if (next == config) return reach;
    if (loop && loop != NIB_GRAMMAR_NO && only != NIB_GRAMMAR_NO) {
        unsigned never = never_after(r, r->items[only], groups);
        reach.never &= never;
        if (loop < most) reach.chars = loop;
        if ((groups & ~never) == 0) return reach;
    }
    if (loop >= most) return (nib_grammar_reach){groups, most, true, 0};
    for (reach.chars = 0; reach.chars < most && next != NIB_GRAMMAR_DEAD; reach.chars++) {
        if (next == config) reach.chars = most;
        if (next == NIB_GRAMMAR_NO) reach.is_all = false;
        if (next == config || next == NIB_GRAMMAR_NO) break;
        config = next;
        reach.never &= dead_groups(r, config);
        next = next_of_groups(r, config, groups);
    }
    return reach.chars < loop ? (nib_grammar_reach){groups, loop, false, 0} : reach;
}

/* The groups of which most plain tokens are known to be allowed, by an item that repeats them. */
static unsigned widest_loop(const nib_grammar_run *r, uint32_t config) {
    const nib_grammar_place *c = &r->configs[config];
    const uint32_t *n_within = r->g->vocab->n_within;
    unsigned best = 0;
    for (uint32_t i = 0; i < c->n_items; i++) {
        const nib_grammar_state *s = &r->g->states[r->items[c->items + i].state];
        if (n_within[s->loops] > n_within[best]) best = s->loops;
        if (n_within[s->loops_counted] > n_within[best]) best = s->loops_counted;
    }
    return best;
}

enum { FEW = 128 }; /* tokens that are less than such a part of all are looked at rather than tried as texts of any length */

/* The groups of which most plain tokens are known, by where the first character leads. */
static unsigned widest_next(nib_grammar_run *r, uint32_t config) {
    const uint32_t *n_within = r->g->vocab->n_within;
    uint32_t next[NIB_GRAMMAR_N_GROUPS];
    unsigned best = 0;
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++) next[g] = nib_grammar_reach_next(r, config, g);
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++) {
        unsigned groups = 0;
        if (next[g] == NIB_GRAMMAR_DEAD || next[g] == NIB_GRAMMAR_NO) continue;
        for (unsigned h = 0; h < NIB_GRAMMAR_N_GROUPS; h++) groups |= (unsigned)(next[h] == next[g]) << h;
        if (n_within[groups] > n_within[best]) best = groups;
    }
    return best;
}

nib_grammar_reach nib_grammar_reach_plain(nib_grammar_run *r, uint32_t config) {
    const nib_grammar_vocab *v = r->g->vocab;
    uint32_t most = v->max_chars;
    unsigned groups = widest_loop(r, config), by_next = widest_next(r, config);
    if (v->n_within[by_next] > v->n_within[groups]) {
        groups = by_next;
        if (v->n_within[groups] < v->n_tokens / FEW) return (nib_grammar_reach){0};
        if (most > NIB_GRAMMAR_SHORT && next_of_groups(r, config, groups) != config) most = NIB_GRAMMAR_SHORT;
    }
    nib_grammar_reach best = reach_far(r, config, groups, most);
    if (best.chars == most && most < v->max_chars) best.is_all = false;
    return best;
}
