/* cli/replace.h - a file that is written beside its place and moved there when it is whole: no reader ever sees half of it,
 * and a full disk leaves the old one. Only its owner may read it. */
#ifndef NIB_CLI_REPLACE_H
#define NIB_CLI_REPLACE_H

#include "nib.h"

typedef struct nib_cli_replace {
    char *path, *fresh; /* the place, behind symbolic links; the file until it is finished */
    int fd;
} nib_cli_replace;

/* Errors name the path. After one there is nothing to finish or abandon. */
nib_status nib_cli_replace_open(nib_cli_replace *file, const char *path, nib_error *err);
/* May be used as nib_write_fn: user is the nib_cli_replace. */
nib_status nib_cli_replace_write(void *file, const void *data, size_t n, nib_error *err);
/* Moves the file into its place; when that fails it is removed. */
nib_status nib_cli_replace_finish(nib_cli_replace *file, nib_error *err);
void nib_cli_replace_abandon(nib_cli_replace *file);
/* All of it at once. */
nib_status nib_cli_replace_text(const char *path, nib_str text, nib_error *err);

#endif
