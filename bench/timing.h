/* bench/timing.h - what the benchmarks of single parts share: the clock and the median. */
#ifndef NIB_BENCH_TIMING_H
#define NIB_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int compare_ms(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the n values. */
static inline double median(double *ms, size_t n) {
    qsort(ms, n, sizeof *ms, compare_ms);
    return ms[n / 2];
}

#endif
