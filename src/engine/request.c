/* engine/request.c - a nib_request in -> a nib_stream with its choices, ready for the queue. Runs on the caller's thread. */
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"

#include <math.h>
#include <string.h>

#define MAX_TOP 1000
#define MAX_STOPS 1024
#define FIRST_RATE_SHORT 0.3 /* of right guesses, before there were any */
#define FIRST_RATE_LONG 0.6

static nib_status check_ids(const nib_engine *e, const nib_token *ids, size_t n, const char *what, nib_error *err) {
    uint32_t n_vocab = nib_model_n_vocab(e->model);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return nib_fail(err, NIB_E_ARG, "token %zu of the %s has the id %d, expected 0 to %u", i, what, ids[i], n_vocab - 1);
    return NIB_OK;
}

static nib_status check_limits(const nib_engine *e, const nib_request *r, nib_error *err) {
    uint32_t n_vocab = nib_model_n_vocab(e->model);
    if (r->n_top > MAX_TOP || r->n_top > n_vocab)
        return nib_fail(err, NIB_E_ARG, "n_top is %u, expected at most %u", r->n_top, MAX_TOP < n_vocab ? MAX_TOP : n_vocab);
    if (r->n_stops > MAX_STOPS) return nib_fail(err, NIB_E_ARG, "%zu stop strings, at most %u", r->n_stops, MAX_STOPS);
    if (r->n_stop_ids > MAX_STOPS) return nib_fail(err, NIB_E_ARG, "%zu stop ids, at most %u", r->n_stop_ids, MAX_STOPS);
    if (!(r->queue_ms >= 0) || !(r->total_ms >= 0))
        return nib_fail(err, NIB_E_ARG, "queue_ms is %g and total_ms %g, expected 0 or more", r->queue_ms, r->total_ms);
    if (r->n_choices > e->config.max_requests)
        return nib_fail(err, NIB_E_LIMIT, "%u answers to one prompt: the engine takes %u at a time", r->n_choices,
                        e->config.max_requests);
    if (r->max_tokens > e->max_context + 1 - r->n_prompt) /* the last one is not computed: no position for it */
        return nib_fail(err, NIB_E_LIMIT, "a prompt of %zu tokens and an answer of %u: the context of a request has %u", r->n_prompt,
                        r->max_tokens, e->max_context);
    return NIB_OK;
}

static nib_status check_request(const nib_engine *e, const nib_request *r, nib_error *err) {
    if (r->size != sizeof *r)
        return nib_fail(err, NIB_E_ARG, "nib_request is %zu bytes, this library expects %zu", r->size, sizeof *r);
    if (!r->prompt || r->n_prompt == 0) return nib_fail(err, NIB_E_ARG, "the prompt has no tokens, expected at least one");
    NIB_TRY(check_limits(e, r, err));
    NIB_TRY(check_ids(e, r->prompt, r->n_prompt, "prompt", err));
    NIB_TRY(check_ids(e, r->allowed_ids, r->allowed_ids ? r->n_allowed_ids : 0, "allowed ids", err));
    return check_ids(e, r->stop_ids, r->n_stop_ids, "stop ids", err);
}

/* Ids that end an answer, for requests that forbid them. */
static nib_status find_ends(nib_stream *s, nib_error *err) {
    const nib_engine *e = s->engine;
    size_t capacity = 0;
    for (uint32_t i = 0; i < nib_model_n_vocab(e->model); i++) {
        nib_token id = (nib_token)i;
        if (s->chat ? !nib_chat_ends_turn(s->chat, id) : !nib_tokenizer_is_eog(e->tok, id)) continue;
        if (!nib_grow(&s->ends, &capacity, s->n_ends + 1, sizeof *s->ends)) return nib_fail_nomem(err, 0, "ids that end an answer");
        s->ends[s->n_ends++] = id;
    }
    return NIB_OK;
}

static nib_status prepare_embedding(nib_stream *s, const nib_request *r, nib_error *err) {
    s->n_choices = 1;
    s->n_max = s->n_told = s->n_prompt;
    NIB_TRY(nib_decode_embed_init(&s->embed, s->engine->model, r->pooling, err));
    s->embedding = nib_calloc(s->embed.n_embd, sizeof *s->embedding);
    return s->embedding ? NIB_OK : nib_fail_nomem(err, s->embed.n_embd * sizeof *s->embedding, "an embedding");
}

static nib_status take_stop_ids(nib_stream *s, const nib_request *r, nib_error *err) {
    if (!r->n_stop_ids) return NIB_OK;
    s->stop_ids = nib_alloc(r->n_stop_ids, sizeof *s->stop_ids);
    if (!s->stop_ids) return nib_fail_nomem(err, r->n_stop_ids * sizeof *s->stop_ids, "stop ids");
    memcpy(s->stop_ids, r->stop_ids, r->n_stop_ids * sizeof *s->stop_ids);
    s->n_stop_ids = (uint32_t)r->n_stop_ids;
    return NIB_OK;
}

static size_t mask_words(const nib_engine *e) {
    return ((size_t)nib_model_n_vocab(e->model) + 31) / 32;
}

static nib_status take_allowed(nib_stream *s, const nib_request *r, nib_error *err) {
    if (!r->allowed_ids) return NIB_OK;
    s->allowed = nib_calloc(mask_words(s->engine), sizeof *s->allowed);
    if (!s->allowed) return nib_fail_nomem(err, mask_words(s->engine) * sizeof *s->allowed, "a mask of tokens");
    for (size_t i = 0; i < r->n_allowed_ids; i++) s->allowed[r->allowed_ids[i] / 32] |= 1u << r->allowed_ids[i] % 32;
    return NIB_OK;
}

/* ---- choices */

static nib_status take_prompt(nib_engine_choice *c, const nib_request *r, nib_error *err) {
    c->n_ids = c->usage.n_prompt = (uint32_t)r->n_prompt;
    c->ids = nib_alloc(c->stream->n_max, sizeof *c->ids);
    if (!c->ids) return nib_fail_nomem(err, c->stream->n_max * sizeof *c->ids, "the tokens of a request");
    memcpy(c->ids, r->prompt, r->n_prompt * sizeof *c->ids);
    for (size_t i = 0; c->sampler && i < r->n_prompt; i++) NIB_TRY(nib_sampler_accept(c->sampler, r->prompt[i], err));
    return NIB_OK;
}

static nib_status take_grammar(nib_engine_choice *c, const nib_request *r, nib_error *err) {
    size_t n_words = mask_words(c->stream->engine);
    if (!r->grammar && !r->min_tokens && !r->ignore_eos && !r->allowed_ids) return NIB_OK;
    c->mask = nib_calloc(n_words, sizeof *c->mask);
    if (!c->mask) return nib_fail_nomem(err, n_words * sizeof *c->mask, "a mask of tokens");
    return r->grammar ? nib_matcher_new(&c->matcher, r->grammar, err) : NIB_OK;
}

/* The seed of choice i: that of the first, of which the system may have made it, and i on. */
static uint32_t seed_of(const nib_stream *s, uint32_t i) {
    return (uint32_t)(((uint64_t)nib_sampler_seed(s->choices[0].sampler) + i) % UINT32_MAX);
}

static nib_status make_choice(nib_stream *s, uint32_t number, const nib_request *r, nib_error *err) {
    const nib_engine *e = s->engine;
    nib_engine_choice *c = &s->choices[number];
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    *c = (nib_engine_choice){.item = {.priority = r->priority, .owner = r->owner}, .stream = s, .number = number, .stop_found = -1,
                             .guess = NIB_TOKEN_NONE, .guess_rate = {FIRST_RATE_SHORT, FIRST_RATE_LONG}};
    if (r->pooling != NIB_POOLING_NONE) return take_prompt(c, r, err);
    if (r->sampling) sampling = *r->sampling;
    if (number) sampling.seed = seed_of(s, number);
    NIB_TRY(nib_sampler_new(&c->sampler, &sampling, nib_model_n_vocab(e->model), err));
    NIB_TRY(take_prompt(c, r, err));
    NIB_TRY(take_grammar(c, r, err));
    if (r->n_stops) NIB_TRY(nib_stop_new(&c->stop, r->stops, r->n_stops, err));
    return nib_detok_new(&c->detok, e->tok, r->special || r->chat ? NIB_UNPARSE_SPECIAL : 0, true, err);
}

static void free_choice(nib_engine_choice *c) {
    nib_sampler_free(c->sampler);
    nib_detok_free(c->detok);
    nib_stop_free(c->stop);
    nib_matcher_free(c->matcher);
    nib_free(c->mask);
    nib_free(c->ids);
    nib_buf_free(&c->rest);
}

/* ---- the stream */

static void init_arrived(nib_stream *s) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->arrived, &clock);
    pthread_condattr_destroy(&clock);
}

static double until(double now, double ms) {
    return ms > 0 ? now + 1e-3 * ms : INFINITY;
}

nib_status nib_stream_new(nib_stream **out, nib_engine *e, const nib_request *r, nib_error *err) {
    nib_status status = NIB_OK;
    double now = nib_sys_now();
    *out = NULL;
    NIB_TRY(check_request(e, r, err));
    nib_stream *s = nib_calloc(1, sizeof *s);
    if (!s) return nib_fail_nomem(err, sizeof *s, "a stream");
    uint32_t n_prompt = (uint32_t)r->n_prompt;
    *s = (nib_stream){.engine = e, .n_prompt = n_prompt, .n_max = r->max_tokens ? n_prompt + r->max_tokens : e->max_context + 1,
                      .n_top = r->n_top, .min_tokens = r->min_tokens, .logprobs = r->logprobs,
                      .prompt_logprobs = r->prompt_logprobs, .hash_logits = r->hash_logits, .special = r->special,
                      .ignore_eos = r->ignore_eos,
                      .jump_ahead = r->jump_ahead && r->grammar, .salt = r->salt,
                      .chat = r->chat, .ready = r->ready, .user = r->user,
                      .submitted = now, .queue_until = until(now, r->queue_ms), .until = until(now, r->total_ms),
                      .n_choices = r->n_choices ? r->n_choices : 1, .n_told = r->prompt_logprobs ? 1 : n_prompt,
                      .told = -INFINITY};
    init_arrived(s);
    if (r->pooling != NIB_POOLING_NONE) NIB_TRY_OUT(prepare_embedding(s, r, err));
    s->top = nib_calloc(r->n_top, sizeof *s->top);
    s->choices = nib_calloc(s->n_choices, sizeof *s->choices);
    if (!s->top || !s->choices || !nib_buf_reserve(&s->unread, 4096)) {
        status = nib_fail_nomem(err, r->n_top * sizeof *s->top + s->n_choices * sizeof *s->choices, "a stream");
        goto out;
    }
    NIB_TRY_OUT(take_stop_ids(s, r, err));
    NIB_TRY_OUT(take_allowed(s, r, err));
    if (r->min_tokens || r->ignore_eos) NIB_TRY_OUT(find_ends(s, err));
    for (uint32_t i = 0; i < s->n_choices; i++) NIB_TRY_OUT(make_choice(s, i, r, err));
    *out = s;
    return NIB_OK;
out:
    nib_stream_delete(s);
    return status;
}

void nib_stream_delete(nib_stream *s) {
    pthread_cond_destroy(&s->arrived);
    for (uint32_t i = 0; s->choices && i < s->n_choices; i++) free_choice(&s->choices[i]);
    nib_free(s->choices);
    nib_free(s->top);
    nib_token_list_free(&s->jumped);
    nib_decode_embed_fini(&s->embed);
    nib_free(s->embedding);
    nib_free(s->ends);
    nib_free(s->stop_ids);
    nib_free(s->allowed);
    nib_buf_free(&s->unread);
    nib_buf_free(&s->event);
    nib_free(s);
}
