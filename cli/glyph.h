/* cli/glyph.h - text as a terminal shows it: how wide a character is, and a visible one in place of each that a terminal
 * would obey. What a model writes or a file holds goes to a terminal through here. */
#ifndef NIB_CLI_GLYPH_H
#define NIB_CLI_GLYPH_H

#include "base/buf.h"

#define NIB_CLI_REPLACEMENT 0xFFFDu /* stands for bytes that are not UTF-8 */

/* The character at the beginning of text, which is not empty; its length in bytes in *len, at least 1. */
uint32_t nib_cli_glyph_decode(nib_str text, size_t *len);
/* Appends the character in UTF-8. */
void nib_cli_glyph_put(nib_buf *out, uint32_t cp);

/* What may be shown in place of a character: itself, or a symbol when it is a control character. */
uint32_t nib_cli_glyph_visible(uint32_t cp);
/* Columns of a character that may be shown: 0 when it joins the one before, 2 for East Asian ones and emoji, else 1. */
int nib_cli_glyph_columns(uint32_t cp);
/* Whether the second character belongs to the same cluster as the first: combining marks, joined emoji. Zero-initialise
 * *state before the first character of a text. */
bool nib_cli_glyph_joins(uint32_t first, uint32_t second, int32_t *state);

/* Appends text that a terminal may get. Newlines and tabs stay as they are. */
void nib_cli_glyph_show(nib_buf *out, nib_str text);

#endif
