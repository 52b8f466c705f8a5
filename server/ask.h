/* server/ask.h - a request in neutral terms: what dialects read, and prepare.c turns into requests of the engine.
 *
 * Lives on a work thread while it is read and prepared, then with the answer. Strings point into ask->body. */
#ifndef NIB_SERVER_ASK_H
#define NIB_SERVER_ASK_H

#include "error.h"
#include "json.h"

typedef struct nib_server nib_server;
typedef struct nib_server_answer nib_server_answer;
typedef struct nib_server_choice nib_server_choice;

typedef enum nib_server_tool_choice {
    NIB_SERVER_TOOLS_AUTO = 0,
    NIB_SERVER_TOOLS_NONE,
    NIB_SERVER_TOOLS_REQUIRED,
    NIB_SERVER_TOOLS_NAMED, /* ask->tool_name */
} nib_server_tool_choice;

enum { NIB_SERVER_MAX_BREAKERS = 32 };

typedef struct nib_server_prompt {
    nib_str text; /* ptr NULL: ids */
    nib_token_list ids;
} nib_server_prompt;

typedef struct nib_server_ask {
    const nib_server *server;
    json_t *body; /* the request */

    /* What to go on from: chat, an object as nib_chat_render takes it (messages, tools, …), or prompts. */
    json_t *chat;
    nib_server_prompt *prompts;
    size_t n_prompts, prompts_capacity;
    bool is_empty;      /* there is nothing to go on from: who asks wants to know that the model is there */
    size_t most_tokens; /* of a prompt; 0: it is only counted */
    bool add_special;   /* BOS where the model wants it; default true */
    bool parse_special; /* control tokens in the text are meant; default true */
    uint32_t truncate;  /* longer prompts are cut to so many tokens; 0: they are refused */
    bool cuts_end;      /* the end of them, not the beginning */
    bool echo;          /* the prompt is part of the answer's text */
    bool only_prompt;   /* … and all of it */

    /* How. */
    nib_sampler_params sampling; /* OpenAI's defaults: temperature 1, no cuts; seed UINT32_MAX: a fresh one */
    nib_logit_bias *biases;
    size_t n_biases;
    bool ignore_eos;
    const char *chain;     /* of samplers; NULL: the default */
    const json_t *breakers; /* of DRY, a list of strings; NULL: the usual ones */
    nib_token *breaker_ids; /* what they become */
    uint32_t *breaker_lengths;
    nib_str *stops;        /* the client's own, then those of the template */
    size_t n_stops, n_own_stops, stops_capacity;
    nib_token *stop_ids;
    size_t n_stop_ids;
    nib_token *allowed_ids; /* no others are chosen; NULL: all may be */
    size_t n_allowed_ids, allowed_capacity;
    bool include_stop;     /* the stop string is part of the text */
    uint32_t n;            /* answers to each prompt; default 1 */
    uint32_t max_tokens;   /* 0: what the context has room for */
    uint32_t min_tokens;
    nib_syntax syntax;     /* of the grammar */
    nib_buf grammar;       /* its text */
    bool has_grammar;
    const char *grammar_param; /* the field that gave it: a constant */
    nib_server_tool_choice tool_choice;
    const char *tool_name;
    bool one_call;         /* parallel_tool_calls: false */
    bool many_calls;       /* the same: true, said in other words */
    json_t *tools;         /* a list, borrowed; NULL: none */
    nib_pooling pooling;   /* not NONE: embeddings of the prompts, not answers */
    bool keeps_length;     /* of embeddings; else it is made 1 */

    /* What to tell. */
    bool stream, include_usage;
    bool logprobs, prompt_logprobs;
    uint32_t n_top;
    bool hides_reasoning;
    bool joins_reasoning;  /* reasoning is content, with its marks */
    bool special;          /* control tokens are text */

    /* How it is served. */
    int32_t priority;
    uint64_t owner, salt;
    const char *model;     /* as the client called it; NULL: it did not */
} nib_server_ask;

/* Defaults. Takes the body. */
void nib_server_ask_init(nib_server_ask *ask, const nib_server *server, json_t *body);
void nib_server_ask_fini(nib_server_ask *ask);

/* Appends to the lists; NIB_E_ARG after filling *fault. */
nib_status nib_server_ask_add_stop(nib_server_ask *ask, nib_str stop, nib_server_fault *fault);
/* A stop of the template, after those of the client: however many those are. */
nib_status nib_server_ask_add_end(nib_server_ask *ask, nib_str stop, nib_server_fault *fault);
nib_status nib_server_ask_add_stop_id(nib_server_ask *ask, nib_token id, nib_server_fault *fault);
nib_status nib_server_ask_add_allowed_id(nib_server_ask *ask, nib_token id, nib_server_fault *fault);
nib_status nib_server_ask_add_bias(nib_server_ask *ask, nib_token id, float bias, nib_server_fault *fault);
/* A prompt of text, or of the ids in a JSON list. param: for the message. */
nib_status nib_server_ask_add_text(nib_server_ask *ask, nib_str text, nib_server_fault *fault);
nib_status nib_server_ask_add_ids(nib_server_ask *ask, const json_t *ids, const char *param, nib_server_fault *fault);
/* The answer must look like this; a second grammar is refused. */
nib_status nib_server_ask_set_grammar(nib_server_ask *ask, nib_syntax syntax, nib_str text, const char *param,
                                      nib_server_fault *fault);
/* A schema, or a list of choices, as a JSON value. */
nib_status nib_server_ask_set_grammar_json(nib_server_ask *ask, nib_syntax syntax, const json_t *value, const char *param,
                                           nib_server_fault *fault);

#endif
