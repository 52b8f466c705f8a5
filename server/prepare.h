/* server/prepare.h - on a work thread: a body -> an ask -> ids, grammar -> streams of the engine. */
#ifndef NIB_SERVER_PREPARE_H
#define NIB_SERVER_PREPARE_H

#include "generation.h"

/* Fills the answer with its choices and sources, whose streams run from then on; answer->on_ready is their callback, with the
 * answer. After a fault what was begun belongs to the answer all the same. */
nib_status nib_server_prepare(nib_server_answer *answer, nib_server_fault *fault);
/* Whether ask->model, when it is given, is a name of the model. */
nib_status nib_server_prepare_model(const nib_server_ask *ask, nib_server_fault *fault);
/* ask->chat -> its prompt; free it with nib_chat_prompt_free. */
nib_status nib_server_prepare_render(const nib_server_ask *ask, nib_chat_prompt *out, nib_server_fault *fault);
/* Appends the tokens of text to a prompt of the ask, which gets no longer than a request may be. */
nib_status nib_server_prepare_tokens(const nib_server_ask *ask, nib_server_prompt *prompt, nib_str text, unsigned flags,
                                     nib_server_fault *fault);
/* The chat, rendered, as ids: one prompt more of the ask. */
nib_status nib_server_prepare_messages(nib_server_ask *ask, bool *starts_thinking, nib_server_fault *fault);
/* On the loop: a choice has ended, and prompts of which only some are embedded at once may be left. */
nib_status nib_server_prepare_more(nib_server_answer *answer, nib_server_fault *fault);

#endif
