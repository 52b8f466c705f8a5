/* tests/support/grammar.h - small vocabularies and matching of whole texts, for tests of grammars. */
#ifndef NIB_TESTS_SUPPORT_GRAMMAR_H
#define NIB_TESTS_SUPPORT_GRAMMAR_H

#include "nib.h"

enum { GRAMMAR_BYTE_IDS = 100 }; /* id of byte 0; those below stand for no text, 0 ends it */

/* 100 tokens without text, the 256 bytes, then the given words. NULL: none. */
nib_grammar_vocab *grammar_vocab(const char *const *words, size_t n);

typedef enum grammar_verdict { GRAMMAR_MATCH, GRAMMAR_INCOMPLETE, GRAMMAR_DEAD } grammar_verdict;
/* Whether the text is one of the grammar; *dead_at: bytes that fit. */
grammar_verdict grammar_match(nib_grammar *g, nib_str text, size_t *dead_at);
/* The same for a text of the syntax; aborts with the message when it does not compile. */
grammar_verdict grammar_try(nib_syntax syntax, const char *text, const char *input, size_t *dead_at);

#endif
