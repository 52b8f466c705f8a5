/* server/routes.h - a request -> its row of routes.def -> the function that answers it. */
#ifndef NIB_SERVER_ROUTES_H
#define NIB_SERVER_ROUTES_H

#include "http.h"

struct nib_server;

/* What a row asks for before its handler is called. */
enum {
    NIB_SERVER_ANY = 0,
    NIB_SERVER_KEY = 1,   /* an API key, where there are keys */
    NIB_SERVER_MODEL = 2, /* the model is loaded, and the server does not drain */
};

/* Handlers run on the loop, and answer the exchange sooner or later. */
#define ROUTE(method, path, handler, access, summary) \
    void nib_server_route_##handler(struct nib_server *server, nib_server_exchange *x);
#include "routes.def"
#undef ROUTE

/* Whether the body of a request is wanted; false: it was answered. */
bool nib_server_routes_admit(struct nib_server *server, nib_server_exchange *x);
/* Finds the row, checks what it asks for, and calls its handler. */
void nib_server_routes_run(struct nib_server *server, nib_server_exchange *x);

#endif
