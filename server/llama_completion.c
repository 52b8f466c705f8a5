/* server/llama_completion.c - POST /completion: llama-server's own request for texts that go on, and its answer. */
#include "base/mem.h"
#include "base/status.h"
#include "dialect.h"
#include "internal.h"
#include "llama.h"
#include "openai.h"
#include "prepare.h"
#include "routes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the request */

/* [12, "text", 34]: one prompt of several parts. */
static nib_status read_mixed(nib_server_ask *ask, const char *name, const json_t *parts, nib_server_fault *fault) {
    NIB_TRY(nib_server_ask_add_text(ask, (nib_str){0}, fault));
    nib_server_prompt *prompt = &ask->prompts[ask->n_prompts - 1];
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        nib_str text = nib_server_json_text(part);
        int64_t id;
        if (json_is_string(part)) {
            unsigned flags = NIB_PARSE_SPECIAL | (i == 0 ? NIB_ADD_SPECIAL : 0u);
            NIB_TRY(nib_server_prepare_tokens(ask, prompt, text, flags, fault));
            continue;
        }
        NIB_TRY(nib_server_fields_integer(part, name, 0, nib_model_n_vocab(ask->server->model.model) - 1, &id, fault));
        if (!nib_grow(&prompt->ids.ids, &prompt->ids.capacity, prompt->ids.n + 1, sizeof *prompt->ids.ids))
            return nib_server_fail(fault, 503, "out_of_memory", "out of memory for a prompt");
        prompt->ids.ids[prompt->ids.n++] = (nib_token)id;
    }
    return NIB_OK;
}

static nib_status read_prompt(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    bool has_text = false, has_ids = false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        has_text |= json_is_string(json_array_get(value, i));
        has_ids |= json_is_number(json_array_get(value, i));
    }
    if (json_is_object(value)) value = json_object_get(value, "prompt_string");
    if (!value) return nib_server_refuse(fault, name, "%s.prompt_string is missing: nib reads text only", name);
    return has_text && has_ids ? read_mixed(ask, name, value, fault) : nib_server_openai_prompts(ask, name, value, fault);
}

static nib_status read_max(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, -2, INT32_MAX, &n, fault));
    ask->max_tokens = n < 0 ? 0 : (uint32_t)n;
    ask->only_prompt = n == 0; /* only the cache is filled */
    return NIB_OK;
}

static nib_status read_probs(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 0, 1000, &n, fault));
    ask->n_top = (uint32_t)n;
    ask->logprobs |= n > 0;
    return NIB_OK;
}

static nib_status read_return_tokens(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    bool is_wanted;
    NIB_TRY(nib_server_fields_bool(value, name, &is_wanted, fault));
    ask->logprobs |= is_wanted; /* tokens are kept with them */
    return NIB_OK;
}

/* [[id, bias], [id, false], ["text", bias]], or OpenAI's object. */
static nib_status read_bias(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (json_is_object(value)) return nib_server_openai_bias(ask, name, value, fault);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *pair = json_array_get(value, i), *what = json_array_get(pair, 0), *how = json_array_get(pair, 1);
        nib_token_list ids = {0};
        nib_str text = nib_server_json_text(what);
        double bias = -INFINITY;
        int64_t id = 0;
        nib_status status = NIB_OK;
        if (json_array_size(pair) != 2) return nib_server_refuse(fault, name, "%s[%zu] is no pair", name, i);
        if (!json_is_false(how)) NIB_TRY(nib_server_fields_number(how, name, -1e9, 1e9, &bias, fault));
        if (!json_is_string(what)) {
            NIB_TRY(nib_server_fields_integer(what, name, 0, nib_model_n_vocab(ask->server->model.model) - 1, &id, fault));
            NIB_TRY(nib_server_ask_add_bias(ask, (nib_token)id, (float)bias, fault));
            continue;
        }
        if (nib_tokenize(ask->server->model.tok, text.ptr, text.len, 0, &ids, NULL) != NIB_OK)
            return nib_server_refuse(fault, name, "%s[%zu] does not become tokens", name, i);
        for (size_t k = 0; k < ids.n && status == NIB_OK; k++) status = nib_server_ask_add_bias(ask, ids.ids[k], (float)bias, fault);
        nib_token_list_free(&ids);
        NIB_TRY(status);
    }
    return json_is_array(value) ? NIB_OK : nib_server_refuse(fault, name, "%s is %s, expected a list of pairs", name,
                                                             nib_server_fields_kind_of(value));
}

/* A list of names, which becomes a chain that the body keeps. */
static nib_status read_samplers(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    nib_buf chain = {0};
    bool is_list = json_is_array(value) || json_is_string(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        nib_str word = nib_server_json_text(json_array_get(value, i));
        is_list = is_list && word.ptr;
        if (i) nib_buf_char(&chain, ';');
        nib_buf_append(&chain, word.ptr, word.len);
    }
    json_t *joined = json_is_string(value) ? json_copy((json_t *)(uintptr_t)value) : nib_server_json_str((nib_str){chain.ptr, chain.len});
    nib_buf_free(&chain);
    json_object_set_new(ask->body, "samplers", joined);
    ask->chain = json_string_value(joined);
    return is_list ? NIB_OK : nib_server_refuse(fault, name, "%s is no list of names", name);
}

static nib_status read_response_fields(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *path;
    (void)ask;
    if (!json_is_array(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a list of strings", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) NIB_TRY(nib_server_fields_string(json_array_get(value, i), name, &path, fault));
    return NIB_OK;
}

static const nib_server_field fields[] = {
    NIB_SERVER_FIELD_BY("prompt", read_prompt),
    NIB_SERVER_FIELD_BY("n_predict", read_max),
    NIB_SERVER_FIELD_BY("max_tokens", read_max),
    NIB_SERVER_FIELD("n_cmpl", UINT, n, 1, 128),
    NIB_SERVER_FIELD("temperature", FLOAT, sampling.temp, -1e9, 1e9),
    NIB_SERVER_FIELD("top_p", FLOAT, sampling.top_p, 0, 1e9),
    NIB_SERVER_FIELD_BY("n_probs", read_probs),
    NIB_SERVER_FIELD_BY("return_tokens", read_return_tokens),
    NIB_SERVER_FIELD_BY("logit_bias", read_bias),
    NIB_SERVER_FIELD_BY("samplers", read_samplers),
    NIB_SERVER_FIELD_BY("response_fields", read_response_fields),
    NIB_SERVER_FIELD_UNUSED("id_slot"),
    NIB_SERVER_FIELD_UNUSED("n_keep"),
    NIB_SERVER_FIELD_UNUSED("n_discard"),
    NIB_SERVER_FIELD_UNUSED("n_cache_reuse"),
    NIB_SERVER_FIELD_UNUSED("timings_per_token"),
    NIB_SERVER_FIELD_UNUSED("return_progress"),
    NIB_SERVER_FIELD_UNUSED("sse_ping_interval"),
    NIB_SERVER_FIELD_UNUSED("api_key"),
    NIB_SERVER_FIELD_ABSENT("n_indent", "lines have no least indentation"),
    NIB_SERVER_FIELD_ABSENT("post_sampling_probs", "probabilities are those before sampling"),
    NIB_SERVER_FIELD_ABSENT("t_max_predict_ms", "the server's limits of time hold"),
    NIB_SERVER_FIELD_ABSENT("image_data", "nib reads text only"),
    NIB_SERVER_FIELD_ABSENT("lora", "there are no adapters"),
    {0},
};

static nib_status read_ask(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {fields, nib_server_llama_sampling_fields, nib_server_openai_fields, NULL};
    ask->sampling = (nib_sampler_params)NIB_SAMPLER_PARAMS_INIT; /* llama.cpp's defaults, not OpenAI's */
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    return ask->n_prompts ? NIB_OK : nib_server_refuse(fault, "prompt", "prompt is missing, expected a string or a list");
}

/* ---- the answer */

static double per(double n, double d) {
    return d > 0 ? n / d : 0;
}

json_t *nib_server_llama_timings(const nib_server_choice *c) {
    const nib_usage *u = &c->usage;
    double n_prompt = u->n_prompt - u->n_cached, n = u->n_generated;
    double prompt_ms = u->ttft_ms - u->queue_ms, ms = u->total_ms - u->ttft_ms;
    json_t *o = json_object();
    json_object_set_new(o, "cache_n", json_integer(u->n_cached));
    json_object_set_new(o, "prompt_n", json_integer((json_int_t)n_prompt));
    json_object_set_new(o, "prompt_ms", nib_server_json_number(prompt_ms));
    json_object_set_new(o, "prompt_per_token_ms", nib_server_json_number(per(prompt_ms, n_prompt)));
    json_object_set_new(o, "prompt_per_second", nib_server_json_number(per(1e3 * n_prompt, prompt_ms)));
    json_object_set_new(o, "predicted_n", json_integer(u->n_generated));
    json_object_set_new(o, "predicted_ms", nib_server_json_number(ms));
    json_object_set_new(o, "predicted_per_token_ms", nib_server_json_number(per(ms, n)));
    json_object_set_new(o, "predicted_per_second", nib_server_json_number(per(1e3 * n, ms)));
    return o;
}

/* Tokens from `first` on: their ids, and what was asked for of their probabilities. */
static void set_tokens(json_t *o, const nib_server_choice *c, size_t first) {
    json_t *ids = json_array(), *probs = json_array();
    bool returns_ids = json_is_true(json_object_get(c->answer->ask.body, "return_tokens"));
    for (size_t i = first; i < c->n_tokens; i++) {
        if (returns_ids) json_array_append_new(ids, json_integer(c->tokens[i].id));
        if (c->answer->ask.n_top) json_array_append_new(probs, nib_server_openai_logprobs(c, i, true));
    }
    json_object_set_new(o, "tokens", ids);
    if (c->answer->ask.n_top) json_object_set(o, "completion_probabilities", probs);
    json_decref(probs);
}

static const char *stop_type(const nib_server_choice *c) {
    if (c->finish == NIB_SERVER_FINISH_STOP) return c->stop >= 0 ? "word" : "eos";
    return c->finish == NIB_SERVER_FINISH_LENGTH ? "limit" : "none";
}

static json_t *settings_json(const nib_server_ask *ask) {
    const nib_sampler_params *p = &ask->sampling;
    json_t *stops = json_array();
    for (size_t i = 0; i < ask->n_own_stops; i++) json_array_append_new(stops, nib_server_json_str(ask->stops[i]));
    return json_pack("{s:I, s:f, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:I, s:i, s:o}", "seed", (json_int_t)p->seed, "temperature",
                     (double)p->temp, "top_k", p->top_k, "top_p", (double)p->top_p, "min_p", (double)p->min_p, "typical_p",
                     (double)p->typical_p, "repeat_last_n", p->penalty_last_n, "repeat_penalty", (double)p->penalty_repeat,
                     "presence_penalty", (double)p->penalty_presence, "frequency_penalty", (double)p->penalty_frequency, "n_predict",
                     ask->max_tokens ? (json_int_t)ask->max_tokens : -1, "n_probs", (int)ask->n_top, "stop", stops);
}

/* What "a/b" stands for, the b of the a of an object; NULL: it has none. */
static json_t *find_path(json_t *o, const char *path) {
    char key[64];
    size_t n = strcspn(path, "/");
    snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : 0), path);
    o = json_object_get(o, key);
    return o && path[n] ? find_path(o, path + n + 1) : o;
}

/* Of the last object, only what was asked for, under the names by which it was. Takes it. */
static json_t *chosen_json(const nib_server_ask *ask, json_t *o) {
    const json_t *paths = json_object_get(ask->body, "response_fields");
    if (!json_array_size(paths)) return o;
    json_t *chosen = json_object();
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        json_t *value = find_path(o, path);
        if (value) json_object_set(chosen, path, value);
    }
    json_decref(o);
    return chosen;
}

/* One object for a piece of text; the last one has everything else. */
static json_t *piece_json(const nib_server_choice *c, nib_str text, size_t first_token, bool is_last) {
    const nib_server_answer *a = c->answer;
    json_t *o = json_object();
    json_object_set_new(o, "index", json_integer(c->index));
    json_object_set_new(o, "content", nib_server_json_str(text));
    set_tokens(o, c, first_token);
    json_object_set_new(o, "stop", json_boolean(is_last));
    json_object_set_new(o, "id_slot", json_integer(-1));
    json_object_set_new(o, "tokens_predicted", json_integer(c->usage.n_generated));
    json_object_set_new(o, "tokens_evaluated", json_integer((json_int_t)a->ask.prompts[c->prompt].ids.n));
    if (!is_last) return o;
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(a->server)));
    json_object_set_new(o, "generation_settings", settings_json(&a->ask));
    json_object_set_new(o, "has_new_line", json_boolean(c->content.len && memchr(c->content.ptr, '\n', c->content.len)));
    json_object_set_new(o, "truncated", json_false());
    json_object_set_new(o, "stop_type", json_string(stop_type(c)));
    json_object_set_new(o, "stopping_word", c->stop >= 0 ? nib_server_json_str(a->ask.stops[c->stop]) : json_string(""));
    json_object_set_new(o, "tokens_cached", json_integer(c->usage.n_cached));
    json_object_set_new(o, "timings", nib_server_llama_timings(c));
    return chosen_json(&a->ask, o);
}

/* One object, or a list of them for several prompts or answers. */
static void write_whole(nib_server_answer *answer, nib_buf *out) {
    json_t *list = json_array();
    for (size_t i = 0; i < answer->n_choices; i++) {
        const nib_server_choice *c = &answer->choices[i];
        json_array_append_new(list, piece_json(c, (nib_str){c->content.ptr, c->content.len}, 0, true));
    }
    json_t *o = answer->n_choices == 1 ? json_incref(json_array_get(list, 0)) : json_incref(list);
    json_decref(list);
    nib_server_json_put(o, out);
}

static void write_event(nib_server_answer *answer, const nib_server_event *e, nib_buf *out) {
    nib_server_choice *c = e->choice;
    bool is_last = e->kind == NIB_SERVER_CHOICE_END;
    (void)answer;
    if (e->kind == NIB_SERVER_CONTENT || is_last) {
        nib_server_openai_data(piece_json(c, is_last ? (nib_str){"", 0} : e->text, c->n_told, is_last), out);
        c->n_told = c->n_tokens;
    }
    if (e->kind == NIB_SERVER_ERROR) {
        nib_buf_str(out, "data: ");
        nib_server_error_json(e->fault, out);
        nib_buf_str(out, "\n\n");
    }
}

static const nib_server_dialect dialect = {
    .stream_type = "text/event-stream", .stream_idle = ":\n\n", .read = read_ask, .event = write_event, .whole = write_whole,
};

void nib_server_route_llama_completion(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}
