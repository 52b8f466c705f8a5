/* tests/test_sched_cost.c - t(n) learned from batches: a machine is simulated, and what is chosen for a time is looked at. */
#include "sched/cost.h"

#include "support/blocks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Weights are read once, then it computes; noise on top. */
static double machine(double work, double read_ms, double token_ms, uint64_t *rng) {
    double ms = work * token_ms > read_ms ? work * token_ms : read_ms;
    return ms * (0.9 + 0.2 * blocks_uniform(rng));
}

static void assert_between(double x, double low, double high) {
    if (!(x >= low && x <= high)) fail_msg("%g, expected %g to %g", x, low, high);
}

static void test_nothing_known(void **state) {
    (void)state;
    nib_sched_cost c = {0};
    assert_true(nib_sched_cost_ms(&c, 10) == 0);
    assert_true(nib_sched_cost_fit(&c, 100) == 1);
    nib_sched_cost_learn(&c, 0, 5);
    nib_sched_cost_learn(&c, 10, 0);
    nib_sched_cost_learn(&c, 10, NAN);
    assert_true(nib_sched_cost_ms(&c, 10) == 0);
    nib_sched_cost_learn(&c, 8, 20);
    assert_true(fabs(nib_sched_cost_ms(&c, 8) - 20) < 1e-9);
    assert_true(fabs(nib_sched_cost_ms(&c, 16) - 40) < 1e-9); /* no more than in proportion */
    assert_true(fabs(nib_sched_cost_ms(&c, 4) - 20) < 1e-9);  /* no less than is known */
    assert_between(nib_sched_cost_fit(&c, 100), 39, 41);
}

/* The first turns already keep to the time, and what is used of it is most of it. */
static void test_learns(void **state) {
    (void)state;
    static const double reads[] = {0.5, 30, 90}, tokens[] = {0.1, 2, 30};
    for (int k = 0; k < 9; k++) {
        uint64_t rng = (uint64_t)k;
        double read_ms = reads[k / 3], token_ms = tokens[k % 3], last = 0, first = 0;
        nib_sched_cost c = {0};
        for (double n = 1; n <= 512 && first < 100; n *= 2) {
            first = machine(n, read_ms, token_ms, &rng);
            nib_sched_cost_learn(&c, n, first);
        }
        for (int i = 0; i < 300; i++) {
            double work = floor(nib_sched_cost_fit(&c, 100)), ms = machine(work, read_ms, token_ms, &rng);
            if (ms > 130 + token_ms) fail_msg("machine %d, turn %d: %g ms for %g", k, i, ms, work);
            nib_sched_cost_learn(&c, work, ms);
            nib_sched_cost_fade(&c, work);
            if (i % 3 == 0) nib_sched_cost_learn(&c, 1, machine(1, read_ms, token_ms, &rng));
            last = work * token_ms;
        }
        assert_between(last, 0.6 * (token_ms > 25 ? 75 : 100), 120);
    }
}

/* The machine becomes slow and fast again, and hangs once: a dozen turns later the time is kept and used again. */
static void test_follows_changes(void **state) {
    (void)state;
    uint64_t rng = 1;
    nib_sched_cost c = {0};
    double token_ms = 1;
    for (double n = 1; n <= 128; n *= 2) nib_sched_cost_learn(&c, n, machine(n, 10, token_ms, &rng));
    for (int i = 0; i < 200; i++) {
        if (i == 50) token_ms = 4;
        if (i == 100) token_ms = 1;
        double work = floor(nib_sched_cost_fit(&c, 100)), ms = machine(work, 10, token_ms, &rng);
        nib_sched_cost_learn(&c, work, i == 150 ? 5000 : ms);
        nib_sched_cost_fade(&c, work);
        if (i % 50 > 25) assert_between(work * token_ms, 60, 125);
    }
}

/* Reading alone takes most of the time, and for a while all of it: short parts show nothing of longer ones, which are tried
 * again all the same. */
static void test_recovers(void **state) {
    (void)state;
    uint64_t rng = 1;
    nib_sched_cost c = {0};
    double work = 0;
    for (double n = 1; n <= 512; n *= 2) nib_sched_cost_learn(&c, n, machine(n, 80, 0.2, &rng));
    assert_between(nib_sched_cost_fit(&c, 100), 350, 600);
    for (int i = 0; i < 600; i++) {
        work = nib_sched_cost_fit(&c, 100);
        if (work < 8) work = 8;
        nib_sched_cost_learn(&c, work, machine(work, i < 30 ? 200 : 80, 0.2, &rng));
        nib_sched_cost_fade(&c, work);
        if (i == 29) assert_between(work, 8, 8);
    }
    assert_between(work, 350, 600);
}

/* What looking back costs is found from two batches, with windows and without; nonsense changes little or nothing. */
static void test_look_back(void **state) {
    (void)state;
    const nib_sched_cost assumed = {.row_work = 0.5, .far_work = 1e-3, .near_work = 2e-3, .window = 100};
    nib_sched_cost c = assumed;
    assert_true(fabs(nib_sched_cost_work(&c, 0, 1, 1) - nib_sched_cost_work(&c, 0, 1, 0) - 0.5) < 1e-12);
    assert_true(fabs(nib_sched_cost_work(&c, 200, 64, 0) - 64 * (1 + 0.232 + 0.2)) < 1e-9);
    for (double factor = 0.5; factor <= 8; factor *= 2) {
        nib_sched_cost real = assumed;
        real.far_work *= factor, real.near_work *= factor;
        c = assumed;
        nib_sched_cost_look_back(&c, 64, 1000, nib_sched_cost_work(&real, 0, 64, 0), nib_sched_cost_work(&real, 1000, 64, 0));
        assert_true(fabs(c.far_work / real.far_work - 1) < 1e-6 && fabs(c.near_work / real.near_work - 1) < 1e-6);
    }
    c = assumed;
    nib_sched_cost_look_back(&c, 64, 1000, 10, 9);
    nib_sched_cost_look_back(&c, 64, 1000, 0, 9);
    nib_sched_cost_look_back(&c, 64, 1000, NAN, 9);
    assert_true(c.far_work == assumed.far_work);
    nib_sched_cost_look_back(&c, 64, 1000, 10, 10.001);
    assert_true(c.far_work > 0.2 * assumed.far_work);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_look_back),
        cmocka_unit_test(test_follows_changes),
        cmocka_unit_test(test_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
