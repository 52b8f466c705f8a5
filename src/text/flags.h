/* text/flags.h - the switches of a tokenizer: defaults come from its kind (kinds.def) and its pre-tokenizer
 * (pretok.def), then the file may set some. */
#ifndef NIB_TEXT_FLAGS_H
#define NIB_TEXT_FLAGS_H

enum {
    NIB_TEXT_ADD_BOS = 1 << 0,
    NIB_TEXT_ADD_EOS = 1 << 1,
    NIB_TEXT_ADD_SEP = 1 << 2,        /* WordPiece: at the end */
    NIB_TEXT_ALWAYS_BOS = 1 << 3,     /* whatever the file says: early files of Gemma 4 say no */
    NIB_TEXT_SPACE_PREFIX = 1 << 4,   /* a space in front of the text, and in front of text behind a special token */
    NIB_TEXT_MERGE_SPACES = 1 << 5,   /* runs of spaces count as one, those at the ends as none */
    NIB_TEXT_CLEAN = 1 << 6,          /* decoding takes out the space before . , ! ? and some apostrophes */
    NIB_TEXT_NFC = 1 << 7,            /* text is normalised first */
    NIB_TEXT_IGNORE_MERGES = 1 << 8,  /* a word that is a token is not merged */
    NIB_TEXT_WHOLE_NEWLINES = 1 << 9, /* the same for words of newlines only */
    NIB_TEXT_RAW = 1 << 10,           /* tokens are UTF-8, and bytes are <0x00> ... <0xFF> */
    NIB_TEXT_ESCAPE = 1 << 11,        /* spaces are written as U+2581 */
    NIB_TEXT_LOWERCASE = 1 << 12,     /* WordPiece: before looking up */
    NIB_TEXT_STRIP_ACCENTS = 1 << 13, /* likewise */
};

#endif
