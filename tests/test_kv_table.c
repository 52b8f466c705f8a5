/* tests/test_kv_table.c - sequences' pages: random appends, forks, truncations and clears against sequences that hold
 * every position of their own. The test plays the cache: it writes what is appended, copies what is to be copied, and
 * looks at every position of every sequence after every step. */
#include "kv/table.h"

#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_PAGES = 12, N_SEQ = 5, ROOM = N_PAGES * NIB_KV_PAGE };

typedef struct world {
    nib_kv_pool pool;
    nib_kv_table tables[N_SEQ];
    uint32_t cache[N_PAGES][NIB_KV_PAGE];
    uint32_t want[N_SEQ][ROOM]; /* by position */
    uint32_t n_want[N_SEQ];
    uint32_t next_value;
    uint64_t rng;
} world;

static void open_world(world *w, uint64_t seed) {
    *w = (world){.rng = seed, .next_value = 1};
    assert_int_equal(nib_kv_pool_init(&w->pool, N_PAGES, NULL), NIB_OK);
    for (int i = 0; i < N_SEQ; i++) assert_int_equal(nib_kv_table_init(&w->tables[i], &w->pool, NULL), NIB_OK);
}

static void close_world(world *w) {
    for (int i = 0; i < N_SEQ; i++) nib_kv_table_clear(&w->tables[i], &w->pool);
    assert_int_equal(w->pool.n_free, N_PAGES);
    for (int i = 0; i < N_SEQ; i++) nib_kv_table_fini(&w->tables[i]);
    nib_kv_pool_fini(&w->pool);
}

/* What the header promises of all tables together. */
static void check(const world *w) {
    uint32_t refs[N_PAGES] = {0}, n_used = 0;
    for (int s = 0; s < N_SEQ; s++) {
        const nib_kv_table *t = &w->tables[s];
        assert_int_equal(t->length, w->n_want[s]);
        assert_int_equal(t->n_pages, (t->length + NIB_KV_PAGE - 1) / NIB_KV_PAGE);
        for (uint32_t i = 0; i < t->n_pages; i++) refs[t->pages[i]]++;
        for (uint32_t p = 0; p < t->length; p++)
            if (w->cache[t->pages[p / NIB_KV_PAGE]][p % NIB_KV_PAGE] != w->want[s][p])
                fail_msg("sequence %d, position %u of %u", s, p, t->length);
        if (t->length % NIB_KV_PAGE) assert_int_equal(w->pool.refs[t->pages[t->n_pages - 1]], 1); /* will be written */
    }
    for (uint32_t i = 0; i < N_PAGES; i++) {
        assert_int_equal(w->pool.refs[i], refs[i]);
        n_used += refs[i] > 0;
    }
    assert_int_equal(w->pool.n_free, N_PAGES - n_used);
}

static void obey(world *w, nib_kv_copy copy) {
    if (copy.is_needed) memcpy(w->cache[copy.to], w->cache[copy.from], sizeof w->cache[0]);
}

static bool append(world *w, int s, uint32_t n) {
    nib_kv_table *t = &w->tables[s];
    uint32_t need = nib_kv_table_pages_for(t, n), free_before = w->pool.n_free;
    if (need > free_before) return false;
    nib_kv_table_append(t, &w->pool, n);
    assert_int_equal(w->pool.n_free, free_before - need);
    for (uint32_t p = t->length - n; p < t->length; p++)
        w->cache[t->pages[p / NIB_KV_PAGE]][p % NIB_KV_PAGE] = w->want[s][p] = w->next_value++;
    w->n_want[s] += n;
    return true;
}

static nib_status truncate_to(world *w, int s, uint32_t length) {
    nib_kv_copy copy;
    nib_error err;
    nib_status status = nib_kv_table_truncate(&w->tables[s], &w->pool, length, &copy, &err);
    if (status == NIB_OK) w->n_want[s] = length;
    else assert_int_equal(err.code, NIB_E_KV_FULL);
    assert_true(status == NIB_OK || !copy.is_needed);
    obey(w, copy);
    return status;
}

static nib_status fork_to(world *w, int src, int dst) {
    nib_kv_copy copy;
    nib_error err;
    nib_status status = nib_kv_table_fork(&w->tables[src], &w->tables[dst], &w->pool, &copy, &err);
    w->n_want[dst] = status == NIB_OK ? w->n_want[src] : 0;
    memcpy(w->want[dst], w->want[src], sizeof w->want[dst]);
    assert_true(status == NIB_OK || !copy.is_needed);
    obey(w, copy);
    return status;
}

static uint32_t draw(world *w, uint32_t n) {
    return (uint32_t)(blocks_random(&w->rng) % n);
}

static void test_random(void **state) {
    (void)state;
    static world w;
    uint32_t n_full = 0, n_done = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        open_world(&w, seed);
        for (int step = 0; step < 500; step++) {
            int s = (int)draw(&w, N_SEQ), d = (int)draw(&w, N_SEQ);
            nib_status status = NIB_OK;
            switch (draw(&w, 8)) {
            case 0: case 1: case 2: status = append(&w, s, draw(&w, 70)) ? NIB_OK : NIB_E_KV_FULL; break;
            case 3: status = append(&w, s, 1) ? NIB_OK : NIB_E_KV_FULL; break;
            case 4: case 5: if (s != d) status = fork_to(&w, s, d); break;
            case 6: status = truncate_to(&w, s, draw(&w, w.n_want[s] + 1)); break;
            default:
                if (draw(&w, 3) == 0) nib_kv_table_clear(&w.tables[s], &w.pool), w.n_want[s] = 0;
                break;
            }
            n_full += status != NIB_OK;
            n_done += status == NIB_OK;
            check(&w);
        }
        close_world(&w);
    }
    print_message("%u operations, %u of them refused for want of pages\n", n_done + n_full, n_full);
    assert_true(n_full > 1000);
}

static void test_fork_of_partial_page(void **state) {
    (void)state;
    static world w;
    open_world(&w, 1);
    for (uint32_t length = 0; length <= 3 * NIB_KV_PAGE; length++) {
        assert_true(append(&w, 0, length));
        uint32_t used = N_PAGES - w.pool.n_free;
        assert_int_equal(fork_to(&w, 0, 1), NIB_OK);
        assert_int_equal(N_PAGES - w.pool.n_free, used + (length % NIB_KV_PAGE != 0)); /* full pages are shared */
        assert_int_equal(fork_to(&w, 1, 2), NIB_OK);                                   /* a fork of a fork */
        assert_true(append(&w, 1, 5) && append(&w, 0, 7) && append(&w, 2, 1));
        check(&w);
        for (int s = 0; s < 3; s++) assert_int_equal(truncate_to(&w, s, 0), NIB_OK);
        assert_int_equal(w.pool.n_free, N_PAGES);
    }
    close_world(&w);
}

static void fill_pool(world *w, int s) {
    while (append(w, s, NIB_KV_PAGE)) {}
}

static void test_full_pool(void **state) {
    (void)state;
    static world w;
    open_world(&w, 1);
    assert_true(append(&w, 0, 2 * NIB_KV_PAGE + 8));
    fill_pool(&w, 1);
    nib_kv_copy copy;
    nib_error err;
    assert_true(append(&w, 0, 24)); /* fills its page: needs none */
    assert_int_equal(nib_kv_table_pages_for(&w.tables[0], 1), 1);
    assert_int_equal(fork_to(&w, 0, 2), NIB_OK); /* nothing to copy */
    check(&w);
    /* All three pages of 0 are shared: cutting into one needs a page, and none is free. */
    assert_int_equal(nib_kv_table_truncate(&w.tables[0], &w.pool, 40, &copy, &err), NIB_E_KV_FULL);
    assert_string_equal(err.message, "KV cache full: 1 page is missing for the copy of a shared one (12 pages in all)");
    check(&w);
    assert_int_equal(truncate_to(&w, 0, 64), NIB_OK); /* between pages it needs none */
    assert_int_equal(truncate_to(&w, 1, w.n_want[1] - NIB_KV_PAGE), NIB_OK);
    assert_true(append(&w, 0, 1));
    assert_int_equal(w.pool.n_free, 0);
    /* The page that is dropped is the one for the copy. */
    assert_int_equal(truncate_to(&w, 0, 40), NIB_OK);
    check(&w);
    /* No page for the copy of the partial last one: the fork's target is left empty. */
    assert_int_equal(w.pool.n_free, 0);
    assert_int_equal(fork_to(&w, 0, 3), NIB_E_KV_FULL);
    assert_int_equal(w.tables[3].length, 0);
    check(&w);
    /* A target that holds pages of its own gives them up first. */
    assert_int_equal(fork_to(&w, 0, 1), NIB_OK);
    check(&w);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_fork_of_partial_page),
        cmocka_unit_test(test_full_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
