/* tests/test_engine_engine.c - the promise of nib_engine: an answer depends on its request alone. Ids and hashes of every row
 * of logits equal those of a plain loop over nib_decode, whatever runs beside, however prompts are cut, after hits of the
 * cache, preemption and cancelled neighbours. And: limits, errors of one request, readers that do not come, the end. */
#include "nib.h"

#include "base/mem.h"
#include "base/sys.h"
#include "support/blocks.h"
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
#include <unistd.h>

#include <cmocka.h>

enum { N_JOBS = 12, MAX_PROMPT = 200, MAX_ANSWER = 140, N_SEQ = 8 };

typedef struct fixture {
    nib_gguf *file;
    nib_model *model;
    nib_tokenizer *tok;
    uint32_t n_vocab;
} fixture;

typedef struct answer {
    nib_token ids[MAX_ANSWER];
    uint64_t hashes[MAX_ANSWER];
    float logprobs[MAX_ANSWER];
    uint32_t n;
    nib_finish finish;
    nib_usage usage;
    char text[4096];
    size_t text_len;
    nib_error error;
    int stop;
} answer;

typedef struct job {
    nib_token prompt[MAX_PROMPT];
    uint32_t n_prompt, max_tokens;
    nib_sampler_params sampling;
    answer want;
} job;

static void open_file(fixture *f, const char *path) {
    nib_error err;
    nib_model_config config = NIB_MODEL_CONFIG_INIT;
    config.n_threads = 2;
    assert_int_equal(nib_gguf_open(&f->file, path, NULL, &err), NIB_OK);
    assert_int_equal(nib_tokenizer_new(&f->tok, f->file, NULL, &err), NIB_OK);
    assert_int_equal(nib_model_open(&f->model, f->file, &config, &err), NIB_OK);
    f->n_vocab = nib_model_n_vocab(f->model);
}

static void open_model(fixture *f, const char *arch) {
    nib_error err;
    char *folder = files_folder(), *path = files_path(folder, "tiny.gguf");
    tiny_model m = TINY_MODEL_INIT;
    m.arch = arch;
    m.sliding_window = strcmp(arch, "gemma3") == 0 ? 20 : 0;
    m.n_ctx = 1024;
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    open_file(f, path);
    free(path);
    files_remove(folder);
}

static void close_model(fixture *f) {
    nib_model_close(f->model);
    nib_tokenizer_free(f->tok);
    nib_gguf_close(f->file);
}

/* ---- what is right */

static void compute(const fixture *f, job *j) {
    nib_error err;
    if (j->sampling.seed == UINT32_MAX) j->sampling.seed = 1;
    nib_context *ctx;
    nib_batch *batch;
    nib_sampler *sampler;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 512, c.n_threads = 1;
    assert_int_equal(nib_context_new(&ctx, f->model, &c, &err), NIB_OK);
    assert_int_equal(nib_batch_new(&batch, MAX_PROMPT, &err), NIB_OK);
    assert_int_equal(nib_sampler_new(&sampler, &j->sampling, f->n_vocab, &err), NIB_OK);
    for (uint32_t i = 0; i < j->n_prompt; i++) {
        assert_int_equal(nib_batch_add(batch, j->prompt[i], NIB_POS_NEXT, 0, i + 1 == j->n_prompt, &err), NIB_OK);
        assert_int_equal(nib_sampler_accept(sampler, j->prompt[i], &err), NIB_OK);
    }
    answer *a = &j->want;
    memset(a, 0, sizeof *a);
    for (a->finish = NIB_FINISH_LENGTH; a->n < j->max_tokens && a->finish != NIB_FINISH_STOP;) {
        nib_token id;
        assert_int_equal(nib_decode(ctx, batch, &err), NIB_OK);
        assert_int_equal(nib_sampler_sample(sampler, nib_logits(ctx, 0), NULL, nib_seq_length(ctx, 0), &id, &err), NIB_OK);
        assert_int_equal(nib_sampler_accept(sampler, id, &err), NIB_OK);
        assert_int_equal(nib_logprobs(nib_logits(ctx, 0), f->n_vocab, id, &a->logprobs[a->n], NULL, 0, &err), NIB_OK);
        a->hashes[a->n] = nib_logits_hash(ctx, 0);
        a->ids[a->n++] = id;
        if (nib_tokenizer_is_eog(f->tok, id)) a->finish = NIB_FINISH_STOP;
        nib_batch_clear(batch);
        assert_int_equal(nib_batch_add(batch, id, NIB_POS_NEXT, 0, true, &err), NIB_OK);
    }
    nib_sampler_free(sampler);
    nib_batch_free(batch);
    nib_context_free(ctx);
}

/* Prompts of many lengths, around the borders of pages; every third begins as the one before it. Greedy and sampled. */
static void make_jobs(const fixture *f, job *jobs, uint32_t n) {
    static const uint32_t lengths[] = {1, 31, 32, 33, 64, 65, 100, 128, 150, 7, 161, 96};
    uint64_t rng = 7;
    for (uint32_t k = 0; k < n; k++) {
        job *j = &jobs[k];
        *j = (job){.n_prompt = lengths[k % 12], .max_tokens = 1 + (k * 11) % 40,
                   .sampling = NIB_SAMPLER_PARAMS_INIT};
        j->sampling.seed = k;
        j->sampling.temp = k % 2 ? 1.0f : 0.0f;
        j->sampling.penalty_repeat = k % 4 == 3 ? 1.2f : 1.0f;
        for (uint32_t i = 0; i < j->n_prompt; i++) {
            j->prompt[i] = (nib_token)(blocks_random(&rng) % f->n_vocab);
            if (k % 3 == 2 && i < jobs[k - 1].n_prompt && i < 70) j->prompt[i] = jobs[k - 1].prompt[i];
        }
        compute(f, j);
    }
}

/* ---- what the engine makes */

static nib_engine *engine(const fixture *f, const nib_engine_config *config) {
    nib_error err;
    nib_engine *e;
    nib_status status = nib_engine_new(&e, f->model, f->tok, config, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return e;
}

static nib_engine_config config_of(uint32_t n_ctx, uint32_t n_seq) {
    nib_engine_config c = NIB_ENGINE_CONFIG_INIT;
    c.context.n_ctx = n_ctx;
    c.context.n_seq = n_seq;
    c.context.n_batch = c.context.n_ubatch = 256;
    c.context.n_threads = 2;
    c.turn_ms = 5;
    return c;
}

static nib_request request_of(const job *j) {
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = j->prompt;
    r.n_prompt = j->n_prompt;
    r.max_tokens = j->max_tokens;
    r.sampling = &j->sampling;
    r.hash_logits = r.logprobs = true;
    return r;
}

static nib_stream *submit(nib_engine *e, const nib_request *r) {
    nib_error err;
    nib_stream *s;
    nib_status status = nib_engine_submit(&s, e, r, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return s;
}

static nib_stream *submit_job(nib_engine *e, const job *j) {
    nib_request r = request_of(j);
    return submit(e, &r);
}

/* Takes what an event brings; true: it was the last. */
static bool take(answer *a, const nib_stream_event *event) {
    memcpy(a->text + a->text_len, event->text.ptr, event->text.len);
    a->text_len += event->text.len;
    if (event->kind == NIB_STREAM_TOKEN) {
        a->ids[a->n] = event->id;
        a->logprobs[a->n] = event->logprob;
        a->hashes[a->n++] = event->logits_hash;
        return false;
    }
    a->finish = event->finish;
    a->usage = event->usage;
    a->stop = event->stop;
    if (event->error) a->error = *event->error;
    return true;
}

static void finish(nib_stream *s, answer *a) {
    nib_stream_event event;
    memset(a, 0, sizeof *a);
    do assert_true(nib_stream_next(s, -1, &event)); while (!take(a, &event));
    assert_false(nib_stream_next(s, -1, &event));
    nib_stream_free(s);
}

static bool is_same(const answer *a, const job *j) {
    const answer *want = &j->want;
    return a->n == want->n && a->finish == want->finish && memcmp(a->ids, want->ids, a->n * sizeof *a->ids) == 0 &&
           memcmp(a->hashes, want->hashes, a->n * sizeof *a->hashes) == 0 &&
           memcmp(a->logprobs, want->logprobs, a->n * sizeof *a->logprobs) == 0;
}

static void assert_same(const answer *a, const job *j, const char *what, uint32_t k) {
    if (!is_same(a, j))
        fail_msg("%s: request %u: %u tokens, finish %d; expected %u, %d", what, k, a->n, a->finish, j->want.n, j->want.finish);
    assert_int_equal(a->usage.n_prompt, j->n_prompt);
    assert_int_equal(a->usage.n_generated, a->n);
    assert_true(a->usage.n_cached < j->n_prompt);
}

static void run_all(nib_engine *e, const job *jobs, uint32_t n, const char *what) {
    nib_stream *streams[N_JOBS];
    answer a;
    for (uint32_t k = 0; k < n; k++) streams[k] = submit_job(e, &jobs[k]);
    for (uint32_t k = 0; k < n; k++) {
        finish(streams[k], &a);
        assert_same(&a, &jobs[k], what, k);
    }
}

/* When nothing runs, every page is free or an idle one of the tree. */
static void assert_settled(nib_engine *e) {
    nib_engine_figures f;
    for (int i = 0; i < 2000; i++) {
        nib_engine_stats(e, &f);
        if (!f.n_running && !f.n_waiting && f.n_free + f.n_cached == f.n_pages) break;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_int_equal(f.n_running, 0);
    assert_int_equal(f.n_waiting, 0);
    assert_int_equal(f.n_free + f.n_cached, f.n_pages);
    assert_int_equal(f.n_idle, f.n_cached);
    assert_int_equal(f.queued_tokens, 0);
}

static void end(nib_engine *e) {
    assert_settled(e);
    assert_true(nib_engine_shutdown(e, 0));
    nib_engine_free(e);
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "gemma3"};
    for (size_t a = 0; a < 2; a++) {
        fixture f;
        job *jobs = calloc(N_JOBS, sizeof *jobs);
        open_model(&f, archs[a]);
        make_jobs(&f, jobs, N_JOBS);
        static const struct {
            uint32_t n_seq, max_chunk;
            double turn_ms;
            bool no_cache;
        } ways[] = {{1, 0, 5, true}, {8, 0, 5, true}, {8, 1, 5, false}, {3, 7, 5, false}, {8, 33, 5, false}, {8, 0, 0.01, false}};
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w += IS_SANITIZED ? 2 : 1) {
            char what[100];
            snprintf(what, sizeof what, "%s, way %zu", archs[a], w);
            nib_engine_config c = config_of(4096, ways[w].n_seq);
            c.max_chunk = ways[w].max_chunk;
            c.turn_ms = ways[w].turn_ms;
            c.no_prefix_cache = ways[w].no_cache;
            nib_engine *e = engine(&f, &c);
            run_all(e, jobs, N_JOBS, what);
            run_all(e, jobs, N_JOBS, what); /* with a cache: everything is there already */
            nib_engine_figures figures;
            assert_settled(e);
            nib_engine_stats(e, &figures);
            assert_true(ways[w].no_cache ? figures.n_reused == 0 : figures.n_reused > 500);
            end(e);
        }
        close_model(&f);
        free(jobs);
    }
}

/* A prompt again, its answer continued, another salt; and many at once that begin alike: computed once. */
static void test_prefix_is_reused(void **state) {
    (void)state;
    fixture f;
    job j = {.n_prompt = 150, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    answer a;
    nib_stream *streams[N_SEQ];
    open_model(&f, "gemma3");
    j.sampling.temp = 0;
    for (uint32_t i = 0; i < j.n_prompt; i++) j.prompt[i] = (nib_token)(i * 37 % f.n_vocab);
    compute(&f, &j);
    nib_engine_config c = config_of(4096, N_SEQ);
    nib_engine *e = engine(&f, &c);
    for (int i = 0; i < N_SEQ; i++) streams[i] = submit_job(e, &j);
    for (int i = 0; i < N_SEQ; i++) {
        finish(streams[i], &a);
        assert_same(&a, &j, "the same prompt at once", (uint32_t)i);
        assert_int_equal(a.usage.n_cached, i ? 128 : 0);
    }
    nib_request r = request_of(&j);
    r.salt = 1;
    finish(submit(e, &r), &a);
    assert_same(&a, &j, "another salt", 0);
    assert_int_equal(a.usage.n_cached, 0);
    job next = j; /* the next turn of a talk: prompt, answer, and something new */
    if (j.want.n == 40) {
        memcpy(next.prompt + j.n_prompt, j.want.ids, 40 * sizeof *next.prompt);
        next.n_prompt = 199;
        next.max_tokens = 5;
        for (uint32_t i = 190; i < next.n_prompt; i++) next.prompt[i] = 5;
        compute(&f, &next);
        finish(submit_job(e, &next), &a);
        assert_same(&a, &next, "the next turn", 0);
        assert_int_equal(a.usage.n_cached, 160); /* pages that the answer filled, too */
    }
    end(e);
    close_model(&f);
}

/* Pages for one and a half of the requests that run at once. */
static void test_preemption(void **state) {
    (void)state;
    fixture f;
    job *jobs = calloc(N_JOBS, sizeof *jobs);
    open_model(&f, "llama");
    make_jobs(&f, jobs, N_JOBS);
    uint64_t n_preempted = 0;
    for (uint32_t k = 0; k < N_JOBS; k += 2) { /* short prompts, long answers: nobody knows before that they will not fit */
        jobs[k].n_prompt = 10 + k;
        jobs[k].max_tokens = MAX_ANSWER;
        compute(&f, &jobs[k]);
    }
    for (uint32_t n_ctx = 224; n_ctx <= 320; n_ctx += 96) {
        nib_engine_config c = config_of(n_ctx, 4);
        c.max_chunk = 50;
        nib_engine *e = engine(&f, &c);
        nib_engine_figures figures;
        for (int i = 0; i < 3; i++) run_all(e, jobs, N_JOBS, "few pages");
        assert_settled(e);
        nib_engine_stats(e, &figures);
        n_preempted += figures.n_preempted;
        assert_true(figures.n_evicted > 0);
        end(e);
    }
    print_message("%u preemptions\n", (unsigned)n_preempted);
    assert_true(n_preempted > 0);
    close_model(&f);
    free(jobs);
}

/* Requests that are cancelled, in the queue, in their prompts, and while they answer: the others do not notice. */
static void test_cancel(void **state) {
    (void)state;
    fixture f;
    job *jobs = calloc(N_JOBS, sizeof *jobs);
    answer a;
    open_model(&f, "llama");
    make_jobs(&f, jobs, N_JOBS);
    nib_engine_config c = config_of(1024, 4);
    c.max_chunk = 16;
    nib_engine *e = engine(&f, &c);
    uint32_t n_cancelled = 0;
    for (uint32_t round = 0; round < 12; round++) {
        nib_stream *streams[N_JOBS];
        nib_stream_event event;
        for (uint32_t k = 0; k < N_JOBS; k++) streams[k] = submit_job(e, &jobs[k]);
        for (uint32_t k = round % 3; k < N_JOBS; k += 3) {
            if (k % 2) nib_stream_next(streams[k], 2, &event);
            if (k % 4 == 1) {
                nib_stream_free(streams[k]);
                streams[k] = NULL;
            } else {
                nib_engine_cancel(e, streams[k]);
            }
        }
        for (uint32_t k = 0; k < N_JOBS; k++) {
            if (!streams[k]) continue;
            if (k % 3 != round % 3) {
                finish(streams[k], &a);
                assert_same(&a, &jobs[k], "beside cancelled ones", k);
                continue;
            }
            do assert_true(nib_stream_next(streams[k], -1, &event)); while (event.kind != NIB_STREAM_END);
            n_cancelled += event.finish == NIB_FINISH_CANCELLED;
            nib_stream_free(streams[k]);
        }
    }
    print_message("%u cancelled\n", n_cancelled);
    assert_true(n_cancelled > 5);
    end(e);
    close_model(&f);
    free(jobs);
}

static nib_status refused(nib_engine *e, const nib_request *r, nib_error *err) {
    nib_stream *s;
    nib_status status = nib_engine_submit(&s, e, r, err);
    assert_null(s);
    return status;
}

static void test_limits(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    job j = {.n_prompt = 100, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    nib_token *long_prompt = calloc(300, sizeof *long_prompt);
    nib_stream *streams[4];
    answer a;
    open_model(&f, "llama");
    compute(&f, &j);
    nib_engine_config c = config_of(256, 2);
    c.max_requests = 4;
    c.max_chunk = 1;
    nib_engine *e = engine(&f, &c);
    nib_request r = request_of(&j);
    r.prompt = long_prompt, r.n_prompt = 257;
    assert_int_equal(refused(e, &r, &err), NIB_E_LIMIT);
    assert_string_equal(err.message, "the prompt has 257 tokens, the context of a request 256");
    r.n_prompt = 200, r.max_tokens = 58;
    assert_int_equal(refused(e, &r, &err), NIB_E_LIMIT);
    r.n_prompt = 0;
    assert_int_equal(refused(e, &r, &err), NIB_E_ARG);
    r = request_of(&j);
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
    for (int i = 0; i < 4; i++) streams[i] = submit(e, &r);
    assert_int_equal(nib_engine_admits(e, 1, &err), NIB_E_BUSY);
    assert_int_equal(refused(e, &r, &err), NIB_E_BUSY);
    assert_string_equal(err.message, "4 requests are running and waiting, at most 4: try again later");
    for (int i = 0; i < 4; i++) {
        finish(streams[i], &a);
        assert_same(&a, &j, "beside refused ones", 0);
    }
    nib_engine_figures figures;
    nib_engine_stats(e, &figures);
    assert_int_equal(figures.n_refused, 2);
    assert_true(figures.retry_s >= 1);
    end(e);
    c.max_requests = 100;
    c.max_queued_tokens = 150;
    e = engine(&f, &c);
    streams[0] = submit(e, &r);
    assert_int_equal(refused(e, &r, &err), NIB_E_BUSY);
    finish(streams[0], &a);
    finish(submit(e, &r), &a);
    end(e);
    close_model(&f);
    free(long_prompt);
}

static void test_text_and_stops(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    job j = {.n_prompt = 20, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    answer a;
    char *text;
    size_t len;
    open_model(&f, "llama");
    j.sampling.seed = 3;
    j.sampling.bias = (nib_logit_bias[]){{nib_tokenizer_special(f.tok, "eos"), -1e9f}};
    j.sampling.n_bias = 1;
    compute(&f, &j);
    nib_engine_config c = config_of(256, 2);
    nib_engine *e = engine(&f, &c);
    finish(submit_job(e, &j), &a);
    assert_same(&a, &j, "alone", 0);
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
    nib_request r = request_of(&j);
    r.stops = &stop, r.n_stops = 1;
    finish(submit(e, &r), &a);
    assert_int_equal(a.finish, NIB_FINISH_STOP);
    assert_int_equal(a.stop, 0);
    assert_int_equal(a.text_len, at);
    assert_memory_equal(a.text, text, at);
    end(e);
    close_model(&f);
}

/* Two requests with a grammar and one without, side by side. */
static void test_grammar(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    job j = {.n_prompt = 40, .max_tokens = 30, .sampling = NIB_SAMPLER_PARAMS_INIT};
    nib_stream *streams[3];
    answer a[3];
    open_model(&f, "llama");
    compute(&f, &j);
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_vocab_new(&vocab, f.tok, &err), NIB_OK);
    assert_int_equal(nib_grammar_new(&grammar, "[0-9]{7}", 8, vocab, &config, &err), NIB_OK);
    nib_engine_config c = config_of(512, 3);
    nib_engine *e = engine(&f, &c);
    for (int k = 0; k < 3; k++) {
        nib_request r = request_of(&j);
        r.grammar = k == 1 ? NULL : grammar;
        streams[k] = submit(e, &r);
    }
    for (int k = 0; k < 3; k++) finish(streams[k], &a[k]);
    assert_same(&a[1], &j, "beside a grammar", 1);
    assert_int_equal(a[0].finish, NIB_FINISH_STOP);
    assert_int_equal(a[0].text_len, 7);
    for (int i = 0; i < 7; i++) assert_in_range(a[0].text[i], '0', '9');
    assert_int_equal(a[2].n, a[0].n);
    assert_memory_equal(a[2].hashes, a[0].hashes, a[0].n * sizeof *a[0].hashes);
    end(e);
    nib_grammar_free(grammar);
    nib_grammar_vocab_free(vocab);
    close_model(&f);
}

static void test_unread(void **state) {
    (void)state;
    fixture f;
    job j = {.n_prompt = 9, .max_tokens = 40, .sampling = NIB_SAMPLER_PARAMS_INIT};
    answer a;
    open_model(&f, "llama");
    j.sampling.bias = (nib_logit_bias[]){{nib_tokenizer_special(f.tok, "eos"), -1e9f}};
    j.sampling.n_bias = 1;
    compute(&f, &j);
    nib_engine_config c = config_of(256, 2);
    c.max_unread = 8 * sizeof(nib_stream_event);
    nib_engine *e = engine(&f, &c);
    nib_stream *idle = submit_job(e, &j);
    assert_settled(e);
    finish(idle, &a);
    assert_int_equal(a.finish, NIB_FINISH_UNREAD);
    assert_true(a.n > 2 && a.n < 10);
    assert_memory_equal(a.hashes, j.want.hashes, a.n * sizeof *a.hashes);
    end(e);
    close_model(&f);
}

/* A model whose embedding of one token is broken: whoever uses the token ends with an error, and nobody else. */
static void test_nan(void **state) {
    (void)state;
    fixture f;
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
    open_file(&f, path);
    job good[4], bad = {.n_prompt = 60, .max_tokens = 9, .sampling = NIB_SAMPLER_PARAMS_INIT};
    const nib_logit_bias never = {17, -1e9f};
    for (uint32_t k = 0; k < 4; k++) {
        good[k] = (job){.n_prompt = 40 + k, .max_tokens = 20, .sampling = NIB_SAMPLER_PARAMS_INIT};
        good[k].sampling.bias = &never;
        good[k].sampling.n_bias = 1;
        good[k].sampling.seed = k;
        for (uint32_t i = 0; i < good[k].n_prompt; i++) good[k].prompt[i] = (nib_token)(20 + i);
        compute(&f, &good[k]);
    }
    for (uint32_t i = 0; i < bad.n_prompt; i++) bad.prompt[i] = i == 50 ? 17 : (nib_token)(20 + i);
    nib_engine_config c = config_of(1024, 6);
    nib_engine *e = engine(&f, &c);
    nib_stream *streams[6];
    answer a;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 6; k++) streams[k] = submit_job(e, k % 3 == 2 ? &bad : &good[k - k / 3]);
        for (int k = 0; k < 6; k++) {
            finish(streams[k], &a);
            if (k % 3 != 2) assert_same(&a, &good[k - k / 3], "beside NaN", (uint32_t)k);
            else assert_int_equal(a.finish, NIB_FINISH_ERROR);
            if (k % 3 == 2) assert_int_equal(a.error.code, NIB_E_NUMERIC);
        }
    }
    end(e);
    close_model(&f);
    free(path);
    files_remove(folder);
}

static void test_shutdown(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    job *jobs = calloc(N_JOBS, sizeof *jobs);
    nib_stream *streams[N_JOBS];
    answer a;
    open_model(&f, "llama");
    make_jobs(&f, jobs, N_JOBS);
    nib_engine_config c = config_of(1024, 4);
    c.max_chunk = 8;
    for (int is_patient = 0; is_patient < 2; is_patient++) {
        nib_engine *e = engine(&f, &c);
        uint32_t n_cancelled = 0;
        for (uint32_t k = 0; k < N_JOBS; k++) streams[k] = submit_job(e, &jobs[k]);
        bool all = nib_engine_shutdown(e, is_patient ? -1 : 0);
        nib_request r = request_of(&jobs[0]);
        assert_int_equal(refused(e, &r, &err), NIB_E_BUSY);
        assert_non_null(strstr(err.message, "shutting down"));
        for (uint32_t k = 0; k < N_JOBS; k++) {
            finish(streams[k], &a);
            if (a.finish == NIB_FINISH_CANCELLED) n_cancelled++;
            else assert_same(&a, &jobs[k], "at the end", k);
        }
        assert_int_equal(all, n_cancelled == 0);
        if (is_patient) assert_true(all);
        nib_engine_free(e);
    }
    close_model(&f);
    free(jobs);
}

static void test_config(void **state) {
    (void)state;
    fixture f;
    nib_error err;
    nib_engine *e;
    open_model(&f, "llama");
    nib_engine_config c = config_of(256, 2);
    c.max_context = 257;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    assert_string_equal(err.message, "a request may have 257 positions, and all of them together 256");
    c = config_of(256, 300);
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    c = config_of(256, 2);
    c.turn_ms = 0;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    c = config_of(256, 2);
    c.size = 3;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    assert_null(e);
    close_model(&f);
}

/* ---- many threads at once */

typedef struct client {
    pthread_t thread;
    nib_engine *engine;
    const job *jobs;
    uint64_t rng;
    double until;
    uint32_t n_done, n_cancelled, n_refused, n_wrong;
} client;

static void *be_client(void *arg) {
    client *c = arg;
    while (nib_sys_now() < c->until) {
        const job *j = &c->jobs[blocks_random(&c->rng) % N_JOBS];
        nib_request r = request_of(j);
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
        answer a = {0};
        bool is_last = false;
        for (uint32_t i = 0; i < patience && !is_last; i++)
            if (nib_stream_next(s, i % 3 ? -1 : 3, &event)) is_last = take(&a, &event);
        c->n_done += is_last;
        c->n_cancelled += !is_last;
        if (is_last && !is_same(&a, j)) c->n_wrong++;
        nib_stream_free(s);
    }
    return NULL;
}

static void test_stress(void **state) {
    (void)state;
    fixture f;
    job *jobs = calloc(N_JOBS, sizeof *jobs);
    client clients[6];
    uint32_t n_done = 0, n_cancelled = 0, n_refused = 0;
    open_model(&f, "gemma3");
    make_jobs(&f, jobs, N_JOBS);
    nib_engine_config c = config_of(256, 4);
    c.max_requests = 5;
    c.max_queued_tokens = 400;
    c.turn_ms = 1;
    nib_engine *e = engine(&f, &c);
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
    assert_settled(e);
    nib_engine_figures figures;
    nib_engine_stats(e, &figures);
    print_message("%u answered, %u given up, %u refused, %u preempted, %u evicted\n", n_done, n_cancelled, n_refused,
                  (unsigned)figures.n_preempted, (unsigned)figures.n_evicted);
    assert_true(n_done > 10 && n_cancelled > 0);
    end(e);
    close_model(&f);
    free(jobs);
}

/* Once an answer is under way, nothing is allocated. */
static void test_turns_allocate_nothing(void **state) {
    (void)state;
    fixture f;
    nib_stream_event event;
    open_model(&f, "llama");
    nib_logit_bias bias = {nib_tokenizer_special(f.tok, "eos"), -1e9f};
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    sampling.seed = 1, sampling.bias = &bias, sampling.n_bias = 1;
    nib_token prompt[3] = {1, 2, 3};
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = prompt, r.n_prompt = 3, r.max_tokens = 200, r.sampling = &sampling, r.logprobs = true, r.n_top = 5;
    nib_engine_config c = config_of(512, 2);
    nib_engine *e = engine(&f, &c);
    nib_stream *s = submit(e, &r);
    uint64_t before = 0;
    for (int i = 0; i < 200; i++) {
        assert_true(nib_stream_next(s, -1, &event));
        assert_int_equal(event.kind, NIB_STREAM_TOKEN);
        if (i == 60) before = nib_alloc_count();
    }
    uint64_t n = nib_alloc_count() - before;
    assert_true(n <= 4); /* a reader that lags lets the buffer grow */
    nib_stream_free(s);
    end(e);
    close_model(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_prefix_is_reused),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_text_and_stops),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_turns_allocate_nothing),
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
