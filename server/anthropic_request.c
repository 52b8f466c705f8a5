/* server/anthropic_request.c - a request of Anthropic's messages API -> messages as nib_chat_render takes them.
 *
 * A message of theirs is a list of blocks, of which one may become several messages: results of tools stand in messages of
 * their own here, and what an assistant thought, said and called are parts of one. */
#include "anthropic.h"

#include "base/mem.h"
#include "base/status.h"
#include "fields.h"
#include "internal.h"

#include <stdio.h>
#include <string.h>

static json_t *take_text(nib_buf *text) {
    json_t *value = nib_server_json_str((nib_str){text->ptr, text->len});
    nib_buf_free(text);
    return value;
}

static json_t *add_message(json_t *messages, const char *role) {
    json_t *message = json_object();
    json_object_set_new(message, "role", json_string(role));
    json_array_append_new(messages, message);
    return message;
}

/* ---- blocks */

typedef struct reading {
    json_t *messages;   /* so far */
    const char *path;   /* "messages[3].content" */
    nib_buf text, thoughts;
    json_t *calls;      /* of an assistant's message */
    nib_server_fault *fault;
} reading;

static nib_status read_result(reading *r, const json_t *block) {
    nib_buf text = {0};
    const json_t *content = json_object_get(block, "content");
    nib_status status = content && !json_is_null(content) ? nib_server_fields_text(content, r->path, "\n", &text, r->fault) : NIB_OK;
    json_t *message = add_message(r->messages, "tool");
    json_object_set_new(message, "tool_call_id", json_string(nib_server_json_word(block, "tool_use_id")));
    json_object_set_new(message, "content", take_text(&text));
    return status;
}

static nib_status read_call(reading *r, const json_t *block) {
    const json_t *input = json_object_get(block, "input");
    char *arguments = json_is_object(input) ? nib_server_json_dump(input) : NULL;
    if (!arguments || !nib_server_json_word(block, "name")[0])
        return nib_server_refuse(r->fault, r->path, "%s: a tool_use needs a name and an input, an object", r->path);
    json_array_append_new(r->calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", nib_server_json_word(block, "id"), "type", "function",
                                              "function", "name", nib_server_json_word(block, "name"), "arguments", arguments));
    nib_free(arguments);
    return NIB_OK;
}

static nib_status read_block(reading *r, const json_t *block, bool is_assistant) {
    const char *type = nib_server_json_word(block, "type");
    const json_t *text = json_object_get(block, "text");
    if (strcmp(type, "text") == 0 && json_is_string(text)) {
        if (r->text.len && !is_assistant) nib_buf_char(&r->text, '\n');
        nib_buf_append(&r->text, json_string_value(text), json_string_length(text));
        return NIB_OK;
    }
    if (!is_assistant && strcmp(type, "tool_result") == 0) return read_result(r, block);
    if (is_assistant && strcmp(type, "tool_use") == 0) return read_call(r, block);
    if (is_assistant && strcmp(type, "thinking") == 0) {
        nib_buf_str(&r->thoughts, nib_server_json_word(block, "thinking"));
        return NIB_OK;
    }
    if (is_assistant && strcmp(type, "redacted_thinking") == 0) return NIB_OK; /* nobody here can read it */
    return nib_server_refuse(r->fault, r->path, "%s: a block of type \"%.40s\" is not supported: nib reads text only", r->path, type);
}

static nib_status read_blocks(reading *r, const json_t *content, bool is_assistant) {
    nib_str whole = nib_server_json_text(content);
    if (json_is_string(content)) nib_buf_append(&r->text, whole.ptr, whole.len);
    else if (!json_is_array(content))
        return nib_server_refuse(r->fault, r->path, "%s is %s, expected a string or a list of blocks", r->path,
                                 content ? nib_server_fields_kind_of(content) : "missing");
    for (size_t i = 0; i < json_array_size(content); i++) NIB_TRY(read_block(r, json_array_get(content, i), is_assistant));
    return NIB_OK;
}

static nib_status read_message(json_t *messages, const json_t *message, size_t i, nib_server_fault *fault) {
    char path[64];
    const char *role = nib_server_json_word(message, "role");
    bool is_assistant = strcmp(role, "assistant") == 0;
    size_t n_before = json_array_size(messages);
    snprintf(path, sizeof path, "messages[%zu].role", i);
    if (!is_assistant && strcmp(role, "user") != 0 && strcmp(role, "system") != 0)
        return nib_server_refuse(fault, path, "%s is \"%.40s\", expected user or assistant", path, role);
    snprintf(path, sizeof path, "messages[%zu].content", i);
    reading r = {.messages = messages, .path = path, .calls = json_array(), .fault = fault};
    nib_status status = read_blocks(&r, json_object_get(message, "content"), is_assistant);
    bool has_calls = json_array_size(r.calls) > 0;
    if (status == NIB_OK && (r.text.len || has_calls || json_array_size(messages) == n_before)) {
        json_t *made = add_message(messages, role);
        json_object_set_new(made, "content", nib_server_json_str((nib_str){r.text.ptr, r.text.len}));
        if (r.thoughts.len) json_object_set_new(made, "reasoning_content", nib_server_json_str((nib_str){r.thoughts.ptr, r.thoughts.len}));
        if (has_calls) json_object_set(made, "tool_calls", r.calls);
    }
    json_decref(r.calls);
    nib_buf_free(&r.text);
    nib_buf_free(&r.thoughts);
    return status;
}

/* ---- fields */

static nib_status read_messages(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    json_t *messages = json_object_get(ask->chat, "messages");
    size_t n = json_array_size(value);
    if (!n) return nib_server_refuse(fault, name, "%s is %s, expected a list that is not empty", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < n; i++) NIB_TRY(read_message(messages, json_array_get(value, i), i, fault));
    if (strcmp(nib_server_json_word(json_array_get(value, n - 1), "role"), "assistant") == 0) { /* it goes on */
        json_object_set_new(ask->chat, "continue_final_message", json_true());
        json_object_set_new(ask->chat, "add_generation_prompt", json_false());
    }
    return NIB_OK;
}

static nib_status read_system(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    nib_buf text = {0};
    nib_status status = nib_server_fields_text(value, name, "\n", &text, fault);
    json_t *message = json_object();
    json_object_set_new(message, "role", json_string("system"));
    json_object_set_new(message, "content", take_text(&text));
    json_array_insert_new(json_object_get(ask->chat, "messages"), 0, message);
    return status;
}

static nib_status read_stops(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *stop = json_array_get(value, i);
        if (!json_is_string(stop)) return nib_server_refuse(fault, name, "%s[%zu] is no string", name, i);
        NIB_TRY(nib_server_ask_add_stop(ask, nib_server_json_text(stop), fault));
    }
    return json_is_array(value) ? NIB_OK : nib_server_refuse(fault, name, "%s is %s, expected a list of strings", name,
                                                             nib_server_fields_kind_of(value));
}

static nib_status read_tools(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    json_t *tools = json_array();
    json_object_set_new(ask->chat, "tools", tools);
    if (!json_is_array(value)) return nib_server_refuse(fault, name, "%s is %s, expected a list", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *tool = json_array_get(value, i), *schema = json_object_get(tool, "input_schema");
        const char *type = nib_server_json_word(tool, "type");
        if ((type[0] && strcmp(type, "custom") != 0) || !json_is_object(schema) || !nib_server_json_word(tool, "name")[0])
            return nib_server_refuse(fault, name, "%s[%zu]: a tool needs a name and an input_schema; there are none of the server's own",
                                     name, i);
        json_array_append_new(tools, json_pack("{s:s, s:{s:s, s:s, s:O}}", "type", "function", "function", "name",
                                               nib_server_json_word(tool, "name"), "description",
                                               nib_server_json_word(tool, "description"), "parameters", (json_t *)(uintptr_t)schema));
    }
    if (json_array_size(tools)) ask->tools = tools;
    else json_object_del(ask->chat, "tools");
    return NIB_OK;
}

static nib_status read_tool_choice(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *type = nib_server_json_word(value, "type");
    const json_t *disables = json_object_get(value, "disable_parallel_tool_use");
    ask->one_call = json_is_true(disables);
    ask->many_calls = json_is_false(disables);
    if (strcmp(type, "auto") == 0) return NIB_OK;
    if (strcmp(type, "any") == 0) ask->tool_choice = NIB_SERVER_TOOLS_REQUIRED;
    if (strcmp(type, "none") == 0) {
        ask->tool_choice = NIB_SERVER_TOOLS_NONE;
        json_object_set_new(ask->chat, "tool_choice", json_string("none"));
    }
    if (strcmp(type, "tool") == 0 && nib_server_json_word(value, "name")[0]) {
        ask->tool_choice = NIB_SERVER_TOOLS_NAMED;
        ask->tool_name = nib_server_json_word(value, "name");
    }
    bool is_known = ask->tool_choice != NIB_SERVER_TOOLS_AUTO;
    if (is_known) return NIB_OK;
    return nib_server_refuse(fault, "tool_choice.type", "%s.type is \"%.40s\", expected auto, any, tool with a name, or none", name, type);
}

static nib_status read_thinking(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *type = nib_server_json_word(value, "type");
    bool is_off = strcmp(type, "disabled") == 0;
    if (!is_off && strcmp(type, "enabled") != 0 && strcmp(type, "adaptive") != 0)
        return nib_server_refuse(fault, "thinking.type", "%s.type is \"%.40s\", expected enabled or disabled", name, type);
    json_object_set_new(ask->chat, "enable_thinking", json_boolean(!is_off));
    return NIB_OK;
}

/* {"type": "json_schema", "schema": …}, by itself or as the format of output_config. */
static nib_status read_format(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const json_t *inner = json_object_get(value, "format"), *format = inner ? inner : value, *schema = json_object_get(format, "schema");
    if (!json_object_get(format, "type") && strcmp(name, "output_config") == 0) return NIB_OK; /* of other things */
    if (strcmp(nib_server_json_word(format, "type"), "json_schema") == 0 && schema)
        return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_JSON_SCHEMA, schema, name, fault);
    return nib_server_refuse(fault, name, "%s: expected the type json_schema and a schema", name);
}

static nib_status read_max(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 1, INT32_MAX, &n, fault));
    ask->max_tokens = (uint32_t)n;
    return NIB_OK;
}

static const nib_server_field fields[] = {
    NIB_SERVER_FIELD("model", STRING, model, 0, 0),
    NIB_SERVER_FIELD_BY("messages", read_messages),
    NIB_SERVER_FIELD_BY("system", read_system),
    NIB_SERVER_FIELD_BY("max_tokens", read_max),
    NIB_SERVER_FIELD("stream", BOOL, stream, 0, 0),
    NIB_SERVER_FIELD("temperature", FLOAT, sampling.temp, 0, 100),
    NIB_SERVER_FIELD("top_p", FLOAT, sampling.top_p, 0, 1),
    NIB_SERVER_FIELD("top_k", INT, sampling.top_k, 0, INT32_MAX),
    NIB_SERVER_FIELD_BY("stop_sequences", read_stops),
    NIB_SERVER_FIELD_BY("tools", read_tools),
    NIB_SERVER_FIELD_BY("tool_choice", read_tool_choice),
    NIB_SERVER_FIELD_BY("thinking", read_thinking),
    NIB_SERVER_FIELD_BY("output_format", read_format),
    NIB_SERVER_FIELD_BY("output_config", read_format),
    NIB_SERVER_FIELD("priority", INT, priority, INT32_MIN, INT32_MAX),
    NIB_SERVER_FIELD_UNUSED("metadata"),
    NIB_SERVER_FIELD_UNUSED("service_tier"),
    NIB_SERVER_FIELD_UNUSED("cache_control"),
    NIB_SERVER_FIELD_UNUSED("context_management"),
    NIB_SERVER_FIELD_UNUSED("inference_geo"),
    NIB_SERVER_FIELD_ABSENT("mcp_servers", "call them from the client"),
    NIB_SERVER_FIELD_ABSENT("container", "no code of clients is run"),
    {0},
};

nib_status nib_server_anthropic_read(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {fields, NULL};
    ask->chat = json_pack("{s:[]}", "messages");
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    return json_object_get(ask->body, "messages") ? NIB_OK : nib_server_refuse(fault, "messages", "messages is missing, expected a list");
}
