/* cli/stats.h - what a generation took: times, speeds, memory read. */
#ifndef NIB_CLI_STATS_H
#define NIB_CLI_STATS_H

#include "generate.h"
#include "json.h"

/* A few lines on stderr. */
void nib_cli_stats_print(const nib_cli_session *s, const nib_cli_generation *g);
json_t *nib_cli_stats_json(const nib_cli_session *s, const nib_cli_generation *g);

#endif
