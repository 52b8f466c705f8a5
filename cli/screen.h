/* cli/screen.h - a text that is being edited, in rows on a terminal.
 *
 * The rows are cut here, not by the terminal, so that it is known where each one is: by columns, wide and combining
 * characters as they are shown. A text with more rows than the terminal is shown in part, around the cursor. */
#ifndef NIB_CLI_SCREEN_H
#define NIB_CLI_SCREEN_H

#include "list.h"

enum { NIB_CLI_INDENT = 2 /* columns before every row but the first */ };

typedef struct nib_cli_text {
    const char *prompt, *prompt_style; /* printable ASCII; a sequence that goes before it, or "" */
    const uint32_t *chars;
    size_t n, cursor; /* cursor <= n */
} nib_cli_text;

/* Zero-initialise; free with nib_cli_screen_free. */
typedef struct nib_cli_screen {
    int columns, rows;  /* of the terminal */
    size_t top;         /* first row of the text that is shown */
    nib_cli_list above; /* int: columns of the rows from there to that of the cursor, in that one up to the cursor */
    nib_cli_list cuts;  /* row, see screen.c: of the text, while it is drawn */
} nib_cli_screen;

/* Appends what redraws the text in place of what was drawn before. The size may have changed since. */
void nib_cli_screen_draw(nib_cli_screen *s, const nib_cli_text *text, int columns, int rows, nib_buf *out);
/* The same for the last time: all rows, and the cursor on the row below them. */
void nib_cli_screen_finish(nib_cli_screen *s, const nib_cli_text *text, nib_buf *out);
/* What was drawn is gone, or stays where it is: the next text begins at the cursor. */
void nib_cli_screen_forget(nib_cli_screen *s);
void nib_cli_screen_free(nib_cli_screen *s);

#endif
