/* chat/request.h - a whole request: JSON in, checked; the variables of a template out. */
#ifndef NIB_CHAT_REQUEST_H
#define NIB_CHAT_REQUEST_H

#include "chat/message.h"

typedef struct nib_chat_request {
    nib_chat_message *messages;
    uint32_t n_messages;
    jinja_value tools;         /* a list; NONE: no tools, or hidden ones */
    jinja_value documents;     /* a list or NONE */
    jinja_value thinks;        /* enable_thinking, a bool or NONE */
    jinja_value effort;        /* reasoning_effort, a string or NONE */
    const jinja_dict *kwargs;  /* NULL: none */
    bool add_generation_prompt, continue_final_message;
} nib_chat_request;

/* Reads and checks; *out lies in the arena. */
nib_status nib_chat_request_read(nib_chat_reader *r, nib_str json, nib_chat_request *out);
/* The variables for a template, in *out; notes: bits of what was changed. May be called again with other caps. */
nib_status nib_chat_request_write(nib_chat_reader *r, const nib_chat_request *request, const nib_chat_caps *caps,
                                  unsigned *notes, jinja_value *out);

#endif
