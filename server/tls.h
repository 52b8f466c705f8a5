/* server/tls.h - TLS for http.c: certificate and key -> bufferevents that speak it. A build without OpenSSL refuses. */
#ifndef NIB_SERVER_TLS_H
#define NIB_SERVER_TLS_H

#include "nib.h"

struct bufferevent;
struct event_base;

typedef struct nib_server_tls nib_server_tls;

/* Files in PEM, the certificate with its chain. */
nib_status nib_server_tls_new(nib_server_tls **out, const char *cert, const char *key, nib_error *err);
void nib_server_tls_free(nib_server_tls *tls);
/* Takes the descriptor; NULL: memory is out, and it is still the caller's. */
struct bufferevent *nib_server_tls_bufferevent(nib_server_tls *tls, struct event_base *base, int fd);

#endif
