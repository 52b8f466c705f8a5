/* server/tls.c - TLS by OpenSSL and libevent (tls.h). */
#include "tls.h"

#include "base/mem.h"
#include "base/status.h"

#ifdef NIB_TLS
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

struct nib_server_tls {
    SSL_CTX *ctx;
};

static nib_status fail(const char *what, const char *path, nib_error *err) {
    unsigned long code = ERR_get_error();
    const char *reason = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    ERR_clear_error();
    return nib_fail(err, NIB_E_ARG, "%s: %s (%s)", path, what, reason ? reason : "unknown reason");
}

nib_status nib_server_tls_new(nib_server_tls **out, const char *cert, const char *key, nib_error *err) {
    nib_status status;
    *out = NULL;
    nib_server_tls *tls = nib_calloc(1, sizeof *tls);
    if (tls) tls->ctx = SSL_CTX_new(TLS_server_method());
    if (!tls || !tls->ctx) {
        status = nib_fail_nomem(err, 0, "TLS");
        goto out;
    }
    SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (SSL_CTX_use_certificate_chain_file(tls->ctx, cert) != 1) NIB_TRY_OUT(fail("no certificate in PEM", cert, err));
    if (SSL_CTX_use_PrivateKey_file(tls->ctx, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(tls->ctx) != 1)
        NIB_TRY_OUT(fail("no private key in PEM that belongs to the certificate", key, err));
    *out = tls;
    return NIB_OK;
out:
    nib_server_tls_free(tls);
    return status;
}

void nib_server_tls_free(nib_server_tls *tls) {
    if (!tls) return;
    SSL_CTX_free(tls->ctx);
    nib_free(tls);
}

struct bufferevent *nib_server_tls_bufferevent(nib_server_tls *tls, struct event_base *base, int fd) {
    SSL *ssl = SSL_new(tls->ctx);
    if (!ssl) return NULL;
    struct bufferevent *bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) SSL_free(ssl);
    else bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

#else

nib_status nib_server_tls_new(nib_server_tls **out, const char *cert, const char *key, nib_error *err) {
    (void)key;
    *out = NULL;
    return nib_fail(err, NIB_E_UNSUPPORTED, "%s: this nib was built without TLS", cert);
}

void nib_server_tls_free(nib_server_tls *tls) {
    (void)tls;
}

struct bufferevent *nib_server_tls_bufferevent(nib_server_tls *tls, struct event_base *base, int fd) {
    (void)tls, (void)base, (void)fd;
    return NULL;
}
#endif
