/* base/sys.h - what the operating system tells: CPUs this process may use, free memory, time.
 *
 * nib_cpu_count is in nib.h. */
#ifndef NIB_BASE_SYS_H
#define NIB_BASE_SYS_H

#include "nib.h"

/* Bytes that can be had without swapping: the smaller of what the machine has free and what the cgroup leaves. */
uint64_t nib_sys_free_memory(void);
/* Seconds of the monotonic clock. */
double nib_sys_now(void);
/* CPUs in the affinity mask of the calling thread, at least 1. */
int nib_sys_affinity_count(void);
/* The CPU quota of a cgroup file "max 100000" / "200000 100000" in whole CPUs, rounded down, at least 1; 0: no quota. */
int nib_sys_parse_cpu_max(const char *text);

#endif
