/* cli/api.c - see api.h. */
#include "api.h"

#include "base/mem.h"
#include "base/status.h"
#include "input.h"
#include "sse.h"

#include <string.h>

enum { MAX_WHOLE = 64 << 20 /* bytes of an answer that is not a stream */ };

/* ---- answers of the server */

typedef struct exchange {
    nib_cli_http_answer answer;
    nib_cli_sse sse;
    nib_buf whole; /* what is no stream */
    bool (*event)(void *user, json_t *value);
    void *user;
    bool is_done;      /* [DONE] */
    nib_status status; /* what went wrong in the body */
    nib_error *err;
} exchange;

/* {"error": {"message": …}}, {"error": "…"}, {"message": …} or {"detail": …}; ptr NULL: none of these. */
static nib_str message_of(json_t *value) {
    static const char *const names[] = {"message", "detail", "error"};
    json_t *error = json_object_get(value, "error"), *text = NULL;
    if (json_is_object(error)) value = error;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !json_is_string(text); i++) text = json_object_get(value, names[i]);
    return (nib_str){json_string_value(text), json_string_length(text)};
}

/* An answer that is no success. */
static nib_status refused(exchange *x, nib_error *err) {
    json_t *value = NULL;
    nib_error ignored;
    nib_cli_json_parse(nib_cli_bytes(&x->whole), &value, &ignored);
    nib_str text = message_of(value);
    if (!text.ptr) text = x->whole.len ? nib_cli_bytes(&x->whole) : (nib_str){"no reason given", 15};
    nib_status status = nib_fail(err, NIB_E_IO, "the server refused (%d): %.*s", x->answer.status, text.len > 800 ? 800 : (int)text.len,
                                 text.ptr);
    if (x->answer.retry_s)
        status = nib_fail(err, NIB_E_IO, "the server refused (%d): %.*s; try again in %u s", x->answer.status,
                          text.len > 800 ? 800 : (int)text.len, text.ptr, x->answer.retry_s);
    json_decref(value);
    return status;
}

static bool on_data(void *user, nib_str data) {
    exchange *x = user;
    json_t *value = NULL;
    if (data.len == 6 && memcmp(data.ptr, "[DONE]", 6) == 0) {
        x->is_done = true;
        return true;
    }
    if (x->is_done) return true;
    x->status = nib_cli_json_parse(data, &value, x->err);
    if (x->status != NIB_OK) {
        nib_error_prefix(x->err, "an event of the server's answer");
    } else if (json_object_get(value, "error") && !json_is_null(json_object_get(value, "error"))) {
        nib_str text = message_of(value);
        x->status = nib_fail(x->err, NIB_E_IO, "the server gave up: %.*s", NIB_STR_ARG(text));
    } else if (!x->event(x->user, value)) {
        x->status = nib_fail(x->err, NIB_E_CANCELLED, "stopped");
    }
    json_decref(value);
    return x->status == NIB_OK;
}

static bool on_body(void *user, const nib_cli_http_answer *answer, nib_str piece) {
    exchange *x = user;
    if (answer->status == 200 && strcmp(answer->type, "text/event-stream") == 0) {
        bool ok = nib_cli_sse_feed(&x->sse, piece, on_data, x);
        if (!ok && x->status == NIB_OK) x->status = nib_fail(x->err, NIB_E_LIMIT, "an event of the server's answer is too long");
        return ok;
    }
    if (x->whole.len + piece.len > MAX_WHOLE) x->status = nib_fail(x->err, NIB_E_LIMIT, "the server's answer is too long");
    else if (!nib_buf_append(&x->whole, piece.ptr, piece.len)) x->status = nib_fail_nomem(x->err, piece.len, "the server's answer");
    return x->status == NIB_OK;
}

/* Sends; an answer that comes whole is in x->whole then. */
static nib_status send_request(nib_cli_api *api, const char *path, nib_str body, exchange *x, nib_error *err) {
    nib_error transport;
    x->err = err;
    x->answer.body = on_body;
    x->answer.user = x;
    nib_status status = nib_cli_http_send(&api->http, path, body, &x->answer, &transport);
    if (x->status != NIB_OK) return x->status; /* and *err says why */
    if (status != NIB_OK) {
        if (err) *err = transport;
        return status;
    }
    return x->answer.status == 200 ? NIB_OK : refused(x, err);
}

static void free_exchange(exchange *x) {
    nib_cli_http_answer_free(&x->answer);
    nib_cli_sse_free(&x->sse);
    nib_buf_free(&x->whole);
}

/* ---- opening */

nib_status nib_cli_api_check(const nib_cli_options *opt, bool (*is_local)(const nib_cli_option *option), nib_error *err) {
    const char *name = opt->command == NIB_CLI_BENCH ? "--serve" : "--server";
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        const nib_cli_option *option = nib_cli_option_at(i);
        nib_str left = {0}, spelling = {0};
        bool negated, is_wrong = opt->server ? is_local(option) : option->group == NIB_CLI_GROUP_SERVER;
        if (!opt->given[i] || !is_wrong) continue;
        while (nib_cli_spelling_next(option, &left, &spelling, &negated) && (spelling.len < 2 || spelling.ptr[1] != '-')) {
        }
        if (!opt->server) return nib_fail(err, NIB_E_ARG, "%.*s needs %s URL", NIB_STR_ARG(spelling), name);
        return nib_fail(err, NIB_E_ARG, "%.*s is for a model of this machine: with %s leave it out", NIB_STR_ARG(spelling), name);
    }
    return NIB_OK;
}

/* With or without /v1 at its end. */
static nib_status take_url(nib_cli_api *api, const char *url, nib_error *err) {
    NIB_TRY(nib_cli_http_init(&api->http, url, err));
    char *path = api->http.path;
    size_t n = strlen(path);
    if (n >= 3 && strcmp(path + n - 3, "/v1") == 0) return NIB_OK;
    if (n + 4 > sizeof api->http.path) return nib_fail(err, NIB_E_ARG, "%s: the path is too long", url);
    strcpy(path + n, "/v1");
    return NIB_OK;
}

/* The first line that is a key. */
static nib_status read_key(nib_cli_api *api, const char *path, nib_error *err) {
    NIB_TRY(nib_cli_input_file(path, &api->key, err));
    const char *text = nib_buf_cstr(&api->key);
    if (!text) return nib_fail_nomem(err, 0, "a key");
    while (*text == '#' || *text == '\n' || *text == '\r') text += *text == '#' ? strcspn(text, "\n") : 1;
    size_t n = strcspn(text, "\r\n");
    if (!n) return nib_fail(err, NIB_E_ARG, "%s has no key", path);
    memmove(api->key.ptr, text, n);
    api->key.len = n;
    return NIB_OK;
}

/* The key as it was found. What a header cannot hold would be another request. */
static nib_status use_key(nib_cli_api *api, nib_error *err) {
    const char *key = nib_buf_cstr(&api->key);
    if (!key) return nib_fail_nomem(err, 0, "a key");
    for (const char *c = key; *c; c++)
        if (*c <= ' ' || *c == 0x7f) return nib_fail(err, NIB_E_ARG, "the API key has a blank or a control character in it");
    api->http.key = *key ? key : NULL;
    return NIB_OK;
}

static nib_status choose_model(nib_cli_api *api, const char *name, nib_error *err) {
    exchange x = {0};
    json_t *value = NULL;
    nib_status status = send_request(api, "/models", (nib_str){0}, &x, err);
    if (status == NIB_OK) status = nib_cli_json_parse(nib_cli_bytes(&x.whole), &value, err);
    json_t *list = json_object_get(value, "data"), *model = json_array_get(list, 0), *item;
    size_t i;
    json_array_foreach(list, i, item) {
        const char *id = json_string_value(json_object_get(item, "id"));
        if (name && id && strcmp(id, name) == 0) model = item;
    }
    const char *id = json_string_value(json_object_get(model, "id"));
    if (status == NIB_OK && !name && !id) status = nib_fail(err, NIB_E_IO, "the server has no models: -m names one");
    if (status == NIB_OK || name) nib_buf_str(&api->model, name ? name : id);
    json_int_t most = json_integer_value(json_object_get(model, "max_model_len"));
    if (!most) most = json_integer_value(json_object_get(json_object_get(model, "meta"), "n_ctx"));
    if (most > 0 && most <= UINT32_MAX) api->max_context = (uint32_t)most;
    if (name && x.answer.status && x.answer.status != 401 && x.answer.status != 403) status = NIB_OK; /* it need not list them */
    json_decref(value);
    free_exchange(&x);
    return status;
}

nib_status nib_cli_api_open(nib_cli_api *api, const nib_cli_options *opt, nib_error *err) {
    *api = (nib_cli_api){.http.fd = -1};
    NIB_TRY(take_url(api, opt->server, err));
    api->http.timeout_ms = (int)opt->timeout_s * 1000;
    if (opt->client_key && opt->api_key_file)
        return nib_fail(err, NIB_E_ARG, "--api-key and --api-key-file say the same: leave one out");
    if (opt->client_key) nib_buf_str(&api->key, opt->client_key);
    if (opt->api_key_file) NIB_TRY(read_key(api, opt->api_key_file, err));
    NIB_TRY(use_key(api, err));
    return choose_model(api, opt->model, err);
}

nib_status nib_cli_api_copy(nib_cli_api *api, const nib_cli_api *other, nib_error *err) {
    *api = (nib_cli_api){.http = other->http, .max_context = other->max_context};
    api->http.fd = -1;
    api->http.was_used = false;
    nib_buf_append(&api->key, other->key.ptr, other->key.len);
    if (!nib_buf_append(&api->model, other->model.ptr, other->model.len)) return nib_fail_nomem(err, 0, "a client");
    return use_key(api, err);
}

void nib_cli_api_close(nib_cli_api *api) {
    nib_cli_http_close(&api->http);
    nib_buf_free(&api->key);
    nib_buf_free(&api->model);
}

/* ---- chat */

static nib_status take_whole(exchange *x, nib_error *err) {
    json_t *value = NULL;
    NIB_TRY(nib_cli_json_parse(nib_cli_bytes(&x->whole), &value, err));
    bool goes_on = x->event(x->user, value);
    json_decref(value);
    return goes_on ? NIB_OK : nib_fail(err, NIB_E_CANCELLED, "stopped");
}

nib_status nib_cli_api_chat(nib_cli_api *api, json_t *request, bool (*event)(void *user, json_t *value), void *user, nib_error *err) {
    exchange x = {.event = event, .user = user};
    json_t *options = json_object();
    json_object_set_new(request, "model", nib_cli_json_str(nib_cli_bytes(&api->model)));
    json_object_set_new(request, "stream", json_true());
    json_object_set_new(options, "include_usage", json_true());
    json_object_set_new(request, "stream_options", options);
    char *text = nib_cli_json_dump(request);
    if (!text) return nib_fail_nomem(err, 0, "a request");
    nib_status status = send_request(api, "/chat/completions", (nib_str){text, strlen(text)}, &x, err);
    if (status == NIB_OK && x.whole.len) status = take_whole(&x, err);
    nib_free(text);
    free_exchange(&x);
    return status;
}

/* ---- events */

json_t *nib_cli_api_delta(json_t *event) {
    json_t *choice = json_array_get(json_object_get(event, "choices"), 0), *delta = json_object_get(choice, "delta");
    return delta ? delta : json_object_get(choice, "message");
}

static nib_str text_of(const json_t *value) {
    return (nib_str){json_string_value(value), json_string_length(value)};
}

nib_str nib_cli_api_reasoning(json_t *delta) {
    nib_str text = text_of(json_object_get(delta, "reasoning_content"));
    return text.ptr ? text : text_of(json_object_get(delta, "reasoning"));
}

nib_str nib_cli_api_content(json_t *delta) {
    return text_of(json_object_get(delta, "content"));
}

const char *nib_cli_api_finish_reason(json_t *event) {
    return json_string_value(json_object_get(json_array_get(json_object_get(event, "choices"), 0), "finish_reason"));
}

static size_t count(json_t *object, const char *name) {
    json_int_t n = json_integer_value(json_object_get(object, name));
    return n > 0 ? (size_t)n : 0;
}

bool nib_cli_api_usage_of(json_t *event, nib_cli_api_usage *usage) {
    json_t *value = json_object_get(event, "usage"), *timings = json_object_get(event, "timings");
    if (!json_is_object(value)) return false;
    usage->n_prompt = count(value, "prompt_tokens");
    usage->n_generated = count(value, "completion_tokens");
    usage->n_cached = count(json_object_get(value, "prompt_tokens_details"), "cached_tokens");
    usage->n_reasoning = count(json_object_get(value, "completion_tokens_details"), "reasoning_tokens");
    if (!usage->n_cached) usage->n_cached = count(timings, "cache_n"); /* where llama.cpp tells it */
    return true;
}
