/* grammar/explain.h - an automaton as text for a person. */
#ifndef NIB_GRAMMAR_EXPLAIN_H
#define NIB_GRAMMAR_EXPLAIN_H

#include "grammar/run.h"

bool nib_grammar_explain(nib_grammar *g); /* fills g->text; false: memory was out */
/* What may follow: "'a'-'z', '\"' or the end". */
void nib_grammar_explain_config(const nib_grammar_run *r, uint32_t config, nib_buf *out);

#endif
