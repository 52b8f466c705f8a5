/* engine/engine.c - nib_engine: made and ended, its thread, and what others hand in (engine.h tells the whole). */
#include "engine/engine.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "decode/pages.h"

#include <math.h>
#include <time.h>

typedef unsigned long long ull;

#define SPARE_ROWS 16 /* of logits, beside one of each request: for prompts that are told of, and for guesses */

static nib_status check_config(const nib_engine_config *c, nib_error *err) {
    if (c->size != sizeof *c)
        return nib_fail(err, NIB_E_ARG, "nib_engine_config is %zu bytes, this library expects %zu", c->size, sizeof *c);
    if (c->context.n_batch < c->context.n_seq || c->context.n_ubatch < c->context.n_seq)
        return nib_fail(err, NIB_E_ARG, "%u requests at once in batches of %u and %u tokens: a batch must hold a token of each",
                        c->context.n_seq, c->context.n_batch, c->context.n_ubatch);
    if (c->max_requests < 1 || c->max_requests > 1u << 20)
        return nib_fail(err, NIB_E_ARG, "max_requests is %u, expected 1 to %u", c->max_requests, 1u << 20);
    if (!(c->turn_ms > 0) || !isfinite(c->turn_ms))
        return nib_fail(err, NIB_E_ARG, "turn_ms is %g, expected more than 0", c->turn_ms);
    if (!(c->stream_ms >= 0) || !isfinite(c->stream_ms))
        return nib_fail(err, NIB_E_ARG, "stream_ms is %g, expected 0 or more", c->stream_ms);
    if (c->kv_dir && !c->kv_disk) return nib_fail(err, NIB_E_ARG, "kv_disk is 0 bytes: no page fits in the folder kv_dir");
    return NIB_OK;
}

static bool is_killed(void *user) {
    const nib_engine *e = user;
    return atomic_load(&e->is_killed);
}

static nib_status make_context(nib_engine *e, nib_error *err) {
    nib_context_config c = e->config.context;
    c.abort = is_killed;
    c.user = e;
    if (c.n_logits < c.n_seq + SPARE_ROWS) c.n_logits = c.n_seq + SPARE_ROWS;
    NIB_TRY(nib_context_new(&e->ctx, e->model, &c, err));
    uint32_t n_ctx = nib_context_n_ctx(e->ctx), n_train = nib_model_n_ctx_train(e->model);
    e->max_context = e->config.max_context ? e->config.max_context : n_ctx < n_train ? n_ctx : n_train;
    if (e->max_context > n_ctx)
        return nib_fail(err, NIB_E_ARG, "a request may have %u positions, and all of them together %u", e->max_context, n_ctx);
    e->pool = nib_decode_pages_pool(e->ctx);
    return NIB_OK;
}

static nib_status make_tables(nib_engine *e, nib_error *err) {
    e->n_seq = e->config.context.n_seq;
    e->running = nib_calloc(e->n_seq, sizeof *e->running);
    e->with_rows = nib_calloc(e->n_seq, sizeof *e->with_rows);
    e->free_seqs = nib_calloc(e->n_seq, sizeof *e->free_seqs);
    e->pages = nib_calloc(e->pool->n_pages, sizeof *e->pages);
    if (!e->running || !e->with_rows || !e->free_seqs || !e->pages) return nib_fail_nomem(err, 0, "the tables of an engine");
    while (e->n_free_seqs < e->n_seq) e->free_seqs[e->n_free_seqs] = e->n_seq - 1 - e->n_free_seqs, e->n_free_seqs++;
    NIB_TRY(nib_batch_new(&e->batch, e->config.context.n_batch, err));
    NIB_TRY(nib_kv_prefix_init(&e->tree, e->pool, err));
    return nib_sched_queue_init(&e->queue, e->config.max_requests, err);
}

static void *work(void *arg) {
    nib_engine *e = arg;
    for (;;) {
        pthread_mutex_lock(&e->lock);
        while (!e->n_live && !e->is_quitting) {
            nib_engine_view_serve(e);
            pthread_cond_wait(&e->work, &e->lock);
        }
        bool ends = !e->n_live;
        pthread_mutex_unlock(&e->lock);
        if (ends) return NULL;
        nib_engine_turn(e);
    }
}

static void init_lock(nib_engine *e) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->idle, &clock);
    pthread_condattr_destroy(&clock);
    e->inbox_end = &e->inbox;
}

nib_status nib_engine_new(nib_engine **out, const nib_model *model, const nib_tokenizer *tok,
                          const nib_engine_config *config, nib_error *err) {
    static const nib_engine_config defaults = NIB_ENGINE_CONFIG_INIT;
    nib_status status;
    *out = NULL;
    if (!config) config = &defaults;
    NIB_TRY(check_config(config, err));
    nib_engine *e = nib_calloc(1, sizeof *e);
    if (!e) return nib_fail_nomem(err, sizeof *e, "an engine");
    e->config = *config;
    e->model = model;
    e->tok = tok;
    init_lock(e);
    NIB_TRY_OUT(make_context(e, err));
    NIB_TRY_OUT(make_tables(e, err));
    NIB_TRY_OUT(nib_engine_measure(e, err));
    nib_engine_disk_open(e);
    nib_engine_disk_note(e);
    e->config.context.k_type = e->config.context.v_type = e->config.kv_dir = NULL; /* the caller's strings are not kept */
    e->figures.n_pages = e->pool->n_pages;
    e->figures.n_free = e->pool->n_free;
    e->figures.kv_bytes = nib_context_kv_bytes(e->ctx);
    e->figures.buffer_bytes = nib_context_buffer_bytes(e->ctx);
    e->figures.max_context = e->max_context;
    e->figures.retry_s = 1;
    e->shown = e->figures;
    int code = pthread_create(&e->thread, NULL, work, e);
    if (code) NIB_TRY_OUT(nib_fail_errno(err, code, "the engine's thread could not be started"));
    e->has_thread = true;
    *out = e;
    return NIB_OK;
out:
    nib_engine_free(e);
    return status;
}

/* With the lock: whether all ended before the time was over. */
static bool wait_idle(nib_engine *e, int timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
    int code = 0;
    while (e->n_live && code == 0)
        code = timeout_ms < 0 ? pthread_cond_wait(&e->idle, &e->lock) : pthread_cond_timedwait(&e->idle, &e->lock, &until);
    return !e->n_live;
}

bool nib_engine_shutdown(nib_engine *e, int timeout_ms) {
    pthread_mutex_lock(&e->lock);
    e->is_closing = true;
    bool all_answered = wait_idle(e, timeout_ms);
    if (!all_answered) atomic_store(&e->is_killed, true);
    if (!all_answered) wait_idle(e, -1);
    pthread_mutex_unlock(&e->lock);
    return all_answered;
}

void nib_engine_free(nib_engine *e) {
    if (!e) return;
    if (e->has_thread) {
        nib_engine_shutdown(e, 0);
        pthread_mutex_lock(&e->lock);
        e->is_quitting = true;
        pthread_cond_signal(&e->work);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
    }
    nib_sched_queue_fini(&e->queue);
    nib_kv_store_close(e->store);
    nib_kv_prefix_fini(&e->tree);
    nib_batch_free(e->batch);
    nib_context_free(e->ctx);
    nib_free(e->running);
    nib_free(e->with_rows);
    nib_free(e->free_seqs);
    nib_free(e->pages);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->idle);
    pthread_mutex_destroy(&e->lock);
    nib_free(e);
}

/* With the lock. */
static nib_status check_room(nib_engine *e, size_t n_prompt, uint32_t n_choices, nib_error *err) {
    uint64_t most = e->config.max_queued_tokens;
    nib_status status = NIB_OK;
    if (n_prompt > e->max_context)
        return nib_fail(err, NIB_E_LIMIT, "the prompt has %zu tokens, the context of a request %u", n_prompt, e->max_context);
    if (e->is_closing) status = nib_fail(err, NIB_E_BUSY, "the engine takes no more requests: it is shutting down");
    else if (n_choices > e->config.max_requests - e->n_live)
        status = nib_fail(err, NIB_E_BUSY, "%u requests are running and waiting, at most %u: try again later", e->n_live,
                          e->config.max_requests);
    else if (most && e->queued_tokens && n_prompt > most - (e->queued_tokens < most ? e->queued_tokens : most))
        status = nib_fail(err, NIB_E_BUSY, "prompts of %llu tokens are waiting and this one has %zu, at most %llu: try again later",
                          (ull)e->queued_tokens, n_prompt, (ull)most);
    e->n_refused += status != NIB_OK;
    return status;
}

nib_status nib_engine_admits(nib_engine *e, size_t n_prompt, nib_error *err) {
    pthread_mutex_lock(&e->lock);
    nib_status status = check_room(e, n_prompt, 1, err);
    pthread_mutex_unlock(&e->lock);
    return status;
}

nib_status nib_engine_submit(nib_stream **out, nib_engine *e, const nib_request *request, nib_error *err) {
    nib_stream *s;
    *out = NULL;
    NIB_TRY(nib_engine_admits(e, request->n_prompt, err)); /* before any work */
    NIB_TRY(nib_stream_new(&s, e, request, err));
    pthread_mutex_lock(&e->lock);
    nib_status status = check_room(e, s->n_prompt, s->n_choices, err);
    if (status == NIB_OK) {
        for (uint32_t i = 0; i < s->n_choices; i++) s->choices[i].item.arrival = e->next_arrival++;
        e->queued_tokens += s->n_prompt;
        e->n_live += s->n_choices;
        *e->inbox_end = s;
        e->inbox_end = &s->next;
        pthread_cond_signal(&e->work);
    }
    pthread_mutex_unlock(&e->lock);
    if (status != NIB_OK) nib_stream_delete(s);
    else *out = s;
    return status;
}

void nib_engine_stats(nib_engine *e, nib_engine_figures *out) {
    pthread_mutex_lock(&e->lock);
    *out = e->shown;
    out->n_waiting = e->n_live - (e->n_live < out->n_running ? e->n_live : out->n_running);
    out->queued_tokens = e->queued_tokens;
    out->n_refused = e->n_refused;
    pthread_mutex_unlock(&e->lock);
}
