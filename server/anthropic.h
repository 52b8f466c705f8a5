/* server/anthropic.h - Anthropic's messages: how a request is read. */
#ifndef NIB_SERVER_ANTHROPIC_H
#define NIB_SERVER_ANTHROPIC_H

#include "dialect.h"

extern const nib_server_dialect nib_server_anthropic;

/* ask->body, a request of /v1/messages -> the rest of the ask: messages and tools become those of OpenAI, which templates know. */
nib_status nib_server_anthropic_read(nib_server_ask *ask, nib_server_fault *fault);

#endif
