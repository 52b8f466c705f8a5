/* server/origin.c - Origin and Host of a request against what the server goes by (origin.h). */
#include "origin.h"

#include "internal.h"

#include <string.h>
#include <strings.h>

static bool is_same(nib_str a, nib_str b) {
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* "https://example.org:8080" -> "example.org:8080" */
static nib_str authority_of(nib_str origin) {
    for (size_t i = 0; i + 3 <= origin.len; i++)
        if (memcmp(origin.ptr + i, "://", 3) == 0) return (nib_str){origin.ptr + i + 3, origin.len - i - 3};
    return (nib_str){"", 0};
}

/* An address, a name without a dot, or one that ends in .localhost: no page of the internet has such a name. */
static bool is_local(nib_str host) {
    static const char tail[] = ".localhost";
    size_t n_tail = sizeof tail - 1, colon = host.len;
    if (host.len && *host.ptr == '[') return true;
    while (colon && host.ptr[colon - 1] != ':') colon--;
    if (colon) host.len = colon - 1;
    bool has_dot = host.len && memchr(host.ptr, '.', host.len);
    bool is_address = true;
    for (size_t i = 0; i < host.len; i++) is_address = is_address && strchr("0123456789.", host.ptr[i]);
    return !has_dot || is_address || (host.len > n_tail && strncasecmp(host.ptr + host.len - n_tail, tail, n_tail) == 0);
}

static bool is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

bool nib_server_origin_allows(const nib_server *server, const nib_server_exchange *x) {
    const char *asked = server->config.cors_origin;
    nib_str other = {asked ? asked : "", asked ? strlen(asked) : 0};
    nib_str host = nib_server_http_header(x, "host"), origin = nib_server_http_header(x, "origin");
    if (server->config.n_keys || (asked && strcmp(asked, "*") == 0)) return true;
    if (origin.ptr && !is_same(origin, other) && !is_same(authority_of(origin), host)) return false;
    return !host.ptr || !is_loopback(server->config.host) || is_local(host) || is_same(authority_of(other), host);
}
