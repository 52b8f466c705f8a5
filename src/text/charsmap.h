/* text/charsmap.h - SentencePiece's precompiled normalisation: replaces the longest known string at each place.
 *
 * The blob is from the file and not trusted: indices out of range end a match. */
#ifndef NIB_TEXT_CHARSMAP_H
#define NIB_TEXT_CHARSMAP_H

#include "nib.h"

typedef struct nib_text_charsmap { /* zero-initialise: replaces nothing */
    uint32_t *units; /* a double array: see charsmap.c */
    uint32_t n_units;
    char *texts; /* replacements, each ended by a NUL */
    uint32_t texts_len;
} nib_text_charsmap;

/* Copies the blob. An empty one is fine. On error there is nothing to free. */
nib_status nib_text_charsmap_init(nib_text_charsmap *map, nib_str blob, nib_error *err);
void nib_text_charsmap_free(nib_text_charsmap *map);

/* What stands at the start of text (not empty): *from bytes of it are to be replaced by *to. Without a rule *to is the
 * character itself, or U+FFFD for a byte that is none. */
void nib_text_charsmap_next(const nib_text_charsmap *map, nib_str text, size_t *from, nib_str *to);

#endif
