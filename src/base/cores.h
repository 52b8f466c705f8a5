/* base/cores.h - which CPUs are worth a thread: one of each core, and only cores of the fast kind where kinds differ.
 *
 * Threads of a step meet at a barrier, so all go at the pace of the slowest. */
#ifndef NIB_BASE_CORES_H
#define NIB_BASE_CORES_H

#include <stdbool.h>

#define NIB_CORES_MAX_CPUS 1024

/* Cores among the allowed CPUs (allowed[i]: CPU i) as the tree `devices` (/sys/devices) tells; those of a slower kind are
 * counted in n_slow instead. Slower: of Intel's "atom" kind beside "core", or with less than half of the greatest
 * cpu_capacity. 0 when the tree does not say which CPUs share a core. */
int nib_cores_count(const char *devices, const bool allowed[NIB_CORES_MAX_CPUS], int *n_slow);

#endif
