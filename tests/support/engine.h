/* tests/support/engine.h - requests for tests of nib_engine, what a plain loop over nib_decode answers them, and the same asked
 * of an engine. Failures end the test. */
#ifndef NIB_TESTS_SUPPORT_ENGINE_H
#define NIB_TESTS_SUPPORT_ENGINE_H

#include "nib.h"

enum { ENGINE_JOBS = 12, ENGINE_PROMPT = 200, ENGINE_ANSWER = 140 };

typedef struct engine_fixture {
    nib_gguf *file;
    nib_model *model;
    nib_tokenizer *tok;
    uint32_t n_vocab;
} engine_fixture;

typedef struct engine_answer {
    nib_token ids[ENGINE_ANSWER];
    uint64_t hashes[ENGINE_ANSWER];
    float logprobs[ENGINE_ANSWER];
    uint32_t n;
    nib_finish finish;
    nib_usage usage;
    char text[4096];
    size_t text_len;
    nib_error error;
    int stop;
} engine_answer;

typedef struct engine_job {
    nib_token prompt[ENGINE_PROMPT];
    uint32_t n_prompt, max_tokens;
    nib_sampler_params sampling;
    engine_answer want;
} engine_job;

/* A tiny model of an architecture, or that of a file; gemma3 has windows of 20. */
void engine_open_model(engine_fixture *f, const char *arch);
void engine_open_file(engine_fixture *f, const char *path);
void engine_close_model(engine_fixture *f);
/* Sets j->want by a plain loop, and a seed where there is none. */
void engine_compute(const engine_fixture *f, engine_job *j);
/* Prompts of many lengths, around the borders of pages; every third begins as the one before it. Greedy and sampled. */
void engine_make_jobs(const engine_fixture *f, engine_job *jobs, uint32_t n);

nib_engine *engine_start(const engine_fixture *f, const nib_engine_config *config);
nib_engine_config engine_config(uint32_t n_ctx, uint32_t n_seq);
/* With log-probabilities and hashes. */
nib_request engine_request(const engine_job *j);
nib_stream *engine_submit(nib_engine *e, const nib_request *r);
nib_stream *engine_submit_job(nib_engine *e, const engine_job *j);
/* Takes what an event brings; true: it was the last. */
bool engine_take(engine_answer *a, const nib_stream_event *event);
/* Reads a stream to its END and frees it. */
void engine_finish(nib_stream *s, engine_answer *a);
bool engine_is_same(const engine_answer *a, const engine_job *j);
void engine_assert_same(const engine_answer *a, const engine_job *j, const char *what, uint32_t k);
/* All at once; their answers are what is wanted. */
void engine_run_all(nib_engine *e, const engine_job *jobs, uint32_t n, const char *what);
/* When nothing runs, every page is free or an idle one of the tree. */
void engine_assert_settled(nib_engine *e);
/* Settled, ended and freed. */
void engine_end(nib_engine *e);

#endif
