/* base/json_text.h - steps of reading JSON text strictly as RFC 8259 has it, for readers that make values of their own: blanks,
 * signs, strings, numbers. */
#ifndef NIB_BASE_JSON_TEXT_H
#define NIB_BASE_JSON_TEXT_H

#include "nib.h"

/* `at` is the next byte; after a failure it is where the text is wrong, and `fault` says what was. */
typedef struct nib_json_cursor {
    const char *at, *end;
    const char *fault; /* NULL: none yet */
} nib_json_cursor;

void nib_json_blanks(nib_json_cursor *c);
bool nib_json_skip(nib_json_cursor *c, char sign); /* blanks, then the sign, when it is there */
bool nib_json_word(nib_json_cursor *c, const char *word);
bool nib_json_fail(nib_json_cursor *c, const char *fault); /* false; the first fault stays */
/* Behind the opening quote: most bytes that the string can stand for. */
size_t nib_json_string_room(const nib_json_cursor *c);
/* Behind the opening quote: what the string stands for, to `to`, which has that room; behind the closing quote then. */
bool nib_json_string(nib_json_cursor *c, char *to, size_t *len);
/* The text of a number. */
bool nib_json_number(nib_json_cursor *c, nib_str *text);

#endif
