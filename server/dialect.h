/* server/dialect.h - what a protocol makes of a request and of the answer to it.
 *
 * A dialect is a constant table of functions. It reads a body into an ask (ask.h), and writes the events of the answer
 * (generation.h) as bytes: one by one into a stream, or the whole at the end. Everything between is the same for all. */
#ifndef NIB_SERVER_DIALECT_H
#define NIB_SERVER_DIALECT_H

#include "ask.h"
#include "error.h"
#include "generation.h"

struct nib_server_dialect {
    const char *stream_type; /* Content-Type of a stream */
    const char *stream_idle; /* what may be sent at any time and means nothing; NULL: nothing */
    size_t state_size;       /* bytes of answer->state, zeroed: what the dialect has to remember */

    /* On a work thread: ask->body, an object, -> the rest of the ask. */
    nib_status (*read)(nib_server_ask *ask, nib_server_fault *fault);

    /* On the loop. Appends what a stream says about an event. */
    void (*event)(nib_server_answer *answer, const nib_server_event *event, nib_buf *out);
    /* Appends the body of an answer that is not streamed. */
    void (*whole)(nib_server_answer *answer, nib_buf *out);
    /* Appends the body of an error; NULL: OpenAI's. */
    void (*error)(const nib_server_fault *fault, nib_buf *out);
};

#endif
