/* cli/http_client.c - see http_client.h. Sockets do not block: every wait is in wait_for, which looks at the flag of Ctrl-C. */
#include "http_client.h"

#include "base/status.h"
#include "signals.h"
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 10000, SLICE_MS = 100, READ_BYTES = 1 << 16 };

/* ---- the URL */

static nib_status copy(char *out, size_t size, nib_str text, const char *url, nib_error *err) {
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] == 0x7f || i + 1 >= size)
            return nib_fail(err, NIB_E_ARG, "%s: too long, or with blanks in it", url);
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
    return NIB_OK;
}

nib_status nib_cli_http_init(nib_cli_http *http, const char *url, nib_error *err) {
    *http = (nib_cli_http){.fd = -1};
    if (strncasecmp(url, "https://", 8) == 0)
        return nib_fail(err, NIB_E_UNSUPPORTED, "%s: this program speaks http, not https: let a proxy on this machine speak TLS for it",
                        url);
    const char *at = strncasecmp(url, "http://", 7) == 0 ? url + 7 : url;
    bool is_v6 = *at == '[';
    const char *host = at + is_v6, *end = host + strcspn(host, is_v6 ? "]" : ":/?#");
    nib_str name = {host, (size_t)(end - host)}, port = {"80", 2};
    if (is_v6 && *end == ']') end++;
    if (*end == ':') {
        port.ptr = end + 1;
        port.len = strspn(port.ptr, "0123456789");
        end = port.ptr + port.len;
    }
    nib_str path = {end, strlen(end)};
    if (!name.len || !port.len || port.len > 5 || (path.len && *path.ptr != '/') || strpbrk(end, "?#") || memchr(name.ptr, '@', name.len) ||
        strstr(url + (at - url), "://"))
        return nib_fail(err, NIB_E_ARG, "%s: expected http://HOST:PORT, with a path at most", url);
    while (path.len && path.ptr[path.len - 1] == '/') path.len--;
    NIB_TRY(copy(http->host, sizeof http->host, name, url, err));
    NIB_TRY(copy(http->port, sizeof http->port, port, url, err));
    return copy(http->path, sizeof http->path, path, url, err);
}

/* ---- the connection */

void nib_cli_http_close(nib_cli_http *http) {
    if (http->fd >= 0) close(http->fd);
    http->fd = -1;
    http->was_used = false;
}

/* Waits for an event of the socket; *got: which came. */
static nib_status wait_for(const nib_cli_http *http, short events, int ms, short *got, nib_error *err) {
    double until = nib_cli_now_ms() + ms;
    struct pollfd end = {http->fd, events, 0};
    for (;;) {
        if (nib_cli_interrupted()) return nib_fail(err, NIB_E_CANCELLED, "interrupted");
        int n = poll(&end, 1, SLICE_MS);
        *got = end.revents;
        if (n > 0) return NIB_OK;
        if (n < 0 && errno != EINTR) return nib_fail_errno(err, errno, "cannot wait for %s", http->host);
        if (nib_cli_now_ms() > until)
            return nib_fail(err, NIB_E_IO, "nothing came from %s, port %s, for %d seconds", http->host, http->port, ms / 1000);
    }
}

/* errno of the try; 0: connected. */
static nib_status try_address(nib_cli_http *http, const struct addrinfo *address, int *error, nib_error *err) {
    socklen_t size = sizeof *error;
    short got = 0;
    int on = 1;
    *error = 0;
    http->fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (http->fd < 0 || fcntl(http->fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(http->fd, F_SETFD, FD_CLOEXEC) != 0) {
        *error = errno;
        return NIB_OK;
    }
    setsockopt(http->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(http->fd, address->ai_addr, address->ai_addrlen) == 0) return NIB_OK;
    *error = errno;
    if (*error != EINPROGRESS) return NIB_OK;
    nib_status status = wait_for(http, POLLOUT, CONNECT_MS, &got, err);
    if (status == NIB_E_IO) *error = ETIMEDOUT;
    else if (status == NIB_OK) getsockopt(http->fd, SOL_SOCKET, SO_ERROR, error, &size);
    return status == NIB_E_IO ? NIB_OK : status;
}

static nib_status open_connection(nib_cli_http *http, nib_error *err) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int error = getaddrinfo(http->host, http->port, &hints, &list);
    if (error) return nib_fail(err, NIB_E_IO, "cannot find the host %s: %s", http->host, gai_strerror(error));
    nib_status status = NIB_OK;
    error = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a && error && status == NIB_OK; a = a->ai_next) {
        nib_cli_http_close(http);
        status = try_address(http, a, &error, err);
    }
    freeaddrinfo(list);
    if (status == NIB_OK && error)
        status = nib_fail_errno(err, error, "cannot reach a server at %s, port %s", http->host, http->port);
    if (status != NIB_OK) nib_cli_http_close(http);
    return status;
}

/* ---- a request */

static void put_request(const nib_cli_http *http, const char *path, nib_str body, nib_buf *out) {
    bool is_v6 = strchr(http->host, ':') != NULL;
    nib_buf_printf(out, "%s %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: nib\r\nAccept: application/json, text/event-stream\r\n",
                   body.ptr ? "POST" : "GET", http->path, path, is_v6 ? "[" : "", http->host, is_v6 ? "]" : "", http->port);
    if (http->key) nib_buf_printf(out, "Authorization: Bearer %s\r\n", http->key);
    if (body.ptr) nib_buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.len);
    nib_buf_str(out, "\r\n");
    if (body.ptr) nib_buf_append(out, body.ptr, body.len);
}

/* Ends early when the server has something to say already: it does not want the rest. *was_cut tells that, or that the server
 * reads no more. */
static nib_status put_bytes(nib_cli_http *http, const nib_buf *bytes, bool *was_cut, nib_error *err) {
    *was_cut = false;
    for (size_t sent = 0; sent < bytes->len && !*was_cut;) {
        short got = 0;
        NIB_TRY(wait_for(http, POLLOUT | POLLIN, http->timeout_ms, &got, err));
        ssize_t n = got & POLLIN ? -1 : send(http->fd, bytes->ptr + sent, bytes->len - sent, MSG_NOSIGNAL);
        if (n >= 0) sent += (size_t)n;
        else if (got & POLLIN || (errno != EAGAIN && errno != EINTR)) *was_cut = true;
    }
    return NIB_OK;
}

/* *is_silent: the connection ended before the answer began. */
static nib_status read_answer(nib_cli_http *http, nib_cli_http_answer *answer, bool *is_silent, nib_error *err) {
    char bytes[READ_BYTES];
    *is_silent = true;
    while (!nib_cli_http_answer_is_complete(answer)) {
        short got = 0;
        NIB_TRY(wait_for(http, POLLIN, http->timeout_ms, &got, err));
        ssize_t n = recv(http->fd, bytes, sizeof bytes, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return nib_cli_http_answer_end(answer, err);
        *is_silent = false;
        NIB_TRY(nib_cli_http_answer_feed(answer, (nib_str){bytes, (size_t)n}, err));
    }
    return NIB_OK;
}

nib_status nib_cli_http_send(nib_cli_http *http, const char *path, nib_str body, nib_cli_http_answer *answer, nib_error *err) {
    nib_buf request = {0};
    bool is_silent, was_cut, tries_again;
    nib_status status;
    put_request(http, path, body, &request);
    if (request.failed) status = nib_fail_nomem(err, body.len, "a request");
    else do { /* a connection that was kept may have been closed meanwhile: that shows only now */
        status = http->fd < 0 ? open_connection(http, err) : NIB_OK;
        is_silent = false;
        if (status == NIB_OK) status = put_bytes(http, &request, &was_cut, err);
        if (status == NIB_OK) status = read_answer(http, answer, &is_silent, err);
        tries_again = status == NIB_E_IO && is_silent && http->was_used;
        if (status != NIB_OK || answer->closes || was_cut) nib_cli_http_close(http);
        else http->was_used = true;
    } while (tries_again);
    nib_buf_free(&request);
    return status;
}
