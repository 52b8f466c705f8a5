/* tests/support/engine.c - requests for tests of nib_engine. */
#include "support/engine.h"

#include "support/blocks.h"
#include "support/files.h"
#include "support/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

void engine_open_file(engine_fixture *f, const char *path) {
    nib_error err;
    nib_model_config config = NIB_MODEL_CONFIG_INIT;
    config.n_threads = 2;
    assert_int_equal(nib_gguf_open(&f->file, path, NULL, &err), NIB_OK);
    assert_int_equal(nib_tokenizer_new(&f->tok, f->file, NULL, &err), NIB_OK);
    assert_int_equal(nib_model_open(&f->model, f->file, &config, &err), NIB_OK);
    f->n_vocab = nib_model_n_vocab(f->model);
}

void engine_open_model(engine_fixture *f, const char *arch) {
    nib_error err;
    char *folder = files_folder(), *path = files_path(folder, "tiny.gguf");
    tiny_model m = TINY_MODEL_INIT;
    m.arch = arch;
    m.sliding_window = strcmp(arch, "gemma3") == 0 ? 20 : 0;
    m.n_ctx = 1024;
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    engine_open_file(f, path);
    free(path);
    files_remove(folder);
}

void engine_close_model(engine_fixture *f) {
    nib_model_close(f->model);
    nib_tokenizer_free(f->tok);
    nib_gguf_close(f->file);
}

/* ---- what is right */

void engine_compute(const engine_fixture *f, engine_job *j) {
    nib_error err;
    if (j->sampling.seed == UINT32_MAX) j->sampling.seed = 1;
    nib_context *ctx;
    nib_batch *batch;
    nib_sampler *sampler;
    nib_context_config c = NIB_CONTEXT_CONFIG_INIT;
    c.n_ctx = 512, c.n_threads = 1;
    assert_int_equal(nib_context_new(&ctx, f->model, &c, &err), NIB_OK);
    assert_int_equal(nib_batch_new(&batch, ENGINE_PROMPT, &err), NIB_OK);
    assert_int_equal(nib_sampler_new(&sampler, &j->sampling, f->n_vocab, &err), NIB_OK);
    for (uint32_t i = 0; i < j->n_prompt; i++) {
        assert_int_equal(nib_batch_add(batch, j->prompt[i], NIB_POS_NEXT, 0, i + 1 == j->n_prompt, &err), NIB_OK);
        assert_int_equal(nib_sampler_accept(sampler, j->prompt[i], &err), NIB_OK);
    }
    engine_answer *a = &j->want;
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
void engine_make_jobs(const engine_fixture *f, engine_job *jobs, uint32_t n) {
    static const uint32_t lengths[] = {1, 31, 32, 33, 64, 65, 100, 128, 150, 7, 161, 96};
    uint64_t rng = 7;
    for (uint32_t k = 0; k < n; k++) {
        engine_job *j = &jobs[k];
        *j = (engine_job){.n_prompt = lengths[k % 12], .max_tokens = 1 + (k * 11) % 40,
                   .sampling = NIB_SAMPLER_PARAMS_INIT};
        j->sampling.seed = k;
        j->sampling.temp = k % 2 ? 1.0f : 0.0f;
        j->sampling.penalty_repeat = k % 4 == 3 ? 1.2f : 1.0f;
        for (uint32_t i = 0; i < j->n_prompt; i++) {
            j->prompt[i] = (nib_token)(blocks_random(&rng) % f->n_vocab);
            if (k % 3 == 2 && i < jobs[k - 1].n_prompt && i < 70) j->prompt[i] = jobs[k - 1].prompt[i];
        }
        engine_compute(f, j);
    }
}

nib_engine *engine_start(const engine_fixture *f, const nib_engine_config *config) {
    nib_error err;
    nib_engine *e;
    nib_status status = nib_engine_new(&e, f->model, f->tok, config, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return e;
}

nib_engine_config engine_config(uint32_t n_ctx, uint32_t n_seq) {
    nib_engine_config c = NIB_ENGINE_CONFIG_INIT;
    c.context.n_ctx = n_ctx;
    c.context.n_seq = n_seq;
    c.context.n_batch = c.context.n_ubatch = 256;
    c.context.n_threads = 2;
    c.turn_ms = 5;
    return c;
}

nib_request engine_request(const engine_job *j) {
    nib_request r = NIB_REQUEST_INIT;
    r.prompt = j->prompt;
    r.n_prompt = j->n_prompt;
    r.max_tokens = j->max_tokens;
    r.sampling = &j->sampling;
    r.hash_logits = r.logprobs = true;
    return r;
}

nib_stream *engine_submit(nib_engine *e, const nib_request *r) {
    nib_error err;
    nib_stream *s;
    nib_status status = nib_engine_submit(&s, e, r, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return s;
}

nib_stream *engine_submit_job(nib_engine *e, const engine_job *j) {
    nib_request r = engine_request(j);
    return engine_submit(e, &r);
}

/* Takes what an event brings; true: it was the last. */
bool engine_take(engine_answer *a, const nib_stream_event *event) {
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

void engine_finish(nib_stream *s, engine_answer *a) {
    nib_stream_event event;
    memset(a, 0, sizeof *a);
    do assert_true(nib_stream_next(s, -1, &event)); while (!engine_take(a, &event));
    assert_false(nib_stream_next(s, -1, &event));
    nib_stream_free(s);
}

bool engine_is_same(const engine_answer *a, const engine_job *j) {
    const engine_answer *want = &j->want;
    return a->n == want->n && a->finish == want->finish && memcmp(a->ids, want->ids, a->n * sizeof *a->ids) == 0 &&
           memcmp(a->hashes, want->hashes, a->n * sizeof *a->hashes) == 0 &&
           memcmp(a->logprobs, want->logprobs, a->n * sizeof *a->logprobs) == 0;
}

void engine_assert_same(const engine_answer *a, const engine_job *j, const char *what, uint32_t k) {
    if (!engine_is_same(a, j))
        fail_msg("%s: request %u: %u tokens, finish %d; expected %u, %d", what, k, a->n, a->finish, j->want.n, j->want.finish);
    assert_int_equal(a->usage.n_prompt, j->n_prompt);
    assert_int_equal(a->usage.n_generated, a->n);
    assert_true(a->usage.n_cached < j->n_prompt);
}

void engine_run_all(nib_engine *e, const engine_job *jobs, uint32_t n, const char *what) {
    nib_stream *streams[ENGINE_JOBS];
    engine_answer a;
    for (uint32_t k = 0; k < n; k++) streams[k] = engine_submit_job(e, &jobs[k]);
    for (uint32_t k = 0; k < n; k++) {
        engine_finish(streams[k], &a);
        engine_assert_same(&a, &jobs[k], what, k);
    }
}

/* When nothing runs, every page is free or an idle one of the tree. */
void engine_assert_settled(nib_engine *e) {
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

void engine_end(nib_engine *e) {
    engine_assert_settled(e);
    assert_true(nib_engine_shutdown(e, 0));
    nib_engine_free(e);
}

