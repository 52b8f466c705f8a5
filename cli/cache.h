/* cli/cache.h - small JSON files that may be lost at any time: $XDG_CACHE_HOME/nib, or ~/.cache/nib. */
#ifndef NIB_CLI_CACHE_H
#define NIB_CLI_CACHE_H

#include <jansson.h>
#include <stdbool.h>

/* A new reference; NULL when the file is not there or is no JSON object. */
json_t *nib_cli_cache_load(const char *name);
/* Replaces the file as a whole, so that no reader ever sees half of it. False when that is not possible. */
bool nib_cli_cache_save(const char *name, json_t *value);

#endif
