/* engine/stream.c - nib_stream: filled by the engine, emptied by its reader.
 *
 * Events lie one behind the other as bytes: the struct, then what it points to. A reader that does not come lets them grow to
 * max_unread and no further. The END of a choice has a place of its own, so it always arrives.
 *
 * Waking a reader, which writes to a socket and so wakes a client, takes 0.15 ms of the CPUs that compute, and all threads wait for the
 * one that has to make place. Of an answer with 500 tokens a second it need not hear so often (stream_ms). */
#include "base/sys.h"
#include "engine/engine.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* With the lock. */
static void tell_reader(nib_stream *s, double now, bool is_end) {
    bool is_first = s->told == -INFINITY;
    s->told = now;
    s->holds = false;
    pthread_cond_signal(&s->arrived);
    if (s->ready) s->ready(s->user, is_first || is_end);
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
        s->holds = true;
        bool is_much = s->unread.len - s->read > e->config.max_unread / 4, has_turns = s->choices[event->choice].is_running;
        if (is_much || !has_turns) tell_reader(s, nib_sys_now(), false);
    }
    pthread_mutex_unlock(&e->lock);
    return fits;
}

void nib_stream_tell(nib_stream *s) {
    nib_engine *e = s->engine;
    if (!s->holds) return;
    pthread_mutex_lock(&e->lock);
    tell_reader(s, nib_sys_now(), false);
    pthread_mutex_unlock(&e->lock);
}

void nib_stream_tell_due(nib_engine *e, double ms) {
    double since = nib_sys_now() + (ms - e->config.stream_ms) / 1e3;
    bool is_due = false;
    for (uint32_t i = 0; i < e->n_running; i++) is_due |= e->running[i]->stream->holds && e->running[i]->stream->told <= since;
    for (uint32_t i = 0; is_due && i < e->n_running; i++) nib_stream_tell(e->running[i]->stream);
}

void nib_stream_put_end(nib_engine_choice *c, const nib_stream_event *event) {
    nib_stream *s = c->stream;
    nib_engine *e = s->engine;
    c->end = *event;
    if (event->error) c->error = *event->error;
    if (event->error) c->end.error = &c->error;
    pthread_mutex_lock(&e->lock);
    c->has_ended = true;
    tell_reader(s, nib_sys_now(), true);
    bool is_last = ++s->n_ended == s->n_choices, is_abandoned = s->is_abandoned;
    if (--e->n_live == 0) pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
    if (is_last && is_abandoned) nib_stream_delete(s); /* after the last END it is its reader's alone, or nobody's */
}

/* A choice that has ended and whose END was not read; NULL: none. */
static nib_engine_choice *unread_end(const nib_stream *s) {
    for (uint32_t i = 0; i < s->n_choices; i++)
        if (s->choices[i].has_ended && !s->choices[i].end_is_given) return &s->choices[i];
    return NULL;
}

static bool all_is_given(const nib_stream *s) {
    return s->n_ended == s->n_choices && !unread_end(s);
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
    while (s->read == s->unread.len && !unread_end(s)) {
        if (timeout_ms == 0 || all_is_given(s)) return false;
        if (timeout_ms < 0) pthread_cond_wait(&s->arrived, &e->lock);
        else if (pthread_cond_timedwait(&s->arrived, &e->lock, &until) == ETIMEDOUT) timeout_ms = 0;
    }
    return true;
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
        nib_engine_choice *c = unread_end(s);
        *event = c->end;
        c->end_is_given = true;
    }
    pthread_mutex_unlock(&e->lock);
    return ok;
}

void nib_engine_cancel(nib_engine *e, nib_stream *s) {
    (void)e;
    atomic_store(&s->is_cancelled, true);
}

void nib_stream_free(nib_stream *s) {
    if (!s) return;
    nib_engine *e = s->engine;
    nib_engine_cancel(e, s);
    pthread_mutex_lock(&e->lock);
    bool has_ended = s->n_ended == s->n_choices;
    s->is_abandoned = true;
    s->ready = NULL;
    pthread_mutex_unlock(&e->lock);
    if (has_ended) nib_stream_delete(s);
}
