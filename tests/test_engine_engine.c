/* tests/test_engine_engine.c - the promise of nib_engine: an answer depends on its request alone. Ids and hashes of every row
 * of logits equal those of a plain loop over nib_decode, whatever runs beside, however prompts are cut, after hits of the
 * cache, preemption, cancelled neighbours, and errors of others. */
#include "base/sys.h"
#include "support/blocks.h"
#include "support/engine.h"
#include "support/files.h"
#include "support/slow.h"
#include "support/tiny.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { N_SEQ = 8 };

static void test_same_bits(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "gemma3"};
    for (size_t a = 0; a < 2; a++) {
        engine_fixture f;
        engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
        engine_open_model(&f, archs[a]);
        engine_make_jobs(&f, jobs, ENGINE_JOBS);
        static const struct {
            uint32_t n_seq, max_chunk;
            double turn_ms;
            bool no_cache;
        } ways[] = {{1, 0, 5, true}, {8, 0, 5, true}, {8, 1, 5, false}, {3, 7, 5, false}, {8, 33, 5, false}, {8, 0, 0.01, false}};
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w += IS_SANITIZED ? 2 : 1) {
            char what[100];
            snprintf(what, sizeof what, "%s, way %zu", archs[a], w);
            nib_engine_config c = engine_config(4096, ways[w].n_seq);
            c.max_chunk = ways[w].max_chunk;
            c.turn_ms = ways[w].turn_ms;
            c.no_prefix_cache = ways[w].no_cache;
            nib_engine *e = engine_start(&f, &c);
            engine_run_all(e, jobs, ENGINE_JOBS, what);
            engine_run_all(e, jobs, ENGINE_JOBS, what); /* with a cache: everything is there already */
            nib_engine_figures figures;
            engine_assert_settled(e);
            nib_engine_stats(e, &figures);
            assert_true(ways[w].no_cache ? figures.n_reused == 0 : figures.n_reused > 500);
            engine_end(e);
        }
        engine_close_model(&f);
        free(jobs);
    }
}

/* Many prompts at once that begin alike are computed once; then another salt, the prompt again, its answer continued, and one
 * that leaves both within a page: whatever was computed for one before is not computed again, and the bits are the same. */
static void test_prefix_is_reused(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j = {.n_prompt = 150, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_answer a;
    nib_stream *streams[N_SEQ];
    engine_open_model(&f, "gemma3");
    j.sampling.temp = 0;
    for (uint32_t i = 0; i < j.n_prompt; i++) j.prompt[i] = (nib_token)(i * 37 % f.n_vocab);
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(4096, N_SEQ);
    nib_engine *e = engine_start(&f, &c);
    for (int i = 0; i < N_SEQ; i++) streams[i] = engine_submit_job(e, &j);
    for (int i = 0; i < N_SEQ; i++) {
        engine_finish(streams[i], &a);
        engine_assert_same(&a, &j, "the same prompt at once", (uint32_t)i);
        assert_in_range(a.usage.n_cached, i ? 128 : 0, i ? 149 : 0); /* the rest only when another one has ended */
    }
    nib_request r = engine_request(&j);
    r.salt = 1;
    engine_finish(engine_submit(e, &r), &a);
    engine_assert_same(&a, &j, "another salt", 0);
    assert_int_equal(a.usage.n_cached, 0);
    engine_finish(engine_submit_job(e, &j), &a);
    engine_assert_same(&a, &j, "again", 0);
    assert_int_equal(a.usage.n_cached, 149); /* the last one, for its logits */
    engine_job next = j; /* the next turn of a talk: prompt, answer, and something new */
    if (j.want.n == 40) {
        memcpy(next.prompt + j.n_prompt, j.want.ids, 40 * sizeof *next.prompt);
        next.n_prompt = 199;
        next.max_tokens = 5;
        for (uint32_t i = 190; i < next.n_prompt; i++) next.prompt[i] = 5;
        engine_compute(&f, &next);
        engine_finish(engine_submit_job(e, &next), &a);
        engine_assert_same(&a, &next, "the next turn", 0);
        assert_int_equal(a.usage.n_cached, 189); /* of the answer, too, but for its last token, which nothing followed */
        next.prompt[140] = (next.prompt[140] + 1) % (nib_token)f.n_vocab;
        engine_compute(&f, &next);
        engine_finish(engine_submit_job(e, &next), &a);
        engine_assert_same(&a, &next, "an edited turn", 0);
        assert_int_equal(a.usage.n_cached, 140);
    }
    engine_end(e);
    engine_close_model(&f);
}

/* Every other one gets a short prompt and a long answer: nobody knows before that they will not fit. */
static void make_long(const engine_fixture *f, engine_job *jobs) {
    for (uint32_t k = 0; k < ENGINE_JOBS; k += 2) {
        jobs[k].n_prompt = 10 + k;
        jobs[k].max_tokens = ENGINE_ANSWER;
        engine_compute(f, &jobs[k]);
    }
}

/* Pages for one and a half of the requests that run at once. */
static void test_preemption(void **state) {
    (void)state;
    engine_fixture f;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    uint64_t n_preempted = 0;
    make_long(&f, jobs);
    for (uint32_t n_ctx = 224; n_ctx <= 320; n_ctx += 96) {
        nib_engine_config c = engine_config(n_ctx, 4);
        c.max_chunk = 50;
        nib_engine *e = engine_start(&f, &c);
        nib_engine_figures figures;
        for (int i = 0; i < 3; i++) engine_run_all(e, jobs, ENGINE_JOBS, "few pages");
        engine_assert_settled(e);
        nib_engine_stats(e, &figures);
        n_preempted += figures.n_preempted;
        assert_true(figures.n_evicted > 0);
        engine_end(e);
    }
    print_message("%u preemptions\n", (unsigned)n_preempted);
    assert_true(n_preempted > 0);
    engine_close_model(&f);
    free(jobs);
}

/* An owner has all sequences and keeps them; another one gets one of them, and its answer is what it always is. */
static void test_owners(void **state) {
    (void)state;
    enum { N_LONG = 4 };
    engine_fixture f;
    engine_job *jobs = calloc(2, sizeof *jobs);
    nib_stream *streams[N_LONG];
    nib_stream_event event;
    engine_answer a;
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, 2);
    nib_engine_config c = engine_config(4096, 3);
    nib_engine *e = engine_start(&f, &c);
    nib_engine_figures figures;
    nib_request r = engine_request(&jobs[0]);
    r.owner = 1, r.ignore_eos = true;
    r.max_tokens = 4096 / N_LONG - jobs[0].n_prompt;
    for (uint32_t k = 0; k < N_LONG; k++) streams[k] = engine_submit(e, &r);
    assert_true(nib_stream_next(streams[2], -1, &event)); /* three run */
    r = engine_request(&jobs[1]);
    r.owner = 2;
    engine_finish(engine_submit(e, &r), &a);
    engine_assert_same(&a, &jobs[1], "beside another owner", 1);
    nib_engine_stats(e, &figures);
    assert_true(figures.n_preempted > 0);
    for (uint32_t k = 0; k < N_LONG; k++) nib_stream_free(streams[k]);
    engine_end(e);
    engine_close_model(&f);
    free(jobs);
}

/* Requests that are cancelled, in the queue, in their prompts, and while they answer: the others do not notice. */
static void test_cancel(void **state) {
    (void)state;
    engine_fixture f;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    engine_answer a;
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    nib_engine_config c = engine_config(1024, 4);
    c.max_chunk = 16;
    nib_engine *e = engine_start(&f, &c);
    uint32_t n_cancelled = 0;
    for (uint32_t round = 0; round < 12; round++) {
        nib_stream *streams[ENGINE_JOBS];
        nib_stream_event event;
        for (uint32_t k = 0; k < ENGINE_JOBS; k++) streams[k] = engine_submit_job(e, &jobs[k]);
        for (uint32_t k = round % 3; k < ENGINE_JOBS; k += 3) {
            if (k % 2) nib_stream_next(streams[k], 2, &event);
            if (k % 4 == 1) {
                nib_stream_free(streams[k]);
                streams[k] = NULL;
            } else {
                nib_engine_cancel(e, streams[k]);
            }
        }
        for (uint32_t k = 0; k < ENGINE_JOBS; k++) {
            if (!streams[k]) continue;
            if (k % 3 != round % 3) {
                engine_finish(streams[k], &a);
                engine_assert_same(&a, &jobs[k], "beside cancelled ones", k);
                continue;
            }
            do assert_true(nib_stream_next(streams[k], -1, &event)); while (event.kind != NIB_STREAM_END);
            n_cancelled += event.finish == NIB_FINISH_CANCELLED;
            nib_stream_free(streams[k]);
        }
    }
    print_message("%u cancelled\n", n_cancelled);
    assert_true(n_cancelled > 5);
    engine_end(e);
    engine_close_model(&f);
    free(jobs);
}

/* A model whose embedding of one token is broken: whoever uses the token ends with an error, and nobody else. */
static void test_nan(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    char *folder = files_folder(), *path = files_path(folder, "nan.gguf");
    tiny_model m = TINY_MODEL_INIT;
    m.is_tied = false;
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    assert_int_equal(nib_gguf_open(&f.file, path, NULL, &err), NIB_OK);
    const nib_gguf_tensor *t = nib_gguf_find_tensor(f.file, "token_embd.weight");
    FILE *stream = fopen(path, "r+b");
    assert_string_equal(t->type_name, "Q8_0");
    assert_int_equal(fseek(stream, (long)(t->offset + 17 * (t->n_bytes / t->dims[1])), SEEK_SET), 0);
    assert_int_equal(fwrite("\x00\x7e", 1, 2, stream), 2); /* the scale of token 17: NaN */
    fclose(stream);
    nib_gguf_close(f.file);
    engine_open_file(&f, path);
    engine_job good[4], bad = {.n_prompt = 60, .max_tokens = 9, .sampling = NIB_SAMPLER_PARAMS_INIT};
    const nib_logit_bias never = {17, -1e9f};
    for (uint32_t k = 0; k < 4; k++) {
        good[k] = (engine_job){.n_prompt = 40 + k, .max_tokens = 20, .sampling = NIB_SAMPLER_PARAMS_INIT};
        good[k].sampling.bias = &never;
        good[k].sampling.n_bias = 1;
        good[k].sampling.seed = k;
        for (uint32_t i = 0; i < good[k].n_prompt; i++) good[k].prompt[i] = (nib_token)(20 + i);
        engine_compute(&f, &good[k]);
    }
    for (uint32_t i = 0; i < bad.n_prompt; i++) bad.prompt[i] = i == 50 ? 17 : (nib_token)(20 + i);
    nib_engine_config c = engine_config(1024, 6);
    nib_engine *e = engine_start(&f, &c);
    nib_stream *streams[6];
    engine_answer a;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 6; k++) streams[k] = engine_submit_job(e, k % 3 == 2 ? &bad : &good[k - k / 3]);
        for (int k = 0; k < 6; k++) {
            engine_finish(streams[k], &a);
            if (k % 3 != 2) engine_assert_same(&a, &good[k - k / 3], "beside NaN", (uint32_t)k);
            else assert_int_equal(a.finish, NIB_FINISH_ERROR);
            if (k % 3 == 2) assert_int_equal(a.error.code, NIB_E_NUMERIC);
        }
    }
    engine_end(e);
    engine_close_model(&f);
    free(path);
    files_remove(folder);
}

/* ---- many threads at once */

typedef struct client {
    pthread_t thread;
    nib_engine *engine;
    const engine_job *jobs;
    uint64_t rng;
    double until;
    uint32_t n_done, n_cancelled, n_refused, n_wrong;
} client;

static void *be_client(void *arg) {
    client *c = arg;
    while (nib_sys_now() < c->until || c->n_done < 3 || !c->n_cancelled) { /* slow machines take longer */
        const engine_job *j = &c->jobs[blocks_random(&c->rng) % ENGINE_JOBS];
        nib_request r = engine_request(j);
        nib_stream *s;
        nib_error err;
        nib_stream_event event;
        r.owner = blocks_random(&c->rng) % 3;
        r.priority = (int32_t)(blocks_random(&c->rng) % 2);
        r.salt = blocks_random(&c->rng) % 8 == 0;
        if (nib_engine_submit(&s, c->engine, &r, &err) != NIB_OK) {
            c->n_refused++;
            c->n_wrong += err.code != NIB_E_BUSY;
            nanosleep(&(struct timespec){0, 2000000}, NULL);
            continue;
        }
        uint32_t patience = blocks_random(&c->rng) % 3 == 0 ? (uint32_t)(blocks_random(&c->rng) % 30) : UINT32_MAX;
        engine_answer a = {0};
        bool is_last = false;
        for (uint32_t i = 0; i < patience && !is_last; i++)
            if (nib_stream_next(s, i % 3 ? -1 : 3, &event)) is_last = engine_take(&a, &event);
        c->n_done += is_last;
        c->n_cancelled += !is_last;
        if (is_last && !engine_is_same(&a, j)) c->n_wrong++;
        nib_stream_free(s);
    }
    return NULL;
}

static void test_stress(void **state) {
    (void)state;
    engine_fixture f;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    client clients[6];
    uint32_t n_done = 0, n_cancelled = 0, n_refused = 0;
    engine_open_model(&f, "gemma3");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    make_long(&f, jobs);
    nib_engine_config c = engine_config(224, 5);
    c.max_requests = 6;
    c.max_queued_tokens = 400;
    c.turn_ms = 1;
    nib_engine *e = engine_start(&f, &c);
    for (int i = 0; i < 6; i++) {
        clients[i] = (client){.engine = e, .jobs = jobs, .rng = (uint64_t)i + 1, .until = nib_sys_now() + 1.0};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, be_client, &clients[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].n_wrong, 0);
        n_done += clients[i].n_done;
        n_cancelled += clients[i].n_cancelled;
        n_refused += clients[i].n_refused;
    }
    engine_assert_settled(e);
    nib_engine_figures figures;
    nib_engine_stats(e, &figures);
    print_message("%u answered, %u given up, %u refused, %u preempted, %u evicted\n", n_done, n_cancelled, n_refused,
                  (unsigned)figures.n_preempted, (unsigned)figures.n_evicted);
    assert_true(n_done > 10 && n_cancelled > 0);
    engine_end(e);
    engine_close_model(&f);
    free(jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_prefix_is_reused),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
