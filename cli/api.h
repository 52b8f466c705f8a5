/* cli/api.h - a server that speaks OpenAI's API, as its client sees it: a request as JSON -> the events of its answer.
 * One at a time; each thread needs its own. */
#ifndef NIB_CLI_API_H
#define NIB_CLI_API_H

#include "http_client.h"
#include "json.h"
#include "options.h"

typedef struct nib_cli_api {
    nib_cli_http http;
    nib_buf key;          /* of --api-key-file */
    nib_buf model;        /* the name to send */
    uint32_t max_context; /* what the server says of it; 0: nothing */
} nib_cli_api;

/* NIB_E_ARG when options were given that do not go together: with a server those that is_local says are for a model of this
 * machine, without one those of the group SERVER. */
nib_status nib_cli_api_check(const nib_cli_options *opt, bool (*is_local)(const nib_cli_option *option), nib_error *err);

/* From --server, --api-key, --api-key-file, --timeout and -m; without -m the first of the server's models is taken, so it must
 * answer. Close in any case. */
nib_status nib_cli_api_open(nib_cli_api *api, const nib_cli_options *opt, nib_error *err);
/* A second one of the same server and model. */
nib_status nib_cli_api_copy(nib_cli_api *api, const nib_cli_api *other, nib_error *err);
void nib_cli_api_close(nib_cli_api *api);

/* Asks for a chat completion as a stream: adds model, stream and stream_options to the request. Calls event with each event of
 * the answer; one that comes whole, though it was not asked for so, is one event. False: stop, which is NIB_E_CANCELLED.
 * An error of the server is one here, in its words. */
nib_status nib_cli_api_chat(nib_cli_api *api, json_t *request, bool (*event)(void *user, json_t *value), void *user, nib_error *err);

/* ---- parts of an event; the ones that are not there are NULL or 0 */
typedef struct nib_cli_api_usage {
    size_t n_prompt, n_cached, n_generated, n_reasoning; /* tokens */
} nib_cli_api_usage;

/* choices[0].delta, or .message. */
json_t *nib_cli_api_delta(json_t *event);
/* Text that the model thinks before it answers, by any of its names. */
nib_str nib_cli_api_reasoning(json_t *delta);
nib_str nib_cli_api_content(json_t *delta);
const char *nib_cli_api_finish_reason(json_t *event);
/* False: this event has none. */
bool nib_cli_api_usage_of(json_t *event, nib_cli_api_usage *usage);

#endif
