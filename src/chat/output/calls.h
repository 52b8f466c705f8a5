/* chat/output/calls.h - what a match captured -> tool calls: names, ids, arguments as JSON objects. */
#ifndef NIB_CHAT_OUTPUT_CALLS_H
#define NIB_CHAT_OUTPUT_CALLS_H

#include "chat/output/match.h"
#include "chat/output/tools.h"

typedef struct nib_chat_call {
    nib_str name, id, arguments; /* id may be empty */
} nib_chat_call;

/* Zero-initialise. */
typedef struct nib_chat_calls {
    nib_arena arena; /* what the calls point to, as far as it is not the answer itself */
    nib_chat_call *list;
    size_t n, capacity;
    const nib_chat_tools *tools;
} nib_chat_calls;

/* Reads the captures. NIB_E_FORMAT: they are no call, *why says it; NIB_E_NOMEM. */
nib_status nib_chat_calls_read(nib_chat_calls *calls, const nib_chat_match *m, const nib_chat_window *w,
                               const char **why);
void nib_chat_calls_clear(nib_chat_calls *calls);
void nib_chat_calls_free(nib_chat_calls *calls);

#endif
