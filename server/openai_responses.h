/* server/openai_responses.h - OpenAI's responses, without state: how a request is read. */
#ifndef NIB_SERVER_OPENAI_RESPONSES_H
#define NIB_SERVER_OPENAI_RESPONSES_H

#include "ask.h"

nib_status nib_server_responses_read(nib_server_ask *ask, nib_server_fault *fault);

#endif
