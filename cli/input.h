/* cli/input.h - the text a command works on: -p, -f, - or standard input. */
#ifndef NIB_CLI_INPUT_H
#define NIB_CLI_INPUT_H

#include "base/buf.h"
#include "options.h"

/* Appends the text to *text. Escape sequences are processed in -p only. NIB_E_ARG when there is none and standard input
 * is a terminal. */
nib_status nib_cli_input_read(const nib_cli_options *opt, nib_buf *text, nib_error *err);
/* Appends a file, as it is; - is standard input. */
nib_status nib_cli_input_file(const char *path, nib_buf *text, nib_error *err);
/* NIB_E_ARG when an input is given to a command that reads requests from standard input. */
nib_status nib_cli_input_none(const nib_cli_options *opt, nib_error *err);
/* Appends text with \n \r \t \' \" \\ \xHH turned into what they stand for; other backslashes stay. */
void nib_cli_unescape(nib_str text, nib_buf *out);

#endif
