/* server/auth.c - keys of requests against the keys that were given (auth.h). */
#include "auth.h"

#include "internal.h"

#include <strings.h>

static nib_str key_of(const nib_server_exchange *x) {
    nib_str value = nib_server_http_header(x, "authorization");
    if (value.len < 7 || strncasecmp(value.ptr, "bearer ", 7) != 0) return nib_server_http_header(x, "x-api-key");
    for (value.ptr += 7, value.len -= 7; value.len && *value.ptr == ' '; value.ptr++) value.len--;
    return value;
}

static bool is_same(nib_str a, nib_str b) {
    unsigned char differs = 0;
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) differs |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
    return differs == 0;
}

size_t nib_server_auth_owner(const nib_server *server, const nib_server_exchange *x) {
    nib_str key = key_of(x);
    size_t owner = 0;
    for (size_t i = 0; i < server->config.n_keys; i++)
        if (is_same(server->config.keys[i], key)) owner = i + 1;
    return owner;
}

bool nib_server_auth_allows(const nib_server *server, const nib_server_exchange *x) {
    return server->config.n_keys == 0 || nib_server_auth_owner(server, x) > 0;
}
