/* tests/support/chat.h - chats of templates that a test writes down, over the vocabulary "bpe" of support/vocab.h. */
#ifndef NIB_TESTS_SUPPORT_CHAT_H
#define NIB_TESTS_SUPPORT_CHAT_H

#include "nib.h"

typedef struct chat_fixture {
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_chat *chat;
} chat_fixture;

/* A file with these string keys, "key", "value", …, NULL, its tokenizer and its chat. Closed also after an error. */
nib_status chat_open(chat_fixture *f, const char *const *keys, const nib_chat_config *config, nib_error *err);
/* The chat of a template; a failure ends the test. */
void chat_must(chat_fixture *f, const char *text);
void chat_close(chat_fixture *f);

/* Fails the test unless the request renders to this text / is refused with this code and a message that contains the part. */
void chat_prints(const nib_chat *chat, const char *request, const char *text);
void chat_refuses(const nib_chat *chat, const char *request, nib_status code, const char *part);

/* A simple template: ChatML that takes strings, without tools. */
extern const char chat_simple[];

#endif
