/* engine/accept.c - rows of logits in; out, the next ids of a choice, their text, and whether one is the last. Of a request for
 * an embedding: rows of hidden states in, the vector out.
 *
 * Whatever goes wrong here ends this choice and no other. */
#include "base/status.h"
#include "base/sys.h"
#include "engine/engine.h"
#include "sample/sampler.h"

#include <string.h>

static bool is_among(const nib_token *ids, uint32_t n, nib_token id) {
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static bool ends_answer(const nib_engine *e, const nib_stream *s, nib_token id) {
    return (s->chat ? nib_chat_ends_turn(s->chat, id) : nib_tokenizer_is_eog(e->tok, id)) ||
           is_among(s->stop_ids, s->n_stop_ids, id);
}

static bool is_shown(const nib_engine *e, const nib_stream *s, nib_token id, bool is_end) {
    if (s->chat && (is_end || nib_tokenizer_attr(e->tok, id) & NIB_TOKEN_CONTROL))
        return nib_chat_is_mark(s->chat, nib_tokenizer_text(e->tok, id));
    return !is_end || s->special;
}

/* Text -> what may be shown of it; *stop: the stop string that is complete. */
static nib_status pass_stops(nib_engine_choice *c, nib_str piece, nib_str *show, int *stop, nib_error *err) {
    bool is_early = c->usage.n_generated < c->stream->min_tokens;
    *show = piece;
    *stop = c->stop && !is_early ? nib_stop_push(c->stop, piece, show) : -1;
    if (*stop < -1) return nib_fail_nomem(err, piece.len, "text that may become a stop string");
    return NIB_OK;
}

/* ---- what may come next */

static void forbid(uint32_t *mask, const nib_token *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) mask[ids[i] / 32] &= ~(1u << ids[i] % 32);
}

static void keep(uint32_t *mask, const uint32_t *allowed, uint32_t n_vocab) {
    for (uint32_t i = 0; i < (n_vocab + 31) / 32; i++) mask[i] &= allowed[i];
}

static bool is_empty(const uint32_t *mask, uint32_t n_vocab) {
    uint32_t n_words = (n_vocab + 31) / 32, all = 0;
    for (uint32_t i = 0; i < n_words; i++) all |= mask[i];
    return !all;
}

/* The mask of the next token, NULL: any. Where a grammar allows nothing but to end, it may. */
static nib_status make_mask(const nib_engine *e, nib_engine_choice *c, const uint32_t **mask, nib_error *err) {
    const nib_stream *s = c->stream;
    uint32_t n_vocab = nib_model_n_vocab(e->model);
    bool is_early = c->usage.n_generated < s->min_tokens;
    *mask = NULL;
    if (!c->matcher && !is_early && !s->ignore_eos && !s->allowed) return NIB_OK;
    *mask = c->mask;
    if (c->matcher) NIB_TRY(nib_matcher_mask(c->matcher, c->mask, n_vocab, err));
    else memset(c->mask, 0xff, ((size_t)n_vocab + 31) / 32 * sizeof *c->mask);
    if (is_early || s->ignore_eos) forbid(c->mask, s->ends, s->n_ends);
    if (is_early) forbid(c->mask, s->stop_ids, s->n_stop_ids);
    if (c->matcher && (is_early || s->ignore_eos) && is_empty(c->mask, n_vocab))
        NIB_TRY(nib_matcher_mask(c->matcher, c->mask, n_vocab, err));
    if (s->allowed) keep(c->mask, s->allowed, n_vocab);
    return NIB_OK;
}

/* ---- a row */

/* What a row says of the token behind it. */
static nib_status tell(nib_engine *e, nib_stream *s, uint32_t row, nib_stream_event *event, nib_error *err) {
    if (s->hash_logits) event->logits_hash = nib_logits_hash(e->ctx, row);
    if (!(event->kind == NIB_STREAM_PROMPT ? s->prompt_logprobs : s->logprobs)) return NIB_OK;
    event->top = s->top;
    event->n_top = s->n_top;
    return nib_logprobs(nib_logits(e->ctx, row), nib_model_n_vocab(e->model), event->id, &event->logprob, s->top, s->n_top, err);
}

static nib_status draw_id(nib_engine *e, nib_engine_choice *c, uint32_t row, nib_token *id, nib_error *err) {
    const uint32_t *mask;
    NIB_TRY(make_mask(e, c, &mask, err));
    nib_sampler_hint(c->sampler, nib_logits_best(e->ctx, row));
    NIB_TRY(nib_sampler_sample(c->sampler, nib_logits(e->ctx, row), mask, c->n_ids, id, err));
    return c->matcher ? nib_matcher_accept(c->matcher, *id, err) : NIB_OK;
}

static nib_status choose_id(nib_engine *e, nib_engine_choice *c, uint32_t row, nib_stream_event *event, nib_error *err) {
    if (c->n_forced) c->n_forced--, event->id = c->ids[c->n_ids]; /* the matcher has taken it */
    else NIB_TRY(draw_id(e, c, row, &event->id, err));
    NIB_TRY(nib_sampler_accept(c->sampler, event->id, err));
    return tell(e, c->stream, row, event, err);
}

/* Id -> text -> event. *finish: why it was the last one, *is_last. */
static nib_status take_id(nib_engine *e, nib_engine_choice *c, nib_stream_event *event, bool *is_last, nib_finish *finish,
                          nib_error *err) {
    nib_stream *s = c->stream;
    nib_str piece = {0};
    if (c->n_ids == s->n_prompt) c->usage.ttft_ms = 1e3 * (nib_sys_now() - s->submitted);
    c->ids[c->n_ids++] = event->id;
    c->usage.n_generated++;
    e->figures.n_generated++;
    bool is_end = ends_answer(e, s, event->id);
    if (is_shown(e, s, event->id, is_end)) NIB_TRY(nib_detok_push(c->detok, event->id, &piece, err));
    NIB_TRY(pass_stops(c, piece, &event->text, &c->stop_found, err));
    bool is_complete = is_end || c->stop_found >= 0;
    *is_last = is_complete || c->n_ids == s->n_max;
    *finish = is_complete ? NIB_FINISH_STOP : NIB_FINISH_LENGTH;
    if (nib_stream_put(s, event)) return NIB_OK;
    *is_last = true;
    *finish = NIB_FINISH_UNREAD;
    return NIB_OK;
}

/* Ends an answer behind which the grammar allows nothing. The matcher stands behind all ids that were taken, and forced. */
static void end_by_grammar(const nib_engine_choice *c, bool *is_last, nib_finish *finish) {
    if (!c->matcher || c->n_forced || !nib_matcher_must_end(c->matcher) || (*is_last && *finish == NIB_FINISH_UNREAD)) return;
    *is_last = true;
    *finish = NIB_FINISH_STOP;
}

/* A row of logits -> the next id. */
static nib_status next_token(nib_engine *e, nib_engine_choice *c, uint32_t row, bool *is_last, nib_finish *finish,
                             nib_error *err) {
    nib_stream_event event = {.kind = NIB_STREAM_TOKEN, .choice = c->number, .stop = -1};
    NIB_TRY(choose_id(e, c, row, &event, err));
    NIB_TRY(take_id(e, c, &event, is_last, finish, err));
    end_by_grammar(c, is_last, finish);
    return NIB_OK;
}

/* How many of the ids that were jumped over the request allows, too. */
static size_t n_allowed(const nib_engine_choice *c, const nib_token_list *ids) {
    const nib_stream *s = c->stream;
    for (size_t i = 0; i < ids->n; i++) {
        nib_token id = ids->ids[i];
        bool is_early = c->usage.n_generated + i < s->min_tokens, is_allowed = !s->allowed || s->allowed[id / 32] >> id % 32 & 1;
        if (!is_allowed || nib_sampler_forbids(c->sampler, id) || (is_early && is_among(s->stop_ids, s->n_stop_ids, id))) return i;
    }
    return ids->n;
}

/* Puts ids behind those of a choice, where each waits for its row. Returns how many of n guesses that stood there are the same. */
static uint32_t force(nib_engine_choice *c, const nib_token_list *ids, uint32_t n) {
    uint32_t n_same = 0;
    while (n_same < n && n_same < ids->n && c->ids[c->n_ids + n_same] == ids->ids[n_same]) n_same++;
    memcpy(c->ids + c->n_ids, ids->ids, ids->n * sizeof *c->ids);
    c->n_forced = (uint32_t)ids->n;
    return n_same;
}

/* Ids that the grammar leaves no choice about, behind one that was drawn: they are taken now, and computed together in a later
 * turn. Where rows are told of, each waits for its own; some may be there, of the guesses behind the id that was drawn. */
static nib_status jump(nib_engine *e, nib_engine_choice *c, uint32_t *n_guesses, bool *is_last, nib_finish *finish, nib_error *err) {
    nib_stream *s = c->stream;
    uint32_t room = s->n_max - c->n_ids - 1;
    s->jumped.n = 0;
    NIB_TRY(nib_matcher_jump(c->matcher, e->tok, room < NIB_MATCHER_HISTORY ? room : NIB_MATCHER_HISTORY, &s->jumped, err));
    size_t n = n_allowed(c, &s->jumped);
    if (n < s->jumped.n) NIB_TRY(nib_matcher_rollback(c->matcher, (uint32_t)(s->jumped.n - n), err));
    s->jumped.n = n;
    if (n && nib_engine_tells(s)) {
        *n_guesses = force(c, &s->jumped, *n_guesses);
        return NIB_OK;
    }
    for (size_t i = 0; i < n && !*is_last; i++) {
        nib_stream_event event = {.kind = NIB_STREAM_TOKEN, .choice = c->number, .id = s->jumped.ids[i], .stop = -1};
        NIB_TRY(nib_sampler_accept(c->sampler, event.id, err));
        NIB_TRY(take_id(e, c, &event, is_last, finish, err));
        c->n_ahead++;
    }
    if (n) end_by_grammar(c, is_last, finish);
    return NIB_OK;
}

/* The rows of the next id and of guesses behind it, from `row` on: each is drawn from as long as the guess before was right. What
 * is forced is right. Behind each that is drawn, and behind no other, there may be a jump: with guesses and rows that are told of,
 * and without. */
static void accept_rows(nib_engine *e, nib_engine_choice *c, uint32_t row, uint32_t n_guessed) {
    nib_error err;
    nib_finish finish;
    nib_status status;
    bool is_last = false, was_forced = c->n_forced > 0, has_guesses = n_guessed > 0, is_right;
    uint32_t n_right = 0, length = c->row_pos + 1;
    c->n_ahead = 0;
    do {
        nib_token guess = n_right < n_guessed ? c->ids[c->n_ids] : NIB_TOKEN_NONE;
        bool is_forced = c->n_forced > 0;
        status = next_token(e, c, row + n_right, &is_last, &finish, &err);
        is_right = status == NIB_OK && guess == c->ids[c->n_ids - 1];
        n_right += is_right;
        if (status != NIB_OK || is_last || is_forced || !c->stream->jump_ahead) continue;
        uint32_t n_left = is_right ? n_guessed - n_right : 0;
        status = jump(e, c, &n_left, &is_last, &finish, &err);
        if (is_right) n_guessed = n_right + n_left;
    } while (status == NIB_OK && is_right && !is_last && !c->n_ahead);
    if (!was_forced) nib_engine_draft_learn(e, c, c->n_ahead && is_right ? n_right : n_guessed, n_right);
    if (has_guesses) { /* what was guessed wrong goes; no page of it was published, so none has to be copied */
        (void)nib_seq_truncate(e->ctx, c->seq, length + n_right, NULL);
        nib_engine_pages_publish(e, c);
    }
    if (status != NIB_OK) nib_engine_end(e, c, NIB_FINISH_ERROR, &err);
    else if (is_last) nib_engine_end(e, c, finish, NULL);
}

/* The prompt is computed: all choices take their first token from the same row and go on by themselves. */
static void begin(nib_engine *e, nib_engine_choice *first, uint32_t row) {
    nib_stream *s = first->stream;
    uint32_t n = s->n_choices;
    nib_engine_choice *choices = s->choices;
    s->has_begun = true;
    e->figures.n_prompt += s->n_prompt;
    e->figures.n_reused += first->usage.n_cached;
    pthread_mutex_lock(&e->lock);
    e->queued_tokens -= s->n_prompt;
    pthread_mutex_unlock(&e->lock);
    for (uint32_t i = 1; i < n; i++) {
        choices[i].usage = first->usage;
        if (!nib_engine_pages_fork(e, first, &choices[i])) nib_sched_queue_push(&e->queue, &choices[i].item);
    }
    for (uint32_t i = 0; i < n; i++) accept_rows(e, &choices[i], row, 0); /* the last one may free them all */
}

/* Of a token of the prompt. False: the request has ended. */
static bool tell_prompt(nib_engine *e, nib_engine_choice *c, uint32_t row) {
    nib_stream *s = c->stream;
    nib_error err;
    nib_stream_event event = {.kind = NIB_STREAM_PROMPT, .text = {"", 0}, .id = s->choices->ids[s->n_told++], .stop = -1};
    if (tell(e, s, row, &event, &err) != NIB_OK) nib_engine_end(e, c, NIB_FINISH_ERROR, &err);
    else if (!nib_stream_put(s, &event)) nib_engine_end(e, c, NIB_FINISH_UNREAD, NULL);
    else return true;
    return false;
}

static void accept_hidden(nib_engine *e, nib_engine_choice *c) {
    nib_stream *s = c->stream;
    nib_error err;
    for (uint32_t i = 0; i < c->n_rows; i++) nib_decode_embed_add(&s->embed, nib_hidden(e->ctx, c->first_row + i));
    if (nib_seq_length(e->ctx, c->seq) < c->n_ids) return;
    c->usage.ttft_ms = 1e3 * (nib_sys_now() - s->submitted);
    e->figures.n_prompt += s->n_prompt;
    e->figures.n_reused += c->usage.n_cached;
    if (nib_decode_embed_finish(&s->embed, s->embedding, &err) == NIB_OK) nib_engine_end(e, c, NIB_FINISH_STOP, NULL);
    else nib_engine_end(e, c, NIB_FINISH_ERROR, &err);
}

void nib_engine_accept(nib_engine *e, nib_engine_choice *c) {
    uint32_t row = c->first_row, n = c->n_rows;
    if (nib_engine_embeds(c)) {
        accept_hidden(e, c);
        return;
    }
    for (; n && c->row_pos + 1 < c->n_ids; row++, n--, c->row_pos++)
        if (!tell_prompt(e, c, row)) return;
    if (n && !c->stream->has_begun) begin(e, c, row);
    else if (n) accept_rows(e, c, row, n - 1);
}

/* ---- the end */

/* What was held back, for want of the rest of a character or as the possible start of a stop string. */
static void give_rest(nib_engine_choice *c, nib_stream_event *event) {
    nib_str show;
    if (c->stop_found >= 0 || nib_engine_embeds(c)) return;
    if (pass_stops(c, nib_detok_finish(c->detok), &show, &c->stop_found, NULL) != NIB_OK) return;
    nib_buf_append(&c->rest, show.ptr, show.len);
    if (c->stop) show = nib_stop_finish(c->stop);
    if (c->stop) nib_buf_append(&c->rest, show.ptr, show.len);
    if (c->rest.len) event->text = (nib_str){c->rest.ptr, c->rest.len};
}

static void end_choice(nib_engine *e, nib_engine_choice *c, nib_finish finish, const nib_error *error) {
    nib_stream_event event = {.kind = NIB_STREAM_END, .choice = c->number, .text = {"", 0}, .id = NIB_TOKEN_NONE,
                              .finish = finish};
    give_rest(c, &event);
    event.stop = c->stop_found;
    c->usage.total_ms = 1e3 * (nib_sys_now() - c->stream->submitted);
    event.usage = c->usage;
    event.error = error;
    if (finish == NIB_FINISH_STOP) event.embedding = c->stream->embedding;
    if (c->is_running) nib_engine_pages_stop(e, c);
    else if (c->item.next) nib_sched_queue_remove(&e->queue, &c->item);
    nib_sched_queue_leave(&e->queue, &c->item);
    e->figures.n_finished[finish]++;
    nib_stream_put_end(c, &event);
}

void nib_engine_end(nib_engine *e, nib_engine_choice *c, nib_finish finish, const nib_error *error) {
    nib_stream *s = c->stream;
    if (s->has_begun) {
        end_choice(e, c, finish, error);
        return;
    }
    pthread_mutex_lock(&e->lock);
    e->queued_tokens -= s->n_prompt;
    pthread_mutex_unlock(&e->lock);
    for (uint32_t i = 0, n = s->n_choices; i < n; i++) end_choice(e, c + i, finish, error); /* c is the first one */
}
