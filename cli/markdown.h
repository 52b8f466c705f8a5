/* cli/markdown.h - an answer in light Markdown, piece by piece -> what a terminal shows.
 *
 * Bold, italic, struck out, inline code, code blocks in a frame, headings, lists, quotes, rules. Everything else, and
 * what is malformed, stays as typed. However the text is cut into pieces, the output is the same; what cannot be told yet
 * is held back: a mark until its partner comes, a line's beginning until its kind is clear. No byte of the text reaches
 * the terminal as an escape sequence: control characters other than newline and tab become visible symbols.
 *
 * Long lines are wrapped by the terminal, which does it anew when the window is resized; the frame of a code block has no
 * sides, so that code can be copied from the screen. */
#ifndef NIB_CLI_MARKDOWN_H
#define NIB_CLI_MARKDOWN_H

#include "base/buf.h"

typedef enum nib_cli_markdown_mode {
    NIB_CLI_MARKDOWN_RAW,    /* text as typed, control characters made visible */
    NIB_CLI_MARKDOWN_BLOCKS, /* no colours: frames, bullets and bars, marks within lines as typed */
    NIB_CLI_MARKDOWN_FULL,
} nib_cli_markdown_mode;

/* Initialise with nib_cli_markdown_init. */
typedef struct nib_cli_markdown {
    nib_cli_markdown_mode mode;
    int columns;             /* of the terminal, for rules and frames */
    nib_buf held;            /* bytes that are not decided yet */
    size_t taken;            /* bytes of `held` that are, while they are gone through */
    enum { NIB_CLI_LINE_BEGIN, NIB_CLI_LINE_TEXT, NIB_CLI_CODE_BEGIN, NIB_CLI_CODE_TEXT } place;
    bool in_quote, was_return; /* a carriage return came, which a newline would swallow */
    char fence, last;        /* the character of the code block's fence; the last one of the line before `held` */
    size_t n_fence, indent;  /* length of the fence, spaces before it */
    unsigned base, shown;    /* styles of the line (of a heading), styles that the terminal has now */
} nib_cli_markdown;

void nib_cli_markdown_init(nib_cli_markdown *md, nib_cli_markdown_mode mode, int columns);
/* Appends what can be shown after the next piece of text. */
void nib_cli_markdown_push(nib_cli_markdown *md, nib_str text, nib_buf *out);
/* The text is at its end: appends the rest and ends open styles and frames. Then the next text may begin. */
void nib_cli_markdown_finish(nib_cli_markdown *md, nib_buf *out);
void nib_cli_markdown_free(nib_cli_markdown *md);

#endif
