/* grammar/carry.c - the same configuration elsewhere: in a fresh automaton, or with counts that are far from their
 * bounds replaced by one that stands for all of them, so that they share a mask. */
#include "base/mem.h"
#include "grammar/intern.h"

#include <string.h>

/* ---- far counts */

static uint32_t far_count(const nib_grammar_rule *rule, uint32_t count, uint32_t len) {
    if (rule->n_keys) return count;
    if (count < rule->min) return rule->min - count > len ? 0 : count;
    if (rule->max == NIB_GRAMMAR_NO) return count;
    return rule->max - count > len ? rule->min : count;
}

/* found serves as the stack. */
static bool push_frame(nib_grammar_run *r, uint32_t frame) {
    if (!nib_grammar_reserve_found(r, r->n_found + 1)) return false;
    r->found[r->n_found++].frame = frame;
    return true;
}

/* The frame is made when those that it goes back to have theirs; else these come first. */
static bool far_frame(nib_grammar_run *r, uint32_t frame, uint32_t len, bool *waits) {
    nib_grammar_frame f = r->frames[frame];
    *waits = false;
    if (!nib_grammar_reserve_gathered(r, f.n_links)) return false;
    for (uint32_t i = 0; i < f.n_links; i++) {
        nib_grammar_link link = r->links[f.links + i];
        if (link.ret != NIB_GRAMMAR_NO) {
            if (r->frames[link.frame].far == NIB_GRAMMAR_NO) {
                if (!push_frame(r, link.frame)) return false;
                *waits = true;
                continue;
            }
            link.frame = r->frames[link.frame].far;
        }
        r->gathered[i] = link;
    }
    if (*waits) return true;
    f.count = far_count(&r->g->rules[f.rule], f.count, len);
    f.n_links = (uint32_t)nib_grammar_sort_pairs(r->gathered, f.n_links);
    uint32_t far = nib_grammar_intern_frame(r, f, r->gathered);
    if (far == NIB_GRAMMAR_NO) return false;
    r->frames[far].far = far;
    r->frames[frame].far = far;
    return true;
}

uint32_t nib_grammar_run_far(nib_grammar_run *r, uint32_t config, uint32_t len) {
    nib_grammar_place c = r->configs[config];
    bool waits;
    if (c.far) return c.far;
    nib_grammar_begin(r);
    for (uint32_t i = 0; i < c.n_items; i++)
        if (!push_frame(r, r->items[c.items + i].frame)) return config;
    while (r->n_found) {
        uint32_t frame = r->found[r->n_found - 1].frame;
        waits = false;
        if (r->frames[frame].far == NIB_GRAMMAR_NO && !far_frame(r, frame, len, &waits)) return config;
        if (!waits) r->n_found--;
    }
    nib_grammar_begin(r);
    if (!nib_grammar_reserve_found(r, c.n_items)) return config;
    for (uint32_t i = 0; i < c.n_items; i++) {
        nib_grammar_item item = r->items[c.items + i];
        item.frame = r->frames[item.frame].far;
        r->found[r->n_found++] = item;
    }
    uint32_t far = nib_grammar_intern_config(r, r->found, r->n_found, c.may_end);
    if (far == NIB_GRAMMAR_UNKNOWN) return config;
    r->configs[far].far = far;
    return r->configs[config].far = far;
}

/* ---- to another run */

static uint32_t carry_marks(nib_grammar_run *to, const nib_grammar_run *from, const nib_grammar_frame *f) {
    uint32_t marks = NIB_GRAMMAR_NO, n_keys = from->g->rules[f->rule].n_keys;
    for (uint32_t k = 0; k <= n_keys && f->marks != NIB_GRAMMAR_NO; k++)
        if (from->marks[f->marks + k / 64] >> k % 64 & 1) marks = nib_grammar_with_key(to, marks, k, n_keys / 64 + 1);
    return marks;
}

/* Frames go back to frames of lower numbers only: marked from the last to the first, made from the first to the last.
 */
bool nib_grammar_run_carry(nib_grammar_run *to, const nib_grammar_run *from, uint32_t *configs, size_t n) {
    uint32_t *map = nib_calloc(from->n_frames + 1, sizeof *map); /* 0: not needed, 1: needed, else the new number + 2 */
    bool ok = map != NULL;
    for (size_t k = 0; ok && k < n; k++) {
        const nib_grammar_place *c = &from->configs[configs[k]];
        for (uint32_t i = 0; i < c->n_items; i++) map[from->items[c->items + i].frame] = 1;
    }
    for (size_t i = from->n_frames; ok && i-- > 0;)
        for (uint32_t k = 0; map[i] && k < from->frames[i].n_links; k++) {
            nib_grammar_link link = from->links[from->frames[i].links + k];
            if (link.ret != NIB_GRAMMAR_NO) map[link.frame] = 1;
        }
    nib_grammar_begin(to);
    for (size_t i = 0; ok && i < from->n_frames; i++) {
        nib_grammar_frame f = from->frames[i];
        if (!map[i]) continue;
        if (!(ok = nib_grammar_reserve_gathered(to, f.n_links))) break;
        for (uint32_t k = 0; k < f.n_links; k++) {
            nib_grammar_link link = from->links[f.links + k];
            if (link.ret != NIB_GRAMMAR_NO) link.frame = map[link.frame] - 2;
            to->gathered[k] = link;
        }
        f.n_links = (uint32_t)nib_grammar_sort_pairs(to->gathered, f.n_links);
        f.marks = carry_marks(to, from, &f);
        uint32_t frame = nib_grammar_intern_frame(to, f, to->gathered);
        ok = frame != NIB_GRAMMAR_NO && to->status == NIB_OK;
        map[i] = frame + 2;
    }
    for (size_t k = 0; ok && k < n; k++) {
        const nib_grammar_place *c = &from->configs[configs[k]];
        if (configs[k] <= NIB_GRAMMAR_DEAD) continue;
        to->n_found = 0;
        if (!(ok = nib_grammar_reserve_found(to, c->n_items))) break;
        for (uint32_t i = 0; i < c->n_items; i++) {
            nib_grammar_item item = from->items[c->items + i];
            to->found[to->n_found++] = (nib_grammar_item){item.state, map[item.frame] - 2};
        }
        configs[k] = nib_grammar_intern_config(to, to->found, to->n_found, c->may_end);
        ok = configs[k] != NIB_GRAMMAR_UNKNOWN;
    }
    nib_free(map);
    return ok;
}
