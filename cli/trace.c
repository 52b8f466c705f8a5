/* cli/trace.c - the record of one token's journey in -> numbered, readable parts or JSON out. Called by cmd_trace.c. */
#include "trace.h"

#include "tokens.h"

#include <math.h>
#include <string.h>

/* ---- for people */

static void heading(nib_cli_out *out, const nib_cli_session *s, const char *name, const char *what) {
    bool color = s->term->out_color;
    nib_cli_out_printf(out, "%s%-9s%s %s\n", color ? "\033[1m" : "", name, color ? "\033[0m" : "", what);
}

static void print_token(nib_cli_out *out, const nib_cli_session *s, const nib_logprob *candidate) {
    nib_buf text = {0};
    nib_cli_token_quoted(&text, s->tok, candidate->id);
    nib_cli_out_printf(out, "  %8d  %9.4f  %6.2f %%  %s\n", candidate->id, (double)candidate->logprob,
                       100 * exp((double)candidate->logprob), nib_buf_cstr(&text));
    nib_buf_free(&text);
}

void nib_cli_trace_print_prompt(nib_cli_out *out, const nib_cli_session *s, nib_str text, const nib_token_list *ids) {
    nib_buf line = {0};
    nib_buf_printf(&line, "%zu bytes: ", text.len);
    nib_cli_escaped(&line, text);
    heading(out, s, "text", nib_buf_cstr(&line));
    line.len = 0;
    nib_buf_printf(&line, "%zu tokens (%s %s)", ids->n, nib_tokenizer_kind(s->tok), nib_tokenizer_pre(s->tok));
    heading(out, s, "ids", nib_buf_cstr(&line));
    for (size_t i = 0; i < ids->n; i++) {
        line.len = 0;
        nib_cli_token_line(&line, s->tok, ids->ids[i]);
        nib_cli_out_printf(out, "  %s\n", nib_buf_cstr(&line));
    }
    nib_buf_free(&line);
}

/* What a step did in its time: the share of the bound is of reading or of multiplying, whichever takes longer at best. */
typedef struct speed {
    nib_cli_work work;
    double gb_s, gmac_s, bound_ms; /* 0: not known, or nothing worth a bound */
    bool is_read;
} speed;

static speed speed_of(const nib_cli_session *s, const nib_cli_limit *limit, nib_cli_work work, double ms) {
    const char *isa = nib_model_isa(s->model);
    speed out = {.work = work, .bound_ms = 1e3 * nib_cli_bound(&work, limit, isa)};
    out.is_read = nib_cli_bound_is_read(&work, limit, isa);
    if (ms > 0) out.gb_s = work.bytes / 1e6 / ms;
    if (ms > 0) out.gmac_s = nib_cli_work_macs(&work) / 1e6 / ms;
    return out;
}

/* "  12.34 GB/s  83 %": the unit of the bound. */
static void print_speed(nib_cli_out *out, const speed *v, double ms) {
    if (nib_cli_work_macs(&v->work) <= 0) return; /* a norm's few bytes tell nothing */
    bool shows_read = v->bound_ms > 0 ? v->is_read : false;
    nib_cli_out_printf(out, "  %9.2f %-6s", shows_read ? v->gb_s : v->gmac_s, shows_read ? "GB/s" : "GMAC/s");
    if (v->bound_ms > 0 && ms > 0) nib_cli_out_printf(out, " %5.1f%%", 100 * v->bound_ms / ms);
}

/* What a token costs besides computing: threads that wait at barriers, choosing the id, and what is neither. */
typedef struct outside {
    double barrier_ms, rest_ms, share;
} outside;

static outside outside_of(const nib_cli_trace_token *t) {
    const double *ms = t->step_ms.items, *wait = t->wait_ms.items;
    outside o = {.rest_ms = t->batch_ms};
    for (size_t i = 0; i < t->step_ms.n; i++) {
        o.barrier_ms += wait[i];
        o.rest_ms -= ms[i];
    }
    o.share = (o.barrier_ms + t->sample_ms + o.rest_ms) / (t->batch_ms + t->sample_ms);
    return o;
}

static void print_steps(nib_cli_out *out, const nib_cli_session *s, const nib_cli_trace_token *t) {
    const double *ms = t->step_ms.items;
    double total = 0;
    nib_cli_work all = nib_cli_plan_work(s->model, t->shape, t->cache);
    nib_cli_limit limit = nib_cli_limit_of_set(t->limit, all.bytes);
    char line[128];
    for (size_t i = 0; i < t->step_ms.n; i++) total += ms[i];
    snprintf(line, sizeof line, "%zu steps; rows x width in -> width out", t->step_ms.n);
    heading(out, s, "plan", line);
    nib_cli_out_printf(out, "  %4s  %-10s %-20s %-6s %-20s %11s %10s %8s %6s  %16s %s\n", "step", "op", "name", "type", "shape",
                       "bytes", "MMACs", "ms", "share", "speed", t->limit->n_threads ? "of the limit" : "");
    for (size_t i = 0; i < t->step_ms.n; i++) {
        nib_step_info step;
        if (nib_model_step(s->model, i, &step) != NIB_OK) continue;
        snprintf(line, sizeof line, "%llu x %llu -> %llu", (unsigned long long)nib_cli_step_rows(&step, t->shape),
                 (unsigned long long)step.n_in, (unsigned long long)step.n_out);
        speed v = speed_of(s, &limit, nib_cli_step_work(&step, t->shape, t->cache), ms[i]);
        nib_cli_out_printf(out, "  %4zu  %-10s %-20s %-6s %-20s %11llu %10.3f %8.3f %5.1f%%", i, step.op, step.name,
                           step.type, line, (unsigned long long)v.work.bytes, nib_cli_work_macs(&v.work) / 1e6, ms[i],
                           total > 0 ? 100 * ms[i] / total : 0);
        print_speed(out, &v, ms[i]);
        nib_cli_out_puts(out, "\n");
    }
    speed v = speed_of(s, &limit, all, t->batch_ms);
    nib_cli_out_printf(out, "  %-65s %11llu %10.3f %8.3f\n", "all steps", (unsigned long long)all.bytes,
                       nib_cli_work_macs(&all) / 1e6, total);
    nib_cli_out_printf(out, "  the whole batch took %.3f ms: %.2f GB/s, %.2f billion MACs/s", t->batch_ms, v.gb_s, v.gmac_s);
    if (v.bound_ms > 0)
        nib_cli_out_printf(out, "; the limit of %s allows %.3f ms, %.1f %%", v.is_read ? "reading" : "arithmetic", v.bound_ms,
                           100 * v.bound_ms / t->batch_ms);
    outside o = outside_of(t);
    nib_cli_out_printf(out, "\n  besides: threads waited %.3f ms at barriers, ", o.barrier_ms);
    nib_cli_out_printf(out, "sampling took %.3f ms, the rest %.3f ms: %.1f %% of the token\n", t->sample_ms, o.rest_ms, 100 * o.share);
}

static void print_samplers(nib_cli_out *out, const nib_cli_session *s, const nib_cli_trace_token *t) {
    const nib_cli_trace_sampler *samplers = t->samplers.items;
    enum { SHOWN = 4 };
    heading(out, s, "sampling", "each sampler: candidates before -> after, and the best that are left");
    for (size_t i = 0; i < t->samplers.n; i++) {
        nib_buf line = {0};
        nib_buf_printf(&line, "  %-12s %7u -> %7u ", samplers[i].name, samplers[i].n_before, samplers[i].n_after);
        for (uint32_t k = 0; k < samplers[i].n && k < SHOWN; k++) {
            nib_buf_char(&line, ' ');
            nib_cli_token_quoted(&line, s->tok, samplers[i].candidates[k].id);
            nib_buf_printf(&line, " %.3f", (double)samplers[i].candidates[k].logprob);
        }
        if (samplers[i].n_after > SHOWN) nib_buf_str(&line, " ...");
        nib_cli_out_printf(out, "%s\n", nib_buf_cstr(&line));
        nib_buf_free(&line);
    }
}

void nib_cli_trace_print(nib_cli_out *out, const nib_cli_session *s, const nib_cli_trace_token *t) {
    char line[160];
    unsigned long long first = t->shape.past, last = t->shape.past + t->shape.n_tok - 1;
    snprintf(line, sizeof line, "%llu token%s of sequence 0 at positions %llu to %llu, logits for the last",
             (unsigned long long)t->shape.n_tok, t->shape.n_tok == 1 ? "" : "s", first, last);
    heading(out, s, "batch", line);
    print_steps(out, s, t);
    snprintf(line, sizeof line, "%u values, hash %016llx; the best: id, log-probability, probability, text",
             nib_model_n_vocab(s->model), (unsigned long long)t->logits_hash);
    heading(out, s, "logits", line);
    for (uint32_t i = 0; i < t->n_top; i++) print_token(out, s, &t->top[i]);
    print_samplers(out, s, t);
    snprintf(line, sizeof line, "for position %llu", last + 1);
    heading(out, s, "chosen", line);
    print_token(out, s, &(nib_logprob){t->id, t->logprob});
    nib_buf shown = {0};
    nib_buf_printf(&shown, "%zu bytes: ", t->text.len);
    nib_cli_escaped(&shown, nib_cli_bytes(&t->text));
    heading(out, s, "text", nib_buf_cstr(&shown));
    nib_buf_free(&shown);
}

/* ---- JSON */

static json_t *steps_json(const nib_cli_session *s, const nib_cli_trace_token *t) {
    const double *ms = t->step_ms.items, *wait = t->wait_ms.items;
    double total = 0;
    for (size_t i = 0; i < t->step_ms.n; i++) total += ms[i];
    nib_cli_limit limit = nib_cli_limit_of_set(t->limit, nib_cli_plan_work(s->model, t->shape, t->cache).bytes);
    json_t *list = json_array();
    for (size_t i = 0; i < t->step_ms.n; i++) {
        nib_step_info step;
        if (nib_model_step(s->model, i, &step) != NIB_OK) continue;
        json_t *o = json_object();
        nib_cli_json_set_str(o, "op", step.op);
        nib_cli_json_set_str(o, "name", step.name);
        nib_cli_json_set_str(o, "type", step.type);
        nib_cli_json_set_int(o, "layer", step.layer);
        nib_cli_json_set_int(o, "rows", nib_cli_step_rows(&step, t->shape));
        nib_cli_json_set_int(o, "n_in", step.n_in);
        nib_cli_json_set_int(o, "n_out", step.n_out);
        speed v = speed_of(s, &limit, nib_cli_step_work(&step, t->shape, t->cache), ms[i]);
        nib_cli_json_set_int(o, "bytes", (int64_t)v.work.bytes);
        nib_cli_json_set_int(o, "macs", nib_cli_step_macs(&step, t->shape));
        nib_cli_json_set_real(o, "ms", ms[i]);
        nib_cli_json_set_real(o, "wait_ms", wait[i]);
        nib_cli_json_set_real(o, "gb_s", v.gb_s);
        nib_cli_json_set_real(o, "gmac_s", v.gmac_s);
        if (v.bound_ms > 0 && ms[i] > 0) {
            nib_cli_json_set_real(o, "share_of_limit", v.bound_ms / ms[i]);
            nib_cli_json_set_str(o, "bound", v.is_read ? "read" : "macs");
        }
        nib_cli_json_set_real(o, "share", total > 0 ? ms[i] / total : 0);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *samplers_json(const nib_cli_trace_token *t) {
    const nib_cli_trace_sampler *samplers = t->samplers.items;
    json_t *list = json_array();
    for (size_t i = 0; i < t->samplers.n; i++) {
        json_t *o = json_object();
        nib_cli_json_set_str(o, "name", samplers[i].name);
        nib_cli_json_set_int(o, "before", samplers[i].n_before);
        nib_cli_json_set_int(o, "after", samplers[i].n_after);
        json_object_set_new(o, "best", nib_cli_json_logprobs(samplers[i].candidates, samplers[i].n));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *nib_cli_trace_json(const nib_cli_session *s, const nib_cli_trace_token *t) {
    json_t *o = json_object();
    json_object_set_new(o, "batch", nib_cli_json_ids(t->ids, (size_t)t->shape.n_tok));
    nib_cli_json_set_int(o, "position", t->shape.past);
    nib_cli_json_set_real(o, "ms", t->batch_ms);
    outside out = outside_of(t);
    nib_cli_json_set_real(o, "barrier_ms", out.barrier_ms);
    nib_cli_json_set_real(o, "sample_ms", t->sample_ms);
    nib_cli_json_set_real(o, "rest_ms", out.rest_ms);
    nib_cli_json_set_real(o, "share_outside", out.share);
    json_object_set_new(o, "steps", steps_json(s, t));
    json_object_set_new(o, "logits_hash", nib_cli_json_hash(t->logits_hash));
    json_object_set_new(o, "top", nib_cli_json_logprobs(t->top, t->n_top));
    json_object_set_new(o, "samplers", samplers_json(t));
    nib_cli_json_set_int(o, "id", t->id);
    nib_cli_json_set_real(o, "logprob", (double)t->logprob);
    json_object_set_new(o, "text", nib_cli_json_str(nib_cli_bytes(&t->text)));
    return o;
}
