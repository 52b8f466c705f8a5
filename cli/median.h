/* cli/median.h - the middle of measured values. */
#ifndef NIB_CLI_MEDIAN_H
#define NIB_CLI_MEDIAN_H

#include <stddef.h>

/* Sorts the n values, n > 0. Of an even number the mean of the two in the middle. */
double nib_cli_median(double *values, size_t n);

#endif
