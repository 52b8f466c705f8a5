/* grammar/finish.h - steps of nib_grammar_finish that have a file of their own. */
#ifndef NIB_GRAMMAR_FINISH_H
#define NIB_GRAMMAR_FINISH_H

#include "grammar/build.h"

/* Merges states that are reached by the same path or from which the same is possible. False: memory was out; the
 * grammar is whole all the same. */
bool nib_grammar_merge(nib_grammar *g);
/* Sorts edges, finds classes of bytes and flags of states. */
void nib_grammar_classify(nib_grammar *g);

#endif
