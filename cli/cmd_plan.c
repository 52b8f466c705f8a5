/* cli/cmd_plan.c - nib plan: what a model will take before it is run: memory, time to the first token (TTFT), time per
 * token after it (TPOT), tokens a second. Weights are not read; the times come from the plan's steps and from what the
 * kernels reach on this machine (calibrate.h). Next to them stands what the limits allow at best. */
#include "base/status.h"
#include "calibrate.h"
#include "session.h"

typedef struct prediction {
    uint64_t weight_bytes, kv_bytes, buffer_bytes;
    double ttft, ttft_last, tpot;     /* seconds: of the first of the sequences, of the last, a step of all */
    double best_ttft, best_tpot;      /* what the limits allow */
} prediction;

typedef struct plan_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_cli_limits limits;
    nib_cli_calibration *calibration;
    int n_threads;
} plan_state;

/* The prompt in parts of n_ubatch, as nib_decode runs it; only the last row of the last part wants logits. */
static void predict_prefill(const plan_state *p, const nib_cli_limit *limit, prediction *out) {
    const nib_cli_options *opt = p->s.opt;
    const nib_model *model = p->s.model;
    nib_cli_cache cache = nib_cli_cache_of(model, opt->k_type, opt->v_type);
    for (uint32_t done = 0, n; done < opt->plan_prompt; done += n) {
        n = opt->plan_prompt - done < opt->n_ubatch ? opt->plan_prompt - done : opt->n_ubatch;
        nib_cli_batch_shape shape = {n, done + n == opt->plan_prompt, done, 1};
        nib_cli_work work = nib_cli_plan_work(model, shape, cache);
        out->ttft += nib_cli_calibration_seconds(p->calibration, shape);
        out->best_ttft += nib_cli_bound(&work, limit, nib_model_isa(model));
    }
    out->ttft_last = out->ttft * opt->plan_concurrency; /* prompts are read one after the other */
}

/* The step in the middle of the generation stands for all of them: attention grows evenly. */
static nib_cli_batch_shape decode_shape(const nib_cli_options *opt) {
    uint64_t n = opt->plan_concurrency;
    return (nib_cli_batch_shape){n, n, opt->plan_prompt + opt->plan_gen / 2, n};
}

static void predict_decode(const plan_state *p, const nib_cli_limit *limit, prediction *out) {
    const nib_cli_options *opt = p->s.opt;
    const nib_model *model = p->s.model;
    nib_cli_batch_shape shape = decode_shape(opt);
    nib_cli_work work = nib_cli_plan_work(model, shape, nib_cli_cache_of(model, opt->k_type, opt->v_type));
    out->tpot = nib_cli_calibration_seconds(p->calibration, shape);
    out->best_tpot = nib_cli_bound(&work, limit, nib_model_isa(model));
}

static void print(plan_state *p, const prediction *r) {
    const nib_cli_options *opt = p->s.opt;
    double n = opt->plan_concurrency;
    nib_cli_out_printf(&p->out, "model    %s, %s, %d threads; prompt %u, generation %u, %u at once\n",
                       nib_model_arch(p->s.model), nib_model_isa(p->s.model), p->n_threads, opt->plan_prompt, opt->plan_gen,
                       opt->plan_concurrency);
    nib_cli_out_printf(&p->out, "memory   %9.1f MiB: weights %.1f, KV cache %.1f (%s keys, %s values), activations %.1f\n",
                       (double)(r->weight_bytes + r->kv_bytes + r->buffer_bytes) / 0x1p20, (double)r->weight_bytes / 0x1p20,
                       (double)r->kv_bytes / 0x1p20, opt->k_type, opt->v_type, (double)r->buffer_bytes / 0x1p20);
    nib_cli_out_printf(&p->out, "TTFT     %9.1f ms, %.1f tokens/s of prefill; the limits allow %.1f ms\n", 1e3 * r->ttft,
                       opt->plan_prompt / r->ttft, 1e3 * r->best_ttft);
    if (opt->plan_concurrency > 1)
        nib_cli_out_printf(&p->out, "         %9.1f ms for the last of %u prompts\n", 1e3 * r->ttft_last,
                           opt->plan_concurrency);
    nib_cli_out_printf(&p->out, "TPOT     %9.2f ms, %.1f tokens/s in all; the limits allow %.2f ms, %.1f tokens/s\n",
                       1e3 * r->tpot, n / r->tpot, 1e3 * r->best_tpot, n / r->best_tpot);
    nib_cli_out_printf(&p->out, "total    %9.2f s\n", r->ttft_last + r->tpot * opt->plan_gen);
}

static json_t *to_json(const plan_state *p, const prediction *r) {
    const nib_cli_options *opt = p->s.opt;
    json_t *o = json_object();
    nib_cli_json_set_str(o, "arch", nib_model_arch(p->s.model));
    nib_cli_json_set_str(o, "isa", nib_model_isa(p->s.model));
    nib_cli_json_set_int(o, "threads", p->n_threads);
    nib_cli_json_set_int(o, "prompt", opt->plan_prompt);
    nib_cli_json_set_int(o, "gen", opt->plan_gen);
    nib_cli_json_set_int(o, "concurrency", opt->plan_concurrency);
    nib_cli_json_set_int(o, "weight_bytes", (int64_t)r->weight_bytes);
    nib_cli_json_set_int(o, "kv_bytes", (int64_t)r->kv_bytes);
    nib_cli_json_set_int(o, "buffer_bytes", (int64_t)r->buffer_bytes);
    nib_cli_json_set_real(o, "ttft_ms", 1e3 * r->ttft);
    nib_cli_json_set_real(o, "ttft_last_ms", 1e3 * r->ttft_last);
    nib_cli_json_set_real(o, "tpot_ms", 1e3 * r->tpot);
    nib_cli_json_set_real(o, "prefill_tok_s", opt->plan_prompt / r->ttft);
    nib_cli_json_set_real(o, "decode_tok_s", opt->plan_concurrency / r->tpot);
    json_object_set_new(o, "decode_ms", nib_cli_calibration_json(p->calibration, decode_shape(opt)));
    uint32_t first = opt->plan_prompt < opt->n_ubatch ? opt->plan_prompt : opt->n_ubatch; /* the first part of the prompt */
    json_object_set_new(o, "prefill_ms", nib_cli_calibration_json(p->calibration, (nib_cli_batch_shape){first, 1, 0, 1}));
    nib_cli_json_set_real(o, "best_ttft_ms", 1e3 * r->best_ttft);
    nib_cli_json_set_real(o, "best_tpot_ms", 1e3 * r->best_tpot);
    return o;
}

/* Sizes of a context that holds all sequences to their end. */
static nib_status predict_memory(plan_state *p, prediction *out, nib_error *err) {
    const nib_cli_options *opt = p->s.opt;
    uint64_t each = ((uint64_t)opt->plan_prompt + opt->plan_gen + 31) / 32 * 32, n_ctx = each * opt->plan_concurrency;
    if (n_ctx > 1u << 28)
        return nib_fail(err, NIB_E_ARG, "a context of %llu positions, %u is the most", (unsigned long long)n_ctx, 1u << 28);
    nib_context_config config = nib_cli_context_config(opt);
    config.n_ctx = (uint32_t)n_ctx;
    config.n_seq = opt->plan_concurrency;
    if (config.n_batch < config.n_seq) config.n_batch = config.n_seq;
    NIB_TRY(nib_cli_session_context(&p->s, &config, err));
    out->weight_bytes = nib_model_weight_bytes(p->s.model);
    out->kv_bytes = nib_context_kv_bytes(p->s.ctx);
    out->buffer_bytes = nib_context_buffer_bytes(p->s.ctx);
    p->n_threads = nib_context_n_threads(p->s.ctx);
    nib_cli_session_end_context(&p->s);
    return NIB_OK;
}

static nib_status plan(plan_state *p, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    prediction r = {0};
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_session_file(&p->s, opt, term, opt->model, err));
    p->s.plan_only = true;
    NIB_TRY(nib_cli_session_model(&p->s, err));
    NIB_TRY(predict_memory(p, &r, err));
    nib_cli_limits_how how = opt->refresh ? NIB_CLI_LIMITS_REFRESH : NIB_CLI_LIMITS_NEEDED;
    NIB_TRY(nib_cli_limits_get(&p->limits, p->n_threads, how, term, err));
    if (opt->refresh) json_object_clear(p->limits.kernels);
    nib_cli_calibration_config config = {p->s.model, p->n_threads, opt->k_type, opt->v_type, term};
    NIB_TRY(nib_cli_calibration_new(&p->calibration, &p->limits, &config, err));
    nib_cli_limit limit = nib_cli_limits_at(&p->limits, p->n_threads);
    predict_prefill(p, &limit, &r);
    predict_decode(p, &limit, &r);
    if (opt->json)
        nib_cli_json_write(&p->out, to_json(p, &r));
    else
        print(p, &r);
    return NIB_OK;
}

int nib_cli_cmd_plan(const nib_cli_options *opt, const nib_cli_term *term) {
    plan_state p = {0};
    nib_error err;
    nib_cli_out_open(&p.out);
    int status = plan(&p, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    nib_cli_calibration_free(p.calibration);
    nib_cli_limits_free(&p.limits);
    nib_cli_session_close(&p.s);
    return nib_cli_out_close(&p.out, term, status);
}
