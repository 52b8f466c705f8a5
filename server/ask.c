/* server/ask.c - requests in neutral terms (ask.h). */
#include "ask.h"

#include "base/mem.h"
#include "base/status.h"

#include <string.h>

enum { MAX_STOPS = 64, MAX_BIASES = 4096, MAX_PROMPTS = 2048 };

void nib_server_ask_init(nib_server_ask *ask, const nib_server *server, json_t *body) {
    *ask = (nib_server_ask){.server = server, .body = body, .add_special = true, .parse_special = true, .n = 1,
                            .sampling = NIB_SAMPLER_PARAMS_INIT};
    ask->sampling.temp = 1;
    ask->sampling.top_k = 0;
    ask->sampling.top_p = 1;
    ask->sampling.min_p = 0;
    ask->sampling.penalty_last_n = -1; /* "the text so far" */
}

void nib_server_ask_fini(nib_server_ask *ask) {
    for (size_t i = 0; i < ask->n_prompts; i++) nib_token_list_free(&ask->prompts[i].ids);
    nib_free(ask->prompts);
    nib_free(ask->biases);
    nib_free(ask->stops);
    nib_free(ask->stop_ids);
    nib_free(ask->allowed_ids);
    nib_free(ask->breaker_ids);
    nib_free(ask->breaker_lengths);
    nib_buf_free(&ask->grammar);
    json_decref(ask->chat);
    json_decref(ask->body);
    *ask = (nib_server_ask){0};
}

static nib_status nomem(nib_server_fault *fault) {
    return nib_server_fail(fault, 503, "out_of_memory", "out of memory for a request");
}

nib_status nib_server_ask_add_end(nib_server_ask *ask, nib_str stop, nib_server_fault *fault) {
    if (!nib_grow(&ask->stops, &ask->stops_capacity, ask->n_stops + 1, sizeof *ask->stops)) return nomem(fault);
    ask->stops[ask->n_stops++] = stop;
    return NIB_OK;
}

nib_status nib_server_ask_add_stop(nib_server_ask *ask, nib_str stop, nib_server_fault *fault) {
    if (!stop.len) return NIB_OK; /* nothing can be found at the end of everything */
    if (ask->n_stops == MAX_STOPS) return nib_server_refuse(fault, "stop", "more than %d stop strings", MAX_STOPS);
    ask->n_own_stops = ask->n_stops + 1;
    return nib_server_ask_add_end(ask, stop, fault);
}

nib_status nib_server_ask_add_stop_id(nib_server_ask *ask, nib_token id, nib_server_fault *fault) {
    if (ask->n_stop_ids == MAX_STOPS) return nib_server_refuse(fault, "stop_token_ids", "more than %d tokens stop", MAX_STOPS);
    if (!ask->stop_ids && !(ask->stop_ids = nib_calloc(MAX_STOPS, sizeof *ask->stop_ids))) return nomem(fault);
    ask->stop_ids[ask->n_stop_ids++] = id;
    return NIB_OK;
}

nib_status nib_server_ask_add_allowed_id(nib_server_ask *ask, nib_token id, nib_server_fault *fault) {
    if (!nib_grow(&ask->allowed_ids, &ask->allowed_capacity, ask->n_allowed_ids + 1, sizeof *ask->allowed_ids)) return nomem(fault);
    ask->allowed_ids[ask->n_allowed_ids++] = id;
    return NIB_OK;
}

nib_status nib_server_ask_add_bias(nib_server_ask *ask, nib_token id, float bias, nib_server_fault *fault) {
    if (ask->n_biases == MAX_BIASES) return nib_server_refuse(fault, "logit_bias", "more than %d tokens have a bias", MAX_BIASES);
    if (!ask->biases && !(ask->biases = nib_calloc(MAX_BIASES, sizeof *ask->biases))) return nomem(fault);
    ask->biases[ask->n_biases++] = (nib_logit_bias){id, bias};
    return NIB_OK;
}

/* NULL: the fault says why. */
static nib_server_prompt *add_prompt(nib_server_ask *ask, nib_server_fault *fault) {
    if (ask->n_prompts == MAX_PROMPTS) {
        nib_server_refuse(fault, "prompt", "more than %d prompts", MAX_PROMPTS);
        return NULL;
    }
    if (!nib_grow(&ask->prompts, &ask->prompts_capacity, ask->n_prompts + 1, sizeof *ask->prompts)) {
        nomem(fault);
        return NULL;
    }
    ask->prompts[ask->n_prompts] = (nib_server_prompt){.ids.most = ask->most_tokens};
    return &ask->prompts[ask->n_prompts++];
}

nib_status nib_server_ask_add_text(nib_server_ask *ask, nib_str text, nib_server_fault *fault) {
    nib_server_prompt *prompt = add_prompt(ask, fault);
    if (!prompt) return NIB_E_ARG;
    prompt->text = text;
    return NIB_OK;
}

nib_status nib_server_ask_add_ids(nib_server_ask *ask, const json_t *ids, const char *param, nib_server_fault *fault) {
    size_t n = json_array_size(ids);
    nib_server_prompt *prompt = add_prompt(ask, fault);
    if (!prompt) return NIB_E_ARG;
    if (!n) return nib_server_refuse(fault, param, "a list of token ids is empty");
    prompt->ids.ids = nib_alloc(n, sizeof(nib_token));
    if (!prompt->ids.ids) return nomem(fault);
    prompt->ids.capacity = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(ids, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
            return nib_server_refuse(fault, param, "element %zu of a list of token ids is no id", i);
        prompt->ids.ids[prompt->ids.n++] = (nib_token)value;
    }
    return NIB_OK;
}

nib_status nib_server_ask_set_grammar(nib_server_ask *ask, nib_syntax syntax, nib_str text, const char *param,
                                      nib_server_fault *fault) {
    if (ask->has_grammar) return nib_server_refuse(fault, param, "the form of the answer is given more than once");
    ask->has_grammar = true;
    ask->grammar_param = param;
    ask->syntax = syntax;
    return nib_buf_append(&ask->grammar, text.ptr, text.len) ? NIB_OK : nomem(fault);
}

nib_status nib_server_ask_set_grammar_json(nib_server_ask *ask, nib_syntax syntax, const json_t *value, const char *param,
                                           nib_server_fault *fault) {
    char *text = nib_server_json_dump(value);
    if (!text) return nomem(fault);
    nib_status status = nib_server_ask_set_grammar(ask, syntax, (nib_str){text, strlen(text)}, param, fault);
    nib_free(text);
    return status;
}
