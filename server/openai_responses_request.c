/* server/openai_responses_request.c - a request of /v1/responses -> messages as nib_chat_render takes them.
 *
 * Its input is a list of items: messages, calls, their results, thoughts. What an assistant thought, said and called in a row
 * is one message here. Nothing is kept between requests, so whatever refers to an earlier one is refused. */
#include "openai_responses.h"

#include "base/status.h"
#include "fields.h"
#include "internal.h"
#include "openai.h"

#include <stdio.h>
#include <string.h>

/* ---- items */

typedef struct reading {
    json_t *messages;
    json_t *assistant; /* the last message, if it is one that may go on; borrowed */
    char path[64];     /* "input[3]" */
    nib_server_fault *fault;
} reading;

static json_t *add_message(reading *r, const char *role) {
    json_t *message = json_object();
    json_object_set_new(message, "role", json_string(role));
    json_array_append_new(r->messages, message);
    r->assistant = strcmp(role, "assistant") == 0 ? message : NULL;
    if (r->assistant) json_object_set_new(message, "content", json_string(""));
    return message;
}

static json_t *assistant_of(reading *r) {
    return r->assistant ? r->assistant : add_message(r, "assistant");
}

static nib_status set_text(reading *r, json_t *message, const char *field, const json_t *content) {
    nib_buf text = {0};
    nib_status status = nib_server_fields_text(content, r->path, "", &text, r->fault);
    json_object_set_new(message, field, nib_server_json_str((nib_str){text.ptr, text.len}));
    nib_buf_free(&text);
    return status;
}

static nib_status read_message(reading *r, const json_t *item) {
    const char *role = nib_server_json_word(item, "role");
    json_t *message;
    bool goes_on = strcmp(role, "assistant") == 0 && r->assistant && !json_string_length(json_object_get(r->assistant, "content")) &&
                   !json_object_get(r->assistant, "tool_calls"); /* after its thoughts */
    if (!role[0]) return nib_server_refuse(r->fault, r->path, "%s has no role", r->path);
    message = goes_on ? r->assistant : add_message(r, role);
    return set_text(r, message, "content", json_object_get(item, "content"));
}

static nib_status read_call(reading *r, const json_t *item) {
    json_t *message = assistant_of(r), *calls = json_object_get(message, "tool_calls");
    if (!nib_server_json_word(item, "name")[0] || !json_is_string(json_object_get(item, "arguments")))
        return nib_server_refuse(r->fault, r->path, "%s: a function_call needs a name and arguments, a string", r->path);
    if (!calls) json_object_set_new(message, "tool_calls", calls = json_array());
    json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:O}}", "id", nib_server_json_word(item, "call_id"), "type", "function",
                                           "function", "name", nib_server_json_word(item, "name"), "arguments",
                                           json_object_get(item, "arguments")));
    return NIB_OK;
}

static nib_status read_item(reading *r, const json_t *item) {
    const char *type = nib_server_json_word(item, "type");
    if (!type[0] || strcmp(type, "message") == 0) return read_message(r, item);
    if (strcmp(type, "function_call") == 0) return read_call(r, item);
    if (strcmp(type, "function_call_output") == 0) {
        json_t *message = add_message(r, "tool");
        json_object_set_new(message, "tool_call_id", json_string(nib_server_json_word(item, "call_id")));
        return set_text(r, message, "content", json_object_get(item, "output"));
    }
    if (strcmp(type, "reasoning") == 0) {
        const json_t *thoughts = json_object_get(item, "content");
        r->assistant = NULL;
        return json_array_size(thoughts) ? set_text(r, assistant_of(r), "reasoning_content", thoughts) : NIB_OK;
    }
    return nib_server_refuse(r->fault, r->path, "%s: an item of the type \"%.40s\" is not supported", r->path, type);
}

/* ---- fields */

static nib_status read_input(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    reading r = {.messages = json_object_get(ask->chat, "messages"), .fault = fault};
    if (json_is_string(value)) {
        json_array_append_new(r.messages, json_pack("{s:s, s:O}", "role", "user", "content", (json_t *)(uintptr_t)value));
        return NIB_OK;
    }
    if (!json_array_size(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a string or a list that is not empty", name,
                                 nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        snprintf(r.path, sizeof r.path, "%s[%zu]", name, i);
        NIB_TRY(read_item(&r, json_array_get(value, i)));
    }
    return NIB_OK;
}

static nib_status read_instructions(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (!json_is_string(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a string", name, nib_server_fields_kind_of(value));
    json_array_insert_new(json_object_get(ask->chat, "messages"), 0,
                          json_pack("{s:s, s:O}", "role", "system", "content", (json_t *)(uintptr_t)value));
    return NIB_OK;
}

static nib_status read_max(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 1, INT32_MAX, &n, fault));
    ask->max_tokens = (uint32_t)n;
    return NIB_OK;
}

/* A function stands in a tool itself there, not in its "function". */
static nib_status read_tools(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    json_t *tools = json_array();
    json_object_set_new(ask->chat, "tools", tools);
    if (!json_is_array(value)) return nib_server_refuse(fault, name, "%s is %s, expected a list", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *tool = json_array_get(value, i);
        json_t *function = json_copy((json_t *)(uintptr_t)tool);
        json_object_del(function, "type");
        json_array_append_new(tools, json_pack("{s:s, s:o}", "type", "function", "function", function));
        if (strcmp(nib_server_json_word(tool, "type"), "function") != 0)
            return nib_server_refuse(fault, name, "%s[%zu] is of the type \"%.40s\": only functions can be called", name, i,
                                     nib_server_json_word(tool, "type"));
    }
    if (json_array_size(tools)) ask->tools = tools;
    else json_object_del(ask->chat, "tools");
    return NIB_OK;
}

static nib_status read_tool_choice(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *word = json_is_object(value) ? nib_server_json_word(value, "type") : json_string_value(value);
    if (!word) word = "";
    if (strcmp(word, "auto") == 0) return NIB_OK;
    if (strcmp(word, "required") == 0) ask->tool_choice = NIB_SERVER_TOOLS_REQUIRED;
    if (strcmp(word, "none") == 0) {
        ask->tool_choice = NIB_SERVER_TOOLS_NONE;
        json_object_set_new(ask->chat, name, json_string("none"));
    }
    if (strcmp(word, "function") == 0 && nib_server_json_word(value, "name")[0]) {
        ask->tool_choice = NIB_SERVER_TOOLS_NAMED;
        ask->tool_name = nib_server_json_word(value, "name");
    }
    if (ask->tool_choice != NIB_SERVER_TOOLS_AUTO) return NIB_OK;
    return nib_server_refuse(fault, name, "%s must be auto, none, required, or a function by its name", name);
}

static nib_status read_format(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const json_t *format = json_object_get(value, "format"), *schema = json_object_get(format, "schema");
    const char *type = nib_server_json_word(format, "type");
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object", name, nib_server_fields_kind_of(value));
    if (!format || json_is_null(format) || strcmp(type, "text") == 0) return NIB_OK;
    if (strcmp(type, "json_object") == 0)
        return nib_server_ask_set_grammar(ask, NIB_SYNTAX_JSON_OBJECT, (nib_str){0}, "text.format", fault);
    if (strcmp(type, "json_schema") == 0 && schema)
        return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_JSON_SCHEMA, schema, "text.format", fault);
    return nib_server_refuse(fault, "text.format", "text.format must be text, json_object, or json_schema with a schema");
}

static nib_status read_reasoning(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    json_t *effort = json_object_get(value, "effort");
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object", name, nib_server_fields_kind_of(value));
    if (json_is_string(effort)) json_object_set(ask->chat, "reasoning_effort", effort);
    if (strcmp(nib_server_json_word(value, "effort"), "none") == 0) json_object_set_new(ask->chat, "enable_thinking", json_false());
    return NIB_OK;
}

static nib_status read_truncation(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    (void)ask;
    if (json_is_string(value) && strcmp(json_string_value(value), "disabled") == 0) return NIB_OK;
    return nib_server_refuse(fault, name, "%s must be \"disabled\": nothing is left out of a prompt", name);
}

static const nib_server_field fields[] = {
    NIB_SERVER_FIELD_BY("input", read_input),
    NIB_SERVER_FIELD_BY("instructions", read_instructions),
    NIB_SERVER_FIELD_BY("max_output_tokens", read_max),
    NIB_SERVER_FIELD_BY("tools", read_tools),
    NIB_SERVER_FIELD_BY("tool_choice", read_tool_choice),
    NIB_SERVER_FIELD("parallel_tool_calls", NOT, one_call, 0, 0),
    NIB_SERVER_FIELD_BY("text", read_format),
    NIB_SERVER_FIELD_BY("reasoning", read_reasoning),
    NIB_SERVER_FIELD_BY("truncation", read_truncation),
    NIB_SERVER_FIELD_UNUSED("include"),
    NIB_SERVER_FIELD_UNUSED("max_tool_calls"),
    NIB_SERVER_FIELD_UNUSED("stream_options"),
    NIB_SERVER_FIELD_ABSENT("previous_response_id", "nothing is kept here: send the conversation"),
    NIB_SERVER_FIELD_ABSENT("conversation", "nothing is kept here: send the conversation"),
    NIB_SERVER_FIELD_ABSENT("prompt", "there are no stored prompts"),
    NIB_SERVER_FIELD_ABSENT("background", "nothing is kept here"),
    NIB_SERVER_FIELD_ABSENT("top_logprobs", "use /v1/chat/completions"),
    NIB_SERVER_FIELD_ABSENT("n", "there is one answer"),
    NIB_SERVER_FIELD_ABSENT("max_tokens", "use max_output_tokens"),
    NIB_SERVER_FIELD_ABSENT("messages", "use input"),
    NIB_SERVER_FIELD_ABSENT("response_format", "use text.format"),
    {0},
};

nib_status nib_server_responses_read(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {fields, nib_server_openai_fields, NULL};
    ask->chat = json_pack("{s:[]}", "messages");
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    const json_t *input = json_object_get(ask->body, "input");
    if (input && !json_is_null(input)) return NIB_OK;
    return nib_server_refuse(fault, "input", "input is missing, expected a string or a list");
}
