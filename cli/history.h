/* cli/history.h - what was typed, in a file that only its user may read.
 *
 * One entry a line, with \n and \\ for newlines and backslashes. Entries are appended one by one, so that sessions which
 * run at once share the file; it is cut to its newest part when it has grown. An entry that is very long, or the same as
 * the one before it, is not kept. */
#ifndef NIB_CLI_HISTORY_H
#define NIB_CLI_HISTORY_H

#include "list.h"

enum { NIB_CLI_HISTORY_ENTRIES = 1000 /* that are read */, NIB_CLI_HISTORY_BYTES = 1 << 16 /* of an entry */ };

/* Zero-initialise; free with nib_cli_history_free. */
typedef struct nib_cli_history {
    char path[1024];      /* "" when there is no file */
    nib_buf text;         /* the entries, each ends in NUL */
    nib_cli_list entries; /* size_t: where they begin, oldest first */
} nib_cli_history;

/* Reads $XDG_STATE_HOME/nib/history, which is made when there is none. On an error there is no file: entries are kept in
 * memory. */
nib_status nib_cli_history_open(nib_cli_history *h, nib_error *err);
/* The same for a path. */
nib_status nib_cli_history_open_path(nib_cli_history *h, const char *path, nib_error *err);
/* On an error, too, the entry is in memory, and the file is left alone from then on. */
nib_status nib_cli_history_add(nib_cli_history *h, nib_str entry, nib_error *err);
const char *nib_cli_history_at(const nib_cli_history *h, size_t i); /* i < h->entries.n; valid until the next add */
void nib_cli_history_free(nib_cli_history *h);

#endif
