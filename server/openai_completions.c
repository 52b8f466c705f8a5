/* server/openai_completions.c - POST /v1/completions: texts or ids -> what follows them, whole or as a stream. */
#include "base/mem.h"
#include "base/status.h"
#include "dialect.h"
#include "internal.h"
#include "openai.h"
#include "routes.h"

#include <math.h>

enum { DEFAULT_MAX_TOKENS = 16 };

/* ---- the request */

static nib_status read_max(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 0, INT32_MAX, &n, fault));
    ask->max_tokens = (uint32_t)n;
    ask->only_prompt = n == 0;
    return NIB_OK;
}

/* A number of alternatives; true, as some clients send it, is none. */
static nib_status read_logprobs(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n = 0;
    if (!json_is_boolean(value)) NIB_TRY(nib_server_fields_integer(value, name, 0, 100, &n, fault));
    ask->logprobs = !json_is_false(value);
    ask->n_top = (uint32_t)n;
    return NIB_OK;
}

static const nib_server_field completion_fields[] = {
    NIB_SERVER_FIELD_BY("prompt", nib_server_openai_prompts),
    NIB_SERVER_FIELD_BY("max_tokens", read_max),
    NIB_SERVER_FIELD("echo", BOOL, echo, 0, 0),
    NIB_SERVER_FIELD_BY("logprobs", read_logprobs),
    NIB_SERVER_FIELD("add_special_tokens", BOOL, add_special, 0, 0),
    NIB_SERVER_FIELD_ABSENT("suffix", "text is continued at its end only"),
    NIB_SERVER_FIELD_ABSENT("prompt_logprobs", "use echo and logprobs"),
    NIB_SERVER_FIELD_ABSENT("prompt_embeds", "prompts are text or token ids"),
    {0},
};

static nib_status read_ask(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {completion_fields, nib_server_openai_fields, nib_server_llama_sampling_fields, NULL};
    ask->max_tokens = DEFAULT_MAX_TOKENS;
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    if (!ask->n_prompts) return nib_server_refuse(fault, "prompt", "prompt is missing, expected a string or a list");
    if (ask->only_prompt && !ask->echo) return nib_server_refuse(fault, "max_tokens", "max_tokens is 0, which needs echo: true");
    ask->prompt_logprobs = ask->echo && ask->logprobs;
    return NIB_OK;
}

/* ---- the answer */

/* The text of the prompt that an answer goes on from. */
static void put_prompt(const nib_server_choice *c, nib_buf *out) {
    const nib_server_prompt *prompt = &c->answer->ask.prompts[c->prompt];
    const nib_tokenizer *tok = c->answer->server->model.tok;
    char *text;
    size_t len;
    if (prompt->text.ptr) {
        nib_buf_append(out, prompt->text.ptr, prompt->text.len);
    } else if (nib_detokenize(tok, prompt->ids.ids, prompt->ids.n, NIB_UNPARSE_SPECIAL, &text, &len, NULL) == NIB_OK) {
        nib_buf_utf8(out, (nib_str){text, len});
        nib_free(text);
    }
}

static size_t n_characters(nib_str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) n += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return n;
}

static json_t *tops_json(const nib_server_choice *c, const nib_server_token *t) {
    json_t *tops = json_object();
    nib_buf text = {0};
    for (size_t k = 0; k < t->n_top; k++) {
        nib_server_openai_token(c->answer, c->tops[t->top + k].id, &text);
        json_t *key = nib_server_json_str((nib_str){text.ptr, text.len});
        json_t *logprob = nib_server_openai_logprob(c->tops[t->top + k].logprob);
        json_object_setn_new_nocheck(tops, json_string_value(key), json_string_length(key), logprob);
        json_decref(key);
    }
    nib_buf_free(&text);
    return tops;
}

/* Those of the tokens from `first` on; null when they were not asked for. The first token of a prompt has none. */
static json_t *logprobs_json(const nib_server_choice *c, size_t first) {
    if (!c->answer->ask.logprobs) return json_null();
    json_t *tokens = json_array(), *logprobs = json_array(), *tops = json_array(), *offsets = json_array();
    nib_buf text = {0};
    size_t offset = 0;
    for (size_t i = 0; i < c->n_tokens; i++) {
        const nib_server_token *t = &c->tokens[i];
        nib_server_openai_token(c->answer, t->id, &text);
        if (i >= first) {
            json_array_append_new(tokens, nib_server_json_str((nib_str){text.ptr, text.len}));
            json_array_append_new(logprobs, isnan(t->logprob) ? json_null() : nib_server_openai_logprob(t->logprob));
            json_array_append_new(tops, isnan(t->logprob) || !c->answer->ask.n_top ? json_null() : tops_json(c, t));
            json_array_append_new(offsets, json_integer((json_int_t)offset));
        }
        offset += n_characters((nib_str){text.ptr, text.len});
    }
    nib_buf_free(&text);
    json_t *o = json_object();
    json_object_set_new(o, "tokens", tokens);
    json_object_set_new(o, "token_logprobs", logprobs);
    json_object_set_new(o, "top_logprobs", tops);
    json_object_set_new(o, "text_offset", offsets);
    return o;
}

static json_t *choice_json(nib_server_choice *c, nib_str text, json_t *logprobs) {
    json_t *choice = json_object();
    const char *finish = nib_server_openai_finish(c);
    json_object_set_new(choice, "text", nib_server_json_str(text));
    json_object_set_new(choice, "index", json_integer(c->index));
    json_object_set_new(choice, "logprobs", logprobs);
    json_object_set_new(choice, "finish_reason", finish ? json_string(finish) : json_null());
    if (c->stop >= 0) json_object_set_new(choice, "stop_reason", nib_server_json_str(c->answer->ask.stops[c->stop]));
    return choice;
}

static void write_whole(nib_server_answer *answer, nib_buf *out) {
    json_t *o = nib_server_openai_head(answer, "cmpl-", "text_completion"), *choices = json_array();
    nib_buf text = {0};
    for (size_t i = 0; i < answer->n_choices; i++) {
        nib_server_choice *c = &answer->choices[i];
        text.len = 0;
        if (answer->ask.echo) put_prompt(c, &text);
        nib_buf_append(&text, c->content.ptr, c->content.len);
        json_array_append_new(choices, choice_json(c, (nib_str){text.ptr, text.len}, logprobs_json(c, 0)));
    }
    nib_buf_free(&text);
    json_object_set_new(o, "choices", choices);
    json_object_set_new(o, "usage", nib_server_openai_usage(answer));
    nib_server_json_put(o, out);
}

static void put_chunk(nib_server_choice *c, nib_str text, nib_buf *out) {
    json_t *o = nib_server_openai_head(c->answer, "cmpl-", "text_completion"), *choices = json_array();
    json_array_append_new(choices, choice_json(c, text, c->n_told < c->n_tokens ? logprobs_json(c, c->n_told) : json_null()));
    c->n_told = c->n_tokens;
    json_object_set_new(o, "choices", choices);
    nib_server_openai_data(o, out);
}

static void put_prompts(nib_server_answer *answer, nib_buf *out) {
    nib_buf text = {0};
    for (size_t i = 0; i < answer->n_choices && answer->ask.echo; i++) {
        text.len = 0;
        put_prompt(&answer->choices[i], &text);
        put_chunk(&answer->choices[i], (nib_str){text.ptr, text.len}, out);
    }
    nib_buf_free(&text);
}

static void put_end(const nib_server_answer *answer, nib_buf *out) {
    if (answer->ask.include_usage) {
        json_t *o = nib_server_openai_head(answer, "cmpl-", "text_completion");
        json_object_set_new(o, "choices", json_array());
        json_object_set_new(o, "usage", nib_server_openai_usage(answer));
        nib_server_openai_data(o, out);
    }
    nib_server_openai_done(out);
}

static void write_event(nib_server_answer *answer, const nib_server_event *e, nib_buf *out) {
    if (e->kind == NIB_SERVER_BEGIN) put_prompts(answer, out);
    if (e->kind == NIB_SERVER_CONTENT) put_chunk(e->choice, e->text, out);
    if (e->kind == NIB_SERVER_CHOICE_END) put_chunk(e->choice, (nib_str){"", 0}, out);
    if (e->kind == NIB_SERVER_END) put_end(answer, out);
    if (e->kind == NIB_SERVER_ERROR) nib_server_openai_error(e->fault, out);
}

static const nib_server_dialect dialect = {
    .stream_type = "text/event-stream", .stream_idle = ":\n\n", .read = read_ask, .event = write_event, .whole = write_whole,
};

void nib_server_route_completions(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}
