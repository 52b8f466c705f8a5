/* cli/clock.h - the date that templates may print: now, or as the user sets it. */
#ifndef NIB_CLI_CLOCK_H
#define NIB_CLI_CLOCK_H

#include "nib.h"

/* Local time as seconds since 1970-01-01. date: "2024-07-26" or "2024-07-26 12:34:56"; NULL: now. */
nib_status nib_cli_clock(const char *date, int64_t *seconds, nib_error *err);

#endif
