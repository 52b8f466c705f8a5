/* cli/chat_remote.c - a server answers: messages and the options that were given -> a request; events of its answer -> events.
 * Nothing is computed here, so what a context is full of, how prompts are made and what is reused is the server's business. */
#include "answerer.h"
#include "api.h"
#include "base/mem.h"
#include "base/status.h"
#include "signals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct nib_cli_remote {
    nib_cli_api api;
    char finish_reason[32]; /* of the last answer */
};

/* ---- options */

/* Its name in a request; NULL: it has none. */
static const char *name_of(const nib_cli_option *option) {
    static const struct {
        size_t offset;
        const char *name;
    } rows[] = {
#define REMOTE(field, name) {offsetof(nib_cli_options, field), name},
#include "remote_fields.def"
#undef REMOTE
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].offset == option->offset) return rows[i].name;
    return NULL;
}

/* Whether the option says how an answer is computed, which the server knows alone. */
static bool is_local(const nib_cli_option *option) {
    static const size_t others[] = {
        offsetof(nib_cli_options, chat_template), offsetof(nib_cli_options, template_file), offsetof(nib_cli_options, template_name),
        offsetof(nib_cli_options, date),          offsetof(nib_cli_options, permissive),    offsetof(nib_cli_options, pre),
        offsetof(nib_cli_options, format),        offsetof(nib_cli_options, logits_hash),   offsetof(nib_cli_options, overflow),
        offsetof(nib_cli_options, n_ctx),         offsetof(nib_cli_options, n_batch),       offsetof(nib_cli_options, n_ubatch),
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] == option->offset) return true;
    static const size_t answers[] = {offsetof(nib_cli_options, json_schema), offsetof(nib_cli_options, json_schema_file),
                                     offsetof(nib_cli_options, json_object), offsetof(nib_cli_options, tool_choice)};
    bool is_form = option->group == NIB_CLI_GROUP_GRAMMAR;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) is_form = is_form && answers[i] != option->offset;
    if (is_form) return true; /* not every server knows these, and most ignore what they do not know */
    bool is_sent = name_of(option) || option->offset == offsetof(nib_cli_options, biases);
    return option->group == NIB_CLI_GROUP_COMPUTE || (option->group == NIB_CLI_GROUP_SAMPLING && !is_sent);
}

static nib_status check(const nib_cli_chat *c, nib_error *err) {
    return nib_cli_api_check(&c->opt, is_local, err);
}

/* ---- the request */

/* As it was typed: 0.7, not the double of the float next to it. */
static json_t *float_json(float x) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)x);
    return json_real(strtod(text, NULL));
}

static json_t *value_of(const nib_cli_option *option, const nib_cli_options *opt) {
    const void *field = (const char *)opt + option->offset;
    switch (option->kind) {
    case NIB_CLI_KIND_FLAG: return json_boolean(*(const bool *)field);
    case NIB_CLI_KIND_INT: return json_integer(*(const int32_t *)field);
    case NIB_CLI_KIND_UINT: return json_integer(*(const uint32_t *)field);
    default: return float_json(*(const float *)field);
    }
}

/* A fresh seed, no limit, "do not ignore": the server's own ways. */
static bool says_nothing(const nib_cli_option *option, const json_t *value) {
    json_int_t n = json_integer_value(value);
    return json_is_false(value) || (option->offset == offsetof(nib_cli_options, n_predict) && n < 0) ||
           (option->offset == offsetof(nib_cli_options, sampling.seed) && n == UINT32_MAX);
}

static void put_options(const nib_cli_chat *c, json_t *request) {
    const nib_logit_bias *bias = c->opt.biases.items;
    json_t *biases = json_object(), *stops = json_array();
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        const nib_cli_option *option = nib_cli_option_at(i);
        if (!c->opt.given[i] || !name_of(option)) continue;
        json_t *value = value_of(option, &c->opt);
        if (!says_nothing(option, value)) json_object_set(request, name_of(option), value);
        json_decref(value);
    }
    for (size_t i = 0; i < c->opt.biases.n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", bias[i].id);
        json_object_set_new(biases, id, float_json(isfinite(bias[i].bias) ? bias[i].bias : -100));
    }
    for (size_t i = 0; i < c->stops.list.n; i++)
        json_array_append_new(stops, nib_cli_json_str(((const nib_str *)c->stops.list.items)[i]));
    if (c->opt.biases.n) json_object_set(request, "logit_bias", biases);
    if (c->stops.list.n) json_object_set(request, "stop", stops);
    json_decref(biases);
    json_decref(stops);
}

/* --tool-choice and --json-schema as OpenAI has them. */
static void put_form(const nib_cli_chat *c, json_t *request) {
    nib_chat_grammar_config config;
    nib_cli_constraint_choice(&c->constraint, &c->opt, (nib_str){c->tools_text, 0}, &config);
    if (config.tool_name)
        json_object_set_new(request, "tool_choice", json_pack("{s:s,s:{s:s}}", "type", "function", "function", "name", config.tool_name));
    else if (config.tool_choice)
        json_object_set_new(request, "tool_choice", json_string(config.tool_choice));
    if (!c->constraint.option) return;
    json_t *schema = json_loadb(config.content, config.content_len, JSON_DECODE_ANY, NULL);
    if (c->opt.json_object) json_object_set_new(request, "response_format", json_pack("{s:s}", "type", "json_object"));
    else json_object_set_new(request, "response_format", json_pack("{s:s,s:{s:s,s:b,s:O}}", "type", "json_schema", "json_schema", "name",
                                                                   "answer", "strict", 1, "schema", schema));
    json_decref(schema);
}

static json_t *request_of(const nib_cli_chat *c) {
    json_t *request = json_object(), *kwargs = c->kwargs ? json_deep_copy(c->kwargs) : json_object();
    json_object_set(request, "messages", c->messages);
    if (c->tools) json_object_set(request, "tools", c->tools);
    if (c->opt.reasoning == NIB_CLI_REASONING_OFF) json_object_set_new(kwargs, "enable_thinking", json_false());
    if (json_object_size(kwargs)) json_object_set(request, "chat_template_kwargs", kwargs);
    json_decref(kwargs);
    put_form(c, request);
    put_options(c, request);
    return request;
}

/* ---- the answer */

typedef struct remote_answer {
    nib_cli_answer *a;
    json_t *calls; /* objects of id, name, arguments, while their parts come */
    double start_ms, first_ms, last_ms;
    size_t n_pieces;
    bool is_stopped; /* by the reader of the events */
} remote_answer;

static bool pass_on(remote_answer *r, const nib_chat_event *event) {
    r->is_stopped |= !nib_cli_answer_event(r->a, event);
    return !r->is_stopped;
}

static void extend(json_t *call, const char *key, const json_t *part) {
    nib_buf text = {0};
    if (!json_is_string(part)) return;
    nib_buf_printf(&text, "%s%s", json_string_value(json_object_get(call, key)), json_string_value(part));
    json_object_set_new(call, key, nib_cli_json_str(nib_cli_bytes(&text)));
    nib_buf_free(&text);
}

/* Parts of calls are put together by their index. */
static void take_calls(remote_answer *r, const json_t *parts) {
    const json_t *part;
    size_t i;
    json_array_foreach(parts, i, part) {
        const json_t *index = json_object_get(part, "index"), *function = json_object_get(part, "function");
        size_t at = json_is_integer(index) ? (size_t)json_integer_value(index) : i;
        if (at > json_array_size(r->calls)) at = json_array_size(r->calls);
        if (at == json_array_size(r->calls))
            json_array_append_new(r->calls, json_pack("{s:s,s:s,s:s}", "id", "", "name", "", "arguments", ""));
        json_t *call = json_array_get(r->calls, at);
        extend(call, "id", json_object_get(part, "id"));
        extend(call, "name", json_object_get(function, "name"));
        extend(call, "arguments", json_object_get(function, "arguments"));
    }
}

static nib_str member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return (nib_str){json_string_value(value), json_string_length(value)};
}

static bool finish_calls(remote_answer *r) {
    json_t *call;
    size_t i;
    json_array_foreach(r->calls, i, call) {
        nib_chat_event event = {.kind = NIB_CHAT_TOOL_CALL, .index = (uint32_t)i, .id = member(call, "id"),
                                .name = member(call, "name"), .text = member(call, "arguments")};
        if (!pass_on(r, &event)) return false;
    }
    return true;
}

static bool on_event(void *user, json_t *value) {
    remote_answer *r = user;
    nib_cli_chat *c = r->a->c;
    json_t *delta = nib_cli_api_delta(value), *parts = json_object_get(delta, "tool_calls");
    nib_str reasoning = nib_cli_api_reasoning(delta), content = nib_cli_api_content(delta);
    const char *finish_reason = nib_cli_api_finish_reason(value);
    nib_cli_api_usage usage;
    if (reasoning.len || content.len || json_array_size(parts)) {
        r->last_ms = nib_cli_now_ms();
        if (!r->n_pieces++) r->first_ms = r->last_ms;
    }
    if (finish_reason) {
        snprintf(c->remote->finish_reason, sizeof c->remote->finish_reason, "%s", finish_reason);
        c->last.finish_reason = c->remote->finish_reason;
    }
    if (nib_cli_api_usage_of(value, &usage)) {
        c->last.n_prompt = usage.n_prompt;
        c->last.n_cached = usage.n_cached;
        c->last.n_generated = usage.n_generated;
        if (usage.n_reasoning) c->last.n_reasoning = usage.n_reasoning;
    }
    c->last.n_reasoning += reasoning.len > 0;
    if (reasoning.len && !pass_on(r, &(nib_chat_event){.kind = NIB_CHAT_REASONING, .text = reasoning})) return false;
    if (content.len && !pass_on(r, &(nib_chat_event){.kind = NIB_CHAT_CONTENT, .text = content})) return false;
    take_calls(r, parts);
    return true;
}

static nib_status answer(nib_cli_answer *a, nib_error *err) {
    nib_cli_chat *c = a->c;
    remote_answer r = {.a = a, .calls = json_array(), .start_ms = nib_cli_now_ms()};
    json_t *request = request_of(c);
    nib_status status = nib_cli_api_chat(&c->remote->api, request, on_event, &r, err);
    if (status == NIB_OK && !c->last.finish_reason)
        status = nib_fail(err, NIB_E_IO, "the server's answer ends before the model's");
    if (status == NIB_OK) finish_calls(&r);
    if (status == NIB_E_CANCELLED || (status == NIB_OK && r.is_stopped)) {
        c->last.finish_reason = "interrupted";
        status = NIB_OK;
    }
    if (!c->last.n_generated) c->last.n_generated = r.n_pieces; /* it did not tell, or not yet */
    c->last.ttft_ms = r.n_pieces ? r.first_ms - r.start_ms : 0;
    c->last.decode_ms = r.last_ms - r.first_ms;
    json_decref(r.calls);
    json_decref(request);
    return status;
}

/* ---- the rest of answerer.h */

/* The server may say more of it; here it must be JSON. */
static nib_status check_schema(const nib_cli_chat *c, nib_error *err) {
    json_t *schema = NULL;
    if (!c->constraint.option || c->opt.json_object) return NIB_OK;
    nib_status status = nib_cli_json_parse(nib_cli_bytes(&c->constraint.text), &schema, err);
    if (status != NIB_OK) nib_error_prefix(err, "%s", c->constraint.option);
    json_decref(schema);
    return status;
}

static nib_status open_remote(nib_cli_chat *c, nib_error *err) {
    NIB_TRY(check(c, err));
    NIB_TRY(check_schema(c, err));
    c->remote = nib_calloc(1, sizeof *c->remote);
    if (!c->remote) return nib_fail_nomem(err, sizeof *c->remote, "a client");
    nib_cli_signals_catch();
    NIB_TRY(nib_cli_api_open(&c->remote->api, &c->opt, err));
    if (c->opt.verbose)
        nib_cli_line(c->s.term, "server: %s, port %s, model %.*s", c->remote->api.http.host, c->remote->api.http.port,
                     (int)c->remote->api.model.len, c->remote->api.model.ptr);
    return NIB_OK;
}

static void close_remote(nib_cli_chat *c) {
    if (c->remote) nib_cli_api_close(&c->remote->api);
    nib_free(c->remote);
}

static bool defaults(const nib_cli_chat *c, nib_cli_options *now) {
    (void)c;
    (void)now;
    return false;
}

static void forget(nib_cli_chat *c) {
    (void)c;
}

static void introduce(const nib_cli_chat *c, nib_buf *text) {
    const nib_cli_api *api = &c->remote->api;
    nib_buf_printf(text, "%.*s, at %s, port %s", (int)api->model.len, api->model.ptr, api->http.host, api->http.port);
}

static void context(const nib_cli_chat *c, uint32_t *used, uint32_t *total) {
    *used = (uint32_t)(c->last.n_prompt + c->last.n_generated);
    *total = c->remote->api.max_context;
}

static double tokens_per_second(const nib_cli_figures *f) {
    return f->n_generated > 1 && f->decode_ms > 0 ? 1e3 * (double)(f->n_generated - 1) / f->decode_ms : 0;
}

static void describe(const nib_cli_chat *c, json_t *object) {
    json_t *timings = json_object();
    json_object_set_new(object, "model", nib_cli_json_str(nib_cli_bytes(&c->remote->api.model)));
    nib_cli_json_set_str(object, "server", c->opt.server);
    nib_cli_json_set_real(timings, "ttft_ms", c->last.ttft_ms);
    nib_cli_json_set_real(timings, "decode_ms", c->last.decode_ms);
    nib_cli_json_set_real(timings, "decode_tok_s", tokens_per_second(&c->last));
    json_object_set_new(object, "timings", timings);
}

static void print_stats(const nib_cli_chat *c) {
    const nib_cli_figures *f = &c->last;
    nib_cli_line(c->s.term, "prompt  %zu tokens, of which %zu reused, TTFT %.1f ms", f->n_prompt, f->n_cached, f->ttft_ms);
    nib_cli_line(c->s.term, "decode  %9.1f ms, %zu tokens, %.1f tokens/s", f->decode_ms, f->n_generated, tokens_per_second(f));
}

const nib_cli_answerer nib_cli_chat_remote = {
    .open = open_remote, .close = close_remote, .answer = answer, .check = check, .defaults = defaults, .forget = forget,
    .introduce = introduce, .context = context, .describe = describe, .print_stats = print_stats,
};
