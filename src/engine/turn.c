/* engine/turn.c - one round of the engine: admit, choose, run, publish, accept (engine.h tells the whole). */
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"

#include <string.h>

#define ALONE_MS 200.0 /* what a turn may take that no answer waits for: a cancelled request ends within it */
#define LEAST_WORK 8.0 /* of prompts, however long the answers take */
#define TILE 16        /* tokens that kernels take at once: a part of a prompt fills the last tile */

static uint32_t length_of(const nib_engine *e, const nib_stream *s) {
    return nib_seq_length(e->ctx, s->seq);
}

static uint32_t n_left(const nib_engine *e, const nib_stream *s) {
    return s->n_ids - length_of(e, s);
}

static nib_stream *stream_of(nib_sched_item *item) {
    return (nib_stream *)(void *)item; /* its first member */
}

/* ---- admit */

static void take_inbox(nib_engine *e) {
    pthread_mutex_lock(&e->lock);
    nib_stream *s = e->inbox;
    e->inbox = NULL;
    e->inbox_end = &e->inbox;
    pthread_mutex_unlock(&e->lock);
    for (; s; s = s->next) {
        nib_sched_queue_enter(&e->queue, &s->item);
        nib_sched_queue_push(&e->queue, &s->item);
    }
}

static void end_cancelled(nib_engine *e) {
    pthread_mutex_lock(&e->lock);
    bool any = e->has_cancelled, all = atomic_load(&e->is_killed);
    e->has_cancelled = false;
    pthread_mutex_unlock(&e->lock);
    if (!any && !all) return;
    for (uint32_t i = e->n_running; i-- > 0;)
        if (all || atomic_load(&e->running[i]->is_cancelled)) nib_engine_end(e, e->running[i], NIB_FINISH_CANCELLED, NULL);
    for (nib_sched_item *item = e->queue.waiting.next, *next; item != &e->queue.waiting; item = next) {
        next = item->next;
        if (all || atomic_load(&stream_of(item)->is_cancelled))
            nib_engine_end(e, stream_of(item), NIB_FINISH_CANCELLED, NULL);
    }
}

static void admit(nib_engine *e) {
    nib_sched_item *item;
    while (e->n_free_seqs && (item = nib_sched_queue_next(&e->queue))) {
        nib_stream *s = stream_of(item);
        if (!nib_engine_pages_start(e, s)) return; /* it is next; others do not pass it */
        nib_sched_queue_remove(&e->queue, item);
        if (s->usage.queue_ms == 0) s->usage.queue_ms = 1e3 * (nib_sys_now() - s->submitted);
    }
}

/* ---- choose */

/* Is another request computing just the page that this one needs next? */
static bool has_twin(const nib_engine *e, const nib_stream *s) {
    uint32_t at = s->n_shared * NIB_KV_PAGE;
    if (e->config.no_prefix_cache || length_of(e, s) != at || s->n_ids - at <= NIB_KV_PAGE) return false;
    for (uint32_t i = 0; i < e->n_running; i++) {
        const nib_stream *o = e->running[i];
        if (o != s && o->n_now && !o->is_refused && o->pinned == s->pinned && o->salt == s->salt && o->n_shared == s->n_shared &&
            o->n_ids - at >= NIB_KV_PAGE && memcmp(o->ids + at, s->ids + at, NIB_KV_PAGE * sizeof *s->ids) == 0)
            return true;
    }
    return false;
}

/* The next prompt to compute; NULL: none is left. */
static nib_stream *next_prompt(const nib_engine *e) {
    nib_stream *best = NULL;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_stream *s = e->running[i];
        if (s->n_now || s->is_passed || n_left(e, s) == 1) continue;
        if (!best || nib_sched_queue_is_before(&e->queue, &s->item, &best->item)) best = s;
    }
    return best;
}

/* How much of a prompt fits into the work that is left, behind n_tok other tokens. */
static uint32_t part_of(const nib_engine *e, const nib_stream *s, double work, uint32_t n_most, uint32_t n_tok) {
    uint32_t left = n_left(e, s), n = left < n_most ? left : n_most;
    while (n > 1 && nib_sched_cost_work(&e->cost, length_of(e, s), n) > work) n -= 1 + n / 32;
    if (n < left && n > TILE) n -= (n_tok + n) % TILE;
    return n;
}

static uint32_t choose_answers(nib_engine *e, double *work) {
    uint32_t n_tok = 0;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_stream *s = e->running[i];
        s->n_now = 0;
        s->is_passed = false;
        if (n_left(e, s) > 1 || !nib_engine_pages_reserve(e, s, 1)) continue;
        *work += nib_sched_cost_work(&e->cost, length_of(e, s), 1);
        n_tok++;
    }
    return n_tok;
}

static void choose_prompts(nib_engine *e, uint32_t n_tok, double work) {
    const nib_engine_config *c = &e->config;
    double ms = n_tok || c->turn_ms > ALONE_MS ? c->turn_ms : ALONE_MS;
    double left = nib_sched_cost_fit(&e->cost, ms - e->overhead_ms) - work;
    uint32_t n_most = c->context.n_ubatch > n_tok ? c->context.n_ubatch - n_tok : 1;
    if (c->max_chunk && n_most > c->max_chunk) n_most = c->max_chunk;
    if (left < LEAST_WORK) left = LEAST_WORK;
    nib_stream *s;
    e->is_cut = false;
    while (n_most > 0 && left >= 1 && (s = next_prompt(e))) {
        nib_engine_pages_extend(e, s);
        uint32_t n = part_of(e, s, left, n_most, n_tok);
        s->is_passed = true;
        if (has_twin(e, s) || !nib_engine_pages_reserve(e, s, n)) continue;
        e->is_cut |= n < n_left(e, s) && n < n_most;
        left -= nib_sched_cost_work(&e->cost, length_of(e, s), n);
        n_most -= n;
        n_tok += n;
    }
}

/* ---- run */

static nib_status add_tokens(nib_engine *e, nib_stream *s, double *work, nib_error *err) {
    uint32_t length = length_of(e, s);
    for (uint32_t i = 0; i < s->n_now; i++)
        NIB_TRY(nib_batch_add(e->batch, s->ids[length + i], NIB_POS_NEXT, s->seq, length + i + 1 == s->n_ids, err));
    if (length + s->n_now == s->n_ids) e->rows[e->n_rows++] = s;
    *work += nib_sched_cost_work(&e->cost, length, s->n_now);
    return NIB_OK;
}

/* What was chosen, or of it only one request. */
static nib_status run(nib_engine *e, nib_stream *only, nib_error *err) {
    double work = 0;
    nib_batch_clear(e->batch);
    e->n_rows = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        if (!only || e->running[i] == only) NIB_TRY(add_tokens(e, e->running[i], &work, err));
    double start = nib_sys_now();
    NIB_TRY(nib_decode(e->ctx, e->batch, err));
    double ms = 1e3 * (nib_sys_now() - start);
    nib_sched_cost_learn(&e->cost, work, ms);
    if (e->is_cut) nib_sched_cost_fade(&e->cost, work);
    e->figures.decode_s += ms / 1e3;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_stream *s = e->running[i];
        if (!s->n_now || (only && s != only)) continue;
        nib_sched_queue_charge(&e->queue, &s->item, s->n_now);
        s->n_now = 0;
        nib_engine_pages_publish(e, s);
    }
    for (uint32_t i = 0; i < e->n_rows; i++) nib_engine_accept(e, e->rows[i], i); /* may end it */
    return NIB_OK;
}

/* A batch failed as a whole: those who fail alone, too, are to blame. */
static void run_one_by_one(nib_engine *e) {
    nib_error err;
    for (uint32_t i = 0; i < e->n_running && !atomic_load(&e->is_killed);) {
        nib_stream *s = e->running[i];
        nib_status status = s->n_now ? run(e, s, &err) : NIB_OK;
        if (status != NIB_OK && status != NIB_E_CANCELLED) nib_engine_end(e, s, NIB_FINISH_ERROR, &err);
        i += i < e->n_running && e->running[i] == s; /* it may have ended */
    }
}

/* ---- figures */

static void note(nib_engine *e, double start, double decode_s, bool is_awaited) {
    nib_engine_figures *f = &e->figures;
    double s = nib_sys_now() - start, beside_ms = 1e3 * (s - (f->decode_s - decode_s));
    e->overhead_ms += 0.1 * (beside_ms - e->overhead_ms);
    f->n_turns++;
    f->turn_s += s;
    f->last_turn_ms = 1e3 * s;
    if (is_awaited && f->last_turn_ms > f->longest_turn_ms) f->longest_turn_ms = f->last_turn_ms;
    f->n_running = e->n_running;
    f->n_free = e->pool->n_free;
    f->n_cached = e->tree.n_nodes;
    f->n_idle = nib_kv_prefix_n_idle(&e->tree);
    double per_s = nib_sched_cost_fit(&e->cost, e->config.turn_ms) * 1e3 / e->config.turn_ms;
    pthread_mutex_lock(&e->lock);
    double wait = (double)e->queued_tokens / per_s;
    f->retry_s = wait < 1 ? 1 : wait > 3600 ? 3600 : (uint32_t)wait + 1;
    e->shown = *f;
    nib_engine_view_end(e, f->last_turn_ms);
    pthread_mutex_unlock(&e->lock);
}

void nib_engine_turn(nib_engine *e) {
    nib_error err;
    double start = nib_sys_now(), work = 0, decode_s = e->figures.decode_s;
    take_inbox(e);
    end_cancelled(e);
    admit(e);
    uint32_t n_answers = choose_answers(e, &work);
    choose_prompts(e, n_answers, work);
    nib_engine_pages_provide(e);
    nib_engine_view_begin(e);
    if (e->n_running && run(e, NULL, &err) != NIB_OK) run_one_by_one(e);
    note(e, start, decode_s, n_answers > 0);
}
