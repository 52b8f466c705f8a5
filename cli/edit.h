/* cli/edit.h - a person types a message: keys in -> text out.
 *
 * On a terminal with libedit (build switch NIB_EDIT): its keys, history and search, with drawing and pasting of our own
 * (keys.c); without it, or on a terminal that cannot move its cursor, lines as the terminal gives them. A message may
 * have many lines: as pasted; or when a line ends in a backslash; or from """ to """. The terminal's modes are restored
 * whenever a message is complete, and by nib_cli_signals_restore. */
#ifndef NIB_CLI_EDIT_H
#define NIB_CLI_EDIT_H

#include "history.h"
#include "term.h"

/* What may stand in place of the text from byte `start` on: each item in full, and all begin with what is there. */
typedef struct nib_cli_words {
    size_t start;
    nib_buf text; /* the items, each ends in NUL */
    size_t n;
} nib_cli_words;
/* text: what stands before the cursor. */
typedef void (*nib_cli_complete_fn)(void *user, nib_str text, nib_cli_words *words);

typedef struct nib_cli_edit_config {
    const char *prompt; /* printable ASCII */
    bool color;
    nib_cli_complete_fn complete; /* NULL: none */
    void *user;
} nib_cli_edit_config;

typedef enum nib_cli_edit_result {
    NIB_CLI_EDIT_TEXT,
    NIB_CLI_EDIT_CLEARED, /* Ctrl-C: the text is what stood there */
    NIB_CLI_EDIT_END,     /* Ctrl-D at an empty line, or the terminal is gone */
    NIB_CLI_EDIT_SIGNAL,  /* nib_cli_interrupted() says which */
} nib_cli_edit_result;

typedef struct nib_cli_edit nib_cli_edit;
/* Reads from standard input and draws on standard output; both are terminals. The history must outlive it. */
nib_status nib_cli_edit_new(nib_cli_edit **out, const nib_cli_edit_config *config, nib_cli_history *history,
                            nib_error *err);
/* Replaces *text. initial: what stands there at first, or NULL; it is ignored where there is no editing. */
nib_cli_edit_result nib_cli_edit_read(nib_cli_edit *e, const char *initial, nib_buf *text);
/* Puts an entry into the history. On an error it is there until the end of the program. */
nib_status nib_cli_edit_remember(nib_cli_edit *e, nib_str entry, nib_error *err);
void nib_cli_edit_free(nib_cli_edit *e);

/* Whether a text goes on after a newline: its last line ends in a backslash, which is cut off, or """ at its beginning
 * has no partner. */
bool nib_cli_edit_continues(nib_buf *text);
/* Takes """ off the beginning and the end of a text. */
void nib_cli_edit_unquote(nib_buf *text);

#endif
