/* server/openai.c - parts of OpenAI's answers (openai.h). */
#include "openai.h"

#include "base/mem.h"
#include "base/status.h"
#include "internal.h"

#include <stdio.h>

nib_status nib_server_openai_prompts(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const json_t *item;
    size_t i;
    if (json_is_string(value)) return nib_server_ask_add_text(ask, nib_server_json_text(value), fault);
    if (!json_is_array(value) || !json_array_size(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a string, or a list of strings or token ids that is not empty", name,
                                 nib_server_fields_kind_of(value));
    if (json_is_number(json_array_get(value, 0))) return nib_server_ask_add_ids(ask, value, name, fault);
    json_array_foreach(value, i, item) {
        if (json_is_string(item)) NIB_TRY(nib_server_ask_add_text(ask, nib_server_json_text(item), fault));
        else if (json_is_array(item)) NIB_TRY(nib_server_ask_add_ids(ask, item, name, fault));
        else return nib_server_refuse(fault, name, "%s[%zu] is %s, expected a string or a list of token ids", name, i,
                                      nib_server_fields_kind_of(item));
    }
    return NIB_OK;
}

json_t *nib_server_openai_usage(const nib_server_answer *answer) {
    nib_server_usage u = nib_server_usage_of(answer);
    json_t *usage = json_object(), *prompt = json_object(), *completion = json_object();
    json_object_set_new(usage, "prompt_tokens", json_integer((json_int_t)u.n_prompt));
    json_object_set_new(usage, "completion_tokens", json_integer((json_int_t)u.n_generated));
    json_object_set_new(usage, "total_tokens", json_integer((json_int_t)(u.n_prompt + u.n_generated)));
    json_object_set_new(prompt, "cached_tokens", json_integer((json_int_t)u.n_cached));
    json_object_set_new(usage, "prompt_tokens_details", prompt);
    json_object_set_new(completion, "reasoning_tokens", json_integer((json_int_t)u.n_reasoning));
    json_object_set_new(usage, "completion_tokens_details", completion);
    return usage;
}

const char *nib_server_openai_finish(const nib_server_choice *choice) {
    static const char *const words[] = {[NIB_SERVER_FINISH_NONE] = NULL,         [NIB_SERVER_FINISH_STOP] = "stop",
                                        [NIB_SERVER_FINISH_LENGTH] = "length",   [NIB_SERVER_FINISH_CALLS] = "tool_calls",
                                        [NIB_SERVER_FINISH_TIMEOUT] = "timeout", [NIB_SERVER_FINISH_ABORT] = "abort",
                                        [NIB_SERVER_FINISH_NOTHING] = "load"};
    return words[choice->finish];
}

json_t *nib_server_openai_head(const nib_server_answer *answer, const char *prefix, const char *object) {
    char id[64];
    json_t *head = json_object();
    snprintf(id, sizeof id, "%s%s", prefix, answer->id);
    json_object_set_new(head, "id", json_string(id));
    json_object_set_new(head, "object", json_string(object));
    json_object_set_new(head, "created", json_integer(answer->created));
    json_object_set_new(head, "model", nib_server_json_str(nib_server_model_name(answer->server)));
    return head;
}

void nib_server_openai_data(json_t *value, nib_buf *out) {
    nib_buf_str(out, "data: ");
    nib_server_json_put(value, out);
    nib_buf_str(out, "\n\n");
}

void nib_server_openai_done(nib_buf *out) {
    nib_buf_str(out, "data: [DONE]\n\n");
}

void nib_server_openai_error(const nib_server_fault *fault, nib_buf *out) {
    nib_buf_str(out, "data: ");
    nib_server_error_json(fault, out);
    nib_buf_str(out, "\n\n");
    nib_server_openai_done(out);
}

nib_status nib_server_openai_token(const nib_server_answer *answer, nib_token id, nib_buf *text) {
    char *bytes;
    size_t n;
    nib_error err;
    NIB_TRY(nib_detokenize(answer->server->model.tok, &id, 1, NIB_UNPARSE_SPECIAL | NIB_KEEP_SPACES, &bytes, &n, &err));
    text->len = 0;
    nib_buf_append(text, bytes, n);
    nib_free(bytes);
    return NIB_OK;
}

json_t *nib_server_openai_logprob(float logprob) {
    return json_real(logprob > -9999.0f ? (double)logprob : -9999.0);
}

static json_t *token_json(const nib_server_answer *answer, nib_token id, float logprob, bool with_id) {
    nib_buf text = {0};
    json_t *o = json_object(), *bytes = json_array();
    nib_server_openai_token(answer, id, &text);
    for (size_t i = 0; i < text.len; i++) json_array_append_new(bytes, json_integer((unsigned char)text.ptr[i]));
    if (with_id) json_object_set_new(o, "id", json_integer(id));
    json_object_set_new(o, "token", nib_server_json_str((nib_str){text.ptr, text.len}));
    json_object_set_new(o, "logprob", nib_server_openai_logprob(logprob));
    json_object_set_new(o, "bytes", bytes);
    nib_buf_free(&text);
    return o;
}

json_t *nib_server_openai_logprobs(const nib_server_choice *c, size_t i, bool with_ids) {
    const nib_server_token *t = &c->tokens[i];
    json_t *token = token_json(c->answer, t->id, t->logprob, with_ids), *tops = json_array();
    for (size_t k = 0; k < t->n_top; k++)
        json_array_append_new(tops, token_json(c->answer, c->tops[t->top + k].id, c->tops[t->top + k].logprob, with_ids));
    json_object_set_new(token, "top_logprobs", tops);
    return token;
}
