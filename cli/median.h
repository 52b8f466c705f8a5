/* cli/median.h - the middle of measured values, and other places in their order. */
#ifndef NIB_CLI_MEDIAN_H
#define NIB_CLI_MEDIAN_H

#include <stddef.h>

/* Sorts the n values, n > 0. Of an even number the mean of the two in the middle. */
double nib_cli_median(double *values, size_t n);
/* The value that a share p of the sorted values is not above; between two of them on the line that joins them. n > 0. */
double nib_cli_percentile(const double *sorted, size_t n, double p);

#endif
