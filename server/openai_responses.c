/* server/openai_responses.c - POST /v1/responses: an answer as a list of items, whole or as a stream of their parts. */
#include "openai_responses.h"

#include "dialect.h"
#include "internal.h"
#include "openai.h"
#include "routes.h"

#include <stdio.h>
#include <string.h>

typedef enum item_kind { NO_ITEM, MESSAGE_ITEM, REASONING_ITEM, CALL_ITEM } item_kind;

/* What a stream has open. */
typedef struct item_state {
    item_kind open;
    int n;            /* items so far, the open one included */
    int n_events;
    size_t from;      /* where the open one begins in content or reasoning */
} item_state;

/* ---- parts */

static json_t *id_json(const nib_server_answer *a, const char *prefix, int index) {
    char id[56];
    snprintf(id, sizeof id, "%s_%s%d", prefix, a->id, index);
    return json_string(id);
}

static json_t *text_json(const nib_buf *text, size_t from, size_t to) {
    return nib_server_json_str(from < to ? (nib_str){text->ptr + from, to - from} : (nib_str){"", 0});
}

/* Part 0 of a message or of thoughts. */
static json_t *part_json(item_kind kind, json_t *text) {
    if (kind == REASONING_ITEM) return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", text, "annotations", "logprobs");
}

/* Item `index`; part NULL: it has just begun. */
static json_t *text_item(const nib_server_answer *a, item_kind kind, int index, json_t *part) {
    json_t *o = json_object(), *content = json_array();
    bool is_message = kind == MESSAGE_ITEM;
    json_object_set_new(o, "id", id_json(a, is_message ? "msg" : "rs", index));
    json_object_set_new(o, "type", json_string(is_message ? "message" : "reasoning"));
    json_object_set_new(o, "status", json_string(part ? "completed" : "in_progress"));
    if (is_message) json_object_set_new(o, "role", json_string("assistant"));
    else json_object_set_new(o, "summary", json_array());
    if (part) json_array_append_new(content, part);
    json_object_set_new(o, "content", content);
    return o;
}

static json_t *call_item(const nib_server_answer *a, const nib_server_call *call, int index, bool is_complete) {
    json_t *o = json_object();
    json_object_set_new(o, "id", id_json(a, "fc", index));
    json_object_set_new(o, "type", json_string("function_call"));
    json_object_set_new(o, "status", json_string(is_complete ? "completed" : "in_progress"));
    json_object_set_new(o, "call_id", text_json(&call->id, 0, call->id.len));
    json_object_set_new(o, "name", text_json(&call->name, 0, call->name.len));
    json_object_set_new(o, "arguments", text_json(&call->arguments, 0, is_complete ? call->arguments.len : 0));
    return o;
}

static json_t *item_json(const nib_server_choice *c, const nib_server_part *part, int index) {
    bool is_message = part->kind == NIB_SERVER_CONTENT;
    item_kind kind = is_message ? MESSAGE_ITEM : REASONING_ITEM;
    if (part->kind == NIB_SERVER_CALL_BEGIN) return call_item(c->answer, &c->calls[part->call], index, true);
    json_t *text = text_json(is_message ? &c->content : &c->reasoning, part->from, part->to);
    return text_item(c->answer, kind, index, part_json(kind, text));
}

static json_t *output_json(const nib_server_choice *c) {
    json_t *items = json_array();
    for (size_t i = 0; i < c->n_parts; i++) json_array_append_new(items, item_json(c, &c->parts[i], (int)i));
    return items;
}

static json_t *usage_json(const nib_server_answer *a) {
    nib_server_usage u = nib_server_usage_of(a);
    return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", (json_int_t)u.n_prompt, "input_tokens_details", "cached_tokens",
                     (json_int_t)u.n_cached, "output_tokens", (json_int_t)u.n_generated, "output_tokens_details", "reasoning_tokens",
                     (json_int_t)u.n_reasoning, "total_tokens", (json_int_t)(u.n_prompt + u.n_generated));
}

/* A field of the request as the client sent it, or what it means when it did not. */
static void set_echo(json_t *o, const nib_server_answer *a, const char *name, json_t *fallback) {
    json_t *sent = json_object_get(a->ask.body, name);
    if (sent && !json_is_null(sent)) json_object_set(o, name, sent);
    else json_object_set(o, name, fallback);
    json_decref(fallback);
}

static json_t *response_json(const nib_server_answer *a, const char *status) {
    const nib_server_choice *c = &a->choices[0];
    json_t *o = json_object();
    bool is_over = c->finish != NIB_SERVER_FINISH_NONE;
    json_object_set_new(o, "id", id_json(a, "resp", 0));
    json_object_set_new(o, "object", json_string("response"));
    json_object_set_new(o, "created_at", json_integer(a->created));
    json_object_set_new(o, "status", json_string(status));
    json_object_set_new(o, "error", json_null());
    bool is_cut = is_over && strcmp(status, "incomplete") == 0;
    const char *why = c->finish == NIB_SERVER_FINISH_LENGTH ? "max_output_tokens" : nib_server_openai_finish(c);
    json_object_set_new(o, "incomplete_details", is_cut ? json_pack("{s:s}", "reason", why) : json_null());
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(a->server)));
    json_object_set_new(o, "output", is_over ? output_json(c) : json_array());
    json_object_set_new(o, "usage", is_over ? usage_json(a) : json_null());
    json_object_set_new(o, "background", json_false());
    json_object_set_new(o, "store", json_false());
    json_object_set_new(o, "previous_response_id", json_null());
    json_object_set_new(o, "truncation", json_string("disabled"));
    set_echo(o, a, "instructions", json_null());
    set_echo(o, a, "max_output_tokens", json_null());
    set_echo(o, a, "metadata", json_object());
    set_echo(o, a, "parallel_tool_calls", json_boolean(!a->ask.one_call));
    set_echo(o, a, "reasoning", json_pack("{s:n, s:n}", "effort", "summary"));
    set_echo(o, a, "temperature", json_real(1));
    set_echo(o, a, "text", json_pack("{s:{s:s}}", "format", "type", "text"));
    set_echo(o, a, "tool_choice", json_string("auto"));
    set_echo(o, a, "tools", json_array());
    set_echo(o, a, "top_p", json_real(1));
    return o;
}

static const char *status_of(const nib_server_answer *a) {
    nib_server_finish finish = a->choices[0].finish;
    return finish == NIB_SERVER_FINISH_STOP || finish == NIB_SERVER_FINISH_CALLS ? "completed" : "incomplete";
}

static void write_whole(nib_server_answer *a, nib_buf *out) {
    nib_server_json_put(response_json(a, status_of(a)), out);
}

/* ---- the stream */

/* One event; takes the value. */
static void put_event(nib_server_answer *a, json_t *value, const char *type, nib_buf *out) {
    item_state *s = a->state;
    json_object_set_new(value, "type", json_string(type));
    json_object_set_new(value, "sequence_number", json_integer(s->n_events++));
    nib_buf_printf(out, "event: %s\ndata: ", type);
    nib_server_json_put(value, out);
    nib_buf_str(out, "\n\n");
}

static void put_response(nib_server_answer *a, const char *status, const char *type, nib_buf *out) {
    put_event(a, json_pack("{s:o}", "response", response_json(a, status)), type, out);
}

static void put_item(nib_server_answer *a, json_t *item, const char *type, nib_buf *out) {
    const item_state *s = a->state;
    put_event(a, json_pack("{s:i, s:o}", "output_index", s->n - 1, "item", item), type, out);
}

/* An event about the open item's part, of which `field` is told. */
static void put_part(nib_server_answer *a, const char *field, json_t *value, const char *type, nib_buf *out) {
    const item_state *s = a->state;
    const char *prefix = s->open == CALL_ITEM ? "fc" : s->open == MESSAGE_ITEM ? "msg" : "rs";
    json_t *o = json_pack("{s:o, s:i, s:o}", "item_id", id_json(a, prefix, s->n - 1), "output_index", s->n - 1, field, value);
    if (s->open != CALL_ITEM) json_object_set_new(o, "content_index", json_integer(0));
    if (s->open == MESSAGE_ITEM && strcmp(field, "part") != 0) json_object_set_new(o, "logprobs", json_array());
    put_event(a, o, type, out);
}

static void close_item(nib_server_answer *a, nib_buf *out) {
    item_state *s = a->state;
    const nib_server_choice *c = &a->choices[0];
    bool is_message = s->open == MESSAGE_ITEM;
    if (s->open == NO_ITEM) return;
    const nib_buf *all = is_message ? &c->content : &c->reasoning;
    json_t *text = text_json(all, s->from, all->len);
    put_part(a, "text", json_incref(text), is_message ? "response.output_text.done" : "response.reasoning_text.done", out);
    json_t *part = part_json(s->open, text);
    put_part(a, "part", json_incref(part), "response.content_part.done", out);
    put_item(a, text_item(a, s->open, s->n - 1, part), "response.output_item.done", out);
    s->open = NO_ITEM;
}

static void put_text(nib_server_answer *a, item_kind kind, nib_str text, nib_buf *out) {
    item_state *s = a->state;
    const nib_server_choice *c = &a->choices[0];
    if (s->open != kind) {
        close_item(a, out);
        s->from = (kind == MESSAGE_ITEM ? c->content.len : c->reasoning.len) - text.len; /* it has been added */
        s->open = kind;
        s->n++;
        put_item(a, text_item(a, kind, s->n - 1, NULL), "response.output_item.added", out);
        put_part(a, "part", part_json(kind, json_string("")), "response.content_part.added", out);
    }
    const char *type = kind == MESSAGE_ITEM ? "response.output_text.delta" : "response.reasoning_text.delta";
    put_part(a, "delta", nib_server_json_str(text), type, out);
}

static void put_call(nib_server_answer *a, const nib_server_event *e, nib_buf *out) {
    item_state *s = a->state;
    const nib_server_call *call = e->call;
    if (e->kind == NIB_SERVER_CALL_BEGIN) {
        close_item(a, out);
        s->open = CALL_ITEM;
        s->n++;
        put_item(a, call_item(a, call, s->n - 1, false), "response.output_item.added", out);
    } else if (e->kind == NIB_SERVER_CALL_ARGUMENTS) {
        put_part(a, "delta", nib_server_json_str(e->text), "response.function_call_arguments.delta", out);
    } else {
        put_part(a, "arguments", text_json(&call->arguments, 0, call->arguments.len), "response.function_call_arguments.done", out);
        put_item(a, call_item(a, call, s->n - 1, true), "response.output_item.done", out);
        s->open = NO_ITEM;
    }
}

static void put_error(nib_server_answer *a, const nib_server_fault *fault, nib_buf *out) {
    json_t *o = json_pack("{s:s?, s:o, s:n}", "code", fault->code, "message",
                          nib_server_json_str((nib_str){fault->message, strlen(fault->message)}), "param");
    put_event(a, o, "error", out);
}

static void write_event(nib_server_answer *a, const nib_server_event *e, nib_buf *out) {
    bool is_complete = strcmp(status_of(a), "completed") == 0;
    switch (e->kind) {
    case NIB_SERVER_BEGIN:
        put_response(a, "in_progress", "response.created", out);
        put_response(a, "in_progress", "response.in_progress", out);
        break;
    case NIB_SERVER_CONTENT: put_text(a, MESSAGE_ITEM, e->text, out); break;
    case NIB_SERVER_REASONING: put_text(a, REASONING_ITEM, e->text, out); break;
    case NIB_SERVER_CALL_BEGIN:
    case NIB_SERVER_CALL_ARGUMENTS:
    case NIB_SERVER_CALL_END: put_call(a, e, out); break;
    case NIB_SERVER_CHOICE_END: close_item(a, out); break;
    case NIB_SERVER_END: put_response(a, status_of(a), is_complete ? "response.completed" : "response.incomplete", out); break;
    case NIB_SERVER_ERROR: put_error(a, e->fault, out); break;
    }
}

static const nib_server_dialect dialect = {
    .stream_type = "text/event-stream", .stream_idle = ":\n\n", .state_size = sizeof(item_state), .read = nib_server_responses_read,
    .event = write_event, .whole = write_whole,
};

void nib_server_route_responses(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}
