/* engine/turn.c - one round of the engine: admit, choose, run, publish, accept (engine.h tells the whole). */
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"

#include <string.h>

#define ALONE_MS 200.0 /* what a turn may take that no answer waits for: a cancelled request ends within it */
#define LEAST_SURPRISE 0.25 /* by how much of what is expected a turn may always take longer: others use the machine, too */
#define FORGETTING 0.97 /* of a surprise, by each full turn */
#define LEAST_WORK 8.0 /* of prompts, however long the answers take */
#define TILE 16        /* tokens that kernels take at once: a part of a prompt fills the last tile */
#define ENOUGH 64      /* tokens of prompts that keep the arithmetic busy: another prompt would gain nothing and delay these */

static uint32_t length_of(const nib_engine *e, const nib_engine_choice *c) {
    return nib_seq_length(e->ctx, c->seq);
}

static uint32_t n_left(const nib_engine *e, const nib_engine_choice *c) {
    return c->n_ids - length_of(e, c);
}

static nib_engine_choice *choice_of(nib_sched_item *item) {
    return (nib_engine_choice *)(void *)item; /* its first member */
}

/* ---- admit */

static void take_inbox(nib_engine *e) {
    pthread_mutex_lock(&e->lock);
    nib_stream *s = e->inbox;
    e->inbox = NULL;
    e->inbox_end = &e->inbox;
    pthread_mutex_unlock(&e->lock);
    for (; s; s = s->next) {
        for (uint32_t i = 0; i < s->n_choices; i++) nib_sched_queue_enter(&e->queue, &s->choices[i].item);
        nib_sched_queue_push(&e->queue, &s->choices[0].item);
    }
}

/* Is somebody, or the time, against it? */
static bool must_end(const nib_engine *e, const nib_engine_choice *c, double now, nib_finish *finish) {
    const nib_stream *s = c->stream;
    bool is_over = now > s->until || (now > s->queue_until && c->usage.queue_ms == 0);
    *finish = is_over ? NIB_FINISH_TIMEOUT : NIB_FINISH_CANCELLED;
    return is_over || atomic_load(&s->is_cancelled) || atomic_load(&e->is_killed);
}

static void end_unwanted(nib_engine *e) {
    double now = nib_sys_now();
    nib_finish finish;
    for (uint32_t i = e->n_running; i-- > 0;)
        if (must_end(e, e->running[i], now, &finish)) nib_engine_end(e, e->running[i], finish, NULL);
    for (nib_sched_item *item = e->queue.waiting.next, *next; item != &e->queue.waiting; item = next) {
        next = item->next;
        if (must_end(e, choice_of(item), now, &finish)) nib_engine_end(e, choice_of(item), finish, NULL);
    }
}

static void admit(nib_engine *e) {
    nib_sched_item *item;
    while ((item = nib_sched_queue_next(&e->queue))) {
        nib_engine_choice *c = choice_of(item);
        if (!e->n_free_seqs && !nib_engine_pages_make_place(e, c)) return;
        if (!nib_engine_pages_start(e, c)) return; /* it is next; others do not pass it */
        nib_sched_queue_remove(&e->queue, item);
        if (c->usage.queue_ms == 0) c->usage.queue_ms = 1e3 * (nib_sys_now() - c->stream->submitted);
    }
}

/* ---- choose */

/* Is another one computing just the page that this one needs next? */
static bool has_twin(const nib_engine *e, const nib_engine_choice *c) {
    uint32_t at = c->n_shared * NIB_KV_PAGE;
    if (!nib_engine_pages_may_share(e, c) || nib_engine_pages_usable(c) < at + NIB_KV_PAGE) return false;
    for (uint32_t i = 0; i < e->n_running; i++) {
        const nib_engine_choice *o = e->running[i];
        if (o != c && o->n_now && !o->is_refused && o->pinned == c->pinned && o->stream->salt == c->stream->salt &&
            o->n_shared == c->n_shared && o->n_ids - at >= NIB_KV_PAGE &&
            memcmp(o->ids + at, c->ids + at, NIB_KV_PAGE * sizeof *c->ids) == 0)
            return true;
    }
    return false;
}

/* The next prompt to compute; NULL: none is left. */
static nib_engine_choice *next_prompt(const nib_engine *e) {
    nib_engine_choice *best = NULL;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_engine_choice *c = e->running[i];
        if (c->n_now || c->is_passed || n_left(e, c) == 1) continue;
        if (!best || nib_sched_queue_is_before(&e->queue, &c->item, &best->item)) best = c;
    }
    return best;
}

/* Is the row of a position wanted: for the next token of an answer, for what it says of the prompt's, for an embedding? */
static bool wants_row(const nib_engine_choice *c, uint32_t pos) {
    const nib_stream *s = c->stream;
    if (nib_engine_embeds(c)) return nib_decode_embed_wants(&s->embed, pos, c->n_ids);
    return pos + 1 >= c->n_ids || (pos + 1 >= s->n_told && pos + 1 < s->n_prompt);
}

/* Of the next n tokens of a choice; rows of hidden states cost nothing. */
static double work_of(const nib_engine *e, const nib_engine_choice *c, uint32_t n) {
    uint32_t length = length_of(e, c), n_rows = wants_row(c, length) ? n : wants_row(c, length + n - 1);
    return nib_sched_cost_work(&e->cost, length, n, nib_engine_embeds(c) ? 0 : n_rows);
}

/* How much of a prompt fits into the work that is left, behind n_tok other tokens. */
static uint32_t part_of(const nib_engine *e, const nib_engine_choice *c, double work, uint32_t n_most, uint32_t n_tok) {
    uint32_t left = n_left(e, c), n = left < n_most ? left : n_most;
    while (n > 1 && work_of(e, c, n) > work) n -= 1 + n / 32;
    if (n < left && n > TILE) n -= (n_tok + n) % TILE;
    return n;
}

/* The next token of every answer, with what grammars had it jump over before: no more of that than its share of the turn. */
static uint32_t choose_answers(nib_engine *e, double *work) {
    double share = nib_sched_cost_fit(&e->cost, e->config.turn_ms) / (e->n_running ? e->n_running : 1);
    uint32_t n_tok = 0;
    e->n_rows_left = nib_context_n_logits(e->ctx) - e->n_running;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_engine_choice *c = e->running[i];
        uint32_t n = n_left(e, c), room = e->config.context.n_ubatch - n_tok - (e->n_running - 1 - i);
        c->n_now = 0;
        c->is_passed = false;
        if (n > 1 + c->n_ahead) continue;
        if (n == 1) n += c->n_forced < e->n_rows_left ? c->n_forced : e->n_rows_left;
        if (n > room) n = room;
        while (n > 1 && work_of(e, c, n) > share) n--;
        if (!nib_engine_pages_reserve(e, c, n)) continue;
        if (c->n_forced) e->n_rows_left -= n - 1;
        *work += work_of(e, c, n);
        n_tok += n;
    }
    return n_tok;
}

/* Turns are planned so that the longest ones, which take longer than expected, take their time. */
static double time_of_turn(const nib_engine *e, bool is_awaited) {
    double ms = e->config.turn_ms;
    if (!is_awaited) return ms > ALONE_MS ? ms : ALONE_MS;
    return ms / (1 + (e->surprise > LEAST_SURPRISE ? e->surprise : LEAST_SURPRISE));
}

/* After a batch that was to fill a turn, more or less. */
static void note_surprise(nib_engine *e, double expected, double ms) {
    if (expected < 0.25 * e->config.turn_ms) return;
    double now = ms / expected - 1;
    e->surprise *= FORGETTING;
    if (now > e->surprise) e->surprise = now < 1 ? now : 1;
}

/* False: there was none. */
static bool choose_prompts(nib_engine *e, uint32_t n_tok, double work) {
    const nib_engine_config *config = &e->config;
    double left = nib_sched_cost_fit(&e->cost, time_of_turn(e, n_tok > 0) - e->overhead_ms) - work;
    uint32_t n_most = config->context.n_ubatch > n_tok ? config->context.n_ubatch - n_tok : 1;
    if (config->max_chunk && n_most > config->max_chunk) n_most = config->max_chunk;
    if (left < LEAST_WORK) left = LEAST_WORK;
    nib_engine_choice *c;
    uint32_t n_answers = n_tok;
    e->is_cut = false;
    while (n_most > 0 && left >= 1 && (c = next_prompt(e))) {
        c->is_passed = true;
        if (!nib_engine_pages_extend(e, c) || has_twin(e, c)) continue;
        nib_engine_pages_extend_part(e, c);
        bool is_told = c->stream->n_told < c->stream->n_prompt; /* a row of each token */
        uint32_t n = part_of(e, c, left, is_told && e->n_rows_left + 1 < n_most ? e->n_rows_left + 1 : n_most, n_tok);
        if (!nib_engine_pages_reserve(e, c, n)) continue;
        e->is_cut |= n < n_left(e, c) && n < n_most;
        left -= work_of(e, c, n);
        n_most -= n;
        n_tok += n;
        if (is_told) e->n_rows_left -= n - 1;
        if (n_tok - n_answers >= ENOUGH && n == n_left(e, c)) break; /* its answer begins after this turn */
    }
    return n_tok > n_answers;
}

/* ---- run */

static bool takes_part(const nib_engine_choice *c, bool embeds, const nib_engine_choice *only) {
    return c->n_now && nib_engine_embeds(c) == embeds && (!only || c == only);
}

static nib_status add_tokens(nib_engine *e, nib_engine_choice *c, double *work, uint32_t *n_rows, nib_error *err) {
    uint32_t length = length_of(e, c);
    c->first_row = *n_rows;
    c->n_rows = 0;
    for (uint32_t pos = length; pos < length + c->n_now; pos++) {
        bool is_row = wants_row(c, pos);
        if (is_row && !c->n_rows++) c->row_pos = pos;
        NIB_TRY(nib_batch_add(e->batch, c->ids[pos], NIB_POS_NEXT, c->seq, is_row, err));
    }
    *n_rows += c->n_rows;
    if (c->n_rows || length + c->n_now == c->n_ids) e->with_rows[e->n_with_rows++] = c;
    *work += work_of(e, c, c->n_now);
    return NIB_OK;
}

/* What was chosen of the answers or of the embeddings, or of it only one choice. */
static nib_status run(nib_engine *e, bool embeds, nib_engine_choice *only, nib_error *err) {
    double work = 0;
    uint32_t n_rows = 0;
    nib_batch_clear(e->batch);
    if (embeds) nib_batch_want_hidden(e->batch);
    e->n_with_rows = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        if (takes_part(e->running[i], embeds, only)) NIB_TRY(add_tokens(e, e->running[i], &work, &n_rows, err));
    double expected = nib_batch_n(e->batch) ? nib_sched_cost_ms(&e->cost, work) : 0;
    nib_stream_tell_due(e, expected);
    if (nib_batch_n(e->batch) == 0) return NIB_OK;
    double start = nib_sys_now();
    NIB_TRY(nib_decode(e->ctx, e->batch, err));
    double ms = 1e3 * (nib_sys_now() - start);
    note_surprise(e, expected, ms);
    nib_sched_cost_learn(&e->cost, work, ms);
    if (e->is_cut) nib_sched_cost_fade(&e->cost, work);
    e->figures.decode_s += ms / 1e3;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_engine_choice *c = e->running[i];
        if (!takes_part(c, embeds, only)) continue;
        nib_sched_queue_charge(&e->queue, &c->item, c->n_now);
        c->n_now = 0;
        nib_engine_pages_publish(e, c);
    }
    for (uint32_t i = 0; i < e->n_with_rows; i++) nib_engine_accept(e, e->with_rows[i]); /* may end it */
    return NIB_OK;
}

/* A batch failed as a whole: those who fail alone, too, are to blame. */
static void run_one_by_one(nib_engine *e) {
    nib_error err;
    for (uint32_t i = 0; i < e->n_running && !atomic_load(&e->is_killed);) {
        nib_engine_choice *c = e->running[i];
        nib_status status = c->n_now ? run(e, nib_engine_embeds(c), c, &err) : NIB_OK;
        if (status != NIB_OK && status != NIB_E_CANCELLED) nib_engine_end(e, c, NIB_FINISH_ERROR, &err);
        i += i < e->n_running && e->running[i] == c; /* it may have ended */
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
    nib_engine_disk_note(e);
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
    e->disk_s = 0;
    take_inbox(e);
    end_unwanted(e);
    admit(e);
    uint32_t n_answers = choose_answers(e, &work);
    bool has_prompts = choose_prompts(e, n_answers, work);
    if (n_answers && !has_prompts && e->config.max_draft) nib_engine_draft_choose(e, n_answers, work);
    nib_engine_pages_provide(e);
    nib_engine_view_begin(e);
    if (run(e, false, NULL, &err) != NIB_OK || run(e, true, NULL, &err) != NIB_OK) run_one_by_one(e);
    note(e, start, decode_s, n_answers > 0);
}
