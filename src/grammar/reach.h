/* grammar/reach.h - how far texts of some groups of characters lead from a configuration, whatever the characters are.
 */
#ifndef NIB_GRAMMAR_REACH_H
#define NIB_GRAMMAR_REACH_H

#include "grammar/run.h"

/* Tokens of which all is known without looking at them. */
typedef struct nib_grammar_reach {
    unsigned groups; /* those of no other characters, */
    uint32_t chars;  /* with at most so many of them, are allowed; */
    bool is_all;     /* longer ones are not; */
    unsigned never;  /* nor are those of these groups as well */
} nib_grammar_reach;

/* The configuration after any character of a group; DEAD: none may come; NIB_GRAMMAR_NO: that depends. */
uint32_t nib_grammar_reach_next(nib_grammar_run *r, uint32_t config, unsigned group);
/* Sets loops and never of a configuration. */
void nib_grammar_reach_loops(nib_grammar_run *r, uint32_t config);
/* Whether n characters of the groups may come, whatever they are. */
bool nib_grammar_reach_takes(nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t n);
/* The same, as far as it is known at once. */
bool nib_grammar_reach_is_free(const nib_grammar_run *r, uint32_t config, unsigned groups, uint32_t n);
/* The groups of which most plain tokens are known. */
nib_grammar_reach nib_grammar_reach_plain(nib_grammar_run *r, uint32_t config);

#endif
