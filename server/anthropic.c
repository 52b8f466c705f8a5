/* server/anthropic.c - POST /v1/messages and /v1/messages/count_tokens: Anthropic's answers, whole or as a stream of blocks. */
#include "anthropic.h"

#include "base/status.h"
#include "dialect.h"
#include "errand.h"
#include "internal.h"
#include "prepare.h"
#include "routes.h"

#include <stdio.h>
#include <string.h>

typedef enum block_kind { NO_BLOCK, TEXT_BLOCK, THINKING_BLOCK, TOOL_BLOCK } block_kind;

/* What a stream has open. */
typedef struct block_state {
    block_kind open;
    int n; /* blocks so far, the open one included */
} block_state;

/* ---- parts */

static json_t *text_json(const nib_buf *text) {
    return nib_server_json_str((nib_str){text->ptr, text->len});
}

/* Tokens of the prompt that were found in the cache count apart. */
static json_t *usage_json(const nib_server_answer *a) {
    nib_server_usage u = nib_server_usage_of(a);
    json_int_t n_prompt = (json_int_t)a->ask.prompts[0].ids.n, n_cached = (json_int_t)u.n_cached;
    return json_pack("{s:I, s:i, s:I, s:I}", "input_tokens", n_prompt - n_cached, "cache_creation_input_tokens", 0,
                     "cache_read_input_tokens", n_cached, "output_tokens", (json_int_t)u.n_generated);
}

static json_t *message_json(const nib_server_answer *a, json_t *content) {
    char id[40];
    snprintf(id, sizeof id, "msg_%s", a->id);
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(id));
    json_object_set_new(o, "type", json_string("message"));
    json_object_set_new(o, "role", json_string("assistant"));
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(a->server)));
    json_object_set_new(o, "content", content);
    return o;
}

static void set_stop(json_t *o, const nib_server_choice *c) {
    static const char *const words[] = {[NIB_SERVER_FINISH_STOP] = "end_turn",      [NIB_SERVER_FINISH_LENGTH] = "max_tokens",
                                        [NIB_SERVER_FINISH_CALLS] = "tool_use",     [NIB_SERVER_FINISH_TIMEOUT] = "pause_turn",
                                        [NIB_SERVER_FINISH_ABORT] = "pause_turn"};
    const char *word = c->finish == NIB_SERVER_FINISH_STOP && c->stop >= 0 ? "stop_sequence" : words[c->finish];
    json_object_set_new(o, "stop_reason", word ? json_string(word) : json_null());
    json_object_set_new(o, "stop_sequence", c->stop >= 0 ? nib_server_json_str(c->answer->ask.stops[c->stop]) : json_null());
}

static json_t *call_json(const nib_server_call *call, json_t *input) {
    json_t *o = json_object();
    json_object_set_new(o, "type", json_string("tool_use"));
    json_object_set_new(o, "id", text_json(&call->id));
    json_object_set_new(o, "name", text_json(&call->name));
    json_object_set_new(o, "input", input);
    return o;
}

/* ---- the whole */

static json_t *block_json(const nib_server_choice *c, const nib_server_part *part) {
    bool is_text = part->kind == NIB_SERVER_CONTENT;
    if (part->kind == NIB_SERVER_CALL_BEGIN)
        return call_json(&c->calls[part->call], nib_server_json_arguments(&c->calls[part->call].arguments));
    const nib_buf *all = is_text ? &c->content : &c->reasoning;
    json_t *text = nib_server_json_str((nib_str){all->ptr + part->from, part->to - part->from});
    if (is_text) return json_pack("{s:s, s:o}", "type", "text", "text", text);
    return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", text, "signature", "");
}

static void write_whole(nib_server_answer *a, nib_buf *out) {
    const nib_server_choice *c = &a->choices[0];
    json_t *content = json_array();
    for (size_t i = 0; i < c->n_parts; i++) json_array_append_new(content, block_json(c, &c->parts[i]));
    json_t *o = message_json(a, content);
    set_stop(o, c);
    json_object_set_new(o, "usage", usage_json(a));
    nib_server_json_put(o, out);
}

/* ---- the stream */

/* One event; takes the value, whose type is the event's name. */
static void put_event(json_t *value, const char *type, nib_buf *out) {
    json_object_set_new(value, "type", json_string(type));
    nib_buf_printf(out, "event: %s\ndata: ", type);
    nib_server_json_put(value, out);
    nib_buf_str(out, "\n\n");
}

static void close_block(nib_server_answer *a, nib_buf *out) {
    block_state *s = a->state;
    if (s->open == NO_BLOCK) return;
    put_event(json_pack("{s:i}", "index", s->n - 1), "content_block_stop", out);
    s->open = NO_BLOCK;
}

static void open_block(nib_server_answer *a, block_kind kind, json_t *block, nib_buf *out) {
    block_state *s = a->state;
    close_block(a, out);
    s->open = kind;
    put_event(json_pack("{s:i, s:o}", "index", s->n++, "content_block", block), "content_block_start", out);
}

static void put_delta(nib_server_answer *a, const char *type, const char *field, nib_str text, nib_buf *out) {
    const block_state *s = a->state;
    json_t *delta = json_pack("{s:s, s:o}", "type", type, field, nib_server_json_str(text));
    put_event(json_pack("{s:i, s:o}", "index", s->n - 1, "delta", delta), "content_block_delta", out);
}

static void put_text(nib_server_answer *a, nib_str text, nib_buf *out) {
    const block_state *s = a->state;
    if (s->open != TEXT_BLOCK) open_block(a, TEXT_BLOCK, json_pack("{s:s, s:s}", "type", "text", "text", ""), out);
    put_delta(a, "text_delta", "text", text, out);
}

static void put_thought(nib_server_answer *a, nib_str text, nib_buf *out) {
    const block_state *s = a->state;
    if (s->open != THINKING_BLOCK)
        open_block(a, THINKING_BLOCK, json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""), out);
    put_delta(a, "thinking_delta", "thinking", text, out);
}

static void put_begin(nib_server_answer *a, nib_buf *out) {
    json_t *message = message_json(a, json_array());
    set_stop(message, &a->choices[0]);
    json_object_set_new(message, "usage", usage_json(a));
    put_event(json_pack("{s:o}", "message", message), "message_start", out);
    put_event(json_object(), "ping", out);
}

static void put_end(nib_server_answer *a, nib_buf *out) {
    json_t *delta = json_object();
    close_block(a, out);
    set_stop(delta, &a->choices[0]);
    put_event(json_pack("{s:o, s:o}", "delta", delta, "usage", usage_json(a)), "message_delta", out);
    put_event(json_object(), "message_stop", out);
}

static json_t *error_json(const nib_server_fault *fault) {
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"}, {413, "request_too_large"},
                 {429, "rate_limit_error"},     {500, "api_error"},        {503, "overloaded_error"}, {504, "timeout_error"}};
    const char *type = "invalid_request_error";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].status == fault->status) type = types[i].type;
    nib_str message = {fault->message, strlen(fault->message)};
    return json_pack("{s:{s:s, s:o}}", "error", "type", type, "message", nib_server_json_str(message));
}

static void write_event(nib_server_answer *a, const nib_server_event *e, nib_buf *out) {
    switch (e->kind) {
    case NIB_SERVER_BEGIN: put_begin(a, out); break;
    case NIB_SERVER_CONTENT: put_text(a, e->text, out); break;
    case NIB_SERVER_REASONING: put_thought(a, e->text, out); break;
    case NIB_SERVER_CALL_BEGIN: open_block(a, TOOL_BLOCK, call_json(e->call, json_object()), out); break;
    case NIB_SERVER_CALL_ARGUMENTS: put_delta(a, "input_json_delta", "partial_json", e->text, out); break;
    case NIB_SERVER_CALL_END: close_block(a, out); break;
    case NIB_SERVER_CHOICE_END: break;
    case NIB_SERVER_END: put_end(a, out); break;
    case NIB_SERVER_ERROR: put_event(error_json(e->fault), "error", out); break;
    }
}

static void write_error(const nib_server_fault *fault, nib_buf *out) {
    json_t *o = error_json(fault);
    json_object_set_new(o, "type", json_string("error"));
    nib_server_json_put(o, out);
}

const nib_server_dialect nib_server_anthropic = {
    .stream_type = "text/event-stream", .stream_idle = "event: ping\ndata: {\"type\":\"ping\"}\n\n", .state_size = sizeof(block_state),
    .read = nib_server_anthropic_read, .event = write_event, .whole = write_whole, .error = write_error,
};

void nib_server_route_messages(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &nib_server_anthropic);
}

/* ---- counting */

static nib_status count_tokens(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    bool starts_thinking;
    NIB_TRY(nib_server_anthropic_read(ask, fault));
    NIB_TRY(nib_server_prepare_messages(ask, &starts_thinking, fault));
    nib_buf_printf(out, "{\"input_tokens\":%zu}", ask->prompts[0].ids.n);
    return NIB_OK;
}

void nib_server_route_count_tokens(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, count_tokens, &nib_server_anthropic);
}
