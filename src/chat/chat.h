/* chat/chat.h - private to chat/: what a nib_chat is made of, and a render of one of its templates. */
#ifndef NIB_CHAT_CHAT_H
#define NIB_CHAT_CHAT_H

#include "chat/format.h"
#include "chat/request.h"

typedef struct nib_chat_template {
    char *source; /* to show */
    char *text;   /* as given, for places in messages */
    size_t len;
    nib_template *parsed;
    nib_chat_caps caps;
} nib_chat_template;

struct nib_chat {
    const nib_tokenizer *tok;
    nib_chat_template main, tool_use; /* tool_use: parsed is NULL where there is none */
    const nib_chat_format_row *format;
    nib_token end; /* that the template puts behind an answer and that is no EOG; NIB_TOKEN_NONE */
    char stop[64]; /* the text that it puts there instead */
};

/* Renders the variables, to which BOS and EOS are added. Errors name the template, with line and column. */
nib_status nib_chat_template_run(const nib_chat *chat, const nib_chat_template *t, nib_chat_reader *r,
                                 const jinja_value *vars, const nib_chat_render_config *config, nib_rendered *out);

/* Finds out what a template can do (probe.c). */
nib_status nib_chat_probe(const nib_chat *chat, nib_chat_template *t, nib_error *err);
/* Finds what ends an answer: chat->end, chat->stop (turn.c). */
nib_status nib_chat_find_end(nib_chat *chat, nib_error *err);
/* A small conversation as the template shows it, for these two; *out is empty when the template refuses. The only error is
 * that memory is out. */
nib_status nib_chat_try(const nib_chat *chat, const nib_chat_template *t, const char *json, nib_rendered *out,
                        nib_error *err);

#endif
