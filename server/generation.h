/* server/generation.h - one answer with its choices: streams of the engine -> neutral events -> a dialect -> bytes.
 *
 * An answer begins on the loop with a request that may generate, goes to a work thread to be read and prepared, and comes
 * back: from then on the loop reads its streams whenever the engine has something. It ends with its bytes or with its client. */
#ifndef NIB_SERVER_GENERATION_H
#define NIB_SERVER_GENERATION_H

#include "ask.h"
#include "http.h"
#include "work.h"

#include <stdatomic.h>

typedef struct nib_server_dialect nib_server_dialect;

typedef enum nib_server_event_kind {
    NIB_SERVER_BEGIN = 0,      /* of the answer: before everything else, once for all choices */
    NIB_SERVER_CONTENT,        /* text */
    NIB_SERVER_REASONING,      /* text */
    NIB_SERVER_CALL_BEGIN,     /* call: id and name */
    NIB_SERVER_CALL_ARGUMENTS, /* call, text: a piece of the JSON */
    NIB_SERVER_CALL_END,       /* call */
    NIB_SERVER_CHOICE_END,     /* choice->finish */
    NIB_SERVER_END,            /* of the answer, after all choices; usage is known */
    NIB_SERVER_ERROR,          /* fault: instead of what should have come; the stream ends with it */
} nib_server_event_kind;

/* How a choice ended. */
typedef enum nib_server_finish {
    NIB_SERVER_FINISH_NONE = 0, /* not yet */
    NIB_SERVER_FINISH_STOP,
    NIB_SERVER_FINISH_LENGTH,
    NIB_SERVER_FINISH_CALLS,    /* with calls of tools */
    NIB_SERVER_FINISH_TIMEOUT,  /* it took longer than it may */
    NIB_SERVER_FINISH_ABORT,    /* the server shuts down */
    NIB_SERVER_FINISH_NOTHING,  /* there was nothing to be said */
} nib_server_finish;

typedef struct nib_server_call {
    nib_buf id, name, arguments;
} nib_server_call;

/* What was said, in the order in which it was. */
typedef struct nib_server_part {
    nib_server_event_kind kind; /* CONTENT, REASONING, or CALL_BEGIN for all of a call */
    size_t from, to;            /* of the content or of the reasoning */
    size_t call;                /* of the calls */
} nib_server_part;

typedef struct nib_server_token { /* with ask->logprobs */
    nib_token id;
    float logprob;
    uint32_t n_top;
    size_t top;       /* of choice->tops */
} nib_server_token;

struct nib_server_choice {
    nib_server_answer *answer;
    uint32_t index;   /* over all prompts */
    uint32_t prompt;  /* of ask->prompts */
    nib_chat_parser *parser; /* NULL: text is content */
    nib_buf content, reasoning; /* all of it so far */
    nib_server_call *calls;
    size_t n_calls, calls_capacity;
    nib_server_part *parts;
    size_t n_parts, parts_capacity;
    nib_server_token *tokens;
    size_t n_tokens, tokens_capacity;
    size_t n_told;    /* of these: those that the dialect has put into its stream */
    nib_logprob *tops;
    size_t n_tops, tops_capacity;
    nib_server_finish finish;
    int stop;         /* which of the client's ask->stops ended it; -1: none */
    nib_usage usage;  /* at the end; n_generated counts all along */
    uint32_t n_reasoning; /* tokens */
    bool is_reasoning;/* the last text was */
    uint32_t seed;
    float *embedding; /* with ask->pooling: n_embd, at the end */
    double last_token; /* when it came, by the monotonic clock; 0: none came */
};

/* A stream of the engine: the answers to one prompt. */
typedef struct nib_server_source {
    nib_stream *stream;
    nib_server_choice *choices; /* the first of them */
} nib_server_source;

struct nib_server_answer {
    nib_server *server;
    nib_server_exchange *x; /* NULL: the client is gone */
    const nib_server_dialect *dialect;
    void *state;            /* of the dialect */
    nib_server_ask ask;
    nib_server_choice *choices;
    size_t n_choices, n_open;
    nib_server_source *sources;
    size_t n_sources;
    nib_grammar *grammar;   /* NULL: anything may be said */
    char *tools;            /* that may be called, as JSON; NULL: none */
    bool starts_thinking;
    char id[32];            /* unique, of letters and digits */
    int64_t created;        /* seconds since 1970 */
    double started;         /* of the monotonic clock: when the request was complete */

    /* Private to generation.c. */
    nib_buf body;
    nib_server_job job;
    nib_server_task prepared, ready;
    void (*on_ready)(void *user, bool is_awaited); /* of the requests of the engine */
    bool is_prepared, is_reading, has_failed;
    atomic_bool is_gone;    /* the client: what is being prepared is not wanted */
    nib_status status;      /* of the preparation; what fault is about */
    nib_server_fault fault;
    nib_buf out;            /* bytes of this wake */
    double last_sent;       /* of the monotonic clock */
    nib_server_answer *next, *prev;
};

typedef struct nib_server_event {
    nib_server_event_kind kind;
    nib_server_choice *choice; /* NULL: BEGIN, END, ERROR */
    nib_str text;
    nib_server_call *call;
    size_t call_index;
    const nib_server_fault *fault;
} nib_server_event;

/* Sums over the choices; a prompt counts once. */
typedef struct nib_server_usage {
    uint64_t n_prompt, n_cached, n_generated, n_reasoning;
} nib_server_usage;
nib_server_usage nib_server_usage_of(const nib_server_answer *answer);

/* A handler of a route that generates calls this: refuses at once what cannot be served now, and takes the exchange over. */
void nib_server_generate(nib_server *server, nib_server_exchange *x, const nib_server_dialect *dialect);

/* Every few seconds: a sign of life for streams that have said nothing for a while, lest a proxy takes them for dead. */
void nib_server_generate_tick(void *server);

/* What the parser of a choice calls, with the choice. */
bool nib_server_choice_event(void *choice, const nib_chat_event *event);

/* Ends all answers; the loop runs no more, and the work threads shall not begin any. */
void nib_server_generate_none(nib_server *server);
/* On the loop: every answer ends now, with an error. */
void nib_server_generate_cut(nib_server *server);

/* Answers 200 with the value, and frees it. */
void nib_server_reply_json(nib_server_exchange *x, json_t *value);
/* Answers with a fault in the words of a dialect (NULL: OpenAI's). */
void nib_server_reply_fault(nib_server_exchange *x, const nib_server_dialect *dialect, const nib_server_fault *fault);

#endif
