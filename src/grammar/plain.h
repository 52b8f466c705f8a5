/* grammar/plain.h - plain characters: those that JSON strings show as they are, and nearly all text consists of.
 *
 * U+0020 and above, without quote, backslash and DEL. States that come back to themselves with any of them need not
 * look at the tokens that consist of plain characters one by one: they are all in the mask (vocab.h keeps them apart).
 */
#ifndef NIB_GRAMMAR_PLAIN_H
#define NIB_GRAMMAR_PLAIN_H

#include "grammar/grammar.h"

static inline bool nib_grammar_is_plain(uint8_t c) {
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7F;
}

/* Sets NIB_GRAMMAR_LOOPS, _LOOPS_COUNTED and _READS_PLAIN of a state. */
void nib_grammar_find_loops(nib_grammar *g, uint32_t state);

#endif
