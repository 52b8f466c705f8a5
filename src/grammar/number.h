/* grammar/number.h - JSON numbers within bounds, digit by digit. */
#ifndef NIB_GRAMMAR_NUMBER_H
#define NIB_GRAMMAR_NUMBER_H

#include "grammar/build.h"

enum { NIB_GRAMMAR_MAX_DIGITS = 400 }; /* of a bound, written out without an exponent */

typedef struct nib_grammar_decimal { /* a magnitude: digits[0 … n_int) before the point, then n_frac behind it */
    bool is_set, is_negative, is_exclusive;
    uint16_t n_int, n_frac; /* no zeros in front, none at the end; zero has no digits */
    char digits[NIB_GRAMMAR_MAX_DIGITS];
} nib_grammar_decimal;

typedef struct nib_grammar_number {
    nib_grammar_decimal low, high;
    bool is_integer;
    uint32_t multiple; /* with is_integer; 0 or 1: any */
} nib_grammar_number;

/* The text of a JSON number; false: more digits than MAX_DIGITS. */
bool nib_grammar_decimal_read(nib_str text, nib_grammar_decimal *out);
int nib_grammar_decimal_compare(const nib_grammar_decimal *a, const nib_grammar_decimal *b);
nib_grammar_piece nib_grammar_number_draw(nib_grammar_build *b, const nib_grammar_number *number);

#endif
