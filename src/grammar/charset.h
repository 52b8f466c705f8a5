/* grammar/charset.h - sets of characters as sorted ranges, and drawing them as byte ranges of UTF-8. Surrogates are
 * never in a set. */
#ifndef NIB_GRAMMAR_CHARSET_H
#define NIB_GRAMMAR_CHARSET_H

#include "grammar/build.h"

typedef struct nib_grammar_range {
    uint32_t lo, hi;
} nib_grammar_range;

typedef struct nib_grammar_charset { /* zero-initialise: empty */
    nib_grammar_range *ranges;
    size_t n, capacity;
    bool failed; /* memory was out */
} nib_grammar_charset;

void nib_grammar_charset_free(nib_grammar_charset *set);
void nib_grammar_charset_add(nib_grammar_charset *set, uint32_t lo, uint32_t hi);
void nib_grammar_charset_add_set(nib_grammar_charset *set, const nib_grammar_charset *other);
/* Sorts and joins the ranges; needed before the functions below. */
void nib_grammar_charset_sort(nib_grammar_charset *set);
void nib_grammar_charset_negate(nib_grammar_charset *set);
bool nib_grammar_charset_has(const nib_grammar_charset *set, uint32_t c);
/* *out = a and b */
void nib_grammar_charset_meet(const nib_grammar_charset *a, const nib_grammar_charset *b, nib_grammar_charset *out);

void nib_grammar_charset_draw(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set);
/* As characters between the quotes of a JSON string: control characters, quote and backslash escaped; others as they
 * are, and those beyond ASCII also as \uXXXX. with_escapes: all of them also escaped in every way that JSON has. */
void nib_grammar_charset_draw_json(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set,
                                   bool with_escapes);

#endif
