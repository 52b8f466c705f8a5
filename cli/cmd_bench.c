/* cli/cmd_bench.c - nib bench: speed of prefill (ppN: N tokens from an empty cache, logits of the last) and of decode
 * (tgN: N single tokens from an empty cache), each -r times after one run that does not count. Loading, tokenizing and
 * sampling are outside the clock. */
#include "base/mem.h"
#include "base/status.h"
#include "cost.h"
#include "json.h"
#include "session.h"

#include <math.h>
#include <stdio.h>

typedef struct bench_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_token *ids; /* as many as the longest test takes */
    double *tok_s;  /* of one test, a number per repetition */
    json_t *results;
} bench_state;

typedef struct bench_test {
    bool is_prefill;
    uint32_t n_tokens;
} bench_test;

static nib_status run_once(bench_state *b, bench_test test, double *tok_s, nib_error *err) {
    nib_seq_free(b->s.ctx, 0);
    double start = nib_cli_now_ms();
    if (test.is_prefill) {
        NIB_TRY(nib_cli_session_prefill(&b->s, b->ids, test.n_tokens, err));
    } else {
        for (uint32_t i = 0; i < test.n_tokens; i++) NIB_TRY(nib_cli_session_decode(&b->s, b->ids + i, 1, 1, err));
    }
    *tok_s = 1e3 * test.n_tokens / (nib_cli_now_ms() - start);
    return NIB_OK;
}

static void mean_and_deviation(const double *x, uint32_t n, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    *mean = sum / n;
    for (uint32_t i = 0; i < n; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

/* Bytes that a decoded token reads on average: the weights, and the cache that grows from 1 to n positions. */
static uint64_t bytes_per_token(const bench_state *b, bench_test test) {
    uint64_t kv = nib_model_kv_bytes_per_token(b->s.model, b->s.opt->k_type, b->s.opt->v_type);
    return nib_model_bytes_per_token(b->s.model) + kv * (test.n_tokens + 1) / 2;
}

static nib_status report(bench_state *b, bench_test test, nib_error *err) {
    const nib_cli_options *opt = b->s.opt;
    double mean, deviation;
    uint64_t macs;
    char name[32];
    nib_cli_batch_shape shape = {test.is_prefill ? test.n_tokens : 1, 1, test.is_prefill ? 0 : test.n_tokens / 2};
    NIB_TRY(nib_cli_plan_macs(b->s.model, shape, &macs, err));
    macs /= shape.n_tok;
    mean_and_deviation(b->tok_s, opt->repetitions, &mean, &deviation);
    double gb_s = test.is_prefill ? 0 : (double)bytes_per_token(b, test) * mean / 1e9;
    snprintf(name, sizeof name, "%s%u", test.is_prefill ? "pp" : "tg", test.n_tokens);
    if (!opt->json) {
        nib_cli_out_printf(&b->out, "%-8s %10.2f +/- %6.2f tokens/s %9.2f billion MACs/s", name, mean, deviation,
                           (double)macs * mean / 1e9);
        if (!test.is_prefill) nib_cli_out_printf(&b->out, " %8.2f GB/s", gb_s);
        nib_cli_out_puts(&b->out, "\n");
        nib_cli_out_flush(&b->out);
        return NIB_OK;
    }
    json_t *o = json_object(), *list = json_array();
    for (uint32_t i = 0; i < opt->repetitions; i++) json_array_append_new(list, nib_cli_json_number(b->tok_s[i]));
    nib_cli_json_set_str(o, "test", name);
    nib_cli_json_set_int(o, "tokens", test.n_tokens);
    nib_cli_json_set_int(o, "threads", nib_context_n_threads(b->s.ctx));
    nib_cli_json_set_str(o, "isa", nib_model_isa(b->s.model));
    json_object_set_new(o, "tok_s", list);
    nib_cli_json_set_real(o, "mean", mean);
    nib_cli_json_set_real(o, "deviation", deviation);
    nib_cli_json_set_int(o, "macs_per_token", macs);
    if (!test.is_prefill) {
        nib_cli_json_set_int(o, "bytes_per_token", bytes_per_token(b, test));
        nib_cli_json_set_real(o, "gb_s", gb_s);
    }
    json_array_append_new(b->results, o);
    return NIB_OK;
}

static nib_status run_tests(bench_state *b, const nib_cli_list *lengths, bool is_prefill, nib_error *err) {
    const uint32_t *n_tokens = lengths->items;
    for (size_t i = 0; i < lengths->n; i++) {
        bench_test test = {is_prefill, n_tokens[i]};
        double warm_up;
        if (!test.n_tokens) continue;
        NIB_TRY(run_once(b, test, &warm_up, err));
        for (uint32_t r = 0; r < b->s.opt->repetitions; r++) NIB_TRY(run_once(b, test, &b->tok_s[r], err));
        NIB_TRY(report(b, test, err));
    }
    return NIB_OK;
}

static uint32_t longest(const nib_cli_list *lengths, uint32_t at_least) {
    const uint32_t *n = lengths->items;
    for (size_t i = 0; i < lengths->n; i++)
        if (n[i] > at_least) at_least = n[i];
    return at_least;
}

static nib_status bench(bench_state *b, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    uint32_t n_max = longest(&opt->bench_gen, longest(&opt->bench_prompt, 0));
    if (n_max == 0) return nib_fail(err, NIB_E_ARG, "nothing to measure: -p or -n must be above 0");
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_session_file(&b->s, opt, term, opt->model, err));
    NIB_TRY(nib_cli_session_model(&b->s, err));
    nib_context_config config = nib_cli_context_config(opt);
    config.n_ctx = n_max;
    NIB_TRY(nib_cli_session_context(&b->s, &config, err));
    b->ids = nib_calloc(n_max, sizeof *b->ids);
    b->tok_s = nib_calloc(opt->repetitions, sizeof *b->tok_s);
    if (!b->ids || !b->tok_s) return nib_fail_nomem(err, n_max * sizeof *b->ids, "the tokens of the test");
    uint32_t random = 1; /* the same ids every time, spread over the vocabulary */
    for (uint32_t i = 0; i < n_max; i++) {
        random = random * 1664525u + 1013904223u;
        b->ids[i] = (nib_token)((random >> 8) % nib_model_n_vocab(b->s.model));
    }
    b->results = json_array();
    NIB_TRY(run_tests(b, &opt->bench_prompt, true, err));
    NIB_TRY(run_tests(b, &opt->bench_gen, false, err));
    if (opt->json) nib_cli_json_write(&b->out, json_incref(b->results));
    return NIB_OK;
}

int nib_cli_cmd_bench(const nib_cli_options *opt, const nib_cli_term *term) {
    bench_state b = {0};
    nib_error err;
    nib_cli_out_open(&b.out);
    int status = bench(&b, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    json_decref(b.results);
    nib_free(b.ids);
    nib_free(b.tok_s);
    nib_cli_session_close(&b.s);
    return nib_cli_out_close(&b.out, term, status);
}
