/* cli/xdg.h - folders of the user, as the XDG base directory specification has them. */
#ifndef NIB_CLI_XDG_H
#define NIB_CLI_XDG_H

#include <stdbool.h>
#include <stddef.h>

/* The path of nib's folder below $XDG_<kind>_HOME ("CACHE", "STATE"), or below the default of that in the user's home.
 * False when there is neither, or the path is longer than size. */
bool nib_cli_xdg_folder(const char *kind, char *out, size_t size);
/* Makes the folder and what it stands in, for the user alone. */
bool nib_cli_xdg_make(const char *folder);

#endif
