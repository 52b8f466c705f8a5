/* grammar/reach.c - configuration and groups of characters in -> how many of them may follow. */
#include "grammar/reach.h"

#include "grammar/vocab.h"

/* All characters that begin with `code`, with lead.n bytes to come, must lead to *next; UNKNOWN: to one and the same,
 * which becomes *next. */
static bool follow(nib_grammar_run *r, uint32_t at, nib_grammar_lead lead, uint32_t code, uint32_t *next) {
    if (lead.n == 0 || at == NIB_GRAMMAR_DEAD) {
        if (*next == NIB_GRAMMAR_UNKNOWN) *next = at;
        return *next == at;
    }
    const nib_grammar_lead rest = {(uint8_t)(lead.n - 1), 0x80, 0xBF};
    for (unsigned c = lead.lo, last = 256; c <= lead.hi; c++) {
        uint32_t longer = code << 6 | (c & 0x3F);
        bool is_line_end = lead.n == 1 && nib_grammar_is_line_end(longer);
        if (is_line_end || r->g->class_of[c] == last) continue;
        last = r->g->class_of[c];
        uint32_t to = nib_grammar_run_step(r, at, (uint8_t)c);
        if (to == NIB_GRAMMAR_UNKNOWN || !follow(r, to, rest, longer, next)) return false;
    }
    return true;
}

/* First and last bytes of the characters of a group. */
static const uint8_t FIRST[] = {'a', 'A', '0', 0x21, 0x20, 0xC2}, LAST[] = {'z', 'Z', '9', 0x7E, 0x20, 0xF4};

uint32_t nib_grammar_reach_next(nib_grammar_run *r, uint32_t config, unsigned group) {
    uint32_t next = r->configs[config].group_next[group];
    if (next != NIB_GRAMMAR_UNKNOWN) return next;
    nib_grammar_lead lead = {0}, before = {0};
    bool is_one = true;
    for (unsigned c = FIRST[group], last = 256; c <= LAST[group] && is_one; c++, before = lead) {
        if (nib_grammar_group((uint8_t)c) != group) continue;
        lead = nib_grammar_lead_of((uint8_t)c);
        bool is_alike = r->g->class_of[c] == last && lead.n == before.n && lead.lo == before.lo && lead.hi == before.hi;
        last = r->g->class_of[c];
        if (is_alike) continue;
        uint32_t to = nib_grammar_run_step(r, config, (uint8_t)c);
        is_one = to != NIB_GRAMMAR_UNKNOWN && follow(r, to, lead, c & 0x3Fu >> lead.n, &next);
    }
    if (!is_one) next = NIB_GRAMMAR_NO;
    return r->configs[config].group_next[group] = next;
}

/* Most plain characters that an item which repeats them takes; 0: none does. *only: the item, if no other one reads
 * plain characters; else NIB_GRAMMAR_NO. */
static uint32_t longest_loop(const nib_grammar_run *r, uint32_t config, uint32_t *only) {
    const nib_grammar_place *c = &r->configs[config];
    uint32_t longest = 0, n_readers = 0;
    *only = NIB_GRAMMAR_NO;
    for (uint32_t i = 0; i < c->n_items; i++) {
        nib_grammar_item item = r->items[c->items + i];
        uint32_t flags = r->g->states[item.state].flags;
        const nib_grammar_frame *f = &r->frames[item.frame];
        uint32_t max = r->g->rules[f->rule].max, n = NIB_GRAMMAR_NO;
        if (!(flags & NIB_GRAMMAR_READS_PLAIN)) continue;
        *only = n_readers++ ? NIB_GRAMMAR_NO : c->items + i;
        if (!(flags & (NIB_GRAMMAR_LOOPS | NIB_GRAMMAR_LOOPS_COUNTED))) continue;
        if (flags & NIB_GRAMMAR_LOOPS_COUNTED && max != NIB_GRAMMAR_NO)
            n = max - f->count + 1; /* this one is counted */
        if (n > longest) longest = n;
    }
    return longest;
}

/* Whether no plain character can follow the last turn of a counted loop. */
static bool ends_plain(nib_grammar_run *r, nib_grammar_item item) {
    uint32_t config = nib_grammar_run_last_turn(r, item), next = NIB_GRAMMAR_UNKNOWN;
    if (config == NIB_GRAMMAR_UNKNOWN) return false;
    next = nib_grammar_run_step(r, config, 'a');
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++)
        if (next <= NIB_GRAMMAR_DEAD || nib_grammar_reach_next(r, next, g) != NIB_GRAMMAR_DEAD)
            return next == NIB_GRAMMAR_DEAD;
    return true;
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

nib_grammar_reach nib_grammar_reach_far(nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t most) {
    nib_grammar_reach reach = {groups, most, true};
    uint32_t only, loop, next = next_of_groups(r, config, groups);
    if (next == config) return reach;
    loop = longest_loop(r, config, &only);
    if (loop >= most) return reach;
    reach.chars = loop;
    if (loop && only != NIB_GRAMMAR_NO && ends_plain(r, r->items[only])) return reach;
    for (reach.chars = 0; reach.chars < most && next != NIB_GRAMMAR_DEAD; reach.chars++) {
        if (next == NIB_GRAMMAR_NO) {
            reach.is_all = false;
            break;
        }
        if (next == config) {
            reach.chars = most;
            break;
        }
        config = next;
        next = next_of_groups(r, config, groups);
    }
    return reach;
}

enum {
    FEW = 128, /* tokens that are less than such a part of all are looked at rather than tried as texts of any length */
    FAR = 24,  /* characters that are tried at most, unless it is clear how they go on */
};

nib_grammar_reach nib_grammar_reach_plain(nib_grammar_run *r, uint32_t config) {
    const nib_grammar_vocab *v = r->g->vocab;
    uint32_t next[NIB_GRAMMAR_N_GROUPS], only, loop = longest_loop(r, config, &only);
    nib_grammar_reach best = {0, 0, false};
    if (loop) {
        best = nib_grammar_reach_far(r, config, NIB_GRAMMAR_ALL_GROUPS, v->max_chars);
        if (best.chars < loop && !best.is_all) best.chars = loop;
        return best;
    }
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++) next[g] = nib_grammar_reach_next(r, config, g);
    for (unsigned g = 0; g < NIB_GRAMMAR_N_GROUPS; g++) {
        unsigned groups = 0;
        if (next[g] == NIB_GRAMMAR_DEAD || next[g] == NIB_GRAMMAR_NO) continue;
        for (unsigned h = 0; h < NIB_GRAMMAR_N_GROUPS; h++) groups |= (unsigned)(next[h] == next[g]) << h;
        if (v->n_within[groups] > v->n_within[best.groups]) {
            best.groups = groups;
            best.is_all = next[g] == config;
        }
    }
    if (v->n_within[best.groups] < v->n_tokens / FEW) return (nib_grammar_reach){0, 0, false};
    uint32_t most = best.is_all || v->max_chars < FAR ? v->max_chars : FAR;
    best = nib_grammar_reach_far(r, config, best.groups, most);
    if (best.chars == most && most < v->max_chars) best.is_all = false;
    return best;
}
