/* cli/workload.h - conversations to load a server with: kind, sizes and a number -> messages. Words of a small list, chosen by
 * random numbers: a function of the arguments alone. */
#ifndef NIB_CLI_WORKLOAD_H
#define NIB_CLI_WORKLOAD_H

#include "json.h"

/* Words of --workload. */
enum {
    NIB_CLI_WORKLOAD_UNIQUE,        /* no two prompts begin alike */
    NIB_CLI_WORKLOAD_SHARED_PREFIX, /* one system message for all, questions differ */
    NIB_CLI_WORKLOAD_MULTI_TURN,    /* each question comes with all that was said before */
};

typedef struct nib_cli_workload {
    int kind;
    uint32_t salt[2];  /* another one, other words */
    size_t n_words, n_prefix_words;
    uint32_t n_turns;  /* questions of a conversation; 1 but for multi-turn */
} nib_cli_workload;

/* The messages of a conversation up to its first question. */
json_t *nib_cli_workload_begin(const nib_cli_workload *w, uint32_t conversation);
/* Adds an answer and the next question. */
void nib_cli_workload_go_on(const nib_cli_workload *w, json_t *messages, uint32_t conversation, nib_str answer);

#endif
