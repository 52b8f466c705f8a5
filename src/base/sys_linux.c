/* base/sys_linux.c - CPUs, memory and time as Linux tells them (affinity, cgroups, /proc, /sys).
 *
 * Threads beyond what the quota or the cores give make every barrier wait for the scheduler: 8 threads on a quota of 4
 * ran at 1/40 of the speed in a user's report. So the count is the smallest of the three. */
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "base/cores.h"
#include "base/sys.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool nib_sys_read_file(const char *path, char *buf, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t len = 0;
    for (ssize_t n; len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0;) len += (size_t)n;
    close(fd);
    buf[len] = 0;
    return len > 0;
}

bool nib_sys_permit_tiles(void) {
#if defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
#else
    return false;
#endif
}

int nib_sys_thread(void) {
    return (int)syscall(SYS_gettid);
}

bool nib_sys_set_patient(int thread, bool is_patient) {
    int from = is_patient ? SCHED_OTHER : SCHED_BATCH, to = is_patient ? SCHED_BATCH : SCHED_OTHER;
    /* The kernel is asked: pthread_getschedparam tells what this process chose, not what others did. */
    return sched_getscheduler(thread) == from && sched_setscheduler(thread, to, &(struct sched_param){0}) == 0;
}

double nib_sys_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Nanoseconds on a CPU, waiting for one, and the number of turns. */
double nib_sys_cpu_waited(void) {
    char text[128], *end;
    if (!nib_sys_read_file("/proc/thread-self/schedstat", text, sizeof text)) return 0;
    strtoull(text, &end, 10);
    return (double)strtoull(end, NULL, 10) * 1e-9;
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
    if (end == text || !(quota > 0)) return 0; /* "max", or -1 in version 1 */
    double period = strtod(end, NULL);
    if (!(period > 0)) period = 100000;
    double n = quota / period;
    return n < 1 ? 1 : n < 1e6 ? (int)n : 0;
}

/* Is `name` one of the names in a list that is n bytes long, as "cpu" is in "cpu,cpuacct"? */
static bool is_listed(const char *list, size_t n, const char *name) {
    for (size_t len = strlen(name);;) {
        const char *comma = memchr(list, ',', n);
        size_t item = comma ? (size_t)(comma - list) : n;
        if (item == len && memcmp(list, name, len) == 0) return true;
        if (!comma) return false;
        n -= item + 1;
        list = comma + 1;
    }
}

/* Lines are "number:controllers:path"; that of version 2 has no controllers. */
bool nib_sys_parse_cgroup(const char *text, const char *controller, char *out, size_t size) {
    for (const char *line = text, *next; *line; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        const char *names = memchr(line, ':', len);
        const char *path = names ? memchr(names + 1, ':', len - (size_t)(names + 1 - line)) : NULL;
        if (!path || !is_listed(names + 1, (size_t)(path - names - 1), controller)) continue;
        size_t n = len - (size_t)(path + 1 - line);
        if (n >= size) return false;
        memcpy(out, path + 1, n);
        out[n] = 0;
        return true;
    }
    return false;
}

uint64_t nib_sys_parse_field(const char *text, const char *key) {
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && (line[len] == ' ' || line[len] == '\t')) return strtoull(line + len, NULL, 10);
    }
    return 0;
}

/* The rest of a line "key\t: words" of a file of the kernel. */
static bool read_words(const char *path, const char *key, char *out, size_t size) {
    char text[8192];
    if (!nib_sys_read_file(path, text, sizeof text)) return false;
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0) continue;
        line += len + strspn(line + len, " \t:");
        snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
        return *out != 0;
    }
    return false;
}

void nib_sys_cpu_model(char *out, size_t size) {
    static const char *const keys[] = {"model name", "cpu model", "CPU part"}; /* x86, MIPS and others, ARM */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (read_words("/proc/cpuinfo", keys[i], out, size)) return;
    snprintf(out, size, "unknown");
}

void nib_sys_cpus_allowed(char *out, size_t size) {
    if (!read_words("/proc/self/status", "Cpus_allowed_list", out, size)) snprintf(out, size, "unknown");
}

typedef bool (*cgroup_file_fn)(const char *dir, uint64_t *value);

/* The smallest value over the folder and all its parents: every level may set a limit. 0: none does. */
static uint64_t cgroup_min(const char *root, const char *controller, cgroup_file_fn get) {
    char text[8192], path[2048], dir[2300];
    if (!nib_sys_read_file("/proc/self/cgroup", text, sizeof text)) return 0;
    if (!nib_sys_parse_cgroup(text, controller, path, sizeof path)) return 0;
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
    if (!nib_sys_read_file(path, text, sizeof text)) return false;
    int n = nib_sys_parse_cpu_max(text);
    *value = (uint64_t)n;
    return n > 0;
}

static bool get_cpu_v1(const char *dir, uint64_t *value) {
    char path[2400], quota[64], both[140], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!nib_sys_read_file(path, quota, sizeof quota)) return false;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (!nib_sys_read_file(path, period, sizeof period)) return false;
    snprintf(both, sizeof both, "%s %s", quota, period);
    int n = nib_sys_parse_cpu_max(both);
    *value = (uint64_t)n;
    return n > 0;
}

static int quota_count(void) {
    uint64_t n = cgroup_min("/sys/fs/cgroup", "", get_cpu_v2);
    if (!n) n = cgroup_min("/sys/fs/cgroup/cpu", "cpu", get_cpu_v1);
    return (int)n; /* nib_sys_parse_cpu_max keeps it small */
}

static int core_count(int *n_slow) {
    bool allowed[NIB_CORES_MAX_CPUS];
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (int cpu = 0; cpu < NIB_CORES_MAX_CPUS; cpu++) allowed[cpu] = CPU_ISSET(cpu, &set);
    return nib_cores_count("/sys/devices", allowed, n_slow);
}

int nib_cpu_count(const char **reason) {
    int n_slow = 0, n = nib_sys_affinity_count(), cores = core_count(&n_slow), quota = quota_count();
    const char *why = "allowed CPUs";
    if (cores > 0 && cores < n) n = cores, why = n_slow ? "fast cores" : "physical cores";
    if (quota > 0 && quota < n) n = quota, why = "cgroup quota";
    if (reason) *reason = why;
    return n;
}

/* A file that holds one number; false for "max". */
static bool read_number(const char *dir, const char *name, uint64_t *value) {
    char path[2400], text[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!nib_sys_read_file(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return false;
    *value = strtoull(text, NULL, 10);
    return true;
}

static bool memory_limit_v2(const char *dir, uint64_t *value) {
    return read_number(dir, "memory.max", value);
}

static bool memory_limit_v1(const char *dir, uint64_t *value) {
    return read_number(dir, "memory.limit_in_bytes", value);
}

/* The usage counts cached pages of files, such as the model that was just read: the kernel gives them up when it must. */
static uint64_t memory_left(const char *dir, uint64_t limit, uint64_t used, const char *inactive, const char *active) {
    char path[2400], text[8192];
    uint64_t cached = 0;
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    if (nib_sys_read_file(path, text, sizeof text))
        cached = nib_sys_parse_field(text, inactive) + nib_sys_parse_field(text, active);
    used = used > cached ? used - cached : 0;
    return limit > used ? limit - used : 1;
}

static bool memory_left_v2(const char *dir, uint64_t *value) {
    uint64_t limit, used;
    if (!memory_limit_v2(dir, &limit) || !read_number(dir, "memory.current", &used)) return false;
    *value = memory_left(dir, limit, used, "inactive_file", "active_file");
    return true;
}

static bool memory_left_v1(const char *dir, uint64_t *value) {
    uint64_t limit, used;
    if (!memory_limit_v1(dir, &limit) || !read_number(dir, "memory.usage_in_bytes", &used)) return false;
    *value = memory_left(dir, limit, used, "total_inactive_file", "total_active_file");
    return true;
}

/* What a line of /proc/meminfo says in bytes, or less when the cgroup has less; 1 GiB when nobody says anything. */
static uint64_t memory_min(const char *key, cgroup_file_fn v2, cgroup_file_fn v1) {
    char text[8192];
    uint64_t n = nib_sys_read_file("/proc/meminfo", text, sizeof text) ? nib_sys_parse_field(text, key) * 1024 : 0;
    uint64_t group = cgroup_min("/sys/fs/cgroup", "", v2);
    if (!group) group = cgroup_min("/sys/fs/cgroup/memory", "memory", v1);
    if (group && (n == 0 || group < n)) n = group;
    return n ? n : (uint64_t)1 << 30;
}

/* Batch systems limit the address space (ulimit -v). UINT64_MAX: nobody did. */
static uint64_t address_space(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

static uint64_t address_space_left(void) {
    char text[256];
    uint64_t limit = address_space(), used = 0;
    if (limit == UINT64_MAX) return limit;
    if (nib_sys_read_file("/proc/self/statm", text, sizeof text)) used = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit > used ? limit - used : 1;
}

uint64_t nib_sys_free_memory(void) {
    uint64_t n = memory_min("MemAvailable:", memory_left_v2, memory_left_v1), left = address_space_left();
    return left < n ? left : n;
}

uint64_t nib_sys_total_memory(void) {
    uint64_t n = memory_min("MemTotal:", memory_limit_v2, memory_limit_v1), most = address_space();
    return most < n ? most : n;
}
