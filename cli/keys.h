/* cli/keys.h - private to edit.c: a line editor over libedit. Only in builds with NIB_EDIT. */
#ifndef NIB_CLI_KEYS_H
#define NIB_CLI_KEYS_H

#include "edit.h"

typedef struct nib_cli_keys nib_cli_keys;
/* NULL when the terminal is not fit for it. */
nib_cli_keys *nib_cli_keys_new(const nib_cli_edit_config *config, const nib_cli_history *history);
nib_cli_edit_result nib_cli_keys_read(nib_cli_keys *k, const char *initial, nib_buf *text);
void nib_cli_keys_remember(nib_cli_keys *k, const char *entry);
void nib_cli_keys_free(nib_cli_keys *k);

#endif
