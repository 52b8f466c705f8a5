/* cli/cmd_bench.c - nib bench: speed of prefill (ppN: N tokens, logits of the last) and of decode (tgN: N steps of one
 * token, or of one token for each of B sequences), after `depth` tokens that do not count; each -r times after one run
 * that does not count, for every number of threads. Loading, tokenizing and sampling are outside the clock.
 *
 * Next to the speed stands its share of what this machine can do (cost.h): the time that its limits allow, divided by the
 * time that it took. */
#include "base/mem.h"
#include "base/status.h"
#include "api.h"
#include "bench_kernels.h"
#include "bench_serve.h"
#include "cost.h"
#include "energy.h"
#include "session.h"

#include <math.h>
#include <stdio.h>

typedef struct bench_test {
    bool is_prefill;
    uint32_t n_tokens, depth, n_seq;
} bench_test;

typedef struct bench_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_cli_limits limits;
    nib_cli_energy energy;
    uint32_t n_ctx;
    nib_token *ids;  /* as many as the longest sequence takes */
    double *tok_s;   /* of one test, a number per repetition */
    double joules;   /* of all its repetitions */
    json_t *results;
} bench_state;

static uint32_t largest(const nib_cli_list *list, uint32_t at_least) {
    const uint32_t *n = list->items;
    for (size_t i = 0; i < list->n; i++)
        if (n[i] > at_least) at_least = n[i];
    return at_least;
}

/* One token for each sequence: the steps of decode. */
static nib_status decode_steps(bench_state *b, bench_test test, nib_error *err) {
    for (uint32_t i = 0; i < test.n_tokens; i++) {
        nib_batch_clear(b->s.batch);
        for (uint32_t seq = 0; seq < test.n_seq; seq++)
            NIB_TRY(nib_batch_add(b->s.batch, b->ids[test.depth + i], NIB_POS_NEXT, seq, true, err));
        NIB_TRY(nib_decode(b->s.ctx, b->s.batch, err));
    }
    return NIB_OK;
}

static nib_status run_once(bench_state *b, bench_test test, double *tok_s, nib_error *err) {
    for (uint32_t seq = 0; seq < test.n_seq; seq++) NIB_TRY(nib_seq_truncate(b->s.ctx, seq, test.depth, err));
    nib_cli_energy_joules(&b->energy);
    double start = nib_cli_now_ms();
    if (test.is_prefill)
        NIB_TRY(nib_cli_session_prefill(&b->s, b->ids + test.depth, test.n_tokens, err));
    else
        NIB_TRY(decode_steps(b, test, err));
    *tok_s = 1e3 * test.n_tokens * test.n_seq / (nib_cli_now_ms() - start);
    b->joules += nib_cli_energy_joules(&b->energy);
    return NIB_OK;
}

static nib_status fill_to_depth(bench_state *b, bench_test test, nib_error *err) {
    uint32_t most = nib_context_n_batch(b->s.ctx);
    for (uint32_t seq = 0; seq < largest(&b->s.opt->bench_batch, 1); seq++) nib_seq_free(b->s.ctx, seq);
    for (uint32_t seq = 0; seq < test.n_seq; seq++)
        for (uint32_t i = 0; i < test.depth;) {
            nib_batch_clear(b->s.batch);
            for (uint32_t n = 0; n < most && i < test.depth; n++, i++)
                NIB_TRY(nib_batch_add(b->s.batch, b->ids[i], NIB_POS_NEXT, seq, false, err));
            NIB_TRY(nib_decode(b->s.ctx, b->s.batch, err));
        }
    return NIB_OK;
}

typedef struct figures {
    double mean, deviation;
    double bytes, macs, bound; /* of a token, on average; bound in seconds, 0: not known */
    bool is_read;              /* reading is what bounds it */
} figures;

static figures compute(const bench_state *b, bench_test test) {
    const nib_cli_options *opt = b->s.opt;
    figures f = {0};
    double squares = 0;
    for (uint32_t i = 0; i < opt->repetitions; i++) f.mean += b->tok_s[i] / opt->repetitions;
    for (uint32_t i = 0; i < opt->repetitions; i++) squares += (b->tok_s[i] - f.mean) * (b->tok_s[i] - f.mean);
    f.deviation = opt->repetitions > 1 ? sqrt(squares / (opt->repetitions - 1)) : 0;
    nib_cli_batch_shape shape = {test.n_tokens, 1, test.depth, 1};
    if (!test.is_prefill) shape = (nib_cli_batch_shape){test.n_seq, test.n_seq, test.depth + test.n_tokens / 2, test.n_seq};
    nib_cli_work work = nib_cli_plan_work(b->s.model, shape, nib_cli_cache_of(b->s.model, opt->k_type, opt->v_type));
    nib_cli_limit limit = nib_cli_limits_at(&b->limits, nib_context_n_threads(b->s.ctx));
    double n = (double)shape.n_tok;
    f.bytes = work.bytes / n;
    f.macs = nib_cli_work_macs(&work) / n;
    f.bound = nib_cli_bound(&work, &limit, nib_model_isa(b->s.model)) / n;
    f.is_read = nib_cli_bound_is_read(&work, &limit, nib_model_isa(b->s.model));
    return f;
}

/* "pp512", "tg128 x8", "tg128 x8 @ d2048" */
static void name_of(bench_test test, char *out, size_t size) {
    int n = snprintf(out, size, "%s%u", test.is_prefill ? "pp" : "tg", test.n_tokens);
    if (test.n_seq > 1) n += snprintf(out + n, size - (size_t)n, " x%u", test.n_seq);
    if (test.depth) snprintf(out + n, size - (size_t)n, " @ d%u", test.depth);
}

static void print_result(bench_state *b, const char *name, const figures *f, double joules) {
    nib_cli_out_printf(&b->out, "%7d  %-20s %10.2f +/- %6.2f %9.2f %9.1f", nib_context_n_threads(b->s.ctx), name, f->mean,
                       f->deviation, f->bytes * f->mean / 1e9, f->macs * f->mean / 1e9);
    if (f->bound > 0)
        nib_cli_out_printf(&b->out, "  %5.1f %% of %s", 100 * f->bound * f->mean, f->is_read ? "read" : "MACs");
    if (b->energy.n) nib_cli_out_printf(&b->out, "  %8.3f", joules);
    nib_cli_out_puts(&b->out, "\n");
    nib_cli_out_flush(&b->out);
}

static void keep_result(bench_state *b, const char *name, bench_test test, const figures *f, double joules) {
    json_t *o = json_object(), *list = json_array();
    for (uint32_t i = 0; i < b->s.opt->repetitions; i++) json_array_append_new(list, nib_cli_json_number(b->tok_s[i]));
    nib_cli_json_set_str(o, "test", name);
    nib_cli_json_set_int(o, "tokens", test.n_tokens);
    nib_cli_json_set_int(o, "depth", test.depth);
    nib_cli_json_set_int(o, "batch", test.n_seq);
    nib_cli_json_set_int(o, "threads", nib_context_n_threads(b->s.ctx));
    nib_cli_json_set_str(o, "isa", nib_model_isa(b->s.model));
    json_object_set_new(o, "tok_s", list);
    nib_cli_json_set_real(o, "mean", f->mean);
    nib_cli_json_set_real(o, "deviation", f->deviation);
    nib_cli_json_set_int(o, "macs_per_token", (int64_t)f->macs);
    nib_cli_json_set_int(o, "bytes_per_token", (int64_t)f->bytes);
    nib_cli_json_set_real(o, "gb_s", f->bytes * f->mean / 1e9);
    nib_cli_json_set_real(o, "gmac_s", f->macs * f->mean / 1e9);
    if (f->bound > 0) {
        nib_cli_json_set_real(o, "share", f->bound * f->mean);
        nib_cli_json_set_str(o, "bound", f->is_read ? "read" : "macs");
    }
    if (b->energy.n) nib_cli_json_set_real(o, "j_per_token", joules);
    json_array_append_new(b->results, o);
}

static nib_status run_test(bench_state *b, bench_test test, nib_error *err) {
    const nib_cli_options *opt = b->s.opt;
    double warm_up;
    char name[64];
    if (!test.n_tokens) return NIB_OK;
    NIB_TRY(fill_to_depth(b, test, err));
    NIB_TRY(run_once(b, test, &warm_up, err));
    b->joules = 0;
    for (uint32_t r = 0; r < opt->repetitions; r++) NIB_TRY(run_once(b, test, &b->tok_s[r], err));
    figures f = compute(b, test);
    double joules = b->joules / ((double)opt->repetitions * test.n_tokens * test.n_seq);
    name_of(test, name, sizeof name);
    if (opt->json)
        keep_result(b, name, test, &f, joules);
    else
        print_result(b, name, &f, joules);
    return NIB_OK;
}

static nib_status run_tests(bench_state *b, nib_error *err) {
    const nib_cli_options *opt = b->s.opt;
    const uint32_t *depth = opt->bench_depth.items, *n = opt->bench_prompt.items, *batch = opt->bench_batch.items;
    for (size_t d = 0; d < opt->bench_depth.n; d++) {
        for (size_t i = 0; i < opt->bench_prompt.n; i++) NIB_TRY(run_test(b, (bench_test){true, n[i], depth[d], 1}, err));
        const uint32_t *gen = opt->bench_gen.items;
        for (size_t i = 0; i < opt->bench_gen.n; i++)
            for (size_t k = 0; k < opt->bench_batch.n; k++)
                NIB_TRY(run_test(b, (bench_test){false, gen[i], depth[d], batch[k]}, err));
    }
    return NIB_OK;
}

/* Positions that the longest of the tests needs, in whole pages for each sequence. */
static nib_status count_positions(const nib_cli_options *opt, uint32_t *n_ctx, nib_error *err) {
    uint64_t depth = largest(&opt->bench_depth, 0), n_gen = largest(&opt->bench_gen, 0);
    uint64_t one = depth + largest(&opt->bench_prompt, 0), all = (depth + n_gen + 31) / 32 * 32 * largest(&opt->bench_batch, 1);
    if (all < one) all = one;
    if (all > 1u << 28)
        return nib_fail(err, NIB_E_ARG, "these tests need a context of %llu positions, %u is the most", (unsigned long long)all,
                        1u << 28);
    *n_ctx = (uint32_t)all;
    return NIB_OK;
}

/* All tests with a number of threads, 0: as many as nib would take. */
static nib_status with_threads(bench_state *b, uint32_t n_threads, nib_error *err) {
    nib_context_config config = nib_cli_context_config(b->s.opt);
    config.n_ctx = b->n_ctx;
    config.n_seq = largest(&b->s.opt->bench_batch, 1);
    config.n_threads = (int)n_threads;
    if (config.n_batch < config.n_seq) config.n_batch = config.n_seq;
    NIB_TRY(nib_cli_session_context(&b->s, &config, err));
    nib_status status = run_tests(b, err);
    nib_cli_session_end_context(&b->s);
    return status;
}

static nib_status prepare(bench_state *b, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    uint32_t n_max = largest(&opt->bench_gen, largest(&opt->bench_prompt, 0));
    if (n_max == 0) return nib_fail(err, NIB_E_ARG, "nothing to measure: -p or -n must be above 0");
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(count_positions(opt, &b->n_ctx, err));
    NIB_TRY(nib_cli_session_file(&b->s, opt, term, opt->model, err));
    NIB_TRY(nib_cli_limits_get(&b->limits, (int)largest(&opt->bench_threads, 0), NIB_CLI_LIMITS_NEEDED, term, err));
    NIB_TRY(nib_cli_session_model(&b->s, err));
    n_max += largest(&opt->bench_depth, 0);
    b->ids = nib_calloc(n_max, sizeof *b->ids);
    b->tok_s = nib_calloc(opt->repetitions, sizeof *b->tok_s);
    if (!b->ids || !b->tok_s) return nib_fail_nomem(err, n_max * sizeof *b->ids, "the tokens of the test");
    uint32_t random = 1; /* the same ids every time, spread over the vocabulary */
    for (uint32_t i = 0; i < n_max; i++) {
        random = random * 1664525u + 1013904223u;
        b->ids[i] = (nib_token)((random >> 8) % nib_model_n_vocab(b->s.model));
    }
    nib_cli_energy_open(&b->energy, "/sys/class/powercap");
    return NIB_OK;
}

static nib_status bench(bench_state *b, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    const uint32_t *threads = opt->bench_threads.items;
    if (opt->server) return nib_cli_bench_serve(&b->out, opt, term, err);
    NIB_TRY(nib_cli_api_check(opt, NULL, err));
    if (opt->kernels) return nib_cli_bench_kernels(&b->out, opt, err);
    NIB_TRY(prepare(b, opt, term, err));
    b->results = json_array();
    if (!opt->json)
        nib_cli_out_printf(&b->out, "%s\n%7s  %-20s %21s %9s %9s  %s%s\n", nib_model_isa(b->s.model), "threads", "test",
                           "tokens/s", "GB/s", "GMAC/s", "of the limit", b->energy.n ? "    J/token" : "");
    for (size_t i = 0; i < opt->bench_threads.n; i++) NIB_TRY(with_threads(b, threads[i], err));
    if (opt->json) nib_cli_json_write(&b->out, json_incref(b->results));
    return NIB_OK;
}

int nib_cli_cmd_bench(const nib_cli_options *opt, const nib_cli_term *term) {
    bench_state b = {0};
    nib_error err;
    nib_cli_out_open(&b.out);
    int status = bench(&b, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    json_decref(b.results);
    nib_cli_limits_free(&b.limits);
    nib_free(b.ids);
    nib_free(b.tok_s);
    nib_cli_session_close(&b.s);
    return nib_cli_out_close(&b.out, term, status);
}
