/* server/openai_chat.c - POST /v1/chat/completions: messages -> a message, whole or as a stream of deltas. */
#include "base/status.h"
#include "dialect.h"
#include "internal.h"
#include "openai.h"
#include "routes.h"

#include <string.h>

/* ---- the request */

static nib_status read_max(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 1, INT32_MAX, &n, fault));
    ask->max_tokens = (uint32_t)n;
    return NIB_OK;
}

/* For nib_chat_render, which checks it. */
static nib_status read_part(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    (void)fault;
    json_object_set(ask->chat, name, (json_t *)(uintptr_t)value);
    return NIB_OK;
}

static nib_status read_tools(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (!json_is_array(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a list of tools", name, nib_server_fields_kind_of(value));
    if (!json_array_size(value)) return NIB_OK;
    ask->tools = json_object_get(ask->body, name);
    return read_part(ask, name, value, fault);
}

static nib_status read_tool_choice(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *word = json_string_value(value);
    const char *tool = json_string_value(json_object_get(json_object_get(value, "function"), "name"));
    if (word && strcmp(word, "none") == 0) ask->tool_choice = NIB_SERVER_TOOLS_NONE;
    if (word && strcmp(word, "required") == 0) ask->tool_choice = NIB_SERVER_TOOLS_REQUIRED;
    if (tool) {
        ask->tool_choice = NIB_SERVER_TOOLS_NAMED;
        ask->tool_name = tool;
    }
    return read_part(ask, name, value, fault);
}

static nib_status read_modalities(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *only = json_string_value(json_array_get(value, 0));
    (void)ask;
    if (json_array_size(value) == 1 && only && strcmp(only, "text") == 0) return NIB_OK;
    return nib_server_refuse(fault, name, "%s must be [\"text\"]", name);
}

static const nib_server_field chat_fields[] = {
    NIB_SERVER_FIELD_BY("messages", read_part),
    NIB_SERVER_FIELD_BY("max_tokens", read_max),
    NIB_SERVER_FIELD_BY("max_completion_tokens", read_max), /* the newer name goes before the older one */
    NIB_SERVER_FIELD("logprobs", BOOL, logprobs, 0, 0),
    NIB_SERVER_FIELD("top_logprobs", UINT, n_top, 0, 100),
    NIB_SERVER_FIELD_BY("tools", read_tools),
    NIB_SERVER_FIELD_BY("tool_choice", read_tool_choice),
    NIB_SERVER_FIELD("parallel_tool_calls", NOT, one_call, 0, 0),
    NIB_SERVER_FIELD_BY("reasoning_effort", read_part),
    NIB_SERVER_FIELD_BY("enable_thinking", read_part),
    NIB_SERVER_FIELD("include_reasoning", NOT, hides_reasoning, 0, 0),
    NIB_SERVER_FIELD("separate_reasoning", NOT, joins_reasoning, 0, 0),
    NIB_SERVER_FIELD_BY("chat_template_kwargs", read_part),
    NIB_SERVER_FIELD_BY("documents", read_part),
    NIB_SERVER_FIELD_BY("add_generation_prompt", read_part),
    NIB_SERVER_FIELD_BY("continue_final_message", read_part),
    NIB_SERVER_FIELD("add_special_tokens", BOOL, add_special, 0, 0),
    NIB_SERVER_FIELD_BY("modalities", read_modalities),
    NIB_SERVER_FIELD_UNUSED("verbosity"),
    NIB_SERVER_FIELD_UNUSED("stream_reasoning"),
    NIB_SERVER_FIELD_UNUSED("session_id"),
    NIB_SERVER_FIELD_ABSENT("functions", "use tools"),
    NIB_SERVER_FIELD_ABSENT("function_call", "use tool_choice"),
    NIB_SERVER_FIELD_ABSENT("chat_template", "the server's --chat-template sets it"),
    NIB_SERVER_FIELD_ABSENT("echo", "it is for /v1/completions"),
    NIB_SERVER_FIELD_ABSENT("input_ids", "it is for /v1/completions, as prompt"),
    NIB_SERVER_FIELD_ABSENT("thinking_token_budget", "use max_tokens, or enable_thinking"),
    NIB_SERVER_FIELD_ABSENT("prompt_logprobs", "use echo and logprobs of /v1/completions"),
    NIB_SERVER_FIELD_ABSENT("audio", "nib reads and writes text only"),
    NIB_SERVER_FIELD_ABSENT("web_search_options", "nib does not search"),
    {0},
};

nib_status nib_server_openai_chat(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {chat_fields, nib_server_openai_fields, nib_server_llama_sampling_fields, NULL};
    ask->chat = json_object();
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    if (ask->n_top && !ask->logprobs) return nib_server_refuse(fault, "top_logprobs", "top_logprobs needs logprobs: true");
    return NIB_OK;
}

/* ---- the answer */

/* Log-probabilities of the tokens from `first` on; null when they were not asked for. */
static json_t *logprobs_json(const nib_server_choice *c, size_t first) {
    if (!c->answer->ask.logprobs) return json_null();
    json_t *content = json_array();
    for (size_t i = first; i < c->n_tokens; i++) json_array_append_new(content, nib_server_openai_logprobs(c, i, false));
    json_t *logprobs = json_object();
    json_object_set_new(logprobs, "content", content);
    json_object_set_new(logprobs, "refusal", json_null());
    return logprobs;
}

static void set_finish(json_t *object, const nib_server_choice *c) {
    const char *finish = nib_server_openai_finish(c);
    json_object_set_new(object, "finish_reason", finish ? json_string(finish) : json_null());
    if (c->stop >= 0) json_object_set_new(object, "stop_reason", nib_server_json_str(c->answer->ask.stops[c->stop]));
}

static json_t *call_json(const nib_server_call *call, nib_str arguments) {
    json_t *o = json_object(), *function = json_object();
    json_object_set_new(o, "id", nib_server_json_str((nib_str){call->id.ptr, call->id.len}));
    json_object_set_new(o, "type", json_string("function"));
    json_object_set_new(function, "name", nib_server_json_str((nib_str){call->name.ptr, call->name.len}));
    json_object_set_new(function, "arguments", nib_server_json_str(arguments));
    json_object_set_new(o, "function", function);
    return o;
}

static json_t *message_json(const nib_server_choice *c) {
    json_t *message = json_object(), *calls = json_array();
    json_object_set_new(message, "role", json_string("assistant"));
    bool has_content = c->content.len || !c->n_calls;
    json_object_set_new(message, "content", has_content ? nib_server_json_str((nib_str){c->content.ptr, c->content.len}) : json_null());
    if (c->reasoning.len)
        json_object_set_new(message, "reasoning_content", nib_server_json_str((nib_str){c->reasoning.ptr, c->reasoning.len}));
    for (size_t i = 0; i < c->n_calls; i++)
        json_array_append_new(calls, call_json(&c->calls[i], (nib_str){c->calls[i].arguments.ptr, c->calls[i].arguments.len}));
    if (c->n_calls) json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    return message;
}

static void write_whole(nib_server_answer *answer, nib_buf *out) {
    json_t *o = nib_server_openai_head(answer, "chatcmpl-", "chat.completion"), *choices = json_array();
    for (size_t i = 0; i < answer->n_choices; i++) {
        const nib_server_choice *c = &answer->choices[i];
        json_t *choice = json_object();
        json_object_set_new(choice, "index", json_integer(c->index));
        json_object_set_new(choice, "message", message_json(c));
        json_object_set_new(choice, "logprobs", logprobs_json(c, 0));
        set_finish(choice, c);
        json_array_append_new(choices, choice);
    }
    json_object_set_new(o, "choices", choices);
    json_object_set_new(o, "usage", nib_server_openai_usage(answer));
    nib_server_json_put(o, out);
}

/* One event of a stream; takes the delta. */
static void put_chunk(nib_server_choice *c, json_t *delta, nib_buf *out) {
    json_t *o = nib_server_openai_head(c->answer, "chatcmpl-", "chat.completion.chunk"), *choices = json_array(), *choice = json_object();
    json_object_set_new(choice, "index", json_integer(c->index));
    json_object_set_new(choice, "delta", delta);
    json_object_set_new(choice, "logprobs", c->n_told < c->n_tokens ? logprobs_json(c, c->n_told) : json_null());
    c->n_told = c->n_tokens;
    set_finish(choice, c);
    json_array_append_new(choices, choice);
    json_object_set_new(o, "choices", choices);
    nib_server_openai_data(o, out);
}

static void put_text(nib_server_choice *c, const char *field, nib_str text, nib_buf *out) {
    json_t *delta = json_object();
    json_object_set_new(delta, field, nib_server_json_str(text));
    put_chunk(c, delta, out);
}

static void put_call(const nib_server_event *e, nib_buf *out) {
    bool begins = e->kind == NIB_SERVER_CALL_BEGIN;
    json_t *delta = json_object(), *calls = json_array(), *call = begins ? call_json(e->call, (nib_str){"", 0}) : json_object();
    if (!begins) {
        json_t *function = json_object();
        json_object_set_new(function, "arguments", nib_server_json_str(e->text));
        json_object_set_new(call, "function", function);
    }
    json_object_set_new(call, "index", json_integer((json_int_t)e->call_index));
    json_array_append_new(calls, call);
    json_object_set_new(delta, "tool_calls", calls);
    put_chunk(e->choice, delta, out);
}

static void put_roles(nib_server_answer *answer, nib_buf *out) {
    for (size_t i = 0; i < answer->n_choices; i++) {
        json_t *delta = json_object();
        json_object_set_new(delta, "role", json_string("assistant"));
        json_object_set_new(delta, "content", json_string(""));
        put_chunk(&answer->choices[i], delta, out);
    }
}

static void put_end(const nib_server_answer *answer, nib_buf *out) {
    if (answer->ask.include_usage) {
        json_t *o = nib_server_openai_head(answer, "chatcmpl-", "chat.completion.chunk");
        json_object_set_new(o, "choices", json_array());
        json_object_set_new(o, "usage", nib_server_openai_usage(answer));
        nib_server_openai_data(o, out);
    }
    nib_server_openai_done(out);
}

static void write_event(nib_server_answer *answer, const nib_server_event *e, nib_buf *out) {
    switch (e->kind) {
    case NIB_SERVER_BEGIN: put_roles(answer, out); break;
    case NIB_SERVER_CONTENT: put_text(e->choice, "content", e->text, out); break;
    case NIB_SERVER_REASONING: put_text(e->choice, "reasoning_content", e->text, out); break;
    case NIB_SERVER_CALL_BEGIN:
    case NIB_SERVER_CALL_ARGUMENTS: put_call(e, out); break;
    case NIB_SERVER_CALL_END: break;
    case NIB_SERVER_CHOICE_END: put_chunk(e->choice, json_object(), out); break;
    case NIB_SERVER_END: put_end(answer, out); break;
    case NIB_SERVER_ERROR: nib_server_openai_error(e->fault, out); break;
    }
}

static const nib_server_dialect dialect = {
    .stream_type = "text/event-stream", .stream_idle = ":\n\n", .read = nib_server_openai_chat, .event = write_event,
    .whole = write_whole,
};

void nib_server_route_chat_completions(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}
