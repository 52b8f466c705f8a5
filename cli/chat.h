/* cli/chat.h - a conversation: messages -> an answer in events, which becomes the next message.
 *
 * Messages are JSON of OpenAI's shape. A model of this machine or a server answers (answerer.h). Called by chat, on a
 * terminal and in scripts. */
#ifndef NIB_CLI_CHAT_H
#define NIB_CLI_CHAT_H

#include "constraint.h"
#include "generate.h"
#include "json.h"
#include "stops.h"

/* Words of --overflow: what happens when the conversation outgrows the context. */
enum {
    NIB_CLI_OVERFLOW_TRIM,  /* whole oldest turns are left out of the prompt, never the system message */
    NIB_CLI_OVERFLOW_STOP,  /* the answer ends where the context does; a prompt that does not fit is an error */
    NIB_CLI_OVERFLOW_ERROR, /* both are errors */
};

/* Words of --reasoning. */
enum {
    NIB_CLI_REASONING_SHOW,
    NIB_CLI_REASONING_HIDE, /* the model thinks, nobody sees it */
    NIB_CLI_REASONING_OFF,  /* the template is told not to let it think */
};

typedef struct nib_cli_answerer nib_cli_answerer;
typedef struct nib_cli_remote nib_cli_remote; /* private to chat_remote.c */

/* Of an answer. */
typedef struct nib_cli_figures {
    const char *finish_reason; /* "stop", "length", "tool_calls", "interrupted", or what a server says; NULL: no answer */
    size_t n_prompt, n_cached, n_generated, n_reasoning; /* tokens */
    double ttft_ms, decode_ms; /* to the first token, and from there to the last */
} nib_cli_figures;

/* Stays where it is while it is open. */
typedef struct nib_cli_chat {
    nib_cli_options opt; /* as given on the command line, then as /set changes it */
    const nib_cli_answerer *who;
    nib_cli_session s;     /* with a server only options and terminal */
    nib_cli_remote *remote; /* NULL: a model of this machine */
    json_t *kwargs;        /* of --chat-template-kwargs: an object, or NULL */
    json_t *tools;         /* an array, or NULL */
    char *tools_text;      /* as JSON */
    nib_cli_constraint constraint;
    json_t *messages;      /* an array: all of the conversation, also what no longer fits */
    struct {
        int64_t device, inode, seconds, nanoseconds, n_bytes; /* all 0: there was none */
    } session;             /* the file as it was when it was loaded */
    size_t n_dropped;      /* messages that the prompt leaves out: the oldest after the system message */
    nib_cli_stops stops;
    nib_cli_figures last;
    /* Of a model of this machine. Sequence 0 holds the tokens of the last prompt and answer; what the next prompt has in
     * common with them is not computed again. */
    nib_chat *chat;
    nib_sampler *sampler;  /* NULL: to be made */
    bool notes_shown;      /* what the template does to the messages, said once */
    nib_token_list ids;    /* what sequence 0 holds */
    nib_cli_generation g;  /* the last */
} nib_cli_chat;

/* The template of the options, or else the model's (chat_local.c). */
nib_status nib_cli_chat_template(nib_chat **out, const nib_cli_session *s, nib_error *err);

/* Opens the model of the options, or the server, and begins a conversation: that of --messages, and the message of
 * --system. Close in any case. */
nib_status nib_cli_chat_open(nib_cli_chat *c, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err);
void nib_cli_chat_close(nib_cli_chat *c);
/* To be called after a change of c->opt: the next answer follows it. */
void nib_cli_chat_options_changed(nib_cli_chat *c);

/* ---- messages */
nib_status nib_cli_chat_add(nib_cli_chat *c, const char *role, nib_str text, nib_error *err);
/* Sets or (text.ptr NULL) removes the system message. */
nib_status nib_cli_chat_set_system(nib_cli_chat *c, nib_str text, nib_error *err);
/* The text of the last message of this role; ptr NULL: there is none. Borrowed. */
nib_str nib_cli_chat_last(const nib_cli_chat *c, const char *role);
/* Forgets everything but the system message. */
void nib_cli_chat_clear(nib_cli_chat *c);
/* Takes back the last user message and what followed it; false: there is none. */
bool nib_cli_chat_undo(nib_cli_chat *c);
/* Takes back what followed the last user message, so that it can be answered again; false: there is none. */
bool nib_cli_chat_retry(nib_cli_chat *c);
/* System messages at the beginning: these are never left out. */
size_t nib_cli_chat_n_system(const nib_cli_chat *c);

/* ---- answers (chat_answer.c) */
/* Answers the messages. Events come as the text does; the answer, also one that Ctrl-C cut short, becomes a message. An
 * event function that returns false ends the answer as "interrupted". After an error what had come is a message too. */
nib_status nib_cli_chat_answer(nib_cli_chat *c, nib_chat_event_fn event, void *user, nib_error *err);

/* ---- files (chat_file.c) */
/* JSON: {"messages": […]}; save refuses to take the place of a session; load replaces the conversation, and takes a bare
 * array and the first line of a session, too. */
nib_status nib_cli_chat_save(const nib_cli_chat *c, const char *path, nib_error *err);
nib_status nib_cli_chat_load(nib_cli_chat *c, const char *path, nib_error *err);
/* --session: the same object in the first line, and after it the keys and values of its tokens. A file that is not there is
 * no error on loading, unless it cannot be made; one whose keys and values cannot be used is a warning, and they are computed
 * again. A file that was changed since it was loaded is not replaced: another one is written beside it, with a warning. */
nib_status nib_cli_chat_session_save(nib_cli_chat *c, const char *path, nib_error *err);
nib_status nib_cli_chat_session_load(nib_cli_chat *c, const char *path, nib_error *err);

#endif
