/* grammar/mask.h - which tokens may follow a configuration.
 *
 * Plain tokens are taken as a whole where a state repeats plain characters; the rest is a walk of the trees of the
 * vocabulary, in which whole branches fall away. The result is kept with the configuration, up to a limit of memory. */
#ifndef NIB_GRAMMAR_MASK_H
#define NIB_GRAMMAR_MASK_H

#include "grammar/run.h"
#include "grammar/vocab.h"

/* Writes n_words words of bits; false: r->status says why. */
bool nib_grammar_mask_write(nib_grammar_run *r, uint32_t config, uint32_t *bits, size_t n_words);
/* The configuration after token id; DEAD when it is not allowed. */
uint32_t nib_grammar_mask_accept(nib_grammar_run *r, uint32_t config, nib_token id);
void nib_grammar_mask_store_free(nib_grammar_run *r);
size_t nib_grammar_mask_bytes(const nib_grammar_run *r);

#endif
