/* tests/test_base_team.c - the worker team: every thread runs once, barriers hold, with CPUs for all and without; a team
 * whose threads cannot all be started ends cleanly. Run it under ThreadSanitizer too. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "base/team.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define MAX 8

/* Stands before the one of libc: fails after so many threads, when that is set. */
static int threads_left = -1;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &symbol, sizeof create);
    if (threads_left == 0) return 11; /* EAGAIN */
    if (threads_left > 0) threads_left--;
    return create(thread, attr, start, arg);
}

typedef struct shared {
    nib_team *team;
    int n_rounds, n_threads;
    int ran[MAX];            /* plain: barriers are all that orders them */
    long cell[2][MAX];
    long wrong[MAX];
    atomic_long sum;
} shared;

static void count_run(void *arg, int index, int n_threads) {
    shared *s = arg;
    s->ran[index]++;
    if (index == 0) s->n_threads = n_threads;
    atomic_fetch_add(&s->sum, index + 1);
}

/* Every round each thread writes its cell, meets the others, and reads all cells. Two sets of cells, so that one barrier
 * a round is enough. */
static void exchange(void *arg, int index, int n_threads) {
    shared *s = arg;
    for (int round = 0; round < s->n_rounds; round++) {
        long *cell = s->cell[round % 2];
        cell[index] = (long)round * n_threads + index;
        nib_team_barrier(s->team, index);
        for (int i = 0; i < n_threads; i++) s->wrong[index] += cell[i] != (long)round * n_threads + i;
    }
}

static void run_team(int n_threads, int n_cpus, int n_runs, int n_rounds) {
    nib_error err;
    shared s = {.n_rounds = n_rounds};
    assert_int_equal(nib_team_new(&s.team, n_threads, n_cpus, &err), NIB_OK);
    assert_int_equal(nib_team_size(s.team), n_threads);
    for (int run = 0; run < n_runs; run++) {
        nib_team_run(s.team, count_run, &s);
        for (int i = 0; i < n_threads; i++) assert_int_equal(s.ran[i], run + 1);
        assert_int_equal(s.n_threads, n_threads);
        assert_int_equal(atomic_load(&s.sum), (long)(run + 1) * n_threads * (n_threads + 1) / 2);
        nib_team_run(s.team, exchange, &s);
    }
    for (int i = 0; i < n_threads; i++) assert_int_equal(s.wrong[i], 0);
    nib_team_free(s.team);
}

static void test_runs_and_barriers(void **state) {
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        run_team(n, MAX, 30, 20);  /* spins */
        run_team(n, 1, 300, 30);   /* sleeps at once when n > 1 */
    }
}

static void test_thousands_of_runs(void **state) {
    (void)state;
    run_team(2, 2, 5000, 1);
    run_team(3, 2, 2000, 1);
    run_team(MAX, 2, 500, 1);
}

static void test_new_and_free(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        nib_team *team;
        assert_int_equal(nib_team_new(&team, 1 + i % MAX, i % 4, NULL), NIB_OK);
        shared s = {0};
        if (i % 3 == 0) nib_team_run(team, count_run, &s);
        nib_team_free(team);
    }
    nib_team_free(NULL);
}

/* Any part of the team may run; threads that were left out for a while come back in. */
static void test_limit(void **state) {
    (void)state;
    for (int n_cpus = 1; n_cpus <= MAX; n_cpus += MAX - 1) {
        shared s = {.n_rounds = 10};
        assert_int_equal(nib_team_new(&s.team, MAX, n_cpus, NULL), NIB_OK);
        assert_int_equal(nib_team_active(s.team), MAX);
        for (int run = 0; run < 400; run++) {
            int n = run % 7 == 0 ? MAX : 1 + run * 5 % MAX;
            nib_team_limit(s.team, n);
            assert_int_equal(nib_team_active(s.team), n);
            memset(s.ran, 0, sizeof s.ran);
            nib_team_run(s.team, count_run, &s);
            assert_int_equal(s.n_threads, n);
            for (int i = 0; i < MAX; i++) assert_int_equal(s.ran[i], i < n);
            nib_team_run(s.team, exchange, &s);
            for (int i = 0; i < n; i++) assert_int_equal(s.wrong[i], 0);
        }
        nib_team_free(s.team);
    }
}

/* Two teams at once, and a team that is used by another thread than the one that made it. */
static void *use_team(void *arg) {
    shared *s = arg;
    nib_team_run(s->team, exchange, s);
    return NULL;
}

static void test_two_teams(void **state) {
    (void)state;
    shared a = {.n_rounds = 500}, b = {.n_rounds = 500};
    assert_int_equal(nib_team_new(&a.team, 2, 2, NULL), NIB_OK);
    assert_int_equal(nib_team_new(&b.team, 3, 2, NULL), NIB_OK);
    pthread_t x, y;
    assert_int_equal(pthread_create(&x, NULL, use_team, &a), 0);
    assert_int_equal(pthread_create(&y, NULL, use_team, &b), 0);
    assert_int_equal(pthread_join(x, NULL) + pthread_join(y, NULL), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(a.wrong[i] + b.wrong[i], 0);
    nib_team_free(a.team);
    nib_team_free(b.team);
}

static void test_arguments(void **state) {
    (void)state;
    nib_error err;
    nib_team *team = (nib_team *)&err;
    assert_int_equal(nib_team_new(&team, 0, 1, &err), NIB_E_ARG);
    assert_null(team);
    assert_string_equal(err.message, "threads: 0, expected 1 to 1024");
    assert_int_equal(nib_team_new(&team, 1025, 1, &err), NIB_E_ARG);
    assert_int_equal(nib_team_new(&team, -1, 1, NULL), NIB_E_ARG);
}

static void test_thread_that_does_not_start(void **state) {
    (void)state;
    for (int round = 0; round < 40; round++)
        for (int k = 0; k < MAX - 1; k++) {
            nib_error err;
            nib_team *team;
            threads_left = k;
            assert_int_equal(nib_team_new(&team, MAX, round % 2 ? MAX : 1, &err), NIB_E_NOMEM);
            assert_null(team);
            char want[80] = "thread 2 of 8 could not be started (error 11): ";
            want[7] = (char)('2' + k);
            assert_memory_equal(err.message, want, strlen(want));
        }
    threads_left = MAX - 1;
    run_team(MAX, 2, 2, 2);
    threads_left = -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_and_barriers), cmocka_unit_test(test_thousands_of_runs),
        cmocka_unit_test(test_new_and_free),      cmocka_unit_test(test_limit),
        cmocka_unit_test(test_two_teams),
        cmocka_unit_test(test_arguments),         cmocka_unit_test(test_thread_that_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
