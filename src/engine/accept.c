/* engine/accept.c - a row of logits in; out, the next id of a request, its text, and whether it is the last.
 *
 * Whatever goes wrong here ends this request and no other. */
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"

static bool ends_answer(const nib_engine *e, const nib_stream *s, nib_token id) {
    return s->chat ? nib_chat_ends_turn(s->chat, id) : nib_tokenizer_is_eog(e->tok, id);
}

static bool is_shown(const nib_engine *e, const nib_stream *s, nib_token id, bool is_end) {
    if (s->chat && (is_end || nib_tokenizer_attr(e->tok, id) & NIB_TOKEN_CONTROL))
        return nib_chat_is_mark(s->chat, nib_tokenizer_text(e->tok, id));
    return !is_end || s->special;
}

/* Text -> what may be shown of it; *stop: the stop string that is complete. */
static nib_status pass_stops(nib_stream *s, nib_str piece, nib_str *show, int *stop, nib_error *err) {
    *show = piece;
    *stop = s->stop ? nib_stop_push(s->stop, piece, show) : -1;
    if (*stop < -1) return nib_fail_nomem(err, piece.len, "text that may become a stop string");
    return NIB_OK;
}

static nib_status choose_id(nib_engine *e, nib_stream *s, uint32_t row, nib_stream_event *event, nib_error *err) {
    const float *logits = nib_logits(e->ctx, row);
    if (s->matcher) NIB_TRY(nib_matcher_mask(s->matcher, s->mask, nib_model_n_vocab(e->model), err));
    NIB_TRY(nib_sampler_sample(s->sampler, logits, s->mask, s->n_ids, &event->id, err));
    NIB_TRY(nib_sampler_accept(s->sampler, event->id, err));
    if (s->matcher) NIB_TRY(nib_matcher_accept(s->matcher, event->id, err));
    if (s->hash_logits) event->logits_hash = nib_logits_hash(e->ctx, row);
    if (!s->logprobs) return NIB_OK;
    event->top = s->top;
    event->n_top = s->n_top;
    return nib_logprobs(logits, nib_model_n_vocab(e->model), event->id, &event->logprob, s->top, s->n_top, err);
}

/* The first token of an answer: its prompt counts as done. */
static void note_first(nib_engine *e, nib_stream *s) {
    s->usage.ttft_ms = 1e3 * (nib_sys_now() - s->submitted);
    e->figures.n_prompt += s->n_prompt;
    e->figures.n_reused += s->usage.n_cached;
    pthread_mutex_lock(&e->lock);
    e->queued_tokens -= s->n_prompt;
    pthread_mutex_unlock(&e->lock);
}

/* Logits -> id -> text -> event. *finish: why it was the last one, *is_last. */
static nib_status next_token(nib_engine *e, nib_stream *s, uint32_t row, bool *is_last, nib_finish *finish, nib_error *err) {
    nib_stream_event event = {.kind = NIB_STREAM_TOKEN, .stop = -1};
    nib_str piece = {0};
    NIB_TRY(choose_id(e, s, row, &event, err));
    if (s->n_ids == s->n_prompt) note_first(e, s);
    s->ids[s->n_ids++] = event.id;
    s->usage.n_generated++;
    e->figures.n_generated++;
    bool is_end = ends_answer(e, s, event.id);
    if (is_shown(e, s, event.id, is_end)) NIB_TRY(nib_detok_push(s->detok, event.id, &piece, err));
    NIB_TRY(pass_stops(s, piece, &event.text, &s->stop_found, err));
    bool is_complete = is_end || s->stop_found >= 0 || (s->matcher && nib_matcher_must_end(s->matcher));
    *is_last = is_complete || s->n_ids == s->n_max;
    *finish = is_complete ? NIB_FINISH_STOP : NIB_FINISH_LENGTH;
    if (nib_stream_put(s, &event)) return NIB_OK;
    *is_last = true;
    *finish = NIB_FINISH_UNREAD;
    return NIB_OK;
}

void nib_engine_accept(nib_engine *e, nib_stream *s, uint32_t row) {
    nib_error err;
    nib_finish finish;
    bool is_last;
    if (next_token(e, s, row, &is_last, &finish, &err) != NIB_OK) nib_engine_end(e, s, NIB_FINISH_ERROR, &err);
    else if (is_last) nib_engine_end(e, s, finish, NULL);
}

/* What was held back, for want of the rest of a character or as the possible start of a stop string. */
static void give_rest(nib_stream *s, nib_stream_event *event) {
    nib_str show;
    if (s->stop_found >= 0) return;
    if (pass_stops(s, nib_detok_finish(s->detok), &show, &s->stop_found, NULL) != NIB_OK) return;
    nib_buf_append(&s->rest, show.ptr, show.len);
    if (s->stop) show = nib_stop_finish(s->stop);
    if (s->stop) nib_buf_append(&s->rest, show.ptr, show.len);
    if (s->rest.len) event->text = (nib_str){s->rest.ptr, s->rest.len};
}

void nib_engine_end(nib_engine *e, nib_stream *s, nib_finish finish, const nib_error *error) {
    nib_stream_event event = {.kind = NIB_STREAM_END, .text = {"", 0}, .id = NIB_TOKEN_NONE, .finish = finish};
    give_rest(s, &event);
    event.stop = s->stop_found;
    s->usage.total_ms = 1e3 * (nib_sys_now() - s->submitted);
    event.usage = s->usage;
    event.error = error;
    if (s->is_running) nib_engine_pages_stop(e, s);
    else nib_sched_queue_remove(&e->queue, &s->item);
    nib_sched_queue_leave(&e->queue, &s->item);
    e->figures.n_finished[finish]++;
    nib_stream_put_end(s, &event);
}
