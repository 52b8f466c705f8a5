/* base/sys_linux.c - CPUs, memory and time as Linux tells them (affinity, cgroups, /proc, /sys).
 *
 * Threads beyond what the quota or the cores give make every barrier wait for the scheduler: 8 threads on a quota of 4
 * ran at 1/40 of the speed in a user's report. So the count is the smallest of the three. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/sys.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A small file of the kernel as a NUL-terminated string; false when it is not there. */
static bool read_file(const char *path, char *buf, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t len = 0;
    for (ssize_t n; len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0;) len += (size_t)n;
    close(fd);
    buf[len] = 0;
    return len > 0;
}

double nib_sys_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int nib_sys_affinity_count(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 CPUs: the mask above is too short */
    return n > 0 ? (int)n : 1;
}

int nib_sys_parse_cpu_max(const char *text) {
    char *end;
    double quota = strtod(text, &end);
    if (end == text || quota <= 0) return 0; /* "max", or -1 in version 1 */
    double period = strtod(end, NULL);
    if (period <= 0) period = 100000;
    int n = (int)(quota / period);
    return n < 1 ? 1 : n;
}

/* This process's folder in the cgroup hierarchy of a controller ("" is version 2); false when there is none. */
static bool cgroup_path(const char *controller, char *out, size_t size) {
    char text[4096];
    if (!read_file("/proc/self/cgroup", text, sizeof text)) return false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        names++;
        bool found = *controller ? strstr(names, controller) != NULL : *names == 0;
        if (!found) continue;
        snprintf(out, size, "%s", path);
        return true;
    }
    return false;
}

typedef bool (*cgroup_file_fn)(const char *dir, uint64_t *value);

/* The smallest value over the folder and all its parents: every level may set a limit. 0: none does. */
static uint64_t cgroup_min(const char *root, const char *controller, cgroup_file_fn get) {
    char path[2048], dir[2300];
    if (!cgroup_path(controller, path, sizeof path)) return 0;
    uint64_t best = 0;
    for (;;) {
        uint64_t v;
        snprintf(dir, sizeof dir, "%s%s", root, strcmp(path, "/") == 0 ? "" : path);
        if (get(dir, &v) && (best == 0 || v < best)) best = v;
        char *slash = strrchr(path, '/');
        if (!slash || path[0] == 0 || strcmp(path, "/") == 0) break;
        *slash = 0;
    }
    return best;
}

static bool get_cpu_v2(const char *dir, uint64_t *value) {
    char path[2400], text[128];
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (!read_file(path, text, sizeof text)) return false;
    int n = nib_sys_parse_cpu_max(text);
    *value = (uint64_t)n;
    return n > 0;
}

static bool get_cpu_v1(const char *dir, uint64_t *value) {
    char path[2400], quota[64], both[140], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!read_file(path, quota, sizeof quota)) return false;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (!read_file(path, period, sizeof period)) return false;
    snprintf(both, sizeof both, "%s %s", quota, period);
    int n = nib_sys_parse_cpu_max(both);
    *value = (uint64_t)n;
    return n > 0;
}

static int quota_count(void) {
    uint64_t n = cgroup_min("/sys/fs/cgroup", "", get_cpu_v2);
    if (!n) n = cgroup_min("/sys/fs/cgroup/cpu", "cpu", get_cpu_v1);
    return n > 1000000 ? 0 : (int)n;
}

/* Allowed CPUs that are the first of their core: hyperthreads share the units that the kernels fill. */
static int core_count(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    int n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        char path[128], text[256];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        if (!read_file(path, text, sizeof text)) return 0;
        bool is_first = true; /* of its allowed siblings */
        for (char *p = text; *p && is_first;) {
            char *end;
            long a = strtol(p, &end, 10), b = a;
            if (end == p) break;
            if (*end == '-') b = strtol(end + 1, &end, 10);
            for (long c = a; c <= b && c < cpu; c++)
                if (c >= 0 && CPU_ISSET((int)c, &set)) is_first = false;
            p = *end == ',' ? end + 1 : end + strlen(end);
        }
        n += is_first;
    }
    return n;
}

int nib_cpu_count(const char **reason) {
    int n = nib_sys_affinity_count(), cores = core_count(), quota = quota_count();
    const char *why = "allowed CPUs";
    if (cores > 0 && cores < n) n = cores, why = "physical cores";
    if (quota > 0 && quota < n) n = quota, why = "cgroup quota";
    if (reason) *reason = why;
    return n;
}

static bool get_memory(const char *dir, const char *limit, const char *usage, uint64_t *value) {
    char path[2400], text[64];
    snprintf(path, sizeof path, "%s/%s", dir, limit);
    if (!read_file(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return false; /* "max" */
    uint64_t max = strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "%s/%s", dir, usage);
    if (!read_file(path, text, sizeof text)) return false;
    uint64_t used = strtoull(text, NULL, 10);
    *value = max > used ? max - used : 1;
    return true;
}

static bool get_memory_v2(const char *dir, uint64_t *value) {
    return get_memory(dir, "memory.max", "memory.current", value);
}

static bool get_memory_v1(const char *dir, uint64_t *value) {
    return get_memory(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", value);
}

uint64_t nib_sys_free_memory(void) {
    char text[8192];
    uint64_t n = 0;
    if (read_file("/proc/meminfo", text, sizeof text)) {
        const char *p = strstr(text, "MemAvailable:");
        if (p) n = strtoull(p + 13, NULL, 10) * 1024;
    }
    uint64_t left = cgroup_min("/sys/fs/cgroup", "", get_memory_v2);
    if (!left) left = cgroup_min("/sys/fs/cgroup/memory", "memory", get_memory_v1);
    if (left && (n == 0 || left < n)) n = left;
    return n ? n : (uint64_t)1 << 30;
}
