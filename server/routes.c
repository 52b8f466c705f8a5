/* server/routes.c - the table of routes, and what goes before it: keys, CORS, state (routes.h). */
#include "routes.h"

#include "anthropic.h"
#include "auth.h"
#include "internal.h"
#include "ollama.h"
#include "origin.h"

#include <string.h>

enum { ANY = NIB_SERVER_ANY, KEY = NIB_SERVER_KEY, MODEL = NIB_SERVER_MODEL };
enum { MOST_WITHOUT_LOOKING = 65536 }; /* bytes of a body that are read even if nobody wants them: the connection stays */

typedef struct route {
    const char *method, *path;
    void (*handler)(nib_server *server, nib_server_exchange *x);
    unsigned access;
} route;

static const route routes[] = {
#define ROUTE(method, path, handler, access, summary) {method, path, nib_server_route_##handler, access},
#include "routes.def"
#undef ROUTE
};
enum { N_ROUTES = sizeof routes / sizeof routes[0] };

static bool is(nib_str text, const char *word) {
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static bool path_fits(nib_str path, const char *pattern) {
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '*') return path.len >= n && memcmp(path.ptr, pattern, n - 1) == 0;
    return is(path, pattern);
}

/* HEAD is GET without the body. */
static bool method_fits(nib_str method, const char *wanted) {
    return is(method, wanted) || (is(method, "HEAD") && strcmp(wanted, "GET") == 0);
}

/* NULL: *allowed gets the methods that the path has, "" when there is no such path. */
static const route *find(const nib_server_exchange *x, nib_buf *allowed) {
    nib_str method = nib_server_http_method(x), path = nib_server_http_path(x);
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!path_fits(path, routes[i].path)) continue;
        if (method_fits(method, routes[i].method)) return &routes[i];
        nib_buf_printf(allowed, "%s%s", allowed->len ? ", " : "", routes[i].method);
    }
    return NULL;
}

/* ---- pages of other origins */

static void allow_origin(const nib_server *server, nib_server_exchange *x) {
    const char *origin = server->config.cors_origin;
    if (!origin) return;
    nib_server_http_set(x, "Access-Control-Allow-Origin", origin);
    if (strcmp(origin, "*") != 0) nib_server_http_set(x, "Vary", "Origin");
}

/* What a browser asks before it lets a script ask. */
static void answer_options(const nib_server *server, nib_server_exchange *x) {
    nib_server_http_set(x, "Allow", "GET, HEAD, POST, OPTIONS");
    if (server->config.cors_origin) {
        nib_server_http_set(x, "Access-Control-Allow-Methods", "GET, POST");
        nib_server_http_set(x, "Access-Control-Allow-Headers", "*, Authorization, Content-Type");
        nib_server_http_set(x, "Access-Control-Max-Age", "86400");
    }
    nib_server_http_reply(x, 204, NULL, (nib_str){0});
}

/* ---- what a row asks for */

static nib_status check_access(nib_server *server, nib_server_exchange *x, unsigned access, nib_server_fault *fault) {
    int state = atomic_load(&server->state);
    if (access & KEY && !nib_server_auth_allows(server, x)) {
        nib_server_http_set(x, "WWW-Authenticate", "Bearer");
        return nib_server_fail(fault, 401, "invalid_api_key", "expected a valid API key in \"Authorization: Bearer KEY\"");
    }
    if (access & KEY && !nib_server_origin_allows(server, x))
        return nib_server_fail(fault, 403, "other_origin", "a page of another site may not ask, unless --cors-origin names it");
    if (!(access & MODEL) || state == NIB_SERVER_READY) return NIB_OK;
    nib_server_fail(fault, 503, state == NIB_SERVER_LOADING ? "loading" : "shutting_down", "%s",
                    state == NIB_SERVER_LOADING ? "the model is being loaded" : "the server is shutting down");
    fault->retry_s = 5;
    return NIB_E_BUSY;
}

/* Whose errors a path has; NULL: OpenAI's. */
static const nib_server_dialect *dialect_of(nib_str path) {
    if (path_fits(path, "/v1/messages") || path_fits(path, "/v1/messages/*")) return &nib_server_anthropic;
    return path_fits(path, "/api/*") ? &nib_server_ollama : NULL;
}

/* The handler, or NULL after the exchange was answered. */
static const route *look_up(nib_server *server, nib_server_exchange *x) {
    nib_server_fault fault;
    nib_buf allowed = {0};
    const route *found = find(x, &allowed);
    nib_str path = nib_server_http_path(x);
    int shown = path.len > 200 ? 200 : (int)path.len;
    nib_status status = NIB_OK;
    allow_origin(server, x);
    if (!found && is(nib_server_http_method(x), "OPTIONS")) {
        answer_options(server, x);
        nib_buf_free(&allowed);
        return NULL;
    }
    if (found) {
        status = check_access(server, x, found->access, &fault);
    } else if (allowed.len) {
        nib_server_http_set(x, "Allow", nib_buf_cstr(&allowed));
        status = nib_server_fail(&fault, 405, "method_not_allowed", "%.*s takes %s", shown, path.ptr, allowed.ptr);
    } else {
        status = nib_server_fail(&fault, 404, "not_found", "there is nothing at %.*s", shown, path.ptr);
    }
    nib_buf_free(&allowed);
    if (status == NIB_OK) return found;
    nib_server_reply_fault(x, dialect_of(path), &fault);
    return NULL;
}

bool nib_server_routes_admit(nib_server *server, nib_server_exchange *x) {
    nib_str length = nib_server_http_header(x, "content-length");
    bool is_short = length.ptr ? length.len < 5 : !nib_server_http_header(x, "transfer-encoding").ptr;
    if (is_short && !nib_server_http_header(x, "expect").ptr) return true;
    nib_buf allowed = {0};
    nib_server_fault fault;
    const route *found = find(x, &allowed);
    nib_buf_free(&allowed);
    if (found && check_access(server, x, found->access, &fault) == NIB_OK) return true;
    return look_up(server, x) != NULL;
}

void nib_server_routes_run(nib_server *server, nib_server_exchange *x) {
    const route *found = look_up(server, x);
    if (found) found->handler(server, x);
}
