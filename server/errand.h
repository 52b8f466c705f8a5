/* server/errand.h - requests that need a work thread, but not the engine: a body in -> a body out. */
#ifndef NIB_SERVER_ERRAND_H
#define NIB_SERVER_ERRAND_H

#include "dialect.h"

/* On a work thread: ask->body, an object -> the body of the answer, JSON. */
typedef nib_status (*nib_server_errand_fn)(nib_server_ask *ask, nib_buf *out, nib_server_fault *fault);

/* A handler of a route calls this; dialect: whose words errors have, NULL: OpenAI's. */
void nib_server_errand_run(nib_server *server, nib_server_exchange *x, nib_server_errand_fn fn, const nib_server_dialect *dialect);
/* Forgets what was not answered; neither the loop nor work threads run any more. */
void nib_server_errand_none(nib_server *server);

#endif
