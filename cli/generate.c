/* cli/generate.c - prompt ids in -> generated ids and streamed text out. Called by run and chat. */
#include "generate.h"

#include "base/mem.h"
#include "base/status.h"

typedef struct loop {
    nib_cli_session *s;
    nib_sampler *sampler;
    const nib_cli_generate_params *params;
    nib_cli_generation *out;
    nib_detok *detok;
    nib_stop *stop;   /* NULL without stop strings */
    nib_logprob *top; /* n_top of one step */
    uint32_t *mask;   /* of the next token; NULL without a matcher */
    size_t n_decoded; /* generated ids that are in the sequence */
} loop;

static void write_text(loop *l, nib_str text) {
    if (text.len && !l->params->write(l->params->user, text)) l->out->finish_reason = "interrupted";
}

/* Passes text on, up to a stop string. */
static nib_status show(loop *l, nib_str piece, nib_error *err) {
    nib_str text = piece;
    int found = l->stop ? nib_stop_push(l->stop, piece, &text) : -1;
    if (found < -1) return nib_fail_nomem(err, piece.len, "text that may become a stop string");
    if (found >= 0) {
        l->out->stop = found;
        l->out->finish_reason = "stop";
    }
    write_text(l, text);
    return NIB_OK;
}

/* What was held back, for want of the rest of a character or as the possible start of a stop string. */
static nib_status show_rest(loop *l, nib_error *err) {
    if (l->out->stop >= 0) return NIB_OK;
    NIB_TRY(show(l, nib_detok_finish(l->detok), err));
    if (l->stop) write_text(l, nib_stop_finish(l->stop));
    return NIB_OK;
}

static nib_status keep_logprobs(loop *l, const float *logits, nib_token id, nib_error *err) {
    nib_cli_generation *out = l->out;
    uint32_t n_top = l->params->n_top;
    float logprob;
    NIB_TRY(nib_logprobs(logits, nib_model_n_vocab(l->s->model), id, &logprob, l->top, n_top, err));
    if (!nib_cli_list_append(&out->logprobs, &logprob, 1, sizeof logprob) ||
        !nib_cli_list_append(&out->tops, l->top, n_top, sizeof *l->top))
        return nib_fail_nomem(err, n_top * sizeof *l->top, "log-probabilities");
    return NIB_OK;
}

static bool is_end_of_text(const loop *l, nib_token id) {
    const nib_chat *chat = l->params->chat;
    return chat ? nib_chat_ends_turn(chat, id) : nib_tokenizer_is_eog(l->s->tok, id);
}

static bool is_shown(const loop *l, nib_token id, bool is_end) {
    const nib_chat *chat = l->params->chat;
    if (chat && (is_end || nib_tokenizer_attr(l->s->tok, id) & NIB_TOKEN_CONTROL))
        return nib_chat_is_mark(chat, nib_tokenizer_text(l->s->tok, id));
    return !is_end || l->params->special;
}

/* Id -> text. Sets the finish reason when that was the last one. */
static nib_status take(loop *l, nib_token id, nib_error *err) {
    nib_cli_generation *out = l->out;
    NIB_TRY(nib_sampler_accept(l->sampler, id, err));
    if (!nib_cli_append_ids(&out->ids, &id, 1)) return nib_fail_nomem(err, sizeof id, "ids");
    bool is_end = is_end_of_text(l, id);
    if (is_end) out->finish_reason = "stop";
    if (is_shown(l, id, is_end)) {
        nib_str piece;
        NIB_TRY(nib_detok_push(l->detok, id, &piece, err));
        NIB_TRY(show(l, piece, err));
    }
    return NIB_OK;
}

/* Nothing may follow what the matcher has taken. */
static void end_by_grammar(loop *l) {
    nib_matcher *matcher = l->params->matcher;
    if (!l->out->finish_reason && matcher && nib_matcher_must_end(matcher)) l->out->finish_reason = "stop";
}

/* Logits -> id. */
static nib_status sample_one(loop *l, nib_error *err) {
    const float *logits = nib_logits(l->s->ctx, 0);
    nib_matcher *matcher = l->params->matcher;
    nib_token id;
    if (matcher) NIB_TRY(nib_matcher_mask(matcher, l->mask, nib_model_n_vocab(l->s->model), err));
    nib_sampler_hint(l->sampler, nib_logits_best(l->s->ctx, 0));
    NIB_TRY(nib_sampler_sample(l->sampler, logits, l->mask, nib_seq_length(l->s->ctx, 0), &id, err));
    if (matcher) NIB_TRY(nib_matcher_accept(matcher, id, err));
    if (l->params->keep_logprobs) NIB_TRY(keep_logprobs(l, logits, id, err));
    NIB_TRY(take(l, id, err));
    end_by_grammar(l);
    return NIB_OK;
}

/* Generated ids -> logits behind the last one. */
static nib_status compute(loop *l, nib_error *err) {
    nib_cli_generation *out = l->out;
    size_t n = out->ids.n - l->n_decoded;
    NIB_TRY(nib_cli_session_decode(l->s, out->ids.ids + l->n_decoded, n, 1, err));
    l->n_decoded = out->ids.n;
    out->kv_positions += nib_seq_length(l->s->ctx, 0);
    return NIB_OK;
}

static nib_status take_forced(loop *l, nib_token id, nib_error *err) {
    if (l->params->keep_logprobs) {
        NIB_TRY(compute(l, err));
        NIB_TRY(keep_logprobs(l, nib_logits(l->s->ctx, 0), id, err));
    }
    return take(l, id, err);
}

/* Takes the tokens of forced text, at most `most`, up to one that is forbidden: the text can perhaps be said in other ones. */
static nib_status jump(loop *l, size_t most, nib_error *err) {
    nib_matcher *matcher = l->params->matcher;
    nib_token_list list = {0};
    size_t n = 0;
    nib_status status = nib_matcher_jump(matcher, l->s->tok, most, &list, err);
    while (n < list.n && !nib_sampler_forbids(l->sampler, list.ids[n])) n++;
    if (status == NIB_OK && n < list.n) status = nib_matcher_rollback(matcher, (uint32_t)(list.n - n), err);
    for (size_t i = 0; status == NIB_OK && i < n && !l->out->finish_reason; i++) status = take_forced(l, list.ids[i], err);
    nib_token_list_free(&list);
    if (status == NIB_OK) end_by_grammar(l);
    return status;
}

static nib_status prefill(loop *l, nib_error *err) {
    const nib_cli_generate_params *p = l->params;
    for (size_t i = 0; i < p->n_prompt; i++) NIB_TRY(nib_sampler_accept(l->sampler, p->prompt[i], err));
    return nib_cli_session_prefill(l->s, p->prompt + p->n_cached, p->n_prompt - p->n_cached, err);
}

/* Tokens that fit the batch, the context and -n beside the one that waits, with one left to sample. */
static size_t most_to_jump(const loop *l, uint32_t length) {
    size_t most = nib_context_n_batch(l->s->ctx) - 1, left = nib_context_n_ctx(l->s->ctx) - length - 1;
    if (left < most) most = left;
    if (most > NIB_MATCHER_HISTORY) most = NIB_MATCHER_HISTORY;
    size_t wanted = l->params->n_predict < 0 ? most : (size_t)l->params->n_predict - l->out->ids.n - 1;
    return wanted < most ? wanted : most;
}

static nib_status run(loop *l, nib_error *err) {
    nib_cli_generation *out = l->out;
    double start = nib_cli_now_ms(), first = 0;
    NIB_TRY(prefill(l, err));
    out->prefill_ms = nib_cli_now_ms() - start;
    if (l->params->n_predict == 0) out->finish_reason = "length";
    while (!out->finish_reason) {
        NIB_TRY(sample_one(l, err));
        double now = nib_cli_now_ms();
        if (out->ids.n == 1) {
            first = now;
            out->ttft_ms = now - start;
        }
        out->decode_ms = now - first;
        uint32_t length = nib_seq_length(l->s->ctx, 0);
        bool enough = l->params->n_predict >= 0 && out->ids.n >= (size_t)l->params->n_predict;
        if (out->finish_reason) break;
        if (enough || length == nib_context_n_ctx(l->s->ctx)) {
            out->finish_reason = "length";
            break;
        }
        if (l->params->matcher && l->params->jump_ahead) NIB_TRY(jump(l, most_to_jump(l, length), err));
        if (out->finish_reason) break;
        NIB_TRY(compute(l, err));
    }
    return NIB_OK;
}

nib_status nib_cli_generate(nib_cli_session *s, nib_sampler *sampler, const nib_cli_generate_params *params,
                            nib_cli_generation *out, nib_error *err) {
    loop l = {.s = s, .sampler = sampler, .params = params, .out = out};
    nib_status status;
    *out = (nib_cli_generation){.stop = -1, .n_prompt = params->n_prompt, .n_cached = params->n_cached};
    if (params->n_prompt > nib_context_n_ctx(s->ctx))
        return nib_fail(err, NIB_E_LIMIT, "the prompt has %zu tokens and the context holds %u: shorten it, or raise -c",
                        params->n_prompt, nib_context_n_ctx(s->ctx));
    l.top = nib_calloc(params->n_top + 1, sizeof *l.top);
    if (!l.top) return nib_fail_nomem(err, params->n_top * sizeof *l.top, "log-probabilities");
    size_t n_words = ((size_t)nib_model_n_vocab(s->model) + 31) / 32;
    if (params->matcher && (l.mask = nib_calloc(n_words, sizeof *l.mask)) == NULL) {
        status = nib_fail_nomem(err, n_words * sizeof *l.mask, "a mask of tokens");
        goto out;
    }
    NIB_TRY_OUT(nib_detok_new(&l.detok, s->tok, params->special || params->chat ? NIB_UNPARSE_SPECIAL : 0, true, err));
    if (params->n_stops) NIB_TRY_OUT(nib_stop_new(&l.stop, params->stops, params->n_stops, err));
    status = run(&l, err);
    if (status == NIB_E_CANCELLED) {
        out->finish_reason = "interrupted";
        status = NIB_OK;
    }
    nib_status shown = show_rest(&l, status == NIB_OK ? err : NULL);
    if (status == NIB_OK) status = shown;
out:
    nib_free(l.top);
    nib_free(l.mask);
    nib_stop_free(l.stop);
    nib_detok_free(l.detok);
    return status;
}

void nib_cli_generation_free(nib_cli_generation *g) {
    nib_token_list_free(&g->ids);
    nib_cli_list_free(&g->logprobs);
    nib_cli_list_free(&g->tops);
    *g = (nib_cli_generation){0};
}
