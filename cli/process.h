/* cli/process.h - other programs: an editor for a text, a filter that takes one. */
#ifndef NIB_CLI_PROCESS_H
#define NIB_CLI_PROCESS_H

#include "base/buf.h"

/* Runs argv, which ends in NULL; the program is searched as a shell does. input.ptr NULL: it has our standard input, else
 * these bytes and no output. *status: its exit status, 128 + the number of a signal. NIB_E_IO when it cannot be run. */
nib_status nib_cli_process_run(const char *const *argv, nib_str input, int *status, nib_error *err);

/* The user's editor, $VISUAL or $EDITOR; NULL: neither is set. */
const char *nib_cli_editor(void);
/* Lets the user change *text in that editor, in a file that only the user may read and that is gone afterwards. */
nib_status nib_cli_editor_run(nib_buf *text, nib_error *err);

#endif
