/* grammar/intern.h - private to run.c and carry.c: numbers for frames and configurations. Functions fail by r->status.
 */
#ifndef NIB_GRAMMAR_INTERN_H
#define NIB_GRAMMAR_INTERN_H

#include "grammar/run.h"

void nib_grammar_begin(nib_grammar_run *r); /* empties work, found and calls, and clears the status */
bool nib_grammar_push(nib_grammar_run *r, uint32_t state, uint32_t frame); /* to work, once; false: failed */
bool nib_grammar_reserve_gathered(nib_grammar_run *r, size_t n);
bool nib_grammar_reserve_found(nib_grammar_run *r, size_t n);
/* Sorts links or items and drops doubles. Returns how many are left. */
size_t nib_grammar_sort_pairs(void *pairs, size_t n);
/* links: sorted, not inside r->links. NIB_GRAMMAR_NO: failed. */
uint32_t nib_grammar_intern_frame(nib_grammar_run *r, nib_grammar_frame f, const nib_grammar_link *links);
/* items need not be sorted. UNKNOWN: failed. */
uint32_t nib_grammar_intern_config(nib_grammar_run *r, nib_grammar_item *items, size_t n, bool may_end);
/* A set of keys with one more; NIB_GRAMMAR_NO as marks: the empty one. */
uint32_t nib_grammar_with_key(nib_grammar_run *r, uint32_t marks, uint32_t key, uint32_t n_words);

#endif
