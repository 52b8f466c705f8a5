/* cli/stops.h - the stop strings of -r. */
#ifndef NIB_CLI_STOPS_H
#define NIB_CLI_STOPS_H

#include "options.h"

/* Zero-initialise. */
typedef struct nib_cli_stops {
    nib_buf text;      /* of all, one after the other */
    nib_cli_list list; /* nib_str */
} nib_cli_stops;

/* Those of the options, unescaped where -e says so. NIB_E_ARG: an empty one. Free in any case. */
nib_status nib_cli_stops_make(nib_cli_stops *stops, const nib_cli_options *opt, nib_error *err);
void nib_cli_stops_free(nib_cli_stops *stops);

#endif
