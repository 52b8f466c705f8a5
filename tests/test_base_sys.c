/* tests/test_base_sys.c - what the system tells: quotas, cgroup paths, fields of /proc files, CPUs, memory, time. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "base/sys.h"
#include "support/slow.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static void test_cpu_max(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int want;
    } cases[] = {
        {"max 100000\n", 0},   {"200000 100000\n", 2}, {"250000 100000\n", 2}, {"50000 100000\n", 1}, {"100000 100000\n", 1},
        {"-1 100000", 0},      {"400000", 4},          {"0 100000", 0},        {"", 0},               {"400000 0", 4},
        {"150000 50000", 3},   {"800000 -5", 8},       {"nonsense", 0},        {"1 1000000", 1},      {"1e300 1", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (nib_sys_parse_cpu_max(cases[i].text) != cases[i].want)
            fail_msg("\"%s\": %d, expected %d", cases[i].text, nib_sys_parse_cpu_max(cases[i].text), cases[i].want);
}

static void path_is(const char *text, const char *controller, const char *want) {
    char path[32];
    bool found = nib_sys_parse_cgroup(text, controller, path, sizeof path);
    if (found != (want != NULL) || (want && strcmp(path, want) != 0))
        fail_msg("%s in \"%s\": %s, expected %s", controller, text, found ? path : "none", want ? want : "none");
}

static void test_cgroup_path(void **state) {
    (void)state;
    static const char v1[] = "12:cpuset:/set\n11:cpuacct:/acct\n4:memory:/mem/a b\n3:cpu,cpuacct:/both\n1:name=systemd:/s\n";
    path_is(v1, "cpu", "/both"); /* not that of cpuset, which stands before it */
    path_is(v1, "memory", "/mem/a b");
    path_is(v1, "", NULL);
    path_is("3:cpuacct,cpu:/b\n0::/\n", "cpu", "/b");
    path_is("3:cpuacct,cpu:/b\n0::/\n", "", "/");
    path_is("0::/user.slice/x:y\n", "", "/user.slice/x:y"); /* paths may hold colons */
    path_is("0::/user.slice\n", "cpu", NULL);
    path_is("0::", "", "");
    path_is("0:", "", NULL);
    path_is("", "", NULL);
    path_is("garbage\n\n0::/ok", "", "/ok");
    path_is("0::/0123456789012345678901234567890123456789\n", "", NULL); /* does not fit */
}

static void test_field(void **state) {
    (void)state;
    static const char text[] = "MemTotal:       24684092 kB\nMemFree: 5 kB\n\nactive_file 7\ninactive_file 123456789012\nbad";
    assert_true(nib_sys_parse_field(text, "MemTotal:") == 24684092);
    assert_true(nib_sys_parse_field(text, "MemFree:") == 5);
    assert_true(nib_sys_parse_field(text, "active_file") == 7); /* not inside inactive_file */
    assert_true(nib_sys_parse_field(text, "inactive_file") == 123456789012);
    assert_true(nib_sys_parse_field(text, "bad") == 0);
    assert_true(nib_sys_parse_field(text, "Mem") == 0);
    assert_true(nib_sys_parse_field("", "x") == 0);
}

static void test_cpu_count(void **state) {
    (void)state;
    const char *reason = NULL;
    int n = nib_cpu_count(&reason), allowed = nib_sys_affinity_count();
    assert_true(n >= 1 && n <= allowed);
    assert_non_null(reason);
    assert_int_equal(nib_cpu_count(NULL), n);
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &old)) {
            CPU_SET(cpu, &one);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(nib_sys_affinity_count(), 1);
    assert_int_equal(nib_cpu_count(NULL), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
    assert_int_equal(nib_cpu_count(NULL), n);
}

static void test_address_space_limit(void **state) {
    (void)state;
    if (IS_EMULATED) skip(); /* qemu-user takes the limit and forgets it */
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    low = (struct rlimit){.rlim_cur = 1 << 16, .rlim_max = old.rlim_max}; /* less than what is mapped by now */
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    uint64_t total = nib_sys_total_memory(), left = nib_sys_free_memory();
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_true(total == 1 << 16);
    assert_true(left == 1);
}

static void test_names(void **state) {
    (void)state;
    char text[128], three[4];
    nib_sys_cpu_model(text, sizeof text);
    assert_true(text[0] && !strchr(text, '\n'));
    nib_sys_cpu_model(three, sizeof three);
    assert_memory_equal(three, text, strlen(three));
    nib_sys_cpus_allowed(text, sizeof text);
    assert_true(strspn(text, "0123456789,-") == strlen(text) && text[0]);
}

static void test_memory_and_time(void **state) {
    (void)state;
    uint64_t total = nib_sys_total_memory(), free_now = nib_sys_free_memory();
    assert_true(free_now > 0 && free_now <= total);
    assert_true(total <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE));
    double t = nib_sys_now();
    usleep(2000);
    double passed = nib_sys_now() - t;
    assert_true(passed >= 0.002 && passed < 60);
}

static void test_patience(void **state) {
    (void)state;
    int thread = nib_sys_thread(), before = sched_getscheduler(thread);
    struct sched_param p = {0};
    if (before != SCHED_OTHER) skip();
    for (int i = 0; i < 6; i++) {
        bool is_patient = i & 2, is_new = is_patient != (sched_getscheduler(thread) == SCHED_BATCH);
        assert_int_equal(nib_sys_set_patient(thread, is_patient), is_new);
        assert_int_equal(sched_getscheduler(thread), is_patient ? SCHED_BATCH : SCHED_OTHER);
    }
    assert_int_equal(sched_setscheduler(thread, SCHED_IDLE, &p), 0);
    assert_false(nib_sys_set_patient(thread, true)); /* somebody else chose it */
    assert_false(nib_sys_set_patient(thread, false));
    assert_int_equal(sched_getscheduler(thread), SCHED_IDLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_max),   cmocka_unit_test(test_cgroup_path),     cmocka_unit_test(test_field),
        cmocka_unit_test(test_cpu_count), cmocka_unit_test(test_memory_and_time),
        cmocka_unit_test(test_address_space_limit), cmocka_unit_test(test_names),
        cmocka_unit_test(test_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
