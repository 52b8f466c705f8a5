/* server/origin.h - whether a page of another site is behind a request. */
#ifndef NIB_SERVER_ORIGIN_H
#define NIB_SERVER_ORIGIN_H

#include "http.h"

struct nib_server;

/* Without keys a browser would let every page send requests, though not read the answers: Origin must be the server's own or
 * that of --cors-origin. And a server on the loopback must be asked by an address or a local name, since others may stand for it
 * in a page's DNS. With keys anything goes: a page knows none. */
bool nib_server_origin_allows(const struct nib_server *server, const nib_server_exchange *x);

#endif
