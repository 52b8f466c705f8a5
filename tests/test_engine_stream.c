/* tests/test_engine_stream.c - nib_engine to its callers: limits, text and stop strings, grammars, readers that do not come,
 * the end. */
#include "base/mem.h"
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static nib_status refused(nib_engine *e, const nib_request *r, nib_error *err) {
    nib_stream *s;
    nib_status status = nib_engine_submit(&s, e, r, err);
    assert_null(s);
    return status;
}

/* Hands in n requests and one more, until the one more comes while all the others still run. */
static void submit_until_busy(nib_engine *e, const nib_request *r, const engine_job *j, int n, nib_error *err) {
    nib_stream *streams[5];
    engine_answer a;
    for (nib_status status = NIB_OK; status == NIB_OK;) {
        for (int i = 0; i < n; i++) streams[i] = engine_submit(e, r);
        status = nib_engine_submit(&streams[n], e, r, err);
        for (int i = 0; i < n + (status == NIB_OK); i++) {
            engine_finish(streams[i], &a);
            engine_assert_same(&a, j, "beside refused ones", 0);
        }
        assert_true(status == NIB_OK || status == NIB_E_BUSY);
    }
}

static void test_limits(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    engine_job j = {.n_prompt = 100, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    nib_token *long_prompt = calloc(300, sizeof *long_prompt);
    engine_answer a;
    engine_open_model(&f, "llama");
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(256, 2);
    c.max_requests = 4;
    c.max_chunk = 1;
    nib_engine *e = engine_start(&f, &c);
    nib_request r = engine_request(&j);
    r.prompt = long_prompt, r.n_prompt = 257;
    assert_int_equal(refused(e, &r, &err), NIB_E_LIMIT);
    assert_string_equal(err.message, "the prompt has 257 tokens, the context of a request 256");
    r.n_prompt = 200, r.max_tokens = 58;
    assert_int_equal(refused(e, &r, &err), NIB_E_LIMIT);
    r.n_prompt = 0;
    assert_int_equal(refused(e, &r, &err), NIB_E_ARG);
    r = engine_request(&j);
    j.prompt[3] = (nib_token)f.n_vocab;
    assert_int_equal(refused(e, &r, &err), NIB_E_ARG);
    assert_string_equal(err.message, "token 3 of the prompt has the id 300, expected 0 to 299");
    j.prompt[3] = 0;
    r.n_top = 301;
    assert_int_equal(refused(e, &r, &err), NIB_E_ARG);
    r.n_top = 0;
    nib_str empty = {"", 0};
    r.stops = &empty, r.n_stops = 1;
    assert_int_equal(refused(e, &r, &err), NIB_E_ARG);
    r.n_stops = 0;
    submit_until_busy(e, &r, &j, 4, &err);
    assert_string_equal(err.message, "4 requests are running and waiting, at most 4: try again later");
    nib_engine_figures figures;
    nib_engine_stats(e, &figures);
    assert_int_equal(figures.n_refused, 1);
    assert_true(figures.retry_s >= 1);
    engine_end(e);
    c.max_requests = 100;
    c.max_queued_tokens = 150;
    e = engine_start(&f, &c);
    submit_until_busy(e, &r, &j, 1, &err);
    engine_finish(engine_submit(e, &r), &a);
    engine_end(e);
    engine_close_model(&f);
    free(long_prompt);
}

static void test_text_and_stops(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    engine_job j = {.n_prompt = 20, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_answer a;
    char *text;
    size_t len;
    engine_open_model(&f, "llama");
    j.sampling.seed = 3;
    j.sampling.bias = (nib_logit_bias[]){{nib_tokenizer_special(f.tok, "eos"), -1e9f}};
    j.sampling.n_bias = 1;
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(256, 2);
    nib_engine *e = engine_start(&f, &c);
    engine_finish(engine_submit_job(e, &j), &a);
    engine_assert_same(&a, &j, "alone", 0);
    nib_detok *detok;
    nib_str piece;
    char want[4096];
    assert_int_equal(nib_detok_new(&detok, f.tok, 0, true, &err), NIB_OK);
    len = 0;
    for (uint32_t i = 0; i < a.n; i++) {
        assert_int_equal(nib_detok_push(detok, a.ids[i], &piece, &err), NIB_OK);
        if (piece.len) memcpy(want + len, piece.ptr, piece.len);
        len += piece.len;
    }
    piece = nib_detok_finish(detok);
    if (piece.len) memcpy(want + len, piece.ptr, piece.len);
    len += piece.len;
    nib_detok_free(detok);
    text = want;
    assert_int_equal(a.text_len, len);
    assert_memory_equal(a.text, text, len);
    assert_true(len > 12);
    nib_str stop = {text + len / 2, 5}; /* the text up to where it first stands */
    size_t at = 0;
    while (memcmp(text + at, stop.ptr, stop.len) != 0) at++;
    nib_request r = engine_request(&j);
    r.stops = &stop, r.n_stops = 1;
    engine_finish(engine_submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.stop, 0);
    assert_int_equal(a.text_len, at);
    assert_memory_equal(a.text, text, at);
    engine_end(e);
    engine_close_model(&f);
}

/* Two requests with a grammar and one without, side by side. */
static void test_grammar(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    engine_job j = {.n_prompt = 40, .max_tokens = 30, .sampling = NIB_SAMPLER_PARAMS_INIT};
    nib_stream *streams[3];
    engine_answer a[3];
    engine_open_model(&f, "llama");
    engine_compute(&f, &j);
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    assert_int_equal(nib_grammar_new(&grammar, "[0-9]{7}", 8, vocab, &config, &err), NIB_OK);
    nib_engine_config c = engine_config(512, 3);
    nib_engine *e = engine_start(&f, &c);
    for (int k = 0; k < 3; k++) {
        nib_request r = engine_request(&j);
        r.grammar = k == 1 ? NULL : grammar;
        streams[k] = engine_submit(e, &r);
    }
    for (int k = 0; k < 3; k++) engine_finish(streams[k], &a[k]);
    engine_assert_same(&a[1], &j, "beside a grammar", 1);
    assert_int_equal(a[0].finish, NIB_FINISH_STOP);
    assert_int_equal(a[0].text_len, 7);
    for (int i = 0; i < 7; i++) assert_in_range(a[0].text[i], '0', '9');
    assert_int_equal(a[2].n, a[0].n);
    assert_memory_equal(a[2].hashes, a[0].hashes, a[0].n * sizeof *a[0].hashes);
    engine_end(e);
    nib_grammar_free(grammar);
    nib_grammar_vocab_free(vocab);
    engine_close_model(&f);
}

/* A grammar of a whole answer, through the cache: it is the matcher of the stream that keeps it. */
static void test_grammar_of_answers(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar_cache *cache;
    nib_grammar *grammar;
    nib_chat_grammar_config config = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    engine_job j = {.n_prompt = 40, .max_tokens = 30, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_answer a;
    engine_open_model(&f, "llama");
    config.no_thinking = true;
    config.content = "[\"yes\",\"no\"]";
    config.content_len = strlen(config.content);
    config.grammar.syntax = NIB_SYNTAX_CHOICES;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    assert_int_equal(nib_grammar_cache_new(&cache, 4, (size_t)1 << 24, &err), NIB_OK);
    assert_int_equal(nib_grammar_cache_chat(cache, &grammar, &config, vocab, &err), NIB_OK);
    nib_engine_config c = engine_config(512, 3);
    nib_engine *e = engine_start(&f, &c);
    nib_request r = engine_request(&j);
    r.grammar = grammar;
    nib_stream *stream = engine_submit(e, &r);
    nib_grammar_free(grammar);
    nib_grammar_cache_free(cache);
    engine_finish(stream, &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_true((a.text_len == 3 && memcmp(a.text, "yes", 3) == 0) || (a.text_len == 2 && memcmp(a.text, "no", 2) == 0));
    engine_end(e);
    nib_grammar_vocab_free(vocab);
    engine_close_model(&f);
}

static void test_unread(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j = {.n_prompt = 9, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    engine_answer a;
    engine_open_model(&f, "llama");
    j.sampling.bias = (nib_logit_bias[]){{nib_tokenizer_special(f.tok, "eos"), -1e9f}};
    j.sampling.n_bias = 1;
    engine_compute(&f, &j);
    nib_engine_config c = engine_config(256, 2);
    c.max_unread = 8 * sizeof(nib_stream_event);
    nib_engine *e = engine_start(&f, &c);
    nib_stream *idle = engine_submit_job(e, &j);
    engine_assert_settled(e);
    engine_finish(idle, &a);
    assert_int_equal(a.finish, NIB_FINISH_UNREAD);
    assert_true(a.n > 2 && a.n < 10);
    assert_memory_equal(a.hashes, j.want.hashes, a.n * sizeof *a.hashes);
    engine_end(e);
    engine_close_model(&f);
}

static void test_shutdown(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    nib_stream *streams[ENGINE_JOBS];
    engine_answer a;
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    nib_engine_config c = engine_config(1024, 4);
    c.max_chunk = 8;
    for (int is_patient = 0; is_patient < 2; is_patient++) {
        nib_engine *e = engine_start(&f, &c);
        uint32_t n_cancelled = 0;
        for (uint32_t k = 0; k < ENGINE_JOBS; k++) streams[k] = engine_submit_job(e, &jobs[k]);
        bool all = nib_engine_shutdown(e, is_patient ? -1 : 0);
        nib_request r = engine_request(&jobs[0]);
        assert_int_equal(refused(e, &r, &err), NIB_E_BUSY);
        assert_non_null(strstr(err.message, "shutting down"));
        for (uint32_t k = 0; k < ENGINE_JOBS; k++) {
            engine_finish(streams[k], &a);
            if (a.finish == NIB_FINISH_CANCELLED) n_cancelled++;
            else engine_assert_same(&a, &jobs[k], "at the end", k);
        }
        assert_int_equal(all, n_cancelled == 0);
        if (is_patient) assert_true(all);
        nib_engine_free(e);
    }
    engine_close_model(&f);
    free(jobs);
}

static void test_config(void **state) {
    (void)state;
    engine_fixture f;
    nib_error err;
    nib_engine *e;
    engine_open_model(&f, "llama");
    nib_engine_config c = engine_config(256, 2);
    c.max_context = 257;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    assert_string_equal(err.message, "a request may have 257 positions, and all of them together 256");
    c = engine_config(256, 300);
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    c = engine_config(256, 2);
    c.turn_ms = 0;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    c = engine_config(256, 2);
    c.size = 3;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    assert_null(e);
    engine_close_model(&f);
}

typedef struct tellings {
    atomic_uint all, awaited;
} tellings;

static void count(void *user, bool is_awaited) {
    tellings *n = user;
    atomic_fetch_add(&n->all, 1);
    if (is_awaited) atomic_fetch_add(&n->awaited, 1);
}

static nib_stream *submit_counted(nib_engine *e, const engine_job *j, tellings *n) {
    nib_request r = engine_request(j);
    atomic_store(&n->all, 0);
    atomic_store(&n->awaited, 0);
    r.ready = count, r.user = n;
    return engine_submit(e, &r);
}

/* How often readers are told: of each token; of the first, of the end, and before one has to make place. */
static void test_told(void **state) {
    (void)state;
    engine_fixture f;
    engine_job j[2] = {{.n_prompt = 90, .max_tokens = 120, .sampling = NIB_SAMPLER_PARAMS_INIT},
                       {.n_prompt = 80, .max_tokens = 120, .sampling = NIB_SAMPLER_PARAMS_INIT}};
    engine_answer a[2] = {0};
    tellings n[2];
    engine_open_model(&f, "llama");
    nib_logit_bias bias = {nib_tokenizer_special(f.tok, "eos"), -1e9f};
    for (int i = 0; i < 2; i++) {
        j[i].sampling.bias = &bias, j[i].sampling.n_bias = 1;
        for (uint32_t k = 0; k < j[i].n_prompt; k++) j[i].prompt[k] = (nib_token)(k + 3 + 7 * (uint32_t)i);
        engine_compute(&f, &j[i]);
    }
    nib_engine_config c = engine_config(256, 2);
    nib_engine *e = engine_start(&f, &c);
    engine_finish(submit_counted(e, &j[0], &n[0]), &a[0]);
    engine_assert_same(&a[0], &j[0], "each told", 0);
    assert_int_equal(n[0].all, 120); /* the last one comes with the end */
    assert_int_equal(n[0].awaited, 2);
    engine_end(e);
    c.stream_ms = 1e6;
    e = engine_start(&f, &c);
    engine_finish(submit_counted(e, &j[0], &n[0]), &a[0]);
    engine_assert_same(&a[0], &j[0], "told at its ends", 0);
    assert_int_equal(n[0].all, 2);
    assert_int_equal(n[0].awaited, 2);
    for (int tries = 0; tries < 1000 && !a[1].usage.n_preempted; tries++) { /* side by side they want more positions than there are */
        nib_stream *s[2];
        for (int i = 0; i < 2; i++) s[i] = submit_counted(e, &j[i], &n[i]);
        for (int i = 0; i < 2; i++) engine_finish(s[i], &a[i]);
        for (int i = 0; i < 2; i++) engine_assert_same(&a[i], &j[i], "side by side", (uint32_t)i);
    }
    assert_true(n[0].all <= 3); /* the other one's first token is told of at once, and what this one holds with it */
    assert_true(n[0].awaited == 2 && n[1].awaited == 2);
    assert_true(n[1].all >= 3 && n[1].all <= 3 + a[1].usage.n_preempted);
    engine_end(e);
    c.max_unread = 20 << 10; /* events of 120 tokens are 15 KiB and more */
    e = engine_start(&f, &c);
    engine_finish(submit_counted(e, &j[0], &n[0]), &a[0]);
    engine_assert_same(&a[0], &j[0], "told before there is no room", 0);
    assert_true(n[0].all >= 3);
    engine_end(e);
    c.stream_ms = -1;
    nib_error err;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    assert_string_equal(err.message, "stream_ms is -1, expected 0 or more");
    engine_close_model(&f);
}

/* Once an engine_answer is under way, nothing is allocated. */
static void test_turns_allocate_nothing(void **state) {
    (void)state;
    engine_fixture f;
    nib_stream_event event;
    engine_open_model(&f, "llama");
    nib_logit_bias bias = {nib_tokenizer_special(f.tok, "eos"), -1e9f};
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    sampling.seed = 1, sampling.bias = &bias, sampling.n_bias = 1;
    nib_token prompt[3] = {1, 2, 3};
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = prompt, r.n_prompt = 3, r.max_tokens = 200, r.sampling = &sampling, r.logprobs = true, r.n_top = 5;
    nib_engine_config c = engine_config(512, 2);
    nib_engine *e = engine_start(&f, &c);
    nib_stream *s = engine_submit(e, &r);
    uint64_t before = 0;
    for (int i = 0; i < 200; i++) {
        assert_true(nib_stream_next(s, -1, &event));
        assert_int_equal(event.kind, NIB_STREAM_TOKEN);
        if (i == 60) before = nib_alloc_count();
    }
    uint64_t n = nib_alloc_count() - before;
    assert_true(n <= 4); /* a reader that lags lets the buffer grow */
    nib_stream_free(s);
    engine_end(e);
    engine_close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_text_and_stops),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_grammar_of_answers),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_turns_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
