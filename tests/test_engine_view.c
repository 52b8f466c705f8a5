/* tests/test_engine_view.c - pictures of nib_engine: every page is in one state, the counts are those of the figures, chains of
 * the tree end, turns add up to the tokens that were run, and looking changes no answer. */
#include "base/sys.h"
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N_SEQ = 4 };

/* Checks what holds of any picture; returns the pages by state. */
static void check(const nib_engine_picture *p, uint32_t counts[4]) {
    for (int i = 0; i < 4; i++) counts[i] = 0;
    for (uint32_t i = 0; i < p->n_pages; i++) {
        const nib_page_view *page = &p->pages[i];
        counts[page->state]++;
        bool is_used = page->state == NIB_PAGE_PINNED || page->state == NIB_PAGE_OWN;
        assert_true(is_used || page->n_users == 0);
        if (page->state != NIB_PAGE_CACHED && page->state != NIB_PAGE_PINNED) continue;
        uint32_t up = page->link, depth = 0;
        for (; up != NIB_NO_PAGE; up = p->pages[up].link, depth++) {
            assert_true(up < p->n_pages && depth < p->n_pages);
            assert_true(p->pages[up].state == NIB_PAGE_PINNED || p->pages[up].state == page->state);
            assert_true(p->pages[up].n_users >= page->n_users);
        }
    }
    uint32_t n_running = 0, own = 0;
    for (uint32_t i = 0; i < p->n_requests; i++) {
        const nib_request_view *r = &p->requests[i];
        assert_true(r->n_computed <= r->n_prompt + r->n_generated && r->n_generated <= r->n_max);
        if (r->phase == NIB_PHASE_WAITING) continue;
        assert_true(n_running++ == i && r->seq < N_SEQ);
        uint32_t in_tree = 0;
        for (uint32_t up = r->page; up != NIB_NO_PAGE; up = p->pages[up].link) {
            assert_int_equal(p->pages[up].state, NIB_PAGE_PINNED);
            in_tree++;
        }
        assert_true(in_tree <= r->n_pages);
        own += r->n_pages - in_tree;
    }
    assert_int_equal(own, counts[NIB_PAGE_OWN]);
    assert_true(n_running <= N_SEQ);
}

static const nib_engine_picture *wait_picture(nib_engine_view *v) {
    const nib_engine_picture *p;
    double start = nib_sys_now();
    while (!(p = nib_engine_view_next(v))) assert_true(nib_sys_now() - start < 60);
    return p;
}

static uint64_t count_tokens(const nib_engine_picture *p) {
    uint64_t n = 0;
    for (uint32_t t = 0; t < p->n_turns; t++) {
        assert_true(p->turns[t].n_parts <= N_SEQ);
        assert_true(t == 0 || p->turns[t].number == p->turns[t - 1].number + 1);
        for (uint32_t k = 0; k < p->turns[t].n_parts; k++) n += p->turns[t].parts[k].n_tok;
    }
    return n;
}

static void test_pictures(void **state) {
    (void)state;
    engine_fixture f;
    nib_engine_view *v, *other;
    nib_stream *streams[ENGINE_JOBS];
    uint32_t counts[4];
    uint64_t n_tokens = 0, n_missed = 0;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    nib_engine_config c = engine_config(1024, N_SEQ);
    c.max_chunk = 33;
    nib_engine *e = engine_start(&f, &c);
    assert_int_equal(nib_engine_view_new(&v, e, NULL), NIB_OK);
    assert_int_equal(nib_engine_view_new(&other, e, NULL), NIB_OK);
    const nib_engine_picture *p = wait_picture(v); /* of a sleeping engine */
    check(p, counts);
    assert_int_equal(counts[NIB_PAGE_FREE], p->n_pages);
    assert_true(p->n_pages >= 32 && p->n_requests == 0 && p->n_turns == 0);
    for (int i = 0; i < ENGINE_JOBS; i++) streams[i] = engine_submit_job(e, &jobs[i]);
    nib_engine_figures figures;
    do {
        p = wait_picture(v);
        check(p, counts);
        n_tokens += count_tokens(p);
        n_missed += p->n_missed;
        nib_engine_stats(e, &figures);
    } while (figures.n_finished[NIB_FINISH_STOP] + figures.n_finished[NIB_FINISH_LENGTH] < ENGINE_JOBS);
    for (int i = 0; i < ENGINE_JOBS; i++) {
        engine_answer a;
        engine_finish(streams[i], &a);
        engine_assert_same(&a, &jobs[i], "looked at", (uint32_t)i);
    }
    wait_picture(v);
    p = wait_picture(v); /* drawn after all had ended */
    check(p, counts);
    nib_engine_stats(e, &figures);
    assert_int_equal(p->n_requests, 0);
    assert_int_equal(counts[NIB_PAGE_FREE], figures.n_free);
    assert_int_equal(counts[NIB_PAGE_CACHED], figures.n_cached);
    if (!n_missed && !figures.n_preempted) assert_in_range(n_tokens, 1, figures.n_prompt - figures.n_reused + figures.n_generated);
    nib_engine_view_free(other); /* which was never read */
    nib_engine_view_free(v);
    nib_engine_view_free(NULL);
    engine_end(e);
    engine_close_model(&f);
    free(jobs);
}

/* Twice the same prompt, and one that has to wait: all of it can be seen, if not in the first answers then in later ones. */
static void test_shared_and_waiting(void **state) {
    (void)state;
    engine_fixture f;
    nib_engine_view *v;
    nib_stream *streams[3];
    bool is_shared = false, is_waiting = false;
    engine_job j = {.n_prompt = 150, .max_tokens = 100, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_open_model(&f, "llama");
    for (uint32_t i = 0; i < j.n_prompt; i++) j.prompt[i] = (nib_token)(i * 37 % f.n_vocab);
    nib_engine_config c = engine_config(1024, 2);
    nib_engine *e = engine_start(&f, &c);
    assert_int_equal(nib_engine_view_new(&v, e, NULL), NIB_OK);
    for (int tries = 0; tries < 1000 && !(is_shared && is_waiting); tries++) {
        for (int i = 0; i < 3; i++) streams[i] = engine_submit_job(e, &j);
        for (int i = 0; i < 3; i++) {
            nib_stream_event event = {0};
            while (nib_stream_next(streams[i], -1, &event) && event.kind != NIB_STREAM_END) {
                const nib_engine_picture *p = nib_engine_view_next(v);
                for (uint32_t k = 0; p && k < p->n_pages; k++)
                    is_shared |= p->pages[k].state == NIB_PAGE_PINNED && p->pages[k].n_users == 2;
                for (uint32_t k = 0; p && k < p->n_requests; k++) is_waiting |= p->requests[k].phase == NIB_PHASE_WAITING;
            }
            nib_stream_free(streams[i]);
        }
    }
    assert_true(is_shared && is_waiting);
    nib_engine_view_free(v);
    engine_end(e);
    engine_close_model(&f);
}

/* Prompts that are long enough to keep the arithmetic busy have turns of their own, short ones share theirs. */
static void test_busy_turns(void **state) {
    (void)state;
    enum { N = 8 };
    engine_fixture f;
    nib_engine_view *v;
    nib_stream *streams[N];
    bool do_share = false;
    engine_job j = {.max_tokens = 1, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_open_model(&f, "llama");
    nib_engine_config c = engine_config(2048, N);
    c.turn_ms = 10000;
    nib_engine *e = engine_start(&f, &c);
    assert_int_equal(nib_engine_view_new(&v, e, NULL), NIB_OK);
    for (uint32_t tries = 0; tries < 1000 && (tries < 20 || !do_share); tries++) {
        j.n_prompt = tries % 2 ? 80 : 20;
        for (uint32_t i = 0; i < N; i++) {
            for (uint32_t k = 0; k < j.n_prompt; k++) j.prompt[k] = (nib_token)((k * 37 + i * 11 + tries * 5) % f.n_vocab);
            streams[i] = engine_submit_job(e, &j);
        }
        engine_answer a;
        for (int i = 0; i < N; i++) engine_finish(streams[i], &a);
        const nib_engine_picture *p = wait_picture(v);
        for (uint32_t t = 0; t < p->n_turns; t++) {
            uint32_t n_long = 0, n_short = 0;
            for (uint32_t k = 0; k < p->turns[t].n_parts; k++) {
                n_long += p->turns[t].parts[k].n_tok >= 64;
                n_short += p->turns[t].parts[k].n_tok == 20;
            }
            assert_true(n_long <= 1);
            do_share |= n_short > 1;
        }
    }
    assert_true(do_share);
    nib_engine_view_free(v);
    engine_end(e);
    engine_close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pictures), cmocka_unit_test(test_shared_and_waiting),
                                       cmocka_unit_test(test_busy_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
