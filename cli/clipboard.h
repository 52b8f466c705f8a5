/* cli/clipboard.h - a text for the clipboard of the person at the terminal. */
#ifndef NIB_CLI_CLIPBOARD_H
#define NIB_CLI_CLIPBOARD_H

#include "nib.h"

/* Gives it to the terminal on standard output (its sequence OSC 52, which goes through ssh), and to the first program of
 * the desktop that is there. *how says where it went, constant. */
nib_status nib_cli_clipboard_copy(nib_str text, const char **how, nib_error *err);

#endif
