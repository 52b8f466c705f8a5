/* cli/span.h - what stands at one place of a line of Markdown: plain text, or text in a style between marks.
 *
 * A pure function of the line as far as it is known, so that a stream may ask again when more of it has come: once it has
 * given an answer other than "more", further text does not change it. */
#ifndef NIB_CLI_SPAN_H
#define NIB_CLI_SPAN_H

#include "nib.h"

/* Styles of text; they add up. */
enum {
    NIB_CLI_BOLD = 1,
    NIB_CLI_ITALIC = 2,
    NIB_CLI_STRUCK = 4,
    NIB_CLI_CODE = 8,
    NIB_CLI_UNDERLINED = 16,
    NIB_CLI_DIM = 32,
};

typedef enum nib_cli_span_kind {
    NIB_CLI_SPAN_MORE,    /* cannot be told yet */
    NIB_CLI_SPAN_TEXT,    /* `inner` as it is */
    NIB_CLI_SPAN_STYLED,  /* `inner`, in which there may be more spans, in `style` */
} nib_cli_span_kind;

typedef struct nib_cli_span {
    nib_cli_span_kind kind;
    size_t len; /* bytes of the line that it takes, marks included */
    nib_str inner;
    unsigned style; /* of TEXT as well: NIB_CLI_CODE, or none */
} nib_cli_span;

/* line: the rest of a line without its newline, not empty; prev: the character before it, 0 at the beginning of the line.
 * complete: no more of the line will come. */
nib_cli_span nib_cli_span_at(nib_str line, char prev, bool complete);

#endif
