/* server/prepare.h - on a work thread: a body -> an ask -> ids, grammar -> streams of the engine. */
#ifndef NIB_SERVER_PREPARE_H
#define NIB_SERVER_PREPARE_H

#include "generation.h"

/* Fills the answer with its choices and sources, whose streams run from then on; `ready` is their callback, with the answer.
 * After a fault what was begun belongs to the answer all the same. */
nib_status nib_server_prepare(nib_server_answer *answer, void (*ready)(void *user), nib_server_fault *fault);

#endif
