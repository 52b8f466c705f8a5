/* tests/test_base_cores.c - cores counted in made-up trees of /sys/devices: hyperthreads, two kinds, three kinds. */
#include "base/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void put_cpu(int cpu, const char *siblings, const char *capacity) {
    char name[128];
    snprintf(name, sizeof name, "system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    put(name, siblings);
    snprintf(name, sizeof name, "system/cpu/cpu%d/cpu_capacity", cpu);
    if (capacity) put(name, capacity);
}

static int open_tree(void **unused) {
    (void)unused;
    snprintf(root, sizeof root, "%s", "/tmp/nib-cores-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int close_tree(void **unused) {
    (void)unused;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* CPUs first … last may be used. */
static void count_is(int first, int last, int want, int want_slow) {
    bool allowed[NIB_CORES_MAX_CPUS] = {false};
    int n_slow = 0;
    for (int i = first; i <= last; i++) allowed[i] = true;
    int n = nib_cores_count(root, allowed, &n_slow);
    if (n != want || n_slow != want_slow)
        fail_msg("CPUs %d-%d: %d cores and %d slow ones, expected %d and %d", first, last, n, n_slow, want, want_slow);
}

static void test_hyperthreads(void **unused) {
    (void)unused;
    put_cpu(0, "0,2\n", NULL);
    put_cpu(1, "1,3\n", NULL);
    put_cpu(2, "0,2\n", NULL);
    put_cpu(3, "1,3\n", NULL);
    count_is(0, 3, 2, 0);
    count_is(0, 1, 2, 0);
    count_is(2, 3, 2, 0); /* the siblings that are not allowed do not stand for them */
    count_is(1, 3, 2, 0);
    count_is(3, 3, 1, 0);
    count_is(3, 4, 0, 0); /* nothing is known of CPU 4 */
}

static void test_two_kinds(void **unused) {
    (void)unused;
    put("cpu_core/cpus", "0-3\n");
    put("cpu_atom/cpus", "4-7\n");
    for (int i = 0; i < 4; i++) put_cpu(i, i < 2 ? "0-1\n" : "2-3\n", NULL);
    for (int i = 4; i < 8; i++) put_cpu(i, (const char *[]){"4\n", "5\n", "6\n", "7\n"}[i - 4], NULL);
    count_is(0, 7, 2, 4);
    count_is(0, 3, 2, 0);
    count_is(4, 7, 4, 0); /* where there are no others, they count */
    count_is(3, 5, 1, 2);
}

static void test_capacities(void **unused) {
    (void)unused;
    put_cpu(0, "0\n", "340\n");
    put_cpu(1, "1\n", "340\n");
    put_cpu(2, "2\n", "760\n");
    put_cpu(3, "3\n", "1024\n");
    count_is(0, 3, 2, 2);
    count_is(0, 2, 1, 2);
    count_is(0, 1, 2, 0);
}

static void test_odd_files(void **unused) {
    (void)unused;
    put_cpu(0, "nonsense\n", "-5\n");
    put_cpu(1, "1-", "huge");
    put_cpu(2, "-7-99999999999999999999,2\n", "");
    put_cpu(1000, "1000-1003,5000\n", NULL);
    count_is(0, 2, 3, 0);
    count_is(1000, 1000, 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hyperthreads, open_tree, close_tree),
        cmocka_unit_test_setup_teardown(test_two_kinds, open_tree, close_tree),
        cmocka_unit_test_setup_teardown(test_capacities, open_tree, close_tree),
        cmocka_unit_test_setup_teardown(test_odd_files, open_tree, close_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
