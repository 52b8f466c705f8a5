/* grammar/pattern.h - a regular language of characters: a small automaton whose edges read sets of characters, without
 * empty edges. Made of a regular expression (regex.c); cut and met here; drawn as bytes, or as what stands between quotes. */
#ifndef NIB_GRAMMAR_PATTERN_H
#define NIB_GRAMMAR_PATTERN_H

#include "grammar/charset.h"

typedef struct nib_grammar_pattern_edge {
    uint32_t from, to, set;
} nib_grammar_pattern_edge;

typedef struct nib_grammar_pattern { /* zero-initialise; state 0 is the first one */
    nib_grammar_pattern_edge *edges; /* sorted by from, after nib_grammar_pattern_sort */
    uint32_t *first;                 /* n_states + 1 of edges, after sort */
    uint8_t *ends;
    nib_grammar_charset *sets;
    size_t n_edges, edges_capacity, n_states, ends_capacity, n_sets, sets_capacity;
} nib_grammar_pattern;

enum { NIB_GRAMMAR_MAX_PATTERN = 50000 }; /* states; and five times as many edges */

void nib_grammar_pattern_free(nib_grammar_pattern *p);
/* New state / set (taken over). 0 on failure, which sticks to b. */
uint32_t nib_grammar_pattern_state(nib_grammar_build *b, nib_grammar_pattern *p);
uint32_t nib_grammar_pattern_set(nib_grammar_build *b, nib_grammar_pattern *p, nib_grammar_charset *set);
void nib_grammar_pattern_edge_add(nib_grammar_build *b, nib_grammar_pattern *p, nib_grammar_pattern_edge edge);
/* Drops edges to states that cannot end, and sorts the rest. */
void nib_grammar_pattern_sort(nib_grammar_build *b, nib_grammar_pattern *p);

/* The regular expression at `text`, whose first byte is at offset `at` of the grammar. The whole text must match, or
 * with is_search some part of it. */
void nib_grammar_pattern_read(nib_grammar_build *b, nib_str text, uint64_t at, bool is_search,
                              nib_grammar_pattern *out);
/* Texts of min … max characters (max NIB_GRAMMAR_NO: no end). */
void nib_grammar_pattern_cut(nib_grammar_build *b, nib_grammar_pattern *p, uint32_t min, uint32_t max);
/* p becomes what is in both. */
void nib_grammar_pattern_meet(nib_grammar_build *b, nib_grammar_pattern *p, const nib_grammar_pattern *q);
/* p becomes all that is not in it. */
void nib_grammar_pattern_negate(nib_grammar_build *b, nib_grammar_pattern *p);
bool nib_grammar_pattern_matches(nib_grammar_build *b, const nib_grammar_pattern *p, nib_str text);
bool nib_grammar_pattern_is_empty(const nib_grammar_pattern *p); /* no text at all */
/* All texts but those of the list. */
void nib_grammar_pattern_except(nib_grammar_build *b, const nib_str *texts, size_t n, nib_grammar_pattern *out);

/* Draws what leads from one node to another by a character of the set. */
typedef void (*nib_grammar_draw_set_fn)(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set);
nib_grammar_piece nib_grammar_pattern_draw(nib_grammar_build *b, const nib_grammar_pattern *p,
                                           nib_grammar_draw_set_fn draw);

#endif
