/* cli/cmd_trace.c - nib trace: the life of one token. A prompt in -> its ids, the batch, each step of the plan with its
 * time, the logits, what each sampler did to them, the chosen id and its text out. With -n more tokens follow, each a
 * batch of one. */
#include "base/mem.h"
#include "base/status.h"
#include "input.h"
#include "prompt.h"
#include "sampling.h"
#include "signals.h"
#include "trace.h"

#include <stdio.h>
#include <string.h>

typedef struct trace_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf prompt;
    nib_token_list ids; /* of the prompt, then the chosen ones */
    nib_sampler *sampler;
    nib_detok *detok;
    nib_cli_trace_token token;
    nib_cli_limits limits; /* none when this machine was never measured */
    nib_cli_limit limit;
    bool failed; /* memory was out in a callback */
} trace_state;

static void on_sampler(void *user, const char *name, uint32_t n_before, uint32_t n_after, const nib_logprob *candidates,
                       uint32_t n) {
    trace_state *t = user;
    nib_cli_trace_sampler event = {.n_before = n_before, .n_after = n_after};
    snprintf(event.name, sizeof event.name, "%s", name);
    event.n = n < NIB_CLI_TRACE_CANDIDATES ? n : NIB_CLI_TRACE_CANDIDATES;
    memcpy(event.candidates, candidates, event.n * sizeof *candidates);
    if (!nib_cli_list_append(&t->token.samplers, &event, 1, sizeof event)) t->failed = true;
}

static nib_status record_batch(trace_state *t, size_t from, nib_error *err) {
    nib_cli_trace_token *token = &t->token;
    size_t n = t->ids.n - from;
    token->ids = t->ids.ids + from;
    token->shape = (nib_cli_batch_shape){n, 1, from, 1};
    double start = nib_cli_now_ms();
    NIB_TRY(nib_cli_session_decode(&t->s, token->ids, n, 1, err));
    token->batch_ms = nib_cli_now_ms() - start;
    for (size_t i = 0; i < nib_model_n_steps(t->s.model); i++) {
        double ms = nib_context_step_ms(t->s.ctx, i), wait = nib_context_wait_ms(t->s.ctx, i);
        if (!nib_cli_list_append(&token->step_ms, &ms, 1, sizeof ms) ||
            !nib_cli_list_append(&token->wait_ms, &wait, 1, sizeof wait))
            return nib_fail_nomem(err, sizeof ms, "the trace");
    }
    token->logits_hash = nib_logits_hash(t->s.ctx, 0);
    return NIB_OK;
}

static nib_status record_choice(trace_state *t, nib_error *err) {
    nib_cli_trace_token *token = &t->token;
    const float *logits = nib_logits(t->s.ctx, 0);
    uint32_t n_vocab = nib_model_n_vocab(t->s.model);
    nib_str piece;
    size_t pos = nib_seq_length(t->s.ctx, 0);
    /* Once for the time it takes, and again, with the same outcome, to look at what every sampler does. */
    double start = nib_cli_now_ms();
    nib_sampler_trace(t->sampler, NULL, NULL);
    nib_sampler_hint(t->sampler, nib_logits_best(t->s.ctx, 0));
    NIB_TRY(nib_sampler_sample(t->sampler, logits, NULL, pos, &token->id, err));
    token->sample_ms = nib_cli_now_ms() - start;
    nib_sampler_trace(t->sampler, on_sampler, t);
    NIB_TRY(nib_sampler_sample(t->sampler, logits, NULL, pos, &token->id, err));
    NIB_TRY(nib_sampler_accept(t->sampler, token->id, err));
    NIB_TRY(nib_logprobs(logits, n_vocab, token->id, &token->logprob, token->top, token->n_top, err));
    NIB_TRY(nib_detok_push(t->detok, token->id, &piece, err));
    nib_buf_append(&token->text, piece.ptr, piece.len);
    if (t->failed || token->text.failed) return nib_fail_nomem(err, sizeof(nib_cli_trace_sampler), "the trace");
    return NIB_OK;
}

/* One token from the ids that are not yet in the cache. */
static nib_status follow(trace_state *t, json_t *tokens, nib_error *err) {
    t->token.step_ms.n = t->token.wait_ms.n = t->token.samplers.n = 0;
    t->token.text.len = 0;
    NIB_TRY(record_batch(t, nib_seq_length(t->s.ctx, 0), err));
    NIB_TRY(record_choice(t, err));
    if (t->s.opt->json)
        json_array_append_new(tokens, nib_cli_trace_json(&t->s, &t->token));
    else
        nib_cli_trace_print(&t->out, &t->s, &t->token);
    nib_cli_out_flush(&t->out);
    return nib_cli_append_ids(&t->ids, &t->token.id, 1) ? NIB_OK : nib_fail_nomem(err, sizeof(nib_token), "the trace");
}

static nib_status prepare(trace_state *t, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_input_read(opt, &t->prompt, err));
    NIB_TRY(nib_cli_session_open(&t->s, opt, term, err));
    NIB_TRY(nib_cli_prompt_ids(&t->s, nib_cli_bytes(&t->prompt), &t->ids, err));
    NIB_TRY(nib_cli_session_model(&t->s, err));
    NIB_TRY(nib_cli_sampler_new(&t->sampler, &t->s, err));
    NIB_TRY(nib_detok_new(&t->detok, t->s.tok, NIB_UNPARSE_SPECIAL, true, err));
    nib_context_config config = nib_cli_context_config(opt);
    if (config.n_batch < t->ids.n) config.n_batch = (uint32_t)t->ids.n; /* the prompt is one batch */
    config.profile = true;
    NIB_TRY(nib_cli_session_context(&t->s, &config, err));
    if (t->ids.n > nib_context_n_ctx(t->s.ctx))
        return nib_fail(err, NIB_E_LIMIT, "the prompt has %zu tokens and the context holds %u: shorten it, or raise -c",
                        t->ids.n, nib_context_n_ctx(t->s.ctx));
    NIB_TRY(nib_cli_limits_get(&t->limits, nib_context_n_threads(t->s.ctx), NIB_CLI_LIMITS_KNOWN, term, err));
    t->limit = nib_cli_limits_at(&t->limits, nib_context_n_threads(t->s.ctx));
    t->token.limit = &t->limit;
    t->token.cache = nib_cli_cache_of(t->s.model, opt->k_type, opt->v_type);
    for (size_t i = 0; i < t->ids.n; i++) NIB_TRY(nib_sampler_accept(t->sampler, t->ids.ids[i], err));
    uint32_t n_vocab = nib_model_n_vocab(t->s.model);
    t->token.n_top = opt->n_logprobs < n_vocab ? opt->n_logprobs : n_vocab;
    t->token.top = nib_calloc(t->token.n_top + 1, sizeof *t->token.top);
    return t->token.top ? NIB_OK : nib_fail_nomem(err, t->token.n_top, "the trace");
}

static nib_status trace(trace_state *t, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(prepare(t, opt, term, err));
    nib_str text = {t->prompt.ptr, t->prompt.len};
    json_t *o = json_object(), *tokens = json_array();
    nib_cli_json_set_str(o, "model", opt->model);
    json_object_set_new(o, "text", nib_cli_json_str(text));
    json_object_set_new(o, "prompt_ids", nib_cli_json_ids(t->ids.ids, t->ids.n));
    nib_cli_json_set_int(o, "seed", nib_sampler_seed(t->sampler));
    json_object_set_new(o, "tokens", tokens);
    if (!opt->json) nib_cli_trace_print_prompt(&t->out, &t->s, text, &t->ids);
    nib_status status = NIB_OK;
    for (int32_t i = 0; i < opt->n_predict && status == NIB_OK && !t->out.error; i++) {
        if (t->ids.n > nib_context_n_ctx(t->s.ctx)) break;
        status = follow(t, tokens, err);
        if (status == NIB_OK && nib_tokenizer_is_eog(t->s.tok, t->token.id)) break;
    }
    if (opt->json && status == NIB_OK)
        nib_cli_json_write(&t->out, o);
    else
        json_decref(o);
    if (status == NIB_OK) nib_cli_print_hash(&t->s);
    return status;
}

int nib_cli_cmd_trace(const nib_cli_options *opt, const nib_cli_term *term) {
    trace_state t = {0};
    nib_error err;
    nib_cli_out_open(&t.out);
    int status = trace(&t, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    nib_cli_limits_free(&t.limits);
    nib_free(t.token.top);
    nib_cli_list_free(&t.token.step_ms);
    nib_cli_list_free(&t.token.wait_ms);
    nib_cli_list_free(&t.token.samplers);
    nib_buf_free(&t.token.text);
    nib_detok_free(t.detok);
    nib_sampler_free(t.sampler);
    nib_token_list_free(&t.ids);
    nib_buf_free(&t.prompt);
    nib_cli_session_close(&t.s);
    return nib_cli_out_close(&t.out, term, status);
}
