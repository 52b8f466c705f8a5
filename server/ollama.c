/* server/ollama.c - Ollama's API for one model: /api/chat, /api/generate and /api/embed, and what clients ask before. Streams are
 * lines of JSON. Who has nothing to say loads a model, there. */
#include "ollama.h"

#include "base/hash.h"
#include "base/status.h"
#include "dialect.h"
#include "errand.h"
#include "internal.h"
#include "openai.h"
#include "prepare.h"
#include "routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define API_VERSION "0.12.0" /* whose API this is: clients look whether it is new enough for them */

/* ---- parts */

static json_t *time_json(int64_t seconds) {
    char text[32];
    time_t t = (time_t)seconds;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

static json_t *name_json(const nib_server *server) {
    nib_str name = nib_server_model_name(server);
    nib_buf text = {0};
    nib_buf_append(&text, name.ptr, name.len);
    nib_buf_str(&text, ":latest");
    json_t *value = nib_server_json_str((nib_str){text.ptr, text.len});
    nib_buf_free(&text);
    return value;
}

static json_t *text_json(const nib_buf *text) {
    return nib_server_json_str((nib_str){text->ptr, text->len});
}

static void put_line(json_t *value, nib_buf *out) {
    nib_server_json_put(value, out);
    nib_buf_char(out, '\n');
}

static json_t *head_json(const nib_server_answer *a) {
    json_t *o = json_object();
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(a->server)));
    json_object_set_new(o, "created_at", time_json(a->created));
    return o;
}

/* Nanoseconds. */
static json_t *duration_json(double ms) {
    return json_integer(ms > 0 ? (json_int_t)(1e6 * ms) : 0);
}

static void set_end(json_t *o, const nib_server_choice *c) {
    const nib_usage *u = &c->usage;
    bool is_cut = c->finish == NIB_SERVER_FINISH_LENGTH || c->finish == NIB_SERVER_FINISH_TIMEOUT;
    bool is_nothing = c->finish == NIB_SERVER_FINISH_NOTHING;
    json_object_set_new(o, "done", json_true());
    json_object_set_new(o, "done_reason", json_string(is_nothing ? "load" : is_cut ? "length" : "stop"));
    if (is_nothing) return;
    json_object_set_new(o, "total_duration", duration_json(u->total_ms));
    json_object_set_new(o, "load_duration", json_integer(0));
    json_object_set_new(o, "prompt_eval_count", json_integer(u->n_prompt));
    json_object_set_new(o, "prompt_eval_duration", duration_json(u->ttft_ms - u->queue_ms));
    json_object_set_new(o, "eval_count", json_integer(u->n_generated));
    json_object_set_new(o, "eval_duration", duration_json(u->total_ms - u->ttft_ms));
}

static json_t *call_json(const nib_server_call *call) {
    return json_pack("{s:{s:o, s:o}}", "function", "name", text_json(&call->name), "arguments",
                     nib_server_json_arguments(&call->arguments));
}

/* ---- answers */

static const nib_server_dialect generate_dialect;

/* What was said, in a message or, of generate, by itself. Takes content; thinking and calls may be NULL. */
static void set_said(json_t *o, const nib_server_answer *a, json_t *content, json_t *thinking, json_t *calls) {
    bool is_generate = a->dialect == &generate_dialect;
    json_t *to = is_generate ? o : json_object();
    if (!is_generate) json_object_set_new(to, "role", json_string("assistant"));
    json_object_set_new(to, is_generate ? "response" : "content", content);
    if (thinking) json_object_set_new(to, "thinking", thinking);
    if (calls) json_object_set_new(to, "tool_calls", calls);
    if (!is_generate) json_object_set_new(o, "message", to);
}

static void write_whole(nib_server_answer *a, nib_buf *out) {
    const nib_server_choice *c = &a->choices[0];
    json_t *o = head_json(a), *calls = c->n_calls ? json_array() : NULL;
    for (size_t i = 0; i < c->n_calls; i++) json_array_append_new(calls, call_json(&c->calls[i]));
    set_said(o, a, text_json(&c->content), c->reasoning.len ? text_json(&c->reasoning) : NULL, calls);
    set_end(o, c);
    nib_server_json_put(o, out);
}

static void write_error(const nib_server_fault *fault, nib_buf *out) {
    nib_server_json_put(json_pack("{s:o}", "error", nib_server_json_str((nib_str){fault->message, strlen(fault->message)})), out);
}

static void write_event(nib_server_answer *a, const nib_server_event *e, nib_buf *out) {
    bool is_content = e->kind == NIB_SERVER_CONTENT, is_thought = e->kind == NIB_SERVER_REASONING;
    bool is_call = e->kind == NIB_SERVER_CALL_END, is_end = e->kind == NIB_SERVER_CHOICE_END;
    if (e->kind == NIB_SERVER_ERROR) {
        write_error(e->fault, out);
        nib_buf_char(out, '\n');
    }
    if (!is_content && !is_thought && !is_call && !is_end) return;
    json_t *o = head_json(a);
    set_said(o, a, nib_server_json_str(is_content ? e->text : (nib_str){"", 0}), is_thought ? nib_server_json_str(e->text) : NULL,
             is_call ? json_pack("[o]", call_json(e->call)) : NULL);
    json_object_set_new(o, "done", json_false());
    if (is_end) set_end(o, e->choice);
    put_line(o, out);
}

static void write_embeddings(nib_server_answer *a, nib_buf *out) {
    json_t *list = json_array();
    for (size_t i = 0; i < a->n_choices && a->choices[i].embedding; i++)
        json_array_append_new(list, nib_server_openai_vector(&a->choices[i]));
    json_t *o = json_object();
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(a->server)));
    json_object_set_new(o, "embeddings", list);
    json_object_set_new(o, "total_duration", duration_json(a->choices[a->n_choices - 1].usage.total_ms));
    json_object_set_new(o, "load_duration", json_integer(0));
    json_object_set_new(o, "prompt_eval_count", json_integer((json_int_t)nib_server_usage_of(a).n_prompt));
    nib_server_json_put(o, out);
}

/* The one vector of /api/embeddings. */
static void write_embedding(nib_server_answer *a, nib_buf *out) {
    const nib_server_choice *c = &a->choices[0];
    nib_server_json_put(json_pack("{s:o}", "embedding", c->embedding ? nib_server_openai_vector(c) : json_array()), out);
}

const nib_server_dialect nib_server_ollama = {
    .stream_type = "application/x-ndjson", .read = nib_server_ollama_chat, .event = write_event, .whole = write_whole, .error = write_error,
};

static const nib_server_dialect generate_dialect = {
    .stream_type = "application/x-ndjson", .read = nib_server_ollama_generate, .event = write_event, .whole = write_whole,
    .error = write_error,
};

static const nib_server_dialect embed_dialect = {.read = nib_server_ollama_embed, .whole = write_embeddings, .error = write_error};
static const nib_server_dialect embeddings_dialect = {
    .read = nib_server_ollama_embeddings, .whole = write_embedding, .error = write_error,
};

void nib_server_route_ollama_chat(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &nib_server_ollama);
}

void nib_server_route_ollama_generate(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &generate_dialect);
}

void nib_server_route_ollama_embed(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &embed_dialect);
}

void nib_server_route_ollama_embeddings(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &embeddings_dialect);
}

/* ---- the model */

static json_t *details_json(const nib_server *server) {
    const nib_model *m = server->model.model;
    char size[24];
    double n = (double)nib_model_n_params(m);
    if (n < 1e9) snprintf(size, sizeof size, "%.1fM", n / 1e6);
    else snprintf(size, sizeof size, "%.1fB", n / 1e9);
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf", "family", nib_model_arch(m), "families",
                     nib_model_arch(m), "parameter_size", size, "quantization_level", "unknown");
}

/* Something that stays as long as the model does: there is no registry that knows it by its bytes. */
static json_t *digest_json(const nib_server *server) {
    char text[65];
    nib_str name = nib_server_model_name(server);
    uint64_t hash = nib_hash64(nib_model_n_params(server->model.model), name.ptr, name.len);
    for (size_t i = 0; i < 4; i++) snprintf(text + 16 * i, 17, "%016" PRIx64, hash = nib_hash64(hash, &i, sizeof i));
    return json_string(text);
}

static json_t *model_json(const nib_server *server) {
    json_t *o = json_object();
    json_object_set_new(o, "name", name_json(server));
    json_object_set_new(o, "model", name_json(server));
    json_object_set_new(o, "size", json_integer((json_int_t)nib_model_weight_bytes(server->model.model)));
    json_object_set_new(o, "digest", digest_json(server));
    json_object_set_new(o, "details", details_json(server));
    return o;
}

void nib_server_route_ollama_tags(nib_server *server, nib_server_exchange *x) {
    json_t *model = model_json(server);
    json_object_set_new(model, "modified_at", time_json(server->started));
    nib_server_reply_json(x, json_pack("{s:[o]}", "models", model));
}

void nib_server_route_ollama_ps(nib_server *server, nib_server_exchange *x) {
    json_t *model = model_json(server);
    json_object_set_new(model, "size_vram", json_integer(0));
    json_object_set_new(model, "expires_at", json_string("9999-12-31T23:59:59Z"));
    json_object_set_new(model, "context_length", json_integer(server->model.max_context));
    nib_server_reply_json(x, json_pack("{s:[o]}", "models", model));
}

void nib_server_route_ollama_version(nib_server *server, nib_server_exchange *x) {
    (void)server;
    nib_server_reply_json(x, json_pack("{s:s}", "version", API_VERSION));
}

static void set_info(json_t *info, const char *arch, const char *key, uint64_t value) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    json_object_set_new(info, name, json_integer((json_int_t)value));
}

static nib_status show(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    const nib_server_model *m = &ask->server->model;
    const char *arch = nib_model_arch(m->model);
    NIB_TRY(nib_server_ollama_show(ask, fault));
    NIB_TRY(nib_server_prepare_model(ask, fault));
    json_t *o = json_object(), *info = json_object(), *capabilities = json_pack("[s, s]", "completion", "embedding");
    json_object_set_new(info, "general.architecture", json_string(arch));
    set_info(info, "general", "parameter_count", nib_model_n_params(m->model));
    set_info(info, arch, "context_length", m->max_context);
    set_info(info, arch, "embedding_length", nib_model_n_embd(m->model));
    set_info(info, arch, "block_count", nib_model_n_layer(m->model));
    if (m->chat) json_array_append_new(capabilities, json_string("tools"));
    json_object_set_new(o, "modelfile", json_string(""));
    json_object_set_new(o, "parameters", json_string(""));
    json_object_set_new(o, "template", json_string(m->chat ? nib_chat_source(m->chat) : ""));
    json_object_set_new(o, "details", details_json(ask->server));
    json_object_set_new(o, "model_info", info);
    json_object_set_new(o, "capabilities", capabilities);
    json_object_set_new(o, "modified_at", time_json(ask->server->started));
    nib_server_json_put(o, out);
    return NIB_OK;
}

void nib_server_route_ollama_show(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, show, &nib_server_ollama);
}
