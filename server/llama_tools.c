/* server/llama_tools.c - what llama-server answers beside completions: tokens, templates, and how it is set up. */
#include "base/mem.h"
#include "base/status.h"
#include "errand.h"
#include "fields.h"
#include "internal.h"
#include "openai.h"
#include "openai_responses.h"
#include "prepare.h"
#include "routes.h"

#include <string.h>

/* A flag of a body. */
static nib_status read_flag(const nib_server_ask *ask, const char *name, bool fallback, bool *out, nib_server_fault *fault) {
    const json_t *value = json_object_get(ask->body, name);
    *out = fallback;
    return value && !json_is_null(value) ? nib_server_fields_bool(value, name, out, fault) : NIB_OK;
}

/* ---- /tokenize and /detokenize */

/* The text of a token; its bytes as numbers where they are no UTF-8. */
static json_t *piece_json(const nib_server_ask *ask, nib_token id) {
    char *text;
    size_t n;
    json_t *piece = NULL;
    unsigned flags = NIB_UNPARSE_SPECIAL | NIB_KEEP_SPACES;
    if (nib_detokenize(ask->server->model.tok, &id, 1, flags, &text, &n, NULL) != NIB_OK) return json_null();
    piece = json_stringn(text, n);
    if (!piece) {
        piece = json_array();
        for (size_t i = 0; i < n; i++) json_array_append_new(piece, json_integer((unsigned char)text[i]));
    }
    nib_free(text);
    return piece;
}

static nib_status tokenize(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    const json_t *content = json_object_get(ask->body, "content");
    bool add, parse, with_pieces;
    nib_token_list ids = {0};
    nib_error err;
    if (!json_is_string(content)) return nib_server_refuse(fault, "content", "content is missing, expected a string");
    NIB_TRY(read_flag(ask, "add_special", false, &add, fault));
    NIB_TRY(read_flag(ask, "parse_special", true, &parse, fault));
    NIB_TRY(read_flag(ask, "with_pieces", false, &with_pieces, fault));
    nib_str text = nib_server_json_text(content);
    unsigned flags = (add ? NIB_ADD_SPECIAL : 0u) | (parse ? NIB_PARSE_SPECIAL : 0u);
    if (nib_tokenize(ask->server->model.tok, text.ptr, text.len, flags, &ids, &err) != NIB_OK)
        return nib_server_fault_of(fault, &err, "content");
    json_t *o = json_object(), *tokens = json_array();
    for (size_t i = 0; i < ids.n; i++) {
        json_t *id = json_integer(ids.ids[i]), *item = with_pieces ? json_object() : id;
        if (with_pieces) json_object_set_new(item, "id", id);
        if (with_pieces) json_object_set_new(item, "piece", piece_json(ask, ids.ids[i]));
        json_array_append_new(tokens, item);
    }
    nib_token_list_free(&ids);
    json_object_set_new(o, "tokens", tokens);
    nib_server_json_put(o, out);
    return NIB_OK;
}

static nib_status detokenize(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    const json_t *tokens = json_object_get(ask->body, "tokens");
    nib_error err;
    char *text = NULL;
    size_t n = 0;
    if (!json_is_array(tokens)) return nib_server_refuse(fault, "tokens", "tokens is missing, expected a list of token ids");
    if (json_array_size(tokens)) {
        NIB_TRY(nib_server_ask_add_ids(ask, tokens, "tokens", fault));
        const nib_token_list *ids = &ask->prompts[0].ids;
        if (nib_detokenize(ask->server->model.tok, ids->ids, ids->n, NIB_UNPARSE_SPECIAL, &text, &n, &err) != NIB_OK)
            return nib_server_fault_of(fault, &err, "tokens");
    }
    json_t *o = json_object();
    json_object_set_new(o, "content", nib_server_json_str((nib_str){text, n}));
    nib_server_json_put(o, out);
    nib_free(text);
    return NIB_OK;
}

/* ---- /apply-template */

static nib_status apply_template(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    nib_chat_prompt prompt;
    NIB_TRY(nib_server_openai_chat(ask, fault));
    NIB_TRY(nib_server_prepare_render(ask, &prompt, fault));
    json_t *o = json_object();
    json_object_set_new(o, "prompt", nib_server_json_str((nib_str){prompt.rendered.text, prompt.rendered.len}));
    nib_chat_prompt_free(&prompt);
    nib_server_json_put(o, out);
    return NIB_OK;
}

/* ---- the length of a prompt, by what it would be sent to */

static nib_status count(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    bool starts_thinking;
    NIB_TRY(nib_server_prepare_messages(ask, &starts_thinking, fault));
    nib_buf_printf(out, "{\"object\":\"response.input_tokens\",\"input_tokens\":%zu}", ask->prompts[0].ids.n);
    return NIB_OK;
}

static nib_status count_chat(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    NIB_TRY(nib_server_openai_chat(ask, fault));
    return count(ask, out, fault);
}

static nib_status count_response(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault) {
    NIB_TRY(nib_server_responses_read(ask, fault));
    return count(ask, out, fault);
}

void nib_server_route_count_chat(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, count_chat, NULL);
}

void nib_server_route_count_response(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, count_response, NULL);
}

void nib_server_route_tokenize(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, tokenize, NULL);
}

void nib_server_route_detokenize(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, detokenize, NULL);
}

void nib_server_route_apply_template(nib_server *server, nib_server_exchange *x) {
    nib_server_errand_run(server, x, apply_template, NULL);
}

/* ---- /props and /slots */

/* What /completion takes when a request says nothing. */
static json_t *default_params(void) {
    const nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    return json_pack("{s:f, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:i, s:i}", "temperature", (double)p.temp, "top_k", p.top_k,
                     "top_p", (double)p.top_p, "min_p", (double)p.min_p, "typical_p", (double)p.typical_p, "repeat_last_n",
                     p.penalty_last_n, "repeat_penalty", (double)p.penalty_repeat, "presence_penalty", (double)p.penalty_presence,
                     "frequency_penalty", (double)p.penalty_frequency, "dry_multiplier", (double)p.dry_multiplier, "mirostat", p.mirostat,
                     "n_predict", -1);
}

/* The name stands where llama-server has a path: those of this machine are nobody's business. */
void nib_server_route_props(nib_server *server, nib_server_exchange *x) {
    const nib_server_model *m = &server->model;
    json_t *settings = json_object(), *o = json_object();
    json_object_set_new(settings, "n_ctx", json_integer(m->max_context));
    json_object_set_new(settings, "params", default_params());
    json_object_set_new(o, "default_generation_settings", settings);
    json_object_set_new(o, "total_slots", json_integer(m->n_seq));
    json_object_set_new(o, "model_alias", nib_server_json_str(nib_server_model_name(server)));
    json_object_set_new(o, "model_path", nib_server_json_str(nib_server_model_name(server)));
    json_object_set_new(o, "chat_format", m->chat ? json_string(nib_chat_format(m->chat)) : json_null());
    json_object_set_new(o, "chat_template_source", m->chat ? json_string(nib_chat_source(m->chat)) : json_null());
    json_object_set_new(o, "modalities", json_pack("{s:b, s:b}", "vision", 0, "audio", 0));
    json_object_set_new(o, "build_info", json_string("nib " NIB_VERSION));
    json_object_set_new(o, "is_sleeping", json_false());
    nib_server_reply_json(x, o);
}

static json_t *slot_json(const nib_server *server, size_t id, const nib_server_choice *c) {
    json_t *slot = json_object(), *next = json_object();
    json_int_t n_decoded = c ? c->usage.n_generated : 0, n_most = c ? c->answer->ask.max_tokens : 0;
    json_object_set_new(slot, "id", json_integer((json_int_t)id));
    json_object_set_new(slot, "id_task", c ? json_string(c->answer->id) : json_integer(-1));
    json_object_set_new(slot, "n_ctx", json_integer(server->model.max_context));
    json_object_set_new(slot, "speculative", json_false());
    json_object_set_new(slot, "is_processing", json_boolean(c != NULL));
    json_object_set_new(next, "has_next_token", json_boolean(c != NULL));
    json_object_set_new(next, "n_decoded", json_integer(n_decoded));
    json_object_set_new(next, "n_remain", json_integer(n_most ? n_most - n_decoded : -1));
    json_object_set_new(slot, "next_token", next);
    return slot;
}

/* Answers that run or wait, and free places after them: there are no slots that requests belong to. */
void nib_server_route_slots(nib_server *server, nib_server_exchange *x) {
    json_t *slots = json_array();
    nib_str query = nib_server_http_query(x);
    nib_server_fault fault;
    for (const nib_server_answer *a = server->answers; a; a = a->next)
        for (size_t i = 0; a->is_prepared && i < a->n_choices; i++)
            if (!a->choices[i].finish) json_array_append_new(slots, slot_json(server, json_array_size(slots), &a->choices[i]));
    bool is_full = json_array_size(slots) >= server->model.n_seq;
    while (json_array_size(slots) < server->model.n_seq) json_array_append_new(slots, slot_json(server, json_array_size(slots), NULL));
    if (is_full && query.len == strlen("fail_on_no_slot=1") && memcmp(query.ptr, "fail_on_no_slot=1", query.len) == 0) {
        json_decref(slots);
        nib_server_fail(&fault, 503, "queue_full", "no slot is free");
        nib_server_reply_fault(x, NULL, &fault);
        return;
    }
    nib_server_reply_json(x, slots);
}
