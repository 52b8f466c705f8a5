/* grammar/plain.c - finds the states that repeat plain characters. */
#include "grammar/plain.h"

/* Whether the only thing to do at `at` is to count and be at state again. */
static bool counts_back(const nib_grammar *g, uint32_t at, uint32_t state) {
    const nib_grammar_state *s = &g->states[at];
    for (uint32_t e = s->edges; e < s->edges + s->n_edges; e++)
        if (g->edges[e].kind == NIB_GRAMMAR_INC && g->edges[e].to == state) return true;
    return false;
}

typedef struct search {
    const nib_grammar *g;
    uint32_t state;
    bool direct, counted; /* all characters so far lead back this way */
} search;

/* The target of `at` by the byte; NIB_GRAMMAR_NO when there is none. Of several the one that is the state goes first: a
 * token has to be in the mask for one way only. With counts there must be one way: tokens that are too long for it are
 * out. */
static uint32_t step(search *f, uint32_t at, uint8_t byte) {
    const nib_grammar_state *s = &f->g->states[at];
    uint8_t c = f->g->class_of[byte];
    uint32_t found = NIB_GRAMMAR_NO;
    for (uint32_t e = s->edges; e < s->edges + s->n_edges && f->g->edges[e].kind == NIB_GRAMMAR_BYTES; e++) {
        const nib_grammar_edge *edge = &f->g->edges[e];
        if (edge->lo > c || c > edge->hi) continue;
        if (found != NIB_GRAMMAR_NO) f->counted = false;
        if (found != f->state) found = edge->to;
    }
    return found;
}

/* n continuation bytes, the first from lo to hi, from `at` lead back to the state. */
static void follow(search *f, uint32_t at, unsigned n, unsigned lo, unsigned hi) {
    if (at == NIB_GRAMMAR_NO) {
        f->direct = f->counted = false;
    } else if (n == 0) {
        f->direct = f->direct && at == f->state;
        f->counted = f->counted && counts_back(f->g, at, f->state);
    } else {
        for (unsigned c = lo, last = 256; c <= hi && (f->direct || f->counted); c++) {
            if (f->g->class_of[c] == last) continue; /* bytes of a class lead to the same */
            last = f->g->class_of[c];
            follow(f, step(f, at, (uint8_t)c), n - 1, 0x80, 0xBF);
        }
    }
}

static bool are_alike(const nib_grammar *g, uint8_t a, uint8_t b) {
    nib_grammar_lead x = nib_grammar_lead_of(a), y = nib_grammar_lead_of(b);
    return g->class_of[a] == g->class_of[b] && nib_grammar_group(a) == nib_grammar_group(b) && x.n == y.n &&
           x.lo == y.lo && x.hi == y.hi;
}

static void find_leads(nib_grammar *g) {
    g->n_leads = 0;
    for (unsigned c = 0; c < 256; c++) {
        bool is_new = nib_grammar_is_plain((uint8_t)c) && nib_grammar_is_lead((uint8_t)c);
        for (uint32_t i = g->n_leads; is_new && i-- > 0;) is_new = !are_alike(g, g->leads[i], (uint8_t)c);
        if (is_new) g->leads[g->n_leads++] = (uint8_t)c;
    }
}

static void find_own_loops(nib_grammar *g, uint32_t state) {
    nib_grammar_state *s = &g->states[state];
    if (!(s->flags & NIB_GRAMMAR_HAS_BYTES)) return;
    s->loops = s->loops_counted = NIB_GRAMMAR_ALL_GROUPS;
    for (uint32_t i = 0; i < g->n_leads; i++) {
        nib_grammar_lead lead = nib_grammar_lead_of(g->leads[i]);
        uint8_t bit = (uint8_t)(1u << nib_grammar_group(g->leads[i]));
        search f = {g, state, s->loops & bit, s->loops_counted & bit};
        uint32_t to = step(&f, state, g->leads[i]);
        if (to != NIB_GRAMMAR_NO) s->reads |= bit;
        if (f.direct || f.counted) follow(&f, to, lead.n, lead.lo, lead.hi);
        if (!f.direct) s->loops &= (uint8_t)~bit;
        if (!f.counted) s->loops_counted &= (uint8_t)~bit;
    }
}

/* ---- texts of any kind, as where all may stand but for some */

enum { ENDLESS = UINT8_MAX, MAX_PASSES = 16 };

typedef struct freedom {
    nib_grammar *g;
    int kind; /* of free_chars */
} freedom;

static uint8_t free_after(freedom f, uint32_t at, nib_grammar_lead lead);

/* As free_after, of the byte and what comes behind it. */
static uint8_t free_by(freedom f, uint32_t at, uint8_t byte, nib_grammar_lead lead) {
    const nib_grammar_state *s = &f.g->states[at];
    uint8_t c = f.g->class_of[byte], most = 0;
    for (uint32_t e = s->edges; e < s->edges + s->n_edges && f.g->edges[e].kind == NIB_GRAMMAR_BYTES; e++) {
        if (f.g->edges[e].lo > c) break;
        if (f.g->edges[e].hi < c) continue;
        uint8_t n = free_after(f, f.g->edges[e].to, lead);
        if (n > most) most = n;
    }
    return most;
}

/* How many characters may follow in any case, with the one of which lead.n bytes are to come; 0: not even that one. */
static uint8_t free_after(freedom f, uint32_t at, nib_grammar_lead lead) {
    const nib_grammar_lead rest = {(uint8_t)(lead.n - 1), 0x80, 0xBF};
    uint8_t n = f.g->states[at].free_chars[f.kind], least = ENDLESS;
    if (lead.n == 0) return n < ENDLESS - 1 ? (uint8_t)(n + 1) : n;
    for (unsigned c = lead.lo, last = 256; c <= lead.hi && least; c++) {
        if (f.g->class_of[c] == last) continue;
        last = f.g->class_of[c];
        n = free_by(f, at, (uint8_t)c, rest);
        if (n < least) least = n;
    }
    return least;
}

/* One pass over the characters of one byte, or the others; from the last state to the first, as states mostly lead to
 * later ones. True: something has changed. */
static bool lower_free(freedom f, bool wide) {
    bool changed = false;
    for (size_t i = f.g->n_states; i-- > 0;) {
        uint8_t *chars = &f.g->states[i].free_chars[f.kind], least = *chars;
        for (uint32_t k = 0; k < f.g->n_leads && least; k++) {
            uint8_t c = f.g->leads[k];
            if ((c >= 0x80) != wide || (f.kind == 0 && nib_grammar_group(c) == NIB_GRAMMAR_SPACE)) continue;
            uint8_t n = free_by(f, (uint32_t)i, c, nib_grammar_lead_of(c));
            if (n < least) least = n;
        }
        changed = changed || least < *chars;
        *chars = least;
    }
    return changed;
}

/* From too many downwards, until all agree. */
static void find_free(freedom f) {
    unsigned groups = f.kind ? NIB_GRAMMAR_ALL_GROUPS : NIB_GRAMMAR_ALL_GROUPS & ~(1u << NIB_GRAMMAR_SPACE);
    bool changed = true;
    for (size_t i = 0; i < f.g->n_states; i++)
        f.g->states[i].free_chars[f.kind] = f.g->states[i].flags & NIB_GRAMMAR_HAS_BYTES ? ENDLESS : 0;
    for (int pass = 0; changed && pass < MAX_PASSES; pass++) changed = lower_free(f, false) || lower_free(f, true);
    for (size_t i = 0; i < f.g->n_states; i++) {
        nib_grammar_state *s = &f.g->states[i];
        if (changed) s->free_chars[f.kind] = 0;
        if (s->free_chars[f.kind] == ENDLESS && (s->loops & ~groups) == 0) s->loops = (uint8_t)groups;
    }
}

void nib_grammar_find_loops(nib_grammar *g) {
    find_leads(g);
    for (size_t i = 0; i < g->n_states; i++) find_own_loops(g, (uint32_t)i);
    find_free((freedom){g, 0});
    find_free((freedom){g, 1});
}
