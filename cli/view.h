/* cli/view.h - an answer on the terminal while it comes: events -> text.
 *
 * Content is shown as Markdown (markdown.h), thoughts dimmed or in one line that counts them, calls of tools in a line
 * each. Blank lines around a part are left out. Nothing of the model's reaches the terminal as a command. */
#ifndef NIB_CLI_VIEW_H
#define NIB_CLI_VIEW_H

#include "markdown.h"
#include "options.h"
#include "term.h"

/* Initialise with nib_cli_view_begin. */
typedef struct nib_cli_view {
    const nib_cli_term *term;
    bool shows_thoughts;
    const size_t *n_thoughts; /* tokens of thoughts so far */
    nib_cli_markdown_mode mode;
    nib_cli_markdown markdown;
    nib_cli_out out;
    enum { NIB_CLI_VIEW_NOTHING, NIB_CLI_VIEW_THOUGHTS, NIB_CLI_VIEW_CONTENT } part;
    bool has_text;            /* the part has more than blank lines */
    size_t n_newlines;        /* that came after its text and are shown when more text does */
    double since_ms, drawn_ms; /* when the thoughts began; when the line about them was drawn */
} nib_cli_view;

/* Begins an answer, as --plain and --reasoning say. n_thoughts is read while it lasts. */
void nib_cli_view_begin(nib_cli_view *view, const nib_cli_term *term, const nib_cli_options *opt, const size_t *n_thoughts);
/* A nib_chat_event_fn: user is the nib_cli_view. False when the terminal is gone. */
bool nib_cli_view_event(void *user, const nib_chat_event *event);
/* Ends it; the cursor is at the beginning of a line. */
void nib_cli_view_end(nib_cli_view *view);

#endif
