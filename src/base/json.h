/* base/json.h - looks at JSON as text: before a parser that recurses, and has numbers of 64 bits, sees it, and after a writer that
 * knows no short numbers. */
#ifndef NIB_BASE_JSON_H
#define NIB_BASE_JSON_H

#include "base/buf.h"

/* Whether brackets nest deeper than `most`, in any text: strings are understood, other faults are left to the parser. */
bool nib_json_is_deeper(nib_str text, int most);

/* Appends the text with numbers for a parser whose integers have 64 bits and whose other numbers are doubles: longer integers
 * become real numbers, and what is beyond the largest double becomes that. */
void nib_json_fit(nib_str text, nib_buf *out);

/* Writes real numbers with as few digits as read back the same, in place: 0.1 that a writer made 0.10000000000000001 is 0.1
 * again. What follows is moved; everything else stays as it is. */
void nib_json_shorten(char *text);

#endif
