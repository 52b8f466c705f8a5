/* base/cores.c - a tree of small files about CPUs in -> number of cores out. Linux keeps it at /sys/devices. */
#include "base/cores.h"

#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu_list { /* of the kernel: "0-3,8,10-11" */
    char text[4096];
} cpu_list;

static bool read_list(cpu_list *list, const char *devices, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", devices, name);
    return nib_sys_read_file(path, list->text, sizeof list->text);
}

/* The first CPU of the list that is allowed, or -1. */
static int first_of(const cpu_list *list, const bool *allowed) {
    for (const char *p = list->text; *p;) {
        char *end;
        long a = strtol(p, &end, 10), b = a;
        if (end == p || a < 0) break;
        if (*end == '-') b = strtol(end + 1, &end, 10);
        for (long c = a; c <= b && c < NIB_CORES_MAX_CPUS; c++)
            if (allowed[c]) return (int)c;
        if (*end != ',') break;
        p = end + 1;
    }
    return -1;
}

static bool is_in(const cpu_list *list, int cpu) {
    bool only[NIB_CORES_MAX_CPUS] = {false};
    only[cpu] = true;
    return first_of(list, only) == cpu;
}

/* Of the fastest 1024; 0 when nobody says. */
static int capacity_of(const char *devices, int cpu) {
    cpu_list number;
    char name[64];
    snprintf(name, sizeof name, "system/cpu/cpu%d/cpu_capacity", cpu);
    int n = read_list(&number, devices, name) ? atoi(number.text) : 0;
    return n > 0 ? n : 0;
}

int nib_cores_count(const char *devices, const bool allowed[NIB_CORES_MAX_CPUS], int *n_slow) {
    cpu_list fast, slow, siblings;
    bool has_kinds = read_list(&fast, devices, "cpu_core/cpus") && read_list(&slow, devices, "cpu_atom/cpus");
    int capacity[NIB_CORES_MAX_CPUS], most = 0, n_cores = 0, n_fast = 0;
    for (int cpu = 0; cpu < NIB_CORES_MAX_CPUS; cpu++) {
        char name[64];
        if (!allowed[cpu]) continue;
        snprintf(name, sizeof name, "system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        if (!read_list(&siblings, devices, name)) return 0;
        if (first_of(&siblings, allowed) < cpu && is_in(&siblings, cpu)) continue; /* that one stands for the core */
        int n = has_kinds && is_in(&slow, cpu) ? 1 : has_kinds ? 1024 : capacity_of(devices, cpu);
        capacity[n_cores++] = n;
        if (n > most) most = n;
    }
    for (int i = 0; i < n_cores; i++) n_fast += capacity[i] * 2 >= most;
    *n_slow = n_cores - n_fast;
    return n_fast;
}
