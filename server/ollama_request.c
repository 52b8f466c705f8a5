/* server/ollama_request.c - requests of Ollama's API -> asks. Its sampling defaults hold, not OpenAI's. */
#include "ollama.h"

#include "base/mem.h"
#include "base/status.h"
#include "fields.h"
#include "internal.h"
#include "openai.h"

#include <stdio.h>
#include <string.h>

/* ---- fields that all have */

/* NAME:latest is NAME. */
static nib_status read_model(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    static const char tag[] = ":latest";
    size_t n, n_tag = sizeof tag - 1;
    NIB_TRY(nib_server_fields_string(value, name, &ask->model, fault));
    n = strlen(ask->model);
    if (n <= n_tag || strcmp(ask->model + n - n_tag, tag) != 0) return NIB_OK;
    json_t *bare = json_stringn(ask->model, n - n_tag);
    json_object_set_new(ask->body, "model", bare);
    ask->model = json_string_value(bare);
    return NIB_OK;
}

static nib_status read_format(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    nib_str word = nib_server_json_text(value);
    if (json_is_object(value)) return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_JSON_SCHEMA, value, name, fault);
    if (word.ptr && !word.len) return NIB_OK;
    if (!word.ptr || strcmp(word.ptr, "json") != 0) return nib_server_refuse(fault, name, "%s must be \"json\" or a schema", name);
    return nib_server_ask_set_grammar(ask, NIB_SYNTAX_JSON_OBJECT, (nib_str){0}, name, fault);
}

static nib_status read_think(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (!json_is_boolean(value) && !json_is_string(value))
        return nib_server_refuse(fault, name, "%s is %s, expected true, false or a level", name, nib_server_fields_kind_of(value));
    if (!ask->chat) return NIB_OK;
    json_object_set_new(ask->chat, "enable_thinking", json_boolean(!json_is_false(value)));
    if (json_is_string(value)) json_object_set(ask->chat, "reasoning_effort", (json_t *)(uintptr_t)value);
    return NIB_OK;
}

static nib_status read_predict(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, -2, INT32_MAX, &n, fault));
    ask->max_tokens = n > 0 ? (uint32_t)n : 0;
    return NIB_OK;
}

static const nib_server_field options[] = {
    NIB_SERVER_FIELD_BY("num_predict", read_predict),
    NIB_SERVER_FIELD("temperature", FLOAT, sampling.temp, 0, 1e9),
    NIB_SERVER_FIELD("top_p", FLOAT, sampling.top_p, 0, 1e9),
    NIB_SERVER_FIELD_UNUSED("num_ctx"), /* set by the server's -c and --max-context: longer prompts are refused by length */
    NIB_SERVER_FIELD_UNUSED("num_keep"),
    NIB_SERVER_FIELD_UNUSED("num_batch"),
    NIB_SERVER_FIELD_UNUSED("num_gpu"),
    NIB_SERVER_FIELD_UNUSED("main_gpu"),
    NIB_SERVER_FIELD_UNUSED("num_thread"),
    NIB_SERVER_FIELD_UNUSED("num_parallel"),
    NIB_SERVER_FIELD_UNUSED("low_vram"),
    NIB_SERVER_FIELD_UNUSED("numa"),
    NIB_SERVER_FIELD_UNUSED("f16_kv"),
    NIB_SERVER_FIELD_UNUSED("use_mmap"),
    NIB_SERVER_FIELD_UNUSED("use_mlock"),
    NIB_SERVER_FIELD_UNUSED("vocab_only"),
    NIB_SERVER_FIELD_UNUSED("penalize_newline"),
    NIB_SERVER_FIELD_ABSENT("tfs_z", "there is no such sampler"),
    {0},
};

static nib_status read_options(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {options, nib_server_llama_sampling_fields, nib_server_openai_fields, NULL};
    json_t *body = ask->body;
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object", name, nib_server_fields_kind_of(value));
    ask->body = json_object_get(body, name);
    nib_status status = nib_server_fields_read(ask, tables, fault);
    ask->body = body;
    return status;
}

static nib_status read_images(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    (void)ask;
    return json_array_size(value) ? nib_server_refuse(fault, name, "%s: nib reads text only", name) : NIB_OK;
}

static const nib_server_field common[] = {
    NIB_SERVER_FIELD_BY("model", read_model),
    NIB_SERVER_FIELD_BY("options", read_options),
    NIB_SERVER_FIELD("stream", BOOL, stream, 0, 0),
    NIB_SERVER_FIELD_BY("format", read_format),
    NIB_SERVER_FIELD_BY("think", read_think),
    NIB_SERVER_FIELD_UNUSED("keep_alive"),
    NIB_SERVER_FIELD_ABSENT("logprobs", "use /v1/chat/completions"),
    NIB_SERVER_FIELD_ABSENT("top_logprobs", "use /v1/chat/completions"),
    {0},
};

static void set_defaults(nib_server_ask *ask) {
    ask->sampling = (nib_sampler_params)NIB_SAMPLER_PARAMS_INIT;
    ask->sampling.top_p = 0.9f;
    ask->sampling.min_p = 0;
    ask->sampling.penalty_repeat = 1.1f;
    ask->stream = true;
}

/* ---- chat */

/* Calls have no ids there: they are numbered, and results belong to them in their order. */
typedef struct call_ids {
    int n_calls, n_results;
} call_ids;

static nib_status add_calls(json_t *made, const json_t *calls, call_ids *ids, const char *path, nib_server_fault *fault) {
    json_t *list = json_array();
    json_object_set_new(made, "tool_calls", list);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        char id[24];
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const json_t *arguments = json_object_get(function, "arguments");
        const char *name = json_string_value(json_object_get(function, "name"));
        if (!name || !json_is_object(arguments))
            return nib_server_refuse(fault, path, "%s: a call needs a function with a name and arguments, an object", path);
        char *text = nib_server_json_dump(arguments);
        snprintf(id, sizeof id, "call_%d", ids->n_calls++);
        json_array_append_new(list, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", id, "type", "function", "function", "name", name,
                                              "arguments", text ? text : "{}"));
        nib_free(text);
    }
    return NIB_OK;
}

static nib_status add_message(nib_server_ask *ask, const json_t *message, size_t i, call_ids *ids, nib_server_fault *fault) {
    char path[64], id[24];
    json_t *made = json_object();
    const char *role = json_string_value(json_object_get(message, "role"));
    static const char *const kept[] = {"role", "content"};
    snprintf(path, sizeof path, "messages[%zu]", i);
    json_array_append_new(json_object_get(ask->chat, "messages"), made);
    for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++)
        if (json_object_get(message, kept[k])) json_object_set(made, kept[k], json_object_get(message, kept[k]));
    bool has_images = json_array_size(json_object_get(message, "images")) > 0;
    if (has_images) return nib_server_refuse(fault, path, "%s.images: nib reads text only", path);
    json_t *thoughts = json_object_get(message, "thinking");
    if (json_is_string(thoughts)) json_object_set(made, "reasoning_content", thoughts);
    if (role && strcmp(role, "tool") == 0) {
        snprintf(id, sizeof id, "call_%d", ids->n_results++);
        json_object_set_new(made, "tool_call_id", json_string(id));
        if (json_object_get(message, "tool_name")) json_object_set(made, "name", json_object_get(message, "tool_name"));
    }
    const json_t *calls = json_object_get(message, "tool_calls");
    return json_array_size(calls) ? add_calls(made, calls, ids, path, fault) : NIB_OK;
}

static nib_status read_messages(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    call_ids ids = {0};
    if (!json_is_array(value)) return nib_server_refuse(fault, name, "%s is %s, expected a list", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) NIB_TRY(add_message(ask, json_array_get(value, i), i, &ids, fault));
    return NIB_OK;
}

static nib_status read_tools(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (!json_is_array(value)) return nib_server_refuse(fault, name, "%s is %s, expected a list", name, nib_server_fields_kind_of(value));
    if (!json_array_size(value)) return NIB_OK;
    ask->tools = json_object_get(ask->body, name);
    json_object_set(ask->chat, name, ask->tools);
    return NIB_OK;
}

nib_status nib_server_ollama_chat(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field fields[] = {
        NIB_SERVER_FIELD_BY("messages", read_messages),
        NIB_SERVER_FIELD_BY("tools", read_tools),
        {0},
    };
    static const nib_server_field *const tables[] = {fields, common, NULL};
    set_defaults(ask);
    ask->chat = json_pack("{s:[]}", "messages");
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    ask->is_empty = !json_array_size(json_object_get(ask->chat, "messages"));
    return NIB_OK;
}

/* ---- generate: one message, or raw text */

nib_status nib_server_ollama_generate(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field fields[] = {
        NIB_SERVER_FIELD_BY("images", read_images),
        NIB_SERVER_FIELD_UNUSED("prompt"),
        NIB_SERVER_FIELD_UNUSED("system"),
        NIB_SERVER_FIELD_UNUSED("raw"),
        NIB_SERVER_FIELD_ABSENT("suffix", "text is continued at its end only"),
        NIB_SERVER_FIELD_ABSENT("template", "the server's --chat-template sets it"),
        NIB_SERVER_FIELD_ABSENT("context", "send the text again: what was computed is found"),
        {0},
    };
    static const nib_server_field *const tables[] = {fields, common, NULL};
    json_t *prompt = json_object_get(ask->body, "prompt"), *system = json_object_get(ask->body, "system");
    json_t *raw = json_object_get(ask->body, "raw");
    bool is_raw = false;
    set_defaults(ask);
    if (raw && !json_is_null(raw)) NIB_TRY(nib_server_fields_bool(raw, "raw", &is_raw, fault));
    if (prompt && !json_is_null(prompt) && !json_is_string(prompt)) return nib_server_refuse(fault, "prompt", "prompt is no string");
    ask->is_empty = !json_string_length(prompt);
    if (system && !json_is_null(system) && !json_is_string(system)) return nib_server_refuse(fault, "system", "system is no string");
    if (ask->is_empty) return nib_server_fields_read(ask, tables, fault);
    if (is_raw || !ask->server->model.chat) {
        NIB_TRY(nib_server_ask_add_text(ask, nib_server_json_text(prompt), fault));
    } else {
        ask->chat = json_pack("{s:[{s:s, s:O}]}", "messages", "role", "user", "content", prompt);
        if (json_string_length(system))
            json_array_insert_new(json_object_get(ask->chat, "messages"), 0, json_pack("{s:s, s:O}", "role", "system", "content", system));
    }
    return nib_server_fields_read(ask, tables, fault);
}

/* ---- embed */

static nib_status read_input(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    ask->is_empty = json_is_string(value) ? !json_string_length(value) : json_is_array(value) && !json_array_size(value);
    return ask->is_empty ? NIB_OK : nib_server_openai_prompts(ask, name, value, fault);
}

static nib_status read_embed(nib_server_ask *ask, const nib_server_field *input, nib_server_fault *fault) {
    static const nib_server_field fields[] = {
        NIB_SERVER_FIELD_BY("model", read_model),
        NIB_SERVER_FIELD_UNUSED("truncate"), /* what is too long is refused */
        NIB_SERVER_FIELD_UNUSED("options"),
        NIB_SERVER_FIELD_UNUSED("keep_alive"),
        NIB_SERVER_FIELD_ABSENT("dimensions", "vectors are not cut"),
        {0},
    };
    const nib_server_field *const tables[] = {input, fields, NULL};
    ask->is_empty = true;
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    ask->pooling = nib_model_pooling(ask->server->model.model);
    return ask->pooling ? NIB_OK : nib_server_refuse(fault, "model", "the model's file asks for a kind of pooling that is not known here");
}

nib_status nib_server_ollama_embed(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field input[] = {NIB_SERVER_FIELD_BY("input", read_input), {0}};
    return read_embed(ask, input, fault);
}

nib_status nib_server_ollama_embeddings(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field prompt[] = {NIB_SERVER_FIELD_BY("prompt", read_input), {0}};
    ask->keeps_length = true;
    NIB_TRY(read_embed(ask, prompt, fault));
    return ask->n_prompts < 2 ? NIB_OK : nib_server_refuse(fault, "prompt", "prompt is a list, expected a string: use /api/embed");
}

/* ---- show */

nib_status nib_server_ollama_show(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field fields[] = {
        NIB_SERVER_FIELD_BY("model", read_model),
        NIB_SERVER_FIELD_BY("name", read_model), /* as it was called once */
        NIB_SERVER_FIELD_UNUSED("verbose"),
        {0},
    };
    static const nib_server_field *const tables[] = {fields, NULL};
    return nib_server_fields_read(ask, tables, fault);
}
