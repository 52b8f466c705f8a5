/* engine/stream.c - nib_stream: made of a request, filled by the engine, emptied by its reader.
 *
 * Events lie one behind the other as bytes: the struct, then what it points to. A reader that does not come lets them grow to
 * max_unread and no further. The END has a place of its own, so it always arrives. */
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define MAX_TOP 1000
#define MAX_STOPS 1024

static nib_status check_request(const nib_engine *e, const nib_request *r, nib_error *err) {
    uint32_t n_vocab = nib_model_n_vocab(e->model);
    if (r->size != sizeof *r)
        return nib_fail(err, NIB_E_ARG, "nib_request is %zu bytes, this library expects %zu", r->size, sizeof *r);
    if (!r->prompt || r->n_prompt == 0) return nib_fail(err, NIB_E_ARG, "the prompt has no tokens, expected at least one");
    if (r->n_top > MAX_TOP || r->n_top > n_vocab)
        return nib_fail(err, NIB_E_ARG, "n_top is %u, expected at most %u", r->n_top, MAX_TOP < n_vocab ? MAX_TOP : n_vocab);
    if (r->n_stops > MAX_STOPS) return nib_fail(err, NIB_E_ARG, "%zu stop strings, at most %u", r->n_stops, MAX_STOPS);
    for (size_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] < 0 || (uint32_t)r->prompt[i] >= n_vocab)
            return nib_fail(err, NIB_E_ARG, "token %zu of the prompt has the id %d, expected 0 to %u", i, r->prompt[i], n_vocab - 1);
    if (r->max_tokens > e->max_context + 1 - r->n_prompt) /* the last one is not computed: no position for it */
        return nib_fail(err, NIB_E_LIMIT, "a prompt of %zu tokens and an answer of %u: the context of a request has %u", r->n_prompt,
                        r->max_tokens, e->max_context);
    return NIB_OK;
}

static nib_status take_prompt(nib_stream *s, const nib_request *r, nib_error *err) {
    s->n_prompt = s->n_ids = (uint32_t)r->n_prompt;
    s->n_max = r->max_tokens ? s->n_prompt + r->max_tokens : s->engine->max_context + 1;
    s->ids = nib_alloc(s->n_max, sizeof *s->ids);
    if (!s->ids) return nib_fail_nomem(err, s->n_max * sizeof *s->ids, "the tokens of a request");
    memcpy(s->ids, r->prompt, r->n_prompt * sizeof *s->ids);
    for (size_t i = 0; i < r->n_prompt; i++) NIB_TRY(nib_sampler_accept(s->sampler, r->prompt[i], err));
    return NIB_OK;
}

static nib_status take_grammar(nib_stream *s, const nib_request *r, nib_error *err) {
    size_t n_words = ((size_t)nib_model_n_vocab(s->engine->model) + 31) / 32;
    if (!r->grammar) return NIB_OK;
    s->mask = nib_calloc(n_words, sizeof *s->mask);
    if (!s->mask) return nib_fail_nomem(err, n_words * sizeof *s->mask, "a mask of tokens");
    return nib_matcher_new(&s->matcher, r->grammar, err);
}

nib_status nib_stream_new(nib_stream **out, nib_engine *e, const nib_request *r, nib_error *err) {
    nib_status status;
    *out = NULL;
    NIB_TRY(check_request(e, r, err));
    nib_stream *s = nib_calloc(1, sizeof *s);
    if (!s) return nib_fail_nomem(err, sizeof *s, "a stream");
    *s = (nib_stream){.item = {.priority = r->priority, .owner = r->owner}, .engine = e, .n_top = r->n_top,
                      .logprobs = r->logprobs, .hash_logits = r->hash_logits, .special = r->special, .salt = r->salt,
                      .chat = r->chat, .ready = r->ready, .user = r->user, .stop_found = -1, .submitted = nib_sys_now(),
                      .usage = {.n_prompt = (uint32_t)r->n_prompt}};
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->arrived, &clock);
    pthread_condattr_destroy(&clock);
    s->top = nib_calloc(r->n_top, sizeof *s->top);
    if (!s->top || !nib_buf_reserve(&s->unread, 4096)) {
        status = nib_fail_nomem(err, r->n_top * sizeof *s->top, "a stream");
        goto out;
    }
    NIB_TRY_OUT(nib_sampler_new(&s->sampler, r->sampling, nib_model_n_vocab(e->model), err));
    NIB_TRY_OUT(take_prompt(s, r, err));
    NIB_TRY_OUT(take_grammar(s, r, err));
    NIB_TRY_OUT(nib_detok_new(&s->detok, e->tok, r->special || r->chat ? NIB_UNPARSE_SPECIAL : 0, true, err));
    if (r->n_stops) NIB_TRY_OUT(nib_stop_new(&s->stop, r->stops, r->n_stops, err));
    *out = s;
    return NIB_OK;
out:
    nib_stream_delete(s);
    return status;
}

void nib_stream_delete(nib_stream *s) {
    pthread_cond_destroy(&s->arrived);
    nib_sampler_free(s->sampler);
    nib_detok_free(s->detok);
    nib_stop_free(s->stop);
    nib_matcher_free(s->matcher);
    nib_free(s->mask);
    nib_free(s->top);
    nib_free(s->ids);
    nib_buf_free(&s->unread);
    nib_buf_free(&s->rest);
    nib_buf_free(&s->event);
    nib_free(s);
}

/* With the lock. */
static void tell_reader(nib_stream *s) {
    pthread_cond_signal(&s->arrived);
    if (s->ready) s->ready(s->user);
}

bool nib_stream_put(nib_stream *s, const nib_stream_event *event) {
    nib_engine *e = s->engine;
    size_t n_top = event->n_top * sizeof *event->top, need = sizeof *event + n_top + event->text.len;
    pthread_mutex_lock(&e->lock);
    if (s->read == s->unread.len) s->read = s->unread.len = 0;
    bool fits = need <= e->config.max_unread - (s->unread.len - s->read);
    if (fits && s->read > s->unread.capacity / 2) { /* room is behind the reader */
        memmove(s->unread.ptr, s->unread.ptr + s->read, s->unread.len -= s->read);
        s->read = 0;
    }
    fits = fits && nib_buf_reserve(&s->unread, need);
    if (fits) {
        nib_buf_append(&s->unread, event, sizeof *event);
        nib_buf_append(&s->unread, event->top, n_top);
        nib_buf_append(&s->unread, event->text.ptr, event->text.len);
        tell_reader(s);
    }
    pthread_mutex_unlock(&e->lock);
    return fits;
}

void nib_stream_put_end(nib_stream *s, const nib_stream_event *event) {
    nib_engine *e = s->engine;
    s->end = *event;
    if (event->error) s->error = *event->error;
    if (event->error) s->end.error = &s->error;
    pthread_mutex_lock(&e->lock);
    if (!s->usage.n_generated) e->queued_tokens -= s->n_prompt;
    s->has_ended = true;
    tell_reader(s);
    bool is_abandoned = s->is_abandoned;
    if (--e->n_live == 0) pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
    if (is_abandoned) nib_stream_delete(s); /* from here on the stream is its reader's alone, or nobody's */
}

/* Waits with the lock until there is an event; false: there is none. */
static bool wait_event(nib_stream *s, int timeout_ms) {
    nib_engine *e = s->engine;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > 0) {
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += timeout_ms % 1000 * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
    }
    while (s->read == s->unread.len && !s->has_ended) {
        if (timeout_ms == 0) return false;
        if (timeout_ms < 0) pthread_cond_wait(&s->arrived, &e->lock);
        else if (pthread_cond_timedwait(&s->arrived, &e->lock, &until) == ETIMEDOUT) timeout_ms = 0;
    }
    return s->read < s->unread.len || !s->end_is_given;
}

/* With the lock: the next event comes to lie in s->event. False: memory is out; it can be tried again. */
static bool take_event(nib_stream *s, nib_stream_event *event) {
    const char *from = s->unread.ptr + s->read;
    memcpy(event, from, sizeof *event);
    size_t n_top = event->n_top * sizeof *event->top, n = n_top + event->text.len;
    s->event.len = 0;
    if (!nib_buf_reserve(&s->event, n)) return s->event.failed = false;
    if (n) memcpy(s->event.ptr, from + sizeof *event, n);
    s->read += sizeof *event + n;
    event->top = n_top ? (const nib_logprob *)(void *)s->event.ptr : NULL;
    event->text.ptr = n ? s->event.ptr + n_top : "";
    return true;
}

bool nib_stream_next(nib_stream *s, int timeout_ms, nib_stream_event *event) {
    nib_engine *e = s->engine;
    pthread_mutex_lock(&e->lock);
    bool ok = wait_event(s, timeout_ms);
    if (ok && s->read < s->unread.len) {
        ok = take_event(s, event);
    } else if (ok) {
        *event = s->end;
        s->end_is_given = true;
    }
    pthread_mutex_unlock(&e->lock);
    return ok;
}

void nib_engine_cancel(nib_engine *e, nib_stream *s) {
    atomic_store(&s->is_cancelled, true);
    pthread_mutex_lock(&e->lock);
    e->has_cancelled = true;
    pthread_mutex_unlock(&e->lock);
}

void nib_stream_free(nib_stream *s) {
    if (!s) return;
    nib_engine *e = s->engine;
    nib_engine_cancel(e, s);
    pthread_mutex_lock(&e->lock);
    bool has_ended = s->has_ended;
    s->is_abandoned = true;
    s->ready = NULL;
    pthread_mutex_unlock(&e->lock);
    if (has_ended) nib_stream_delete(s);
}
