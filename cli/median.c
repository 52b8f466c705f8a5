/* cli/median.c - the middle of measured values. */
#include "median.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double nib_cli_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}
