/* tests/test_sched_queue.c - the order of requests: priority, owners in turn, arrival; accounts that come and go. */
#include "sched/queue.h"

#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 16 };

static void add(nib_sched_queue *q, nib_sched_item *item, int32_t priority, uint64_t owner) {
    static uint64_t arrival;
    *item = (nib_sched_item){.priority = priority, .owner = owner, .arrival = arrival++};
    nib_sched_queue_enter(q, item);
    nib_sched_queue_push(q, item);
}

static void test_order(void **state) {
    (void)state;
    nib_sched_queue q;
    nib_sched_item items[6];
    assert_int_equal(nib_sched_queue_init(&q, N, NULL), NIB_OK);
    assert_null(nib_sched_queue_next(&q));
    for (int i = 0; i < 3; i++) add(&q, &items[i], 0, 1);
    add(&q, &items[3], 0, 2);
    add(&q, &items[4], -1, 1);
    add(&q, &items[5], 1, 3);
    static const int order[] = {4, 0, 3, 1, 2, 5}; /* owner 2 comes once owner 1 has had something */
    for (int i = 0; i < 6; i++) {
        nib_sched_item *next = nib_sched_queue_next(&q);
        assert_ptr_equal(next, &items[order[i]]);
        nib_sched_queue_remove(&q, next);
        if (i > 0) nib_sched_queue_charge(&q, next, 10);
        nib_sched_queue_leave(&q, next);
    }
    assert_int_equal(q.n_waiting, 0);
    assert_true(nib_sched_queue_is_senior(&items[0], &items[3]));
    assert_true(nib_sched_queue_is_senior(&items[4], &items[0]));
    assert_false(nib_sched_queue_is_senior(&items[5], &items[3]));
    nib_sched_queue_fini(&q);
}

/* One owner with many requests, another that comes late with one: it waits for one of them, not for all. */
static void test_late_owner(void **state) {
    (void)state;
    nib_sched_queue q;
    nib_sched_item many[N - 1], late;
    assert_int_equal(nib_sched_queue_init(&q, N, NULL), NIB_OK);
    for (int i = 0; i < N - 1; i++) add(&q, &many[i], 0, 1);
    nib_sched_queue_charge(&q, &many[0], 1000);
    add(&q, &late, 0, 2);
    nib_sched_queue_remove(&q, nib_sched_queue_next(&q));
    nib_sched_queue_charge(&q, &many[0], 1);
    assert_ptr_equal(nib_sched_queue_next(&q), &late);
    nib_sched_queue_fini(&q);
}

/* Random use: what is next is what a naive look says, and accounts never run out. */
static void test_random(void **state) {
    (void)state;
    nib_sched_queue q;
    nib_sched_item items[N];
    bool is_known[N] = {false}, waits[N] = {false};
    uint64_t rng = 5;
    assert_int_equal(nib_sched_queue_init(&q, N, NULL), NIB_OK);
    for (int step = 0; step < 20000; step++) {
        int i = (int)(blocks_random(&rng) % N);
        if (!is_known[i]) {
            add(&q, &items[i], (int32_t)(blocks_random(&rng) % 2), blocks_random(&rng) % 40);
            is_known[i] = waits[i] = true;
        } else if (waits[i]) {
            nib_sched_queue_remove(&q, &items[i]);
            waits[i] = false;
        } else if (blocks_random(&rng) % 2) {
            nib_sched_queue_charge(&q, &items[i], blocks_random(&rng) % 100);
            nib_sched_queue_push(&q, &items[i]);
            waits[i] = true;
        } else {
            nib_sched_queue_leave(&q, &items[i]);
            is_known[i] = false;
        }
        nib_sched_item *want = NULL;
        uint32_t n_waiting = 0, n_items = 0, n_known = 0;
        for (int k = 0; k < N; k++) {
            n_waiting += waits[k];
            n_known += is_known[k];
            if (waits[k] && (!want || nib_sched_queue_is_before(&q, &items[k], want))) want = &items[k];
            if (is_known[k]) assert_true(q.accounts[items[k].account].owner == items[k].owner);
        }
        for (uint32_t k = 0; k < q.n_accounts; k++) n_items += q.accounts[k].n_items;
        assert_ptr_equal(nib_sched_queue_next(&q), want);
        assert_int_equal(q.n_waiting, n_waiting);
        assert_int_equal(n_items, n_known);
    }
    nib_sched_queue_fini(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_late_owner),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
