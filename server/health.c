/* server/health.c - what probes ask. Never touches the engine: a long prefill does not make a server sick. */
#include "internal.h"
#include "routes.h"

#include <string.h>

static void reply(nib_server_exchange *x, int status, const char *text) {
    nib_server_http_set(x, "Cache-Control", "no-store");
    nib_server_http_reply(x, status, "application/json", (nib_str){text, strlen(text)});
}

void nib_server_route_live(nib_server *server, nib_server_exchange *x) {
    (void)server;
    reply(x, 200, "{\"status\":\"ok\"}");
}

void nib_server_route_health(nib_server *server, nib_server_exchange *x) {
    int state = atomic_load(&server->state);
    nib_server_fault fault;
    if (state == NIB_SERVER_READY) {
        reply(x, 200, "{\"status\":\"ok\"}");
        return;
    }
    nib_server_fail(&fault, 503, state == NIB_SERVER_LOADING ? "loading" : "shutting_down", "%s",
                    state == NIB_SERVER_LOADING ? "the model is being loaded" : "the server is shutting down");
    nib_server_reply_fault(x, NULL, &fault);
}
