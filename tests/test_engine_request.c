/* tests/test_engine_request.c - what a request may ask of nib_engine beside one answer: several, log-probabilities of its prompt,
 * limits of time, when an answer may end. Compared bit for bit with a plain loop. */
#include "support/engine.h"
#include "support/slow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4 };

static void make_prompt(const engine_fixture *f, engine_job *j, uint32_t n, uint32_t seed) {
    *j = (engine_job){.n_prompt = n, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    j->sampling.seed = seed;
    j->sampling.temp = 1.0f;
    for (uint32_t i = 0; i < n; i++) j->prompt[i] = (nib_token)((i * 37 + seed * 11) % f->n_vocab);
}

/* Reads a stream of n answers to its last END and frees it. */
static void finish_all(nib_stream *s, engine_answer *a, uint32_t n) {
    nib_stream_event event;
    memset(a, 0, n * sizeof *a);
    for (uint32_t n_ended = 0; n_ended < n;) {
        assert_true(nib_stream_next(s, -1, &event));
        assert_true(event.choice < n);
        n_ended += engine_take(&a[event.choice], &event);
    }
    assert_false(nib_stream_next(s, -1, &event));
    nib_stream_free(s);
}

/* ---- several answers */

static void test_choices(void **state) {
    (void)state;
    static const struct {
        uint32_t n_ctx, n_seq, max_chunk;
        bool no_cache;
    } ways[] = {{1024, 8, 0, false}, {1024, 8, 7, true}, {1024, 3, 0, false}, {256, 4, 50, false}};
    static const uint32_t lengths[] = {1, 33, 64, 100};
    engine_fixture f;
    engine_answer *a = calloc(N, sizeof *a);
    engine_job *jobs = calloc(4 * N, sizeof *jobs); /* those of one prompt differ in the seed only */
    engine_open_model(&f, "llama");
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < N; i++) {
            make_prompt(&f, &jobs[k * N + i], lengths[k], k);
            jobs[k * N + i].sampling.seed = (uint32_t)((UINT64_C(0xfffffffc) + k + i) % UINT32_MAX); /* over the end of seeds, too */
            engine_compute(&f, &jobs[k * N + i]);
        }
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        nib_engine_config c = engine_config(ways[w].n_ctx, ways[w].n_seq);
        nib_stream *streams[4];
        c.max_chunk = ways[w].max_chunk;
        c.no_prefix_cache = ways[w].no_cache;
        nib_engine *e = engine_start(&f, &c);
        for (uint32_t k = 0; k < 4; k++) {
            nib_request r = engine_request(&jobs[k * N]);
            r.n_choices = N;
            streams[k] = engine_submit(e, &r);
        }
        for (uint32_t k = 0; k < 4; k++) {
            finish_all(streams[k], a, N);
            for (uint32_t i = 0; i < N; i++) engine_assert_same(&a[i], &jobs[k * N + i], "of several answers", i);
        }
        nib_engine_figures figures;
        engine_assert_settled(e);
        nib_engine_stats(e, &figures);
        assert_int_equal(figures.n_prompt, 1 + 33 + 64 + 100);
        engine_end(e);
    }
    engine_close_model(&f);
    free(jobs);
    free(a);
}

/* The turns that a prompt takes show that it is computed once. */
static void test_prompt_once(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j;
    engine_answer *a = calloc(N, sizeof *a);
    engine_open_model(&f, "gemma3");
    make_prompt(&f, &j, 100, 5);
    j.max_tokens = 1;
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(1024, 8);
    c.max_chunk = 10;
    c.no_prefix_cache = true;
    nib_engine *e = engine_start(&f, &c);
    nib_request r = engine_request(&j);
    nib_engine_figures figures;
    r.n_choices = N;
    finish_all(engine_submit(e, &r), a, N);
    engine_assert_settled(e);
    nib_engine_stats(e, &figures);
    assert_in_range(figures.n_turns, 10, 12);
    assert_int_equal(figures.n_generated, N);
    assert_int_equal(figures.n_finished[NIB_FINISH_LENGTH], N);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(a[i].hashes[0], j.want.hashes[0]);
    engine_end(e);
    engine_close_model(&f);
    free(a);
}

/* Cancelled before the prompt is done, and after; some hung up on. */
static void test_choices_cancelled(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j;
    engine_answer *a = calloc(N, sizeof *a);
    nib_stream_event event;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 150, 5);
    j.max_tokens = 100;
    nib_engine_config c = engine_config(1024, 4);
    c.max_chunk = 16;
    nib_engine *e = engine_start(&f, &c);
    for (int round = 0; round < 12; round++) {
        nib_request r = engine_request(&j);
        r.n_choices = N;
        nib_stream *s = engine_submit(e, &r);
        for (int i = 0; i < round; i++) assert_true(nib_stream_next(s, -1, &event));
        if (round % 3 == 0) {
            nib_stream_free(s);
            continue;
        }
        nib_engine_cancel(e, s);
        finish_all(s, a, N);
        for (uint32_t i = 0; i < N; i++) /* some may have ended before */
            assert_true(a[i].finish == NIB_FINISH_CANCELLED || a[i].finish == NIB_FINISH_STOP || a[i].finish == NIB_FINISH_LENGTH);
    }
    engine_end(e);
    engine_close_model(&f);
    free(a);
}

static void test_too_many_choices(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j;
    nib_error err;
    nib_stream *s;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 10, 5);
    nib_engine_config c = engine_config(1024, 4);
    c.max_requests = 5;
    nib_engine *e = engine_start(&f, &c);
    nib_request r = engine_request(&j);
    r.n_choices = 6;
    assert_int_equal(nib_engine_submit(&s, e, &r, &err), NIB_E_LIMIT);
    r.n_choices = 5;
    s = engine_submit(e, &r);
    r.n_choices = 1;
    nib_stream *other;
    nib_status status = nib_engine_submit(&other, e, &r, &err);
    assert_true(status == NIB_E_BUSY || status == NIB_OK); /* they may have ended */
    nib_stream_free(other);
    nib_stream_free(s);
    engine_end(e);
    engine_close_model(&f);
}

/* ---- log-probabilities of the prompt */

typedef struct told { /* of a token of a prompt */
    nib_token id;
    float logprob;
    uint64_t hash;
    nib_logprob top[3];
} told;

static void compute_told(const engine_fixture *f, const engine_job *j, told *out) {
    nib_error err;
    nib_context *ctx;
    nib_batch *batch;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 512, c.n_threads = 1, c.n_logits = ENGINE_PROMPT;
    assert_int_equal(nib_context_new(&ctx, f->model, &c, &err), NIB_OK);
    assert_int_equal(nib_batch_new(&batch, ENGINE_PROMPT, &err), NIB_OK);
    for (uint32_t i = 0; i < j->n_prompt; i++)
        assert_int_equal(nib_batch_add(batch, j->prompt[i], NIB_POS_NEXT, 0, true, &err), NIB_OK);
    assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
    for (uint32_t i = 1; i < j->n_prompt; i++) {
        told *t = &out[i - 1];
        t->id = j->prompt[i];
        t->hash = nib_logits_hash(ctx, i - 1);
        assert_int_equal(nib_logprobs(nib_logits(ctx, i - 1), f->n_vocab, t->id, &t->logprob, t->top, 3, &err), NIB_OK);
    }
    nib_batch_free(batch);
    nib_context_free(ctx);
}

static void test_prompt_logprobs(void **state) {
    (void)state;
    static const struct {
        uint32_t n_ctx, max_chunk;
    } ways[] = {{1024, 0}, {1024, 1}, {1024, 9}, {192, 40}};
    engine_fixture f;
    engine_answer a;
    engine_job *jobs = calloc(3, sizeof *jobs);
    told *want = calloc(3 * ENGINE_PROMPT, sizeof *want), *got = calloc(ENGINE_PROMPT, sizeof *got);
    engine_open_model(&f, "gemma3");
    for (uint32_t k = 0; k < 3; k++) {
        make_prompt(&f, &jobs[k], k ? 50 + 50 * k : 1, 3);
        engine_compute(&f, &jobs[k]);
        compute_told(&f, &jobs[k], want + k * ENGINE_PROMPT);
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        nib_stream *streams[3];
        nib_engine_config c = engine_config(ways[w].n_ctx, 3);
        c.max_chunk = ways[w].max_chunk;
        nib_engine *e = engine_start(&f, &c);
        engine_finish(engine_submit_job(e, &jobs[2]), &a); /* so that pages of the prompt are known */
        for (uint32_t k = 0; k < 3; k++) {
            nib_request r = engine_request(&jobs[k]);
            r.prompt_logprobs = true;
            r.n_top = 3;
            streams[k] = engine_submit(e, &r);
        }
        for (uint32_t k = 0; k < 3; k++) {
            nib_stream_event event;
            uint32_t n = 0;
            for (; n + 1 < jobs[k].n_prompt; n++) {
                assert_true(nib_stream_next(streams[k], -1, &event));
                assert_int_equal(event.kind, NIB_STREAM_PROMPT);
                assert_int_equal(event.n_top, 3);
                got[n] = (told){.id = event.id, .logprob = event.logprob, .hash = event.logits_hash};
                memcpy(got[n].top, event.top, sizeof got[n].top);
            }
            assert_memory_equal(got, want + k * ENGINE_PROMPT, n * sizeof *got);
            engine_finish(streams[k], &a);
            engine_assert_same(&a, &jobs[k], "after its prompt", k);
            assert_int_equal(a.usage.n_cached, 0);
        }
        engine_end(e);
    }
    engine_close_model(&f);
    free(jobs);
    free(want);
    free(got);
}

/* ---- time, and the end of an answer */

static void test_timeouts(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j;
    engine_answer a, late;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 20, 3);
    j.max_tokens = ENGINE_ANSWER;
    j.sampling.bias = (nib_logit_bias[]){{nib_tokenizer_special(f.tok, "eos"), -1e9f}};
    j.sampling.n_bias = 1;
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(1024, 1);
    nib_engine *e = engine_start(&f, &c);
    nib_stream *first = engine_submit_job(e, &j);
    nib_request r = engine_request(&j);
    r.queue_ms = 1e-3;
    nib_stream *second = engine_submit(e, &r);
    engine_finish(first, &a);
    engine_assert_same(&a, &j, "before one that waits", 0);
    engine_finish(second, &late);
    assert_int_equal(late.finish, NIB_FINISH_TIMEOUT);
    assert_int_equal(late.n, 0);
    r = engine_request(&j);
    r.total_ms = 1;
    engine_finish(engine_submit(e, &r), &late);
    assert_int_equal(late.finish, NIB_FINISH_TIMEOUT);
    assert_true(late.n < ENGINE_ANSWER);
    assert_memory_equal(late.hashes, j.want.hashes, late.n * sizeof *late.hashes);
    r.queue_ms = r.total_ms = 1e6;
    engine_finish(engine_submit(e, &r), &a);
    engine_assert_same(&a, &j, "in time", 0);
    nib_engine_figures figures;
    engine_assert_settled(e);
    nib_engine_stats(e, &figures);
    assert_int_equal(figures.n_finished[NIB_FINISH_TIMEOUT], 2);
    r.total_ms = NAN;
    nib_error err;
    assert_int_equal(nib_engine_submit(&first, e, &r, &err), NIB_E_ARG);
    engine_end(e);
    engine_close_model(&f);
}

/* The token that would end the answer is the likeliest all the time. */
static void test_ends(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j;
    engine_answer a;
    nib_error err;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 20, 3);
    nib_token eos = nib_tokenizer_special(f.tok, "eos"), stop_id = 40;
    nib_logit_bias bias[] = {{eos, 1e3f}, {stop_id, 900.0f}};
    j.sampling.bias = bias;
    j.sampling.n_bias = 2;
    nib_engine_config c = engine_config(1024, 2);
    nib_engine *e = engine_start(&f, &c);
    engine_finish(engine_submit_job(e, &j), &a);
    assert_int_equal(a.n, 1);
    nib_request r = engine_request(&j);
    r.min_tokens = 7;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.n, 8);
    assert_int_equal(a.ids[6], stop_id);
    assert_int_equal(a.ids[7], eos);
    r.min_tokens = 0, r.ignore_eos = true;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.n, j.max_tokens);
    assert_int_equal(a.finish, NIB_FINISH_LENGTH);
    r.stop_ids = &stop_id, r.n_stop_ids = 1;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.text_len, 0);
    r.min_tokens = 3;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.n, 4);
    assert_int_equal(a.ids[3], stop_id);
    nib_str any = nib_tokenizer_text(f.tok, a.ids[0]); /* a stop string that the first token has */
    r.stops = &any, r.n_stops = 1, r.n_stop_ids = 0, r.min_tokens = 2;
    engine_finish(engine_submit(e, &r), &a);
    assert_true(a.n > 2);
    stop_id = (nib_token)f.n_vocab;
    r.n_stop_ids = 1;
    nib_stream *s;
    assert_int_equal(nib_engine_submit(&s, e, &r, &err), NIB_E_ARG);
    engine_end(e);
    engine_close_model(&f);
}

/* A grammar that has nothing but its end left gets it. */
static void test_grammar_ends(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    engine_job j;
    engine_answer a;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 20, 3);
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    assert_int_equal(nib_grammar_new(&grammar, "[0-9]{2,5}", 10, vocab, &config, &err), NIB_OK);
    nib_engine_config c = engine_config(512, 3);
    nib_engine *e = engine_start(&f, &c);
    nib_request r = engine_request(&j);
    r.grammar = grammar, r.min_tokens = 20;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.text_len, 5);
    engine_end(e);
    nib_grammar_free(grammar);
    nib_grammar_vocab_free(vocab);
    engine_close_model(&f);
}

/* No other ids than the allowed ones are chosen, drawn or jumped over. */
static void test_allowed(void **state) {
    (void)state;
    static const nib_token allowed[] = {40, 41, 42, 77};
    engine_fixture f;
    engine_job j;
    engine_answer a;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 40, 3);
    nib_engine_config c = engine_config(512, 2);
    nib_engine *e = engine_start(&f, &c);
    for (int i = 0; i < 2; i++) {
        nib_request r = engine_request(&j);
        j.sampling.temp = (float)i;
        r.allowed_ids = allowed, r.n_allowed_ids = 4, r.max_tokens = 60;
        engine_finish(engine_submit(e, &r), &a);
        assert_int_equal(a.n, 60);
        for (uint32_t k = 0; k < a.n; k++) assert_true((a.ids[k] >= 40 && a.ids[k] <= 42) || a.ids[k] == 77);
    }
    nib_request r = engine_request(&j);
    nib_stream *s;
    nib_error err;
    r.allowed_ids = (nib_token[]){(nib_token)f.n_vocab}, r.n_allowed_ids = 1;
    assert_int_equal(nib_engine_submit(&s, e, &r, &err), NIB_E_ARG);
    engine_end(e);
    engine_close_model(&f);
}

/* What is told of forced tokens is what their rows say: of an answer alone, and of many for which there is too little room. */
static void assert_told(const engine_fixture *f, const engine_job *j, const nib_request *r, const engine_answer *want) {
    nib_stream *streams[5];
    engine_answer a;
    engine_job scored = *j;
    told *rows = calloc(ENGINE_PROMPT, sizeof *rows);
    memcpy(scored.prompt + j->n_prompt, want->ids, want->n * sizeof *want->ids);
    scored.n_prompt += want->n;
    compute_told(f, &scored, rows);
    for (uint32_t i = 0; i < want->n; i++) {
        assert_int_equal(rows[j->n_prompt - 1 + i].hash, want->hashes[i]);
        assert_memory_equal(&rows[j->n_prompt - 1 + i].logprob, &want->logprobs[i], sizeof *want->logprobs);
    }
    nib_engine_config c = engine_config(160, 3);
    nib_engine *e = engine_start(f, &c);
    for (int i = 0; i < 5; i++) streams[i] = engine_submit(e, r);
    for (int i = 0; i < 5; i++) {
        engine_finish(streams[i], &a);
        assert_int_equal(a.n, want->n);
        assert_memory_equal(a.hashes, want->hashes, a.n * sizeof *a.hashes);
        assert_memory_equal(a.logprobs, want->logprobs, a.n * sizeof *a.logprobs);
    }
    engine_end(e);
    free(rows);
}

/* Text that leaves no choice is taken without a turn for each of its tokens; they are the same with log-probabilities. */
static void test_jump(void **state) {
    (void)state;
    static const char pattern[] = "\\{\"name\": \"[a-z]{3}\", \"size\": [0-9]{2}\\}";
    engine_fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_engine_figures figures;
    engine_job j;
    engine_answer a, jumped;
    uint64_t n_turns[3], before = 0;
    engine_open_model(&f, "llama");
    make_prompt(&f, &j, 40, 3);
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    assert_int_equal(nib_grammar_new(&grammar, pattern, sizeof pattern - 1, vocab, &config, &err), NIB_OK);
    nib_engine_config c = engine_config(512, 3);
    c.max_draft = 0;
    nib_engine *e = engine_start(&f, &c);
    for (int i = 0; i < 3; i++) {
        nib_request r = engine_request(&j);
        r.grammar = grammar, r.jump_ahead = i > 0, r.hash_logits = r.logprobs = i == 2;
        engine_finish(engine_submit(e, &r), &a);
        if (i == 1) jumped = a;
        assert_int_equal(a.finish, NIB_FINISH_STOP);
        assert_int_equal(a.text_len, 27);
        assert_memory_equal(a.text, "{\"name\": \"", 10);
        assert_memory_equal(a.text + 13, "\", \"size\": ", 11);
        assert_int_equal(a.usage.n_generated, a.n);
        engine_assert_settled(e);
        nib_engine_stats(e, &figures);
        n_turns[i] = figures.n_turns - before;
        before = figures.n_turns;
    }
    assert_true(n_turns[1] + 10 < n_turns[0]);
    assert_true(n_turns[2] + 10 < n_turns[0]);
    assert_int_equal(a.n, jumped.n);
    assert_memory_equal(a.ids, jumped.ids, a.n * sizeof *a.ids);
    nib_request r = engine_request(&j);
    r.grammar = grammar, r.jump_ahead = true;
    assert_told(&f, &j, &r, &a);
    /* A token that is forced and forbidden is not jumped over. */
    nib_sampler_params sampling = j.sampling;
    sampling.bias = (nib_logit_bias[]){{jumped.ids[2], -INFINITY}};
    sampling.n_bias = 1;
    r.sampling = &sampling;
    for (int i = 0; i < 2; i++) {
        r.logprobs = r.hash_logits = i;
        engine_finish(engine_submit(e, &r), &a);
        for (uint32_t k = 0; k < a.n; k++) assert_int_not_equal(a.ids[k], jumped.ids[2]);
        if (a.finish == NIB_FINISH_ERROR) assert_int_equal(a.error.code, NIB_E_ARG);
    }
    r = engine_request(&j); /* the end comes within a jump: of max_tokens, of a stop string */
    nib_str stop = {"me\"", 3};
    r.grammar = grammar, r.jump_ahead = true, r.hash_logits = r.logprobs = false, r.max_tokens = 4;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_LENGTH);
    assert_int_equal(a.n, 4);
    r.max_tokens = 40, r.stops = &stop, r.n_stops = 1, r.n_choices = 1;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.text_len, 4);
    nib_grammar_free(grammar); /* and with it the text */
    assert_int_equal(nib_grammar_new(&grammar, "[ab]c{20}", 9, vocab, &config, &err), NIB_OK);
    r.grammar = grammar, r.n_stops = 0;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.text_len, 21);
    engine_end(e);
    nib_grammar_free(grammar);
    nib_grammar_vocab_free(vocab);
    engine_close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_prompt_once),
        cmocka_unit_test(test_choices_cancelled),
        cmocka_unit_test(test_too_many_choices),
        cmocka_unit_test(test_prompt_logprobs),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_grammar_ends),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
