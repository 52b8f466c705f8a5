/* text/normalize.h - makes text fit for tokenizers that work on characters: well-formed UTF-8, canonical composition,
 * and spaces that show.
 * Time is linear in the text, whatever it holds. */
#ifndef NIB_TEXT_NORMALIZE_H
#define NIB_TEXT_NORMALIZE_H

#include "base/buf.h"
#include "nib.h"

/* Text whose bytes are characters: each byte that belongs to none becomes U+FFFD, overlong forms become short. Returns
 * `text` itself when nothing is to be done, else what it puts into the buffer (cleared first); an empty string and
 * scratch->failed when memory is out. */
nib_str nib_text_well_formed(nib_str text, nib_buf *scratch);

/* The same for canonical composition (NFC) of well-formed text. */
nib_str nib_text_nfc(nib_str text, nib_buf *scratch);

/* The text with U+2581 for each space, and one in front when asked; always in the buffer. */
nib_str nib_text_escape(nib_str text, bool with_prefix, nib_buf *scratch);

#endif
