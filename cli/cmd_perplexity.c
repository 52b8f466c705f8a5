/* cli/cmd_perplexity.c - nib perplexity: a text in -> perplexity out, cut into chunks as llama.cpp cuts it, so that the
 * figures compare: chunks of -c tokens, BOS in place of each first token where the model wants BOS, scores for the
 * second half of a chunk, a rest that fills no chunk left out. */
#include "base/status.h"
#include "input.h"
#include "json.h"
#include "session.h"
#include "signals.h"

#include <math.h>

typedef struct ppl_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf text;
    nib_token_list ids;
    size_t n_scored;
    double nll, nll_squares; /* sums of -log p and of its square */
} ppl_state;

/* Adds the scores of the tokens that follow ids[first … n-2] of one chunk. */
static nib_status run_chunk(ppl_state *p, const nib_token *ids, size_t n, size_t first, nib_error *err) {
    nib_seq_free(p->s.ctx, 0);
    NIB_TRY(nib_cli_session_prefill(&p->s, ids, first, err));
    size_t most = nib_context_n_logits(p->s.ctx);
    for (size_t i = first; i + 1 < n; i += most) {
        size_t n_now = n - 1 - i < most ? n - 1 - i : most;
        NIB_TRY(nib_cli_session_decode(&p->s, ids + i, n_now, n_now, err));
        for (size_t k = 0; k < n_now; k++) {
            float logprob;
            const float *logits = nib_logits(p->s.ctx, (uint32_t)k);
            NIB_TRY(nib_logprobs(logits, nib_model_n_vocab(p->s.model), ids[i + k + 1], &logprob, NULL, 0, err));
            p->nll -= (double)logprob;
            p->nll_squares += (double)logprob * (double)logprob;
            p->n_scored++;
        }
    }
    return NIB_OK;
}

/* Standard error of the perplexity from the spread of the scores, as llama.cpp gives it. */
static double plus_minus(const ppl_state *p) {
    double n = (double)p->n_scored, mean = p->nll / n, variance = p->nll_squares / n - mean * mean;
    return variance > 0 && n > 1 ? sqrt(variance / (n - 1)) * exp(mean) : 0;
}

static nib_status run_chunks(ppl_state *p, json_t *running, nib_error *err) {
    size_t n_ctx = p->s.opt->n_ctx, n_chunks = p->ids.n / n_ctx;
    nib_token bos = nib_tokenizer_special(p->s.tok, "bos");
    if (!n_chunks)
        return nib_fail(err, NIB_E_ARG, "the text has %zu tokens and a chunk takes %zu: give more, or a smaller -c",
                        p->ids.n, n_ctx);
    for (size_t i = 0; i < n_chunks; i++) {
        nib_token *chunk = p->ids.ids + i * n_ctx;
        if (nib_tokenizer_add_bos(p->s.tok) && bos != NIB_TOKEN_NONE) chunk[0] = bos;
        NIB_TRY(run_chunk(p, chunk, n_ctx, n_ctx / 2, err));
        double ppl = exp(p->nll / (double)p->n_scored);
        json_array_append_new(running, nib_cli_json_number(ppl));
        nib_cli_line(p->s.term, "[%zu/%zu] %.4f", i + 1, n_chunks, ppl);
    }
    return NIB_OK;
}

static nib_status measure(ppl_state *p, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_input_read(opt, &p->text, err));
    NIB_TRY(nib_cli_session_open(&p->s, opt, term, err));
    NIB_TRY(nib_tokenize(p->s.tok, p->text.ptr, p->text.len, NIB_ADD_SPECIAL, &p->ids, err));
    NIB_TRY(nib_cli_session_model(&p->s, err));
    nib_context_config config = nib_cli_context_config(opt);
    uint32_t rows = nib_cli_logits_rows(p->s.model);
    config.n_logits = rows < config.n_batch ? rows : config.n_batch;
    NIB_TRY(nib_cli_session_context(&p->s, &config, err));
    json_t *running = json_array();
    double start = nib_cli_now_ms();
    nib_status status = run_chunks(p, running, err);
    if (status == NIB_OK) {
        double ppl = exp(p->nll / (double)p->n_scored), seconds = (nib_cli_now_ms() - start) / 1e3;
        if (opt->json) {
            json_t *o = json_object();
            nib_cli_json_set_real(o, "ppl", ppl);
            nib_cli_json_set_real(o, "plus_minus", plus_minus(p));
            json_object_set(o, "running_ppl", running);
            nib_cli_json_set_int(o, "n_ctx", opt->n_ctx);
            nib_cli_json_set_int(o, "n_tokens", p->ids.n);
            nib_cli_json_set_int(o, "n_scored", p->n_scored);
            nib_cli_json_set_real(o, "seconds", seconds);
            if (opt->logits_hash) json_object_set_new(o, "logits_hash", nib_cli_json_hash(p->s.logits_hash));
            nib_cli_json_write(&p->out, o);
        } else {
            nib_cli_out_printf(&p->out, "PPL = %.4f +/- %.5f (%zu tokens scored)\n", ppl, plus_minus(p), p->n_scored);
        }
        nib_cli_print_hash(&p->s);
    }
    json_decref(running);
    return status;
}

int nib_cli_cmd_perplexity(const nib_cli_options *opt, const nib_cli_term *term) {
    ppl_state p = {0};
    nib_error err;
    nib_cli_out_open(&p.out);
    int status = measure(&p, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    nib_token_list_free(&p.ids);
    nib_buf_free(&p.text);
    nib_cli_session_close(&p.s);
    return nib_cli_out_close(&p.out, term, status);
}
