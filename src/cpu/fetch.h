/* cpu/fetch.h - asking for memory before it is needed, where the hardware does not: it stops at every page of 4 KiB.
 *
 * On x86-64 what is read in order is asked for twice, 2 KiB ahead into L1 and NIB_CPU_FAR further on into L2, where three times as
 * many lines can be on their way: memory answers as late as a core could read 2 to 10 KiB (docs/PERFORMANCE.md). */
#ifndef NIB_CPU_FETCH_H
#define NIB_CPU_FETCH_H

#include <stddef.h>

#define NIB_CPU_FAR 8192

/* n bytes into L2. */
static inline void nib_cpu_fetch(const void *p, size_t n) {
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch((const char *)p + i, 0, 2);
}

/* The line of p and the one far after it, for what is read in order. */
static inline void nib_cpu_fetch_in_order(const void *p) {
    __builtin_prefetch(p);
    nib_cpu_fetch((const char *)p + NIB_CPU_FAR, 64);
}

#endif
