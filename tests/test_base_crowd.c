/* tests/test_base_crowd.c - how a team that shares its CPUs gives way, and comes back. */
#include "base/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_all_is_well(void **state) {
    (void)state;
    nib_crowd c;
    nib_crowd_init(&c, 4);
    for (int i = 0; i < 1000; i++) {
        nib_crowd_judge(&c, i * 0.05, 0);
        assert_int_equal(c.n, 4);
    }
}

static void test_gives_way(void **state) {
    (void)state;
    nib_crowd c;
    nib_crowd_init(&c, 2);
    nib_crowd_judge(&c, 1, 1);
    assert_int_equal(c.n, 1);
    nib_crowd_judge(&c, 1.05, 1); /* the last thread stays, late or not */
    assert_int_equal(c.n, 1);
    nib_crowd_init(&c, 8);
    nib_crowd_judge(&c, 1, 8);
    assert_int_equal(c.n, 4);
    nib_crowd_judge(&c, 1.05, 1);
    assert_int_equal(c.n, 3);
}

/* A thread is worth its place while it waits for less than its part of the work; what a look cannot tell is not counted. */
static void test_lateness(void **state) {
    (void)state;
    assert_true(nib_crowd_late(2) > 0.3 && nib_crowd_late(2) < 0.5);
    assert_true(nib_crowd_late(4) < nib_crowd_late(2));
    assert_true(nib_crowd_late(64) >= 0.1);
}

/* A neighbour that stays: trials fail and become seldom. */
static void test_neighbour_stays(void **state) {
    (void)state;
    nib_crowd c;
    nib_crowd_init(&c, 2);
    int n_trials = 0, n_steps = 0;
    for (double now = 0; now < 60; now += 0.05, n_steps++) {
        nib_crowd_judge(&c, now, c.n == 2);
        n_trials += c.n == 2;
    }
    assert_in_range(n_trials, 5, 9); /* after 0.5, 1, 2, 4, 8, 16, 16 … seconds */
}

/* It goes: all threads run again at the next trial, and later trials come quickly. */
static void test_neighbour_goes(void **state) {
    (void)state;
    nib_crowd c;
    double now = 0, back = 0;
    nib_crowd_init(&c, 2);
    for (; now < 20; now += 0.05) nib_crowd_judge(&c, now, c.n == 2);
    for (; now < 60; now += 0.05) {
        nib_crowd_judge(&c, now, 0);
        if (c.n == 2 && !back) back = now;
    }
    assert_true(back > 0 && back < 20 + 16.1);
    assert_int_equal(c.n, 2);
    nib_crowd_judge(&c, now, 1);
    assert_int_equal(c.n, 1);
    nib_crowd_judge(&c, now + 0.6, 0);
    assert_int_equal(c.n, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well), cmocka_unit_test(test_gives_way), cmocka_unit_test(test_lateness),
        cmocka_unit_test(test_neighbour_stays), cmocka_unit_test(test_neighbour_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
