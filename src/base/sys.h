/* base/sys.h - what the operating system tells: CPUs this process may use, free memory, time.
 *
 * nib_cpu_count is in nib.h. */
#ifndef NIB_BASE_SYS_H
#define NIB_BASE_SYS_H

#include "nib.h"

/* A small file of the kernel as a NUL-terminated string, cut to fit; false when it is not there or empty. */
bool nib_sys_read_file(const char *path, char *buf, size_t size);
/* Bytes that can be had without swapping: the smallest of what the machine has free, what the cgroup leaves and what the
 * limit of the address space (ulimit -v) leaves. Caches of files count as free. */
uint64_t nib_sys_free_memory(void);
/* Bytes of memory that this process could ever have: the smallest of the same three. */
uint64_t nib_sys_total_memory(void);
/* Asks the kernel to let this process use the tile registers of AMX. False where there are none. */
bool nib_sys_permit_tiles(void);
/* The processor's name in words, and the CPUs that this process may use as a list ("0-3,8"); "unknown" when the system does
 * not say. Cut to fit. */
void nib_sys_cpu_model(char *out, size_t size);
void nib_sys_cpus_allowed(char *out, size_t size);
/* Seconds that the calling thread has waited for a CPU while it could have run, since it began; 0 when nobody counts. */
double nib_sys_cpu_waited(void);
/* The calling thread's number. */
int nib_sys_thread(void);
/* Patient: when there is something for the thread to do, it takes a CPU that others leave, or have had for as long as they may, and
 * takes it from nobody at once (SCHED_BATCH). False: it may not be, or has a policy that somebody else chose. */
bool nib_sys_set_patient(int thread, bool is_patient);
/* Seconds of the monotonic clock. */
double nib_sys_now(void);
/* CPUs in the affinity mask of the calling thread, at least 1. */
int nib_sys_affinity_count(void);
/* The CPU quota of a cgroup file "max 100000" / "200000 100000" in whole CPUs, rounded down, at least 1; 0: no quota. */
int nib_sys_parse_cpu_max(const char *text);
/* The process's folder below the root of a controller, from the text of /proc/self/cgroup; controller "" is version 2.
 * False when it has none, or the path is longer than size. */
bool nib_sys_parse_cgroup(const char *text, const char *controller, char *out, size_t size);
/* The number behind a key at the start of a line, as in /proc/meminfo ("MemTotal:"), /proc/self/status and memory.stat; 0: no such line. */
uint64_t nib_sys_parse_field(const char *text, const char *key);

#endif
