/* cli/answerer.h - who answers a conversation: a model that runs here (chat_local.c), or a server (chat_remote.c).
 *
 * Terminal, scripts, messages and sessions know nothing else of it than these functions. */
#ifndef NIB_CLI_ANSWERER_H
#define NIB_CLI_ANSWERER_H

#include "chat.h"

/* An answer that is on its way. */
typedef struct nib_cli_answer {
    nib_cli_chat *c;
    nib_chat_event_fn event;
    void *user;
    nib_buf content, reasoning;
    json_t *calls;
    bool is_reasoning; /* the last event was */
} nib_cli_answer;

/* Takes a part of the answer and passes it on: a nib_chat_event_fn, user is the nib_cli_answer. */
bool nib_cli_answer_event(void *answer, const nib_chat_event *event);

struct nib_cli_answerer {
    nib_status (*open)(nib_cli_chat *c, nib_error *err);
    void (*close)(nib_cli_chat *c); /* also after an open that failed, or none */
    /* Answers the messages with events; c->last has the figures then, also after an error. An event that returns false and
     * Ctrl-C end the answer as "interrupted", which is no error. */
    nib_status (*answer)(nib_cli_answer *a, nib_error *err);
    /* Whether an answer can be made with c->opt as it is now. */
    nib_status (*check)(const nib_cli_chat *c, nib_error *err);
    /* Fills in what holds where the user chose nothing; false: that is not known here. */
    bool (*defaults)(const nib_cli_chat *c, nib_cli_options *now);
    void (*forget)(nib_cli_chat *c); /* the conversation was cleared */
    /* "SmolLM2, template of the file" */
    void (*introduce)(const nib_cli_chat *c, nib_buf *text);
    /* Positions of the context that are used and that there are, 0: not known. */
    void (*context)(const nib_cli_chat *c, uint32_t *used, uint32_t *total);
    /* What --json and --stats tell beyond c->last. */
    void (*describe)(const nib_cli_chat *c, json_t *object);
    void (*print_stats)(const nib_cli_chat *c);
};

extern const nib_cli_answerer nib_cli_chat_local, nib_cli_chat_remote;

#endif
