/* chat/shape/scan.c - free text as an automaton: bytes go round until the opening of a rule is complete (Aho-Corasick), so
 * no text holds an opening that the parser would take for one. */
#include "base/mem.h"
#include "chat/shape/shape.h"

#include <string.h>

enum { MAX_STATES = 4096, DEAD = 0xFFFF };

typedef struct state {
    uint16_t to[256]; /* while the trie is made: 0 is none */
    uint16_t back;    /* the longest proper end of its text that is a state */
    uint8_t hit;      /* rule whose opening is complete, + 1 */
} state;

typedef struct scan {
    nib_chat_shape *d;
    state *states;
    size_t n, capacity;
    uint16_t first; /* where text begins */
} scan;

static uint16_t new_state(scan *s) {
    if (s->n >= MAX_STATES || !nib_grow(&s->states, &s->capacity, s->n + 1, sizeof *s->states)) {
        nib_grammar_build_fail(s->d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu states of free text", s->n);
        return 0;
    }
    s->states[s->n] = (state){.hit = 0};
    return (uint16_t)s->n++;
}

static void add_text(scan *s, uint16_t root, const char *text, size_t rule) {
    uint16_t at = root;
    for (size_t i = 0, n = nib_chat_shape_literal_len(text); i < n && !nib_chat_shape_failed(s->d); i++) {
        uint8_t c = (uint8_t)text[i];
        uint16_t next = s->states[at].to[c];
        if (!next) {
            next = new_state(s);
            s->states[at].to[c] = next;
        }
        at = next;
    }
    if (at != root) s->states[at].hit = (uint8_t)(rule + 1);
}

static void add_texts(scan *s, uint16_t root, unsigned set) {
    for (size_t i = 0; set; i++, set >>= 1)
        if (set & 1) add_text(s, root, s->d->format->rules[i].pattern, i);
}

/* Fills in where the bytes lead that no text goes on with: breadth first, so the states further back are complete. */
static void connect(scan *s, uint16_t root) {
    uint16_t *queue = nib_calloc(s->n + 1, sizeof *queue);
    size_t n = 0;
    if (!queue) {
        nib_grammar_build_fail(s->d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for free text");
        return;
    }
    queue[n++] = root;
    for (size_t k = 0; k < n; k++) {
        state *at = &s->states[queue[k]];
        for (unsigned c = 0; c < 256; c++) {
            uint16_t other = queue[k] == 0 ? 0 : s->states[at->back].to[c];
            if (!at->to[c]) {
                at->to[c] = other;
                continue;
            }
            state *next = &s->states[at->to[c]];
            next->back = other;
            if (!next->hit) next->hit = s->states[other].hit;
            if (at->to[c] != queue[k]) queue[n++] = at->to[c];
        }
    }
    nib_free(queue);
}

/* What a rule without an opening may begin with is not how free text begins. */
static void forbid_starts(scan *s, unsigned outer) {
    for (size_t i = 0; outer; i++, outer >>= 1) {
        const char *pattern = outer & 1 ? s->d->format->rules[i].pattern : "x";
        if (nib_chat_shape_literal_len(pattern)) continue;
        for (unsigned c = 0; c < 256; c++) {
            bool is_name = c > ' ' && c != 0x7F && !strchr("<>[]{}()\"'`,\\;=", (int)c);
            if ((strchr(pattern, NIB_CHAT_BARE) && c == '{') || (strchr(pattern, NIB_CHAT_PYTHON) && c == '[') ||
                (strchr(pattern, NIB_CHAT_NAME) && is_name))
                s->states[s->first].to[c] = DEAD;
        }
    }
}

static void make(scan *s, unsigned inner, unsigned outer) {
    new_state(s);
    add_texts(s, 0, inner);
    if (!nib_chat_shape_failed(s->d)) connect(s, 0);
    if (!outer || nib_chat_shape_failed(s->d)) return;
    s->first = new_state(s);
    add_texts(s, s->first, inner | outer);
    if (nib_chat_shape_failed(s->d)) return;
    for (const char *c = " \t\r\n"; *c; c++)
        if (!s->states[s->first].to[(uint8_t)*c]) s->states[s->first].to[(uint8_t)*c] = s->first;
    connect(s, s->first);
    forbid_starts(s, outer);
}

/* Where a state leads to by the bytes of a token; DEAD: past the end of an opening. */
static uint16_t follow(const scan *s, uint16_t at, nib_str text) {
    for (size_t i = 0; i < text.len && at != DEAD; i++) at = s->states[at].hit ? DEAD : s->states[at].to[(uint8_t)text.ptr[i]];
    return at;
}

static bool has_part(const scan *s, unsigned set, nib_str text) {
    for (size_t i = 0; set; i++, set >>= 1) {
        const char *pattern = s->d->format->rules[i].pattern;
        size_t n = set & 1 ? nib_chat_shape_literal_len(pattern) : 0;
        for (size_t k = 0; k + text.len <= n; k++)
            if (memcmp(pattern + k, text.ptr, text.len) == 0) return true;
    }
    return false;
}

static void draw_state(scan *s, size_t i, const uint32_t *nodes, unsigned set) {
    nib_grammar_build *b = s->d->b;
    const state *at = &s->states[i];
    for (unsigned lo = 0, hi; lo < 256; lo = hi + 1) {
        for (hi = lo; hi < 255 && at->to[hi + 1] == at->to[lo];) hi++;
        if (at->to[lo] != DEAD) nib_grammar_bytes(b, nodes[i], nodes[at->to[lo]], (uint8_t)lo, (uint8_t)hi);
    }
    for (size_t k = 0; k < s->d->n_marks; k++) {
        nib_str name = b->vocab->names[s->d->marks[k]];
        uint16_t to = has_part(s, set, name) ? follow(s, (uint16_t)i, name) : DEAD;
        if (to == DEAD) continue;
        nib_grammar_draw(b, nodes[i], (nib_grammar_edge){.to = nodes[to], .arg = (uint32_t)s->d->marks[k], .kind = NIB_GRAMMAR_TOKEN});
    }
}

void nib_chat_shape_scan(nib_chat_shape *d, uint32_t from, unsigned inner, unsigned outer,
                         void (*leave)(nib_chat_shape *d, uint32_t node)) {
    scan s = {.d = d};
    make(&s, inner, outer);
    uint32_t *nodes = nib_calloc(s.n + 1, sizeof *nodes);
    if (!nodes) {
        nib_grammar_build_fail(d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for free text");
        goto out;
    }
    for (size_t i = 0; i < s.n && !nib_chat_shape_failed(d); i++)
        nodes[i] = s.states[i].hit ? d->opened[s.states[i].hit - 1] : nib_grammar_node(d->b);
    for (size_t i = 0; i < s.n && !nib_chat_shape_failed(d); i++) {
        if (s.states[i].hit) continue;
        draw_state(&s, i, nodes, inner | outer);
        leave(d, nodes[i]);
    }
    if (!nib_chat_shape_failed(d)) nib_grammar_empty(d->b, from, nodes[s.first]);
out:
    nib_free(nodes);
    nib_free(s.states);
}
