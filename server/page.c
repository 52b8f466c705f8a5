/* server/page.c - the web page: GET / and what is below /assets, files out of the program, under a policy that lets the page reach this
 * server and nothing else. */
#include "page.h"

#include "error.h"
#include "internal.h"
#include "routes.h"

#include <string.h>

/* No script, style or connection but of this origin; pictures may also be in the text itself; HTML only from the sanitiser. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

static const nib_server_page_file *find(nib_str path) {
    for (size_t i = 0; i < nib_server_page_n_files; i++) {
        const char *known = nib_server_page_files[i].path;
        if (strlen(known) == path.len && memcmp(known, path.ptr, path.len) == 0) return &nib_server_page_files[i];
    }
    return NULL;
}

/* Is this version among those that the browser has? Tags are digits in quotes, so none is part of another. */
static bool is_known(nib_str have, const char *tag) {
    size_t n = strlen(tag);
    for (size_t i = 0; i + n <= have.len; i++)
        if (memcmp(have.ptr + i, tag, n) == 0) return true;
    return false;
}

void nib_server_route_page(nib_server *server, nib_server_exchange *x) {
    (void)server;
    const nib_server_page_file *file = find(nib_server_http_path(x));
    if (!file) {
        nib_server_fault fault;
        nib_server_fail(&fault, 404, "not_found", "the page has no such file");
        nib_server_reply_fault(x, NULL, &fault);
        return;
    }
    nib_server_http_set(x, "Content-Security-Policy", policy);
    nib_server_http_set(x, "X-Content-Type-Options", "nosniff");
    nib_server_http_set(x, "Referrer-Policy", "no-referrer");
    nib_server_http_set(x, "Cross-Origin-Opener-Policy", "same-origin");
    nib_server_http_set(x, "Cross-Origin-Resource-Policy", "same-origin");
    nib_server_http_set(x, "Cache-Control", "no-cache");
    nib_server_http_set(x, "ETag", file->tag);
    if (is_known(nib_server_http_header(x, "if-none-match"), file->tag)) {
        nib_server_http_reply(x, 304, NULL, (nib_str){0});
        return;
    }
    if (file->is_gzip) nib_server_http_set(x, "Content-Encoding", "gzip");
    nib_server_http_reply(x, 200, file->type, (nib_str){(const char *)file->bytes, file->n_bytes});
}
