/* server/auth.h - API keys: Authorization: Bearer KEY, or x-api-key: KEY as Anthropic's clients send it. */
#ifndef NIB_SERVER_AUTH_H
#define NIB_SERVER_AUTH_H

#include "http.h"

struct nib_server;

/* True where there are no keys. The time that it takes tells nothing about the keys but their lengths. */
bool nib_server_auth_allows(const struct nib_server *server, const nib_server_exchange *x);
/* Which key a request has, from 1; 0: none. */
size_t nib_server_auth_owner(const struct nib_server *server, const nib_server_exchange *x);

#endif
