/* tests/test_text_merge.c - greedy merging against the definition, on short and long rows. */
#include "support/blocks.h"
#include "text/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_KINDS 40 /* symbols; pair (a, b) may make one */

typedef struct rules {
    uint32_t rank[N_KINDS][N_KINDS], joined[N_KINDS][N_KINDS];
} rules;

static uint32_t rank_of(const nib_text_merge *merge, uint32_t left, uint32_t *joined) {
    const rules *r = merge->user;
    const nib_text_symbol *s = &merge->symbols[left];
    uint32_t a = s->id, b = merge->symbols[s->next].id;
    *joined = r->joined[a][b];
    return r->rank[a][b];
}

/* The definition: search everything, join, again. */
static size_t naive(const rules *r, uint32_t *ids, size_t n) {
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t rank = r->rank[ids[i]][ids[i + 1]];
            if (rank != NIB_TEXT_NO_RANK && (best == n || rank < r->rank[ids[best]][ids[best + 1]])) best = i;
        }
        if (best == n) return n;
        ids[best] = r->joined[ids[best]][ids[best + 1]];
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void random_rules(rules *r, uint64_t *seed) {
    for (uint32_t a = 0; a < N_KINDS; a++) {
        for (uint32_t b = 0; b < N_KINDS; b++) {
            bool joins = blocks_random(seed) % 3 == 0;
            r->rank[a][b] = joins ? (uint32_t)(blocks_random(seed) % 50) : NIB_TEXT_NO_RANK; /* some are equal */
            r->joined[a][b] = (uint32_t)(blocks_random(seed) % N_KINDS);
        }
    }
}

static void run(nib_text_merge *merge, const rules *r, const uint32_t *ids, size_t n) {
    assert_true(nib_text_merge_begin(merge, n));
    for (size_t i = 0; i < n; i++) nib_text_merge_push(merge, ids[i], (uint32_t)i);
    merge->end = (uint32_t)n;
    merge->rank_of = rank_of;
    merge->user = r;
    assert_true(nib_text_merge_run(merge));
}

static void test_against_naive(void **state) {
    (void)state;
    uint64_t seed = 1;
    nib_text_merge merge = {0};
    static rules r;
    for (int round = 0; round < 300; round++) {
        uint32_t ids[200] = {0}, wanted[200] = {0};
        size_t n = 1 + blocks_random(&seed) % (round % 2 ? 200 : 40);
        random_rules(&r, &seed);
        for (size_t i = 0; i < n; i++) ids[i] = wanted[i] = (uint32_t)(blocks_random(&seed) % N_KINDS);
        size_t n_wanted = naive(&r, wanted, n), found = 0;
        run(&merge, &r, ids, n);
        uint32_t at = 0;
        for (uint32_t i = 0; i != NIB_TEXT_NO_SYMBOL; i = merge.symbols[i].next, found++) {
            assert_true(found < n_wanted);
            assert_int_equal(merge.symbols[i].id, wanted[found]);
            assert_int_equal(merge.symbols[i].at, at); /* the parts lie one behind the other */
            at = nib_text_merge_end_of(&merge, &merge.symbols[i]);
        }
        assert_int_equal(found, n_wanted);
        assert_int_equal(at, n);
    }
    nib_text_merge_free(&merge);
}

/* A million equal symbols, which double as often as they can. */
static void test_long_row(void **state) {
    (void)state;
    enum { N = 1 << 20, LEVELS = 10 };
    static rules r;
    memset(&r, 0xFF, sizeof r);
    for (uint32_t i = 0; i < LEVELS; i++) r.rank[i][i] = i, r.joined[i][i] = i + 1;
    uint32_t *ids = calloc(N, sizeof *ids);
    assert_non_null(ids);
    nib_text_merge merge = {0};
    run(&merge, &r, ids, N);
    size_t n = 0;
    for (uint32_t i = 0; i != NIB_TEXT_NO_SYMBOL; i = merge.symbols[i].next, n++)
        assert_int_equal(merge.symbols[i].id, LEVELS);
    assert_int_equal(n, N >> LEVELS);
    nib_text_merge_free(&merge);
    free(ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_naive),
        cmocka_unit_test(test_long_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
