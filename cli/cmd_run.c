/* cli/cmd_run.c - nib run: a text in -> the text and its continuation out, as it comes.
 * stdout carries the text and nothing else; with --json one object at the end. */
#include "base/status.h"
#include "constraint.h"
#include "generate.h"
#include "glyph.h"
#include "input.h"
#include "prompt.h"
#include "sampling.h"
#include "signals.h"
#include "stats.h"
#include "stops.h"

#include <string.h>

typedef struct run_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf prompt;
    nib_cli_stops stops;
    nib_token_list ids; /* of the prompt */
    nib_cli_constraint constraint;
    nib_sampler *sampler;
    nib_cli_generation g;
    nib_buf text; /* of the continuation, for --json */
    bool prompt_written;
} run_state;

/* Text goes out as it is, but a terminal gets nothing that it would obey. */
static void put(run_state *r, nib_str text) {
    if (!r->s.term->out_is_terminal) {
        nib_cli_out_write(&r->out, text);
        return;
    }
    nib_buf shown = {0};
    nib_cli_glyph_show(&shown, text);
    nib_cli_out_write(&r->out, nib_cli_bytes(&shown));
    nib_buf_free(&shown);
}

/* The prompt appears with the first text after it: until then the bar may need the line. */
static void write_prompt(run_state *r) {
    const nib_cli_options *opt = r->s.opt;
    bool color = r->s.term->out_color && r->prompt.len;
    if (r->prompt_written || !opt->display_prompt || opt->json) return;
    r->prompt_written = true;
    if (color) nib_cli_out_puts(&r->out, "\033[33m");
    put(r, nib_cli_bytes(&r->prompt));
    if (color) nib_cli_out_puts(&r->out, "\033[0m");
}

static bool write_text(void *user, nib_str text) {
    run_state *r = user;
    if (r->s.opt->json) return nib_buf_append(&r->text, text.ptr, text.len);
    write_prompt(r);
    put(r, text);
    if (r->out.is_live) nib_cli_out_flush(&r->out);
    return !r->out.error;
}

static json_t *logprobs_json(const run_state *r) {
    const nib_cli_generation *g = &r->g;
    const float *logprobs = g->logprobs.items;
    const nib_logprob *tops = g->tops.items;
    size_t n_top = g->logprobs.n ? g->tops.n / g->logprobs.n : 0;
    json_t *list = json_array();
    for (size_t i = 0; i < g->logprobs.n; i++) {
        json_t *item = json_object();
        nib_cli_json_set_int(item, "id", g->ids.ids[i]);
        nib_cli_json_set_real(item, "logprob", (double)logprobs[i]);
        json_object_set_new(item, "top", nib_cli_json_logprobs(tops + i * n_top, n_top));
        json_array_append_new(list, item);
    }
    return list;
}

static void write_json(run_state *r, bool with_logprobs) {
    const nib_cli_options *opt = r->s.opt;
    const nib_str *stops = r->stops.list.items;
    json_t *o = json_object();
    nib_cli_json_set_str(o, "model", opt->model);
    json_object_set_new(o, "prompt_ids", nib_cli_json_ids(r->ids.ids, r->ids.n));
    json_object_set_new(o, "ids", nib_cli_json_ids(r->g.ids.ids, r->g.ids.n));
    json_object_set_new(o, "text", nib_cli_json_str(nib_cli_bytes(&r->text)));
    nib_cli_json_set_str(o, "finish_reason", r->g.finish_reason);
    json_object_set_new(o, "stop", r->g.stop < 0 ? json_null() : nib_cli_json_str(stops[r->g.stop]));
    nib_cli_json_set_int(o, "seed", nib_sampler_seed(r->sampler));
    json_object_set_new(o, "logprobs", with_logprobs ? logprobs_json(r) : json_null());
    if (opt->logits_hash) json_object_set_new(o, "logits_hash", nib_cli_json_hash(r->s.logits_hash));
    json_object_set_new(o, "timings", nib_cli_stats_json(&r->s, &r->g));
    nib_cli_json_write(&r->out, o);
}

static nib_status run(run_state *r, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    bool with_logprobs = nib_cli_given(opt, offsetof(nib_cli_options, n_logprobs));
    if (with_logprobs && !opt->json) return nib_fail(err, NIB_E_ARG, "--logprobs needs --json to be printed in");
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_sampling_check(opt, err));
    NIB_TRY(nib_cli_input_read(opt, &r->prompt, err));
    NIB_TRY(nib_cli_constraint_read(&r->constraint, opt, err));
    NIB_TRY(nib_cli_session_open(&r->s, opt, term, err));
    NIB_TRY(nib_cli_prompt_ids(&r->s, nib_cli_bytes(&r->prompt), &r->ids, err));
    NIB_TRY(nib_cli_stops_make(&r->stops, opt, err));
    NIB_TRY(nib_cli_constraint_text(&r->constraint, r->s.tok, err));
    NIB_TRY(nib_cli_session_model(&r->s, err));
    NIB_TRY(nib_cli_sampler_new(&r->sampler, &r->s, err));
    nib_context_config config = nib_cli_context_config(opt);
    NIB_TRY(nib_cli_session_context(&r->s, &config, err));
    nib_cli_generate_params params = {
        .prompt = r->ids.ids, .n_prompt = r->ids.n, .n_predict = opt->n_predict, .stops = r->stops.list.items,
        .n_stops = r->stops.list.n, .n_top = opt->n_logprobs, .keep_logprobs = with_logprobs, .special = opt->special,
        .matcher = r->constraint.matcher, .jump_ahead = opt->jump_ahead, .write = write_text, .user = r,
    };
    NIB_TRY(nib_cli_generate(&r->s, r->sampler, &params, &r->g, err));
    if (r->constraint.matcher && !nib_matcher_may_end(r->constraint.matcher))
        nib_cli_warning(term, "the text was cut (%s) before it matched the grammar", r->g.finish_reason);
    write_prompt(r); /* if nothing followed it */
    if (opt->json) write_json(r, with_logprobs);
    return NIB_OK;
}

int nib_cli_cmd_run(const nib_cli_options *opt, const nib_cli_term *term) {
    run_state r = {0};
    nib_error err;
    nib_cli_out_open(&r.out);
    nib_status code = run(&r, opt, term, &err);
    if (term->out_is_terminal && r.prompt_written) nib_cli_out_puts(&r.out, "\n");
    nib_cli_out_flush(&r.out);
    int status = code == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (nib_cli_interrupted()) status = 128 + nib_cli_interrupted();
    if (code == NIB_OK && !r.out.error) {
        bool stats_given = nib_cli_given(opt, offsetof(nib_cli_options, stats));
        if (stats_given ? opt->stats : term->err_is_terminal && !opt->json) nib_cli_stats_print(&r.s, &r.g);
        nib_cli_print_hash(&r.s);
    }
    nib_cli_generation_free(&r.g);
    nib_sampler_free(r.sampler);
    nib_cli_constraint_free(&r.constraint);
    nib_token_list_free(&r.ids);
    nib_cli_stops_free(&r.stops);
    nib_buf_free(&r.prompt);
    nib_buf_free(&r.text);
    nib_cli_session_close(&r.s);
    return nib_cli_out_close(&r.out, term, status);
}
