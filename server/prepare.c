/* server/prepare.c - what can take a while before the engine gets a request (prepare.h). */
#define _DEFAULT_SOURCE /* tm_gmtoff */
#include "prepare.h"

#include "base/mem.h"
#include "base/status.h"
#include "dialect.h"
#include "fields.h"
#include "internal.h"

#include <string.h>
#include <time.h>

enum {
    EMBEDDED_AT_ONCE = 16, /* prompts of one request, so that others come between them */
    LONG_MESSAGES = 1 << 20,
};

/* ---- the body */

static bool is_name(const nib_server *server, const char *name) {
    for (size_t i = 0; i < server->config.n_models; i++)
        if (server->config.models[i].len == strlen(name) && memcmp(server->config.models[i].ptr, name, strlen(name)) == 0) return true;
    return false;
}

nib_status nib_server_prepare_model(const nib_server_ask *ask, nib_server_fault *fault) {
    if (!ask->model || !ask->model[0] || is_name(ask->server, ask->model)) return NIB_OK;
    nib_server_fail(fault, 404, "model_not_found", "the model \"%.200s\" is not here; this server has \"%.*s\"", ask->model,
                    NIB_STR_ARG(nib_server_model_name(ask->server)));
    strcpy(fault->param, "model");
    return NIB_E_ARG;
}

static nib_status read_body(nib_server_answer *a, nib_server_fault *fault) {
    json_t *body;
    nib_error err;
    nib_str text = {a->body.ptr ? a->body.ptr : "", a->body.len};
    uint64_t owner = a->ask.owner;
    if (nib_server_json_parse(text, &body, &err) != NIB_OK) return nib_server_fault_of(fault, &err, NULL);
    nib_buf_free(&a->body);
    nib_server_ask_init(&a->ask, a->server, body);
    a->ask.owner = owner;
    a->ask.most_tokens = a->server->model.max_context;
    a->ask.salt = a->server->config.isolate_keys ? owner : 0;
    if (!json_is_object(body)) return nib_server_refuse(fault, NULL, "the body is %s, expected an object", nib_server_fields_kind_of(body));
    NIB_TRY(a->dialect->read(&a->ask, fault));
    return nib_server_prepare_model(&a->ask, fault);
}

/* ---- prompts */

nib_status nib_server_prepare_render(const nib_server_ask *ask, nib_chat_prompt *out, nib_server_fault *fault) {
    const nib_server_model *m = &ask->server->model;
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    nib_error err;
    if (!m->chat) return nib_server_fail(fault, 400, "no_chat_template", "this model has no chat template: %s", m->chat_missing);
    char *text = nib_server_json_dump(ask->chat);
    if (!text) return nib_server_fail(fault, 503, "out_of_memory", "out of memory for messages");
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    config.now = (int64_t)now + local.tm_gmtoff;
    size_t len = strlen(text);
    nib_status status = nib_chat_render(m->chat, text, len, &config, out, &err);
    nib_free(text);
    if (status != NIB_OK) nib_server_fault_of(fault, &err, "messages");
    if (status == NIB_E_LIMIT && len > LONG_MESSAGES) fault->code = "context_length_exceeded"; /* the template ran out of memory */
    return status;
}

/* What clients call it. */
static const char *prompt_field(const nib_server_ask *ask) {
    return ask->chat ? "messages" : ask->pooling ? "input" : "prompt";
}

static nib_status fault_of_tokens(const nib_server_ask *ask, const nib_error *err, nib_server_fault *fault) {
    if (err->code != NIB_E_LIMIT || !ask->most_tokens) return nib_server_fault_of(fault, err, prompt_field(ask));
    nib_server_refuse(fault, prompt_field(ask), "the prompt has more than %zu tokens, the context of a request", ask->most_tokens);
    fault->code = "context_length_exceeded";
    return NIB_E_LIMIT;
}

nib_status nib_server_prepare_tokens(const nib_server_ask *ask, nib_server_prompt *prompt, nib_str text, unsigned flags,
                                     nib_server_fault *fault) {
    nib_error err;
    nib_status status = nib_tokenize(ask->server->model.tok, text.ptr, text.len, flags, &prompt->ids, &err);
    return status == NIB_OK ? NIB_OK : fault_of_tokens(ask, &err, fault);
}

nib_status nib_server_prepare_messages(nib_server_ask *ask, bool *starts_thinking, nib_server_fault *fault) {
    nib_chat_prompt prompt = {0};
    nib_error err;
    NIB_TRY(nib_server_ask_add_text(ask, (nib_str){0}, fault));
    NIB_TRY(nib_server_prepare_render(ask, &prompt, fault));
    *starts_thinking = prompt.starts_thinking;
    nib_token_list *ids = &ask->prompts[ask->n_prompts - 1].ids;
    nib_status status = nib_tokenize_spans(ask->server->model.tok, &prompt.rendered, NIB_ADD_SPECIAL, ids, &err);
    nib_chat_prompt_free(&prompt);
    return status == NIB_OK ? NIB_OK : fault_of_tokens(ask, &err, fault);
}

static nib_status fault_of_submit(const nib_server_answer *a, const nib_error *err, nib_server_fault *fault) {
    nib_engine_figures figures;
    nib_server_fault_of(fault, err, prompt_field(&a->ask));
    if (err->code == NIB_E_LIMIT) fault->code = "context_length_exceeded";
    if (err->code == NIB_E_BUSY) {
        nib_engine_stats(a->server->model.engine, &figures);
        fault->retry_s = figures.retry_s;
    }
    return err->code;
}

/* A BOS that does not belong to the text stays before it. */
static void cut_prompt(const nib_server_ask *ask, nib_server_prompt *p) {
    const nib_tokenizer *tok = ask->server->model.tok;
    nib_token *ids = p->ids.ids;
    size_t n = p->ids.n, most = ask->truncate;
    if (!most || n <= most) return;
    bool is_made = p->text.ptr ? ask->add_special : ask->chat != NULL;
    bool has_bos = is_made && nib_tokenizer_add_bos(tok) && ids[0] == nib_tokenizer_special(tok, "bos");
    size_t n_left = most - has_bos;
    if (!ask->cuts_end) memmove(ids + has_bos, ids + n - n_left, n_left * sizeof *ids);
    p->ids.n = most;
}

static nib_status make_prompts(nib_server_answer *a, nib_server_fault *fault) {
    nib_server_ask *ask = &a->ask;
    unsigned flags = (ask->add_special ? NIB_ADD_SPECIAL : 0) | (ask->parse_special ? NIB_PARSE_SPECIAL : 0);
    nib_error err;
    if (ask->truncate) ask->most_tokens = 0;
    if (ask->chat) NIB_TRY(nib_server_prepare_messages(ask, &a->starts_thinking, fault));
    for (size_t i = 0; i < ask->n_prompts; i++) {
        nib_server_prompt *p = &ask->prompts[i];
        p->ids.most = ask->most_tokens;
        if (p->text.ptr) NIB_TRY(nib_server_prepare_tokens(ask, p, p->text, flags, fault));
        cut_prompt(ask, p);
        if (!p->ids.n) return nib_server_refuse(fault, prompt_field(ask), "the prompt has no tokens");
        if (nib_engine_admits(a->server->model.engine, p->ids.n, &err) != NIB_OK) return fault_of_submit(a, &err, fault);
    }
    return NIB_OK;
}

/* ---- what the answer must look like */

/* Errors of schemas begin with the place: "#/0/…" is one of the list of tools. */
static nib_status fault_of_grammar(const nib_server_ask *ask, const nib_error *err, nib_server_fault *fault) {
    bool is_tool = ask->tools && strncmp(err->message, "#/", 2) == 0 && err->message[2] >= '0' && err->message[2] <= '9';
    nib_server_fault_of(fault, err, is_tool || !ask->has_grammar ? "tools" : ask->grammar_param);
    return err->code;
}

/* Whether a tool wants its arguments to be valid. */
static bool are_strict(const json_t *tools) {
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (json_is_true(json_object_get(json_object_get(json_array_get(tools, i), "function"), "strict"))) return true;
    return false;
}

static bool is_generic(const nib_server_answer *a) {
    return strcmp(nib_chat_format(a->server->model.chat), "generic") == 0;
}

/* Where nothing is known of a model that has to call, it does so in the format that most models have learnt. */
static const char *format_of(const nib_server_answer *a) {
    return is_generic(a) && a->ask.tool_choice >= NIB_SERVER_TOOLS_REQUIRED ? "hermes" : nib_chat_format(a->server->model.chat);
}

/* A model of which no format is known rather calls again with the same arguments, for as long as it may. */
static void limit_calls(nib_server_answer *a) {
    bool is_asked_for = a->ask.many_calls || json_is_true(json_object_get(a->ask.body, "parallel_tool_calls"));
    if (a->tools && is_generic(a) && !is_asked_for) a->ask.one_call = true;
}

static nib_status make_chat_grammar(nib_server_answer *a, const nib_grammar_config *grammar, nib_server_fault *fault) {
    static const char *const choices[] = {[NIB_SERVER_TOOLS_AUTO] = "auto", [NIB_SERVER_TOOLS_NONE] = "none",
                                          [NIB_SERVER_TOOLS_REQUIRED] = "required", [NIB_SERVER_TOOLS_NAMED] = "required"};
    const nib_server_ask *ask = &a->ask;
    nib_chat_grammar_config config = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    nib_error err;
    config.format = format_of(a);
    config.starts_thinking = a->starts_thinking;
    config.no_thinking = is_generic(a);
    config.tools = a->tools;
    config.tools_len = a->tools ? strlen(a->tools) : 0;
    config.tool_choice = choices[ask->tool_choice];
    config.tool_name = ask->tool_name;
    config.one_call = ask->one_call;
    config.strict = are_strict(ask->tools);
    config.content = !ask->has_grammar ? NULL : ask->grammar.ptr ? ask->grammar.ptr : "";
    config.content_len = ask->grammar.len;
    config.grammar = *grammar;
    nib_status status = nib_grammar_cache_chat(a->server->grammars, &a->grammar, &config, a->server->vocab, &err);
    return status == NIB_OK ? NIB_OK : fault_of_grammar(ask, &err, fault);
}

/* A model of which nothing is known may know nothing of thoughts: its answer is what was asked for, from the first byte on. */
static bool is_plain(const nib_server_answer *a) {
    return !a->ask.chat || (!a->starts_thinking && !a->tools && is_generic(a));
}

static nib_status make_grammar(nib_server_answer *a, nib_server_fault *fault) {
    const nib_server_ask *ask = &a->ask;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_error err;
    config.syntax = ask->syntax;
    config.space = NIB_JSON_SPACE_PRETTY;
    config.key_order = true;
    limit_calls(a);
    if (!is_plain(a)) return make_chat_grammar(a, &config, fault);
    if (!ask->has_grammar) return NIB_OK;
    const char *text = ask->grammar.ptr ? ask->grammar.ptr : "";
    nib_status status = nib_grammar_cache_get(a->server->grammars, &a->grammar, text, ask->grammar.len, a->server->vocab, &config, &err);
    return status == NIB_OK ? NIB_OK : fault_of_grammar(ask, &err, fault);
}

/* ---- choices */

static nib_status make_parser(nib_server_choice *choice, nib_server_fault *fault) {
    nib_server_answer *a = choice->answer;
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    nib_error err;
    config.format = format_of(a);
    config.starts_thinking = a->starts_thinking;
    config.parse_tools = a->tools != NULL;
    config.stream_calls = true;
    config.parse_reasoning = !a->ask.joins_reasoning;
    config.tools = a->tools;
    config.tools_len = a->tools ? strlen(a->tools) : 0;
    config.event = nib_server_choice_event;
    config.user = choice;
    return nib_chat_parser_new(&choice->parser, &config, &err) == NIB_OK ? NIB_OK : nib_server_fault_of(fault, &err, "tools");
}

static nib_status make_choices(nib_server_answer *a, nib_server_fault *fault) {
    nib_server_ask *ask = &a->ask;
    size_t n = ask->n_prompts * ask->n;
    nib_status status = NIB_OK;
    if (!ask->pooling && n > a->server->config.max_requests)
        return nib_server_refuse(fault, ask->n > 1 ? "n" : "prompt", "%zu answers at once, at most %u", n, a->server->config.max_requests);
    a->choices = nib_calloc(n, sizeof *a->choices);
    a->sources = nib_calloc(ask->n_prompts, sizeof *a->sources);
    if (!a->choices || !a->sources) return nib_server_fail(fault, 503, "out_of_memory", "out of memory for answers");
    for (; a->n_choices < n && status == NIB_OK; a->n_choices++) {
        nib_server_choice *c = &a->choices[a->n_choices];
        *c = (nib_server_choice){.answer = a, .index = (uint32_t)a->n_choices, .prompt = (uint32_t)(a->n_choices / ask->n), .stop = -1};
        if (ask->chat) status = make_parser(c, fault);
    }
    a->n_open = n;
    return status;
}

/* ---- the engine */

/* The strings that end an answer: those of the request, then those of the template. */
static nib_status add_template_stops(nib_server_ask *ask, const nib_chat *chat, nib_server_fault *fault) {
    nib_str stop;
    for (size_t i = 0; ask->chat && (stop = nib_chat_stop(chat, i)).ptr; i++) NIB_TRY(nib_server_ask_add_end(ask, stop, fault));
    return NIB_OK;
}

static nib_status make_breakers(nib_server_ask *ask, nib_server_fault *fault) {
    const char *texts[NIB_SERVER_MAX_BREAKERS] = {"\n", ":", "\"", "*"}; /* llama.cpp's */
    size_t n = ask->breakers ? json_array_size(ask->breakers) : 4;
    nib_error err;
    if (!(ask->sampling.dry_multiplier > 0)) return NIB_OK;
    for (size_t i = 0; ask->breakers && i < n; i++) texts[i] = json_string_value(json_array_get(ask->breakers, i));
    nib_status status = nib_sampler_breakers(ask->server->model.tok, texts, n, &ask->breaker_ids, &ask->breaker_lengths,
                                             &ask->sampling.n_dry_breakers, &err);
    ask->sampling.dry_breakers = ask->breaker_ids;
    ask->sampling.dry_breaker_lengths = ask->breaker_lengths;
    return status == NIB_OK ? NIB_OK : nib_server_fault_of(fault, &err, "dry_sequence_breakers");
}

static bool waits(const nib_server_answer *a) {
    size_t n_ended = a->n_choices - a->n_open;
    return a->n_sources == a->ask.n_prompts || (a->ask.pooling && a->n_sources - n_ended >= EMBEDDED_AT_ONCE);
}

static nib_status submit(nib_server_answer *a, nib_server_fault *fault) {
    nib_server_ask *ask = &a->ask;
    const nib_server_model *m = &a->server->model;
    nib_request request = NIB_REQUEST_INIT;
    nib_error err;
    ask->sampling.bias = ask->biases;
    ask->sampling.n_bias = (uint32_t)ask->n_biases;
    ask->sampling.chain = ask->chain;
    request.sampling = &ask->sampling;
    request.max_tokens = ask->only_prompt ? 1 : ask->max_tokens; /* the engine always says something */
    request.min_tokens = ask->min_tokens;
    request.ignore_eos = ask->ignore_eos;
    request.n_choices = ask->n;
    request.stop_ids = ask->stop_ids;
    request.n_stop_ids = ask->n_stop_ids;
    request.allowed_ids = ask->allowed_ids;
    request.n_allowed_ids = ask->n_allowed_ids;
    request.stops = ask->stops;
    request.n_stops = ask->n_stops;
    request.chat = ask->chat ? m->chat : NULL;
    request.grammar = a->grammar;
    request.jump_ahead = true; /* as `nib run` and `nib chat` do */
    request.special = ask->special;
    request.logprobs = ask->logprobs;
    request.prompt_logprobs = ask->prompt_logprobs;
    request.n_top = ask->n_top;
    request.queue_ms = 1e3 * a->server->config.queue_s;
    request.total_ms = 1e3 * a->server->config.request_s;
    request.priority = ask->priority;
    request.owner = ask->owner;
    request.salt = ask->salt;
    request.pooling = ask->pooling;
    request.ready = a->on_ready;
    request.user = a;
    for (; !waits(a); a->n_sources++) {
        nib_server_source *s = &a->sources[a->n_sources];
        s->choices = &a->choices[a->n_sources * ask->n];
        request.prompt = ask->prompts[a->n_sources].ids.ids;
        request.n_prompt = ask->prompts[a->n_sources].ids.n;
        if (nib_engine_submit(&s->stream, m->engine, &request, &err) != NIB_OK) return fault_of_submit(a, &err, fault);
    }
    return NIB_OK;
}

nib_status nib_server_prepare_more(nib_server_answer *a, nib_server_fault *fault) {
    size_t n_ended = a->n_choices - a->n_open;
    nib_status status = waits(a) ? NIB_OK : submit(a, fault);
    return status == NIB_E_BUSY && a->n_sources > n_ended ? NIB_OK : status; /* those that run will ask again */
}

static nib_status check_client(nib_server_answer *a, nib_server_fault *fault) {
    return atomic_load(&a->is_gone) ? nib_server_fail(fault, 499, NULL, "the client is gone") : NIB_OK;
}

/* An answer that is complete as it is. */
static nib_status prepare_nothing(nib_server_answer *a, nib_server_fault *fault) {
    a->ask.stream = false;
    a->choices = nib_calloc(1, sizeof *a->choices);
    if (!a->choices) return nib_server_fail(fault, 503, "out_of_memory", "out of memory for answers");
    a->choices[a->n_choices++] = (nib_server_choice){.answer = a, .stop = -1, .finish = NIB_SERVER_FINISH_NOTHING};
    return NIB_OK;
}

nib_status nib_server_prepare(nib_server_answer *a, nib_server_fault *fault) {
    nib_server_ask *ask = &a->ask;
    NIB_TRY(check_client(a, fault));
    NIB_TRY(read_body(a, fault));
    if (ask->is_empty) return prepare_nothing(a, fault);
    NIB_TRY(make_prompts(a, fault));
    NIB_TRY(make_breakers(ask, fault));
    if (ask->chat && ask->tools && ask->tool_choice != NIB_SERVER_TOOLS_NONE && !(a->tools = nib_server_json_dump(ask->tools)))
        return nib_server_fail(fault, 503, "out_of_memory", "out of memory for tools");
    NIB_TRY(make_grammar(a, fault));
    NIB_TRY(add_template_stops(ask, a->server->model.chat, fault));
    NIB_TRY(make_choices(a, fault));
    NIB_TRY(check_client(a, fault));
    return submit(a, fault);
}
