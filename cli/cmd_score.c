/* cli/cmd_score.c - nib score: given texts in -> the log-probability of each of their tokens out (teacher forcing), one
 * JSON object a line. Logits come in rows of a bounded buffer, so memory does not grow with the text. */
#include "base/mem.h"
#include "base/status.h"
#include "json.h"
#include "list.h"
#include "session.h"
#include "signals.h"

typedef struct score_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf bytes;
    nib_token_list ids;
    nib_logprob *top;
} score_state;

static nib_status read_ids(score_state *sc, json_t *request, nib_error *err) {
    nib_str text;
    bool add, parse;
    sc->ids.n = 0;
    if (json_object_get(request, "ids")) return nib_cli_json_get_ids(request, "ids", &sc->ids, err);
    NIB_TRY(nib_cli_json_get_text(request, &sc->bytes, &text, err));
    NIB_TRY(nib_cli_json_bool(request, "add_special", true, &add, err));
    NIB_TRY(nib_cli_json_bool(request, "parse_special", true, &parse, err));
    return nib_tokenize(sc->s.tok, text.ptr, text.len, (add ? NIB_ADD_SPECIAL : 0u) | (parse ? NIB_PARSE_SPECIAL : 0u),
                        &sc->ids, err);
}

/* {"ids"} or {"text", …} -> {"ids", "logprobs", "top"}: logprobs[i] is that of ids[i] after those before it, null for
 * the first; top[i] is the distribution after ids[i]. */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    score_state *sc = user;
    uint32_t n_top = sc->s.opt->n_logprobs, n_vocab = nib_model_n_vocab(sc->s.model);
    NIB_TRY(read_ids(sc, request, err));
    const nib_token_list *ids = &sc->ids;
    for (size_t i = 0; i < ids->n; i++)
        if ((uint32_t)ids->ids[i] >= n_vocab)
            return nib_fail(err, NIB_E_ARG, "\"ids\"[%zu] is %d, the vocabulary has %u tokens", i, ids->ids[i],
                            n_vocab);
    if (ids->n > nib_context_n_ctx(sc->s.ctx))
        return nib_fail(err, NIB_E_LIMIT, "%zu tokens, and the context holds %u: raise -c", ids->n,
                        nib_context_n_ctx(sc->s.ctx));
    json_t *logprobs = json_array(), *tops = json_array();
    json_object_set_new(reply, "ids", nib_cli_json_ids(ids->ids, ids->n));
    json_object_set_new(reply, "logprobs", logprobs);
    json_object_set_new(reply, "top", tops);
    if (ids->n) json_array_append_new(logprobs, json_null());
    nib_seq_free(sc->s.ctx, 0);
    size_t most = nib_context_n_logits(sc->s.ctx);
    for (size_t i = 0; i < ids->n; i += most) {
        size_t n = ids->n - i < most ? ids->n - i : most;
        NIB_TRY(nib_cli_session_decode(&sc->s, ids->ids + i, n, n, err));
        for (size_t k = i; k < i + n; k++) {
            nib_token next = k + 1 < ids->n ? ids->ids[k + 1] : NIB_TOKEN_NONE;
            const float *logits = nib_logits(sc->s.ctx, (uint32_t)(k - i));
            float logprob = 0;
            NIB_TRY(nib_logprobs(logits, n_vocab, next, &logprob, sc->top, n_top, err));
            if (next != NIB_TOKEN_NONE) json_array_append_new(logprobs, nib_cli_json_number((double)logprob));
            json_array_append_new(tops, nib_cli_json_logprobs(sc->top, n_top));
        }
    }
    return NIB_OK;
}

static nib_status prepare(score_state *sc, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_session_open(&sc->s, opt, term, err));
    NIB_TRY(nib_cli_session_model(&sc->s, err));
    nib_context_config config = nib_cli_context_config(opt);
    uint32_t rows = nib_cli_logits_rows(sc->s.model);
    config.n_logits = rows < config.n_batch ? rows : config.n_batch;
    NIB_TRY(nib_cli_session_context(&sc->s, &config, err));
    sc->top = nib_calloc(opt->n_logprobs + 1, sizeof *sc->top);
    if (!sc->top) return nib_fail_nomem(err, opt->n_logprobs, "log-probabilities");
    if (opt->n_logprobs > nib_model_n_vocab(sc->s.model))
        return nib_fail(err, NIB_E_ARG, "--logprobs %u: the vocabulary has %u tokens", opt->n_logprobs,
                        nib_model_n_vocab(sc->s.model));
    return NIB_OK;
}

int nib_cli_cmd_score(const nib_cli_options *opt, const nib_cli_term *term) {
    score_state sc = {0};
    nib_error err;
    nib_cli_out_open(&sc.out);
    int status = prepare(&sc, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (status == NIB_CLI_DONE) {
        status = nib_cli_jsonl(&sc.out, term, answer, &sc);
        nib_cli_print_hash(&sc.s);
    }
    nib_free(sc.top);
    nib_token_list_free(&sc.ids);
    nib_buf_free(&sc.bytes);
    nib_cli_session_close(&sc.s);
    return nib_cli_out_close(&sc.out, term, status);
}
