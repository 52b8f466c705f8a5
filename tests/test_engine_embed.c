/* tests/test_engine_embed.c - embeddings by nib_engine equal those of nib_embed bit for bit, and answers beside them stay what
 * they are: many at once, with prompts cut anywhere, too few pages, cancelled ones, and tokens that make NaN. */
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_TEXTS = 9, MAX_EMBD = 512 };

typedef struct text {
    nib_token ids[ENGINE_PROMPT];
    uint32_t n;
    nib_pooling pooling;
    float want[MAX_EMBD];
} text;

static void make_texts(const engine_fixture *f, text *texts) {
    static const uint32_t lengths[] = {1, 2, 31, 32, 33, 64, 100, 150, 161};
    nib_error err;
    nib_context *ctx;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = ENGINE_PROMPT, c.n_threads = 1;
    assert_int_equal(nib_context_new(&ctx, f->model, &c, &err), NIB_OK);
    for (uint32_t k = 0; k < N_TEXTS; k++) {
        text *t = &texts[k];
        t->n = lengths[k];
        t->pooling = (nib_pooling)(NIB_POOLING_MEAN + k % 3);
        for (uint32_t i = 0; i < t->n; i++) t->ids[i] = (nib_token)((i * 37 + (i < 64 ? 0 : k)) % f->n_vocab);
        assert_int_equal(nib_embed(ctx, t->ids, t->n, t->pooling, t->want, &err), NIB_OK);
    }
    nib_context_free(ctx);
}

static nib_request request_of(const text *t) {
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = t->ids;
    r.n_prompt = t->n;
    r.pooling = t->pooling;
    return r;
}

static void finish(nib_stream *s, const text *t, uint32_t n_embd, const char *what) {
    nib_stream_event event;
    assert_true(nib_stream_next(s, -1, &event));
    assert_int_equal(event.kind, NIB_STREAM_END);
    assert_int_equal(event.finish, NIB_FINISH_STOP);
    assert_non_null(event.embedding);
    if (memcmp(event.embedding, t->want, n_embd * sizeof *t->want) != 0) fail_msg("%s: %u tokens", what, t->n);
    assert_int_equal(event.usage.n_prompt, t->n);
    assert_true(t->pooling == NIB_POOLING_LAST || event.usage.n_cached == 0);
    assert_int_equal(event.usage.n_generated, 0);
    assert_true(event.usage.ttft_ms > 0 && event.usage.total_ms >= event.usage.ttft_ms);
    assert_false(nib_stream_next(s, -1, &event));
    nib_stream_free(s);
}

static void test_beside_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t n_ctx, n_seq, max_chunk;
    } ways[] = {{4096, 8, 0}, {4096, 3, 7}, {320, 4, 50}};
    engine_fixture f;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    text *texts = calloc(N_TEXTS, sizeof *texts);
    nib_stream *answers[ENGINE_JOBS], *embeddings[N_TEXTS];
    engine_answer a;
    engine_open_model(&f, "gemma3");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    make_texts(&f, texts);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        char what[40];
        nib_engine_config c = engine_config(ways[w].n_ctx, ways[w].n_seq);
        c.max_chunk = ways[w].max_chunk;
        nib_engine *e = engine_start(&f, &c);
        snprintf(what, sizeof what, "way %zu", w);
        for (int round = 0; round < 3; round++) {
            for (uint32_t k = 0; k < ENGINE_JOBS; k++) {
                answers[k] = engine_submit_job(e, &jobs[k]);
                nib_request r = request_of(&texts[k % N_TEXTS]);
                if (k < N_TEXTS) embeddings[k] = engine_submit(e, &r);
            }
            if (round == 1) nib_engine_cancel(e, embeddings[8]);
            if (round == 1) nib_stream_free(embeddings[7]);
            for (uint32_t k = 0; k < N_TEXTS - 2 * (round == 1); k++) finish(embeddings[k], &texts[k], nib_model_n_embd(f.model), what);
            if (round == 1) nib_stream_free(embeddings[8]);
            for (uint32_t k = 0; k < ENGINE_JOBS; k++) {
                engine_finish(answers[k], &a);
                engine_assert_same(&a, &jobs[k], what, k);
            }
        }
        engine_end(e);
    }
    engine_close_model(&f);
    free(texts);
    free(jobs);
}

/* A full cache: copies for the second answer to a prompt, in the same turn as an embedding whose pages were just made free. */
static void test_beside_forks(void **state) {
    (void)state;
    engine_fixture f;
    text *texts = calloc(N_TEXTS, sizeof *texts);
    nib_token prompt[150];
    engine_open_model(&f, "llama");
    make_texts(&f, texts);
    nib_engine_config c = engine_config(640, 6);
    nib_engine *e = engine_start(&f, &c);
    for (uint32_t round = 0; round < 40; round++) {
        nib_stream *answers, *embeddings[2];
        nib_stream_event event;
        uint32_t n_ends = 0;
        nib_request r = NIB_REQUEST_INIT;
        for (uint32_t i = 0; i < 150; i++) prompt[i] = (nib_token)((i * 7 + round) % f.n_vocab);
        r.prompt = prompt, r.n_prompt = 100 + round, r.n_choices = 3, r.max_tokens = 4, r.ignore_eos = true;
        nib_request embed = request_of(&texts[N_TEXTS - 1 - round % 3]);
        embeddings[0] = engine_submit(e, &embed);
        answers = engine_submit(e, &r);
        embeddings[1] = engine_submit(e, &embed);
        for (int k = 0; k < 2; k++) finish(embeddings[k], &texts[N_TEXTS - 1 - round % 3], nib_model_n_embd(f.model), "beside forks");
        while (nib_stream_next(answers, -1, &event)) {
            if (event.kind != NIB_STREAM_END) continue;
            assert_int_equal(event.finish, NIB_FINISH_LENGTH);
            n_ends++;
        }
        assert_int_equal(n_ends, 3);
        nib_stream_free(answers);
    }
    engine_assert_settled(e);
    engine_end(e);
    engine_close_model(&f);
    free(texts);
}

/* Pages for one and a half of them: those that make place begin again. */
static void test_preemption(void **state) {
    (void)state;
    engine_fixture f;
    engine_job *jobs = calloc(4, sizeof *jobs);
    text *texts = calloc(N_TEXTS, sizeof *texts);
    nib_stream *answers[4], *embeddings[2];
    nib_engine_figures figures;
    engine_answer a;
    engine_open_model(&f, "llama");
    make_texts(&f, texts);
    for (uint32_t k = 0; k < 4; k++) {
        jobs[k] = (engine_job){.n_prompt = 10 + k, .max_tokens = ENGINE_ANSWER, .sampling = NIB_SAMPLER_PARAMS_INIT};
        for (uint32_t i = 0; i < jobs[k].n_prompt; i++) jobs[k].prompt[i] = (nib_token)(k * 31 + i);
        engine_compute(&f, &jobs[k]);
    }
    nib_engine_config c = engine_config(192, 6);
    c.max_chunk = 5;
    nib_engine *e = engine_start(&f, &c);
    for (int round = 0; round < 4; round++) {
        for (uint32_t k = 0; k < 4; k++) answers[k] = engine_submit_job(e, &jobs[k]);
        for (uint32_t k = 0; k < 2; k++) {
            nib_request r = request_of(&texts[6 + k]);
            embeddings[k] = engine_submit(e, &r);
        }
        for (uint32_t k = 0; k < 2; k++) finish(embeddings[k], &texts[6 + k], nib_model_n_embd(f.model), "few pages");
        for (uint32_t k = 0; k < 4; k++) {
            engine_finish(answers[k], &a);
            engine_assert_same(&a, &jobs[k], "few pages", k);
        }
    }
    engine_assert_settled(e);
    nib_engine_stats(e, &figures);
    assert_true(figures.n_preempted > 0);
    engine_end(e);
    engine_close_model(&f);
    free(texts);
    free(jobs);
}

static void test_refusals(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_stream *s;
    engine_open_model(&f, "llama");
    nib_engine_config c = engine_config(1024, 2);
    nib_engine *e = engine_start(&f, &c);
    nib_token id = 1;
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = &id;
    r.pooling = NIB_POOLING_MEAN;
    assert_int_equal(nib_engine_submit(&s, e, &r, &err), NIB_E_ARG);
    r.n_prompt = 1;
    r.pooling = (nib_pooling)4;
    assert_int_equal(nib_engine_submit(&s, e, &r, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "pooling"));
    engine_end(e);
    engine_close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_answers),
        cmocka_unit_test(test_beside_forks),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
