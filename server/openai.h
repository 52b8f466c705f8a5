/* server/openai.h - what OpenAI's dialects share: fields of requests, and parts of answers as JSON. */
#ifndef NIB_SERVER_OPENAI_H
#define NIB_SERVER_OPENAI_H

#include "fields.h"
#include "generation.h"

/* Fields of sampling, length, form and service, which chat and completions have in common; ends with a row of zeros. */
extern const nib_server_field nib_server_openai_fields[];
/* Those of the samplers that llama.cpp has beyond OpenAI's. */
extern const nib_server_field nib_server_llama_sampling_fields[];

/* Reads a request for chat. */
nib_status nib_server_openai_chat(nib_server_ask *ask, nib_server_fault *fault);
/* An object of token ids and numbers. */
nib_status nib_server_openai_bias(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault);
/* A field of prompts: a string, a list of strings, of ids, or of lists of ids. */
nib_status nib_server_openai_prompts(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault);
/* {"prompt_tokens": …, "completion_tokens": …, "total_tokens": …, …_details}. */
json_t *nib_server_openai_usage(const nib_server_answer *answer);
/* "stop", "length", "tool_calls", "abort"; NULL: it goes on. */
const char *nib_server_openai_finish(const nib_server_choice *choice);
/* {"id": …, "object": …, "created": …, "model": …}; prefix: of the id, "chatcmpl-". */
json_t *nib_server_openai_head(const nib_server_answer *answer, const char *prefix, const char *object);
/* Appends "data: {…}\n\n", and frees the value. */
void nib_server_openai_data(json_t *value, nib_buf *out);
/* The end of a stream, and an error before that. */
void nib_server_openai_done(nib_buf *out);
void nib_server_openai_error(const nib_server_fault *fault, nib_buf *out);
/* {"token": …, "logprob": …, "bytes": …, "top_logprobs": […]}: token i of a choice; with_ids: all have an "id", too. */
json_t *nib_server_openai_logprobs(const nib_server_choice *choice, size_t i, bool with_ids);
/* The text of one token, control tokens included, as bytes. */
nib_status nib_server_openai_token(const nib_server_answer *answer, nib_token id, nib_buf *text);
/* An embedding as a list of numbers. */
json_t *nib_server_openai_vector(const nib_server_choice *choice);
/* JSON has no infinities: what is impossible is -9999. */
json_t *nib_server_openai_logprob(float logprob);

#endif
