/* text/cut.h - cuts text in which U+2581 stands for a space into parts that no token reaches across: they can be
 * encoded one by one, with the same result as the whole. Used by spm and unigram. */
#ifndef NIB_TEXT_CUT_H
#define NIB_TEXT_CUT_H

#include "text/vocab.h"

typedef struct nib_text_cut {
    bool joins[256]; /* bytes that stand before U+2581 inside some token */
} nib_text_cut;

void nib_text_cut_init(nib_text_cut *cut, const nib_text_vocab *vocab);

/* Takes the first part, never empty, off *left. False when *left is empty. */
bool nib_text_cut_next(const nib_text_cut *cut, nib_str *left, nib_str *part);

#endif
