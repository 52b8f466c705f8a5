/* tests/test_server_work.c - short jobs do not wait for long ones, and all of them run before the threads end. */
#include "server/work.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct test_job {
    nib_server_job job;
    sem_t *began, *may_end; /* NULL: nobody waits */
    atomic_int *n_run;
} test_job;

static void run(nib_server_job *job) {
    test_job *t = (test_job *)job;
    atomic_fetch_add(t->n_run, 1);
    sem_post(t->began);
    if (t->may_end) sem_wait(t->may_end);
}

static void test_short_jobs_overtake(void **state) {
    enum { N_THREADS = 3, N_LONG = 4, N_SHORT = 5 };
    (void)state;
    sem_t long_began, short_began, may_end;
    atomic_int n_long = 0, n_short = 0;
    test_job long_jobs[N_LONG], short_jobs[N_SHORT];
    nib_server_work *w;
    sem_init(&long_began, 0, 0);
    sem_init(&short_began, 0, 0);
    sem_init(&may_end, 0, 0);
    assert_int_equal(nib_server_work_new(&w, N_THREADS, NULL), NIB_OK);
    for (int i = 0; i < N_LONG; i++) {
        long_jobs[i] = (test_job){{.run = run, .is_long = true}, &long_began, &may_end, &n_long};
        nib_server_work_add(w, &long_jobs[i].job);
    }
    for (int i = 0; i < N_THREADS - 1; i++) sem_wait(&long_began);
    for (int i = 0; i < N_SHORT; i++) {
        short_jobs[i] = (test_job){{.run = run}, &short_began, NULL, &n_short};
        nib_server_work_add(w, &short_jobs[i].job);
    }
    for (int i = 0; i < N_SHORT; i++) sem_wait(&short_began);
    assert_int_equal(n_long, N_THREADS - 1);
    for (int i = 0; i < N_LONG; i++) sem_post(&may_end);
    nib_server_work_free(w);
    assert_int_equal(n_long, N_LONG);
    assert_int_equal(n_short, N_SHORT);
    sem_destroy(&long_began);
    sem_destroy(&short_began);
    sem_destroy(&may_end);
}

static void test_one_thread(void **state) {
    (void)state;
    sem_t began;
    atomic_int n = 0;
    nib_server_work *w;
    sem_init(&began, 0, 0);
    assert_int_equal(nib_server_work_new(&w, 1, NULL), NIB_OK);
    test_job jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = (test_job){{.run = run, .is_long = i < 2}, &began, NULL, &n};
        nib_server_work_add(w, &jobs[i].job);
    }
    nib_server_work_free(w);
    assert_int_equal(n, 3);
    sem_destroy(&began);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_jobs_overtake), cmocka_unit_test(test_one_thread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
