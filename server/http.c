/* server/http.c - connections: bytes -> requests -> callbacks; answers -> bytes (http.h). */
#define _GNU_SOURCE /* accept4's relatives, eventfd */
#include "http.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "http_message.h"
#include "tls.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_PIPELINED = 65536, /* bytes that a client may send while its request is worked on */
    LINGER_S = 3,          /* what a client still sends after a refusal is read so long, or it would not read the refusal */
    FLUSH_S = 60,          /* for the rest of an answer that is complete */
};

#define HURRY_S 0.05 /* for a client to ask; it makes no haste who takes longer */

typedef enum state { READING, WORKING, FLUSHING, LINGERING } state;

struct nib_server_exchange {
    nib_server_http *http;
    nib_server_exchange *next, *prev;
    struct bufferevent *bev;
    struct event *timer;
    char peer[64];
    state state;
    bool is_in_request; /* bytes of it have come */
    bool has_seen_head;
    bool is_feeding;    /* read_requests is on the stack */
    bool is_dead;       /* it must be freed when that returns */
    nib_server_message in;
    size_t n_counted;   /* bytes of the body that are counted in http->n_body_bytes */
    double arrived;
    /* The answer. */
    int status;
    bool is_chunked, closes;
    bool is_awaited; /* the request is complete, and nothing of the answer was told */
    size_t largest; /* of its parts */
    nib_buf extra; /* lines of the head */
    char note[NIB_SERVER_NOTE];
    void (*closed)(void *user);
    void *user;
};

struct nib_server_http {
    nib_server_http_config config;
    struct event_base *base;
    struct evconnlistener *listener;
    struct nib_server_tls *tls;
    nib_server_exchange *connections;
    uint32_t n_connections, n_awaited;
    double hurries_until; /* a client that came, or was answered, may ask at once */
    int loop; /* its thread */
    size_t n_body_bytes;
    uint16_t port;
    bool is_draining;

    int wake_fd;
    struct event *wake, *ticks[4];
    struct tick {
        void (*fn)(void *user);
        void *user;
    } tick_fns[4];
    size_t n_ticks;
    pthread_mutex_t lock; /* of what follows */
    bool is_patient, is_running;
    nib_server_task tasks; /* a ring; itself no task */
};

/* ---- the ends of a connection */

static void set_timer(nib_server_exchange *x, double seconds) {
    struct timeval tv = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    if (seconds > 0) event_add(x->timer, &tv);
    else event_del(x->timer);
}

static void count_body(nib_server_exchange *x, size_t n) {
    x->http->n_body_bytes += n - x->n_counted;
    x->n_counted = n;
}

static void set_awaited(nib_server_exchange *x, bool is_awaited) {
    x->http->n_awaited += is_awaited - x->is_awaited;
    x->is_awaited = is_awaited;
}

static void hurry(nib_server_http *http) {
    http->hurries_until = nib_sys_now() + HURRY_S;
}

static void free_connection(nib_server_exchange *x) {
    nib_server_http *http = x->http;
    set_awaited(x, false);
    if (x->is_feeding) {
        x->is_dead = true;
        return;
    }
    if (x->next) x->next->prev = x->prev;
    if (x->prev) x->prev->next = x->next;
    else http->connections = x->next;
    http->n_connections--;
    evconnlistener_enable(http->listener);
    count_body(x, 0);
    if (x->timer) event_free(x->timer);
    if (x->bev) bufferevent_free(x->bev);
    nib_server_message_free(&x->in);
    nib_buf_free(&x->extra);
    nib_free(x);
}

/* The client is gone, or has to go. */
static void drop(nib_server_exchange *x) {
    if (x->is_dead) return;
    bool was_working = x->state == WORKING;
    void (*closed)(void *user) = x->closed;
    x->closed = NULL;
    x->state = LINGERING;
    if (was_working && closed) closed(x->user);
    if (was_working) x->http->config.done(x->http->config.user, x, 0);
    bufferevent_disable(x->bev, EV_READ | EV_WRITE);
    free_connection(x);
}

/* All is said: the rest of what the client sends is read and thrown away, since closing now would take back our answer. */
static void linger(nib_server_exchange *x) {
    x->state = LINGERING;
    if (!x->http->tls) shutdown(bufferevent_getfd(x->bev), SHUT_WR);
    set_timer(x, LINGER_S);
}

static void read_requests(nib_server_exchange *x);

/* The bytes of an answer have left; maybe. */
static void after_flush(nib_server_exchange *x) {
    if (evbuffer_get_length(bufferevent_get_output(x->bev))) return;
    if (x->closes) linger(x);
    else read_requests(x);
}

/* ---- events of a connection */

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    drop(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) drop(arg);
}

static void on_write(struct bufferevent *bev, void *arg) {
    nib_server_exchange *x = arg;
    (void)bev;
    if (x->state == FLUSHING) after_flush(x);
}

static void on_read(struct bufferevent *bev, void *arg) {
    nib_server_exchange *x = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    if (x->state == LINGERING) evbuffer_drain(input, evbuffer_get_length(input));
    else if (x->state == READING) read_requests(x);
    else if (x->state == WORKING && evbuffer_get_length(input) > MAX_PIPELINED) drop(x);
}

/* ---- answers */

static const char *reason_of(int status) {
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {100, "Continue"}, {200, "OK"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"},
        {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {413, "Content Too Large"}, {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
        {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
        {501, "Not Implemented"}, {503, "Service Unavailable"}, {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status) return reasons[i].text;
    return "Answer";
}

void nib_server_http_set(nib_server_exchange *x, const char *name, const char *value) {
    nib_buf_printf(&x->extra, "%s: %s\r\n", name, value);
}

static bool is_head_request(const nib_server_exchange *x) {
    return x->in.method.len == 4 && memcmp(x->in.method.ptr, "HEAD", 4) == 0;
}

/* strftime would write the names of the user's language. */
static void put_date(struct evbuffer *out) {
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm)) return;
    evbuffer_add_printf(out, "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
                        tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void put_head(nib_server_exchange *x, int status, const char *type, const size_t *len) {
    struct evbuffer *out = bufferevent_get_output(x->bev);
    x->status = status;
    x->closes |= !x->in.keeps_alive || x->http->is_draining || x->in.stage != NIB_SERVER_COMPLETE;
    x->is_chunked = !len && !x->in.is_old;
    x->closes |= !len && x->in.is_old;
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    put_date(out);
    if (type) evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
    if (len && status != 204 && status != 304) evbuffer_add_printf(out, "Content-Length: %zu\r\n", *len);
    if (x->is_chunked) evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
    evbuffer_add(out, x->extra.ptr, x->extra.len);
    evbuffer_add_printf(out, "Connection: %s\r\n\r\n", x->closes ? "close" : "keep-alive");
    x->extra.len = 0;
}

/* The answer is complete: the connection is ready for the next request when the bytes have left. */
static void finish(nib_server_exchange *x) {
    x->closed = NULL;
    x->state = FLUSHING;
    x->http->config.done(x->http->config.user, x, x->status);
    x->note[0] = 0;
    set_awaited(x, false);
    hurry(x->http);
    count_body(x, 0);
    nib_server_message_reset(&x->in);
    x->is_in_request = x->has_seen_head = false;
    set_timer(x, FLUSH_S);
    if (!x->is_feeding) after_flush(x);
}

void nib_server_http_reply(nib_server_exchange *x, int status, const char *type, nib_str body) {
    put_head(x, status, type, &body.len);
    if (!is_head_request(x)) bufferevent_write(x->bev, body.ptr, body.len);
    finish(x);
}

void nib_server_http_begin(nib_server_exchange *x, int status, const char *type) {
    x->largest = 0;
    put_head(x, status, type, NULL);
}

bool nib_server_http_write(nib_server_exchange *x, nib_str bytes) {
    struct evbuffer *out = bufferevent_get_output(x->bev);
    if (!bytes.len) return true; /* an empty chunk would end the answer */
    if (bytes.len > x->largest) x->largest = bytes.len;
    if (evbuffer_get_length(out) + bytes.len > x->http->config.max_unsent + x->largest) { /* however large that is, it had to be given */
        drop(x);
        return false;
    }
    if (x->is_chunked) evbuffer_add_printf(out, "%zx\r\n", bytes.len);
    evbuffer_add(out, bytes.ptr, bytes.len);
    if (x->is_chunked) evbuffer_add(out, "\r\n", 2);
    return true;
}

void nib_server_http_flow(nib_server_exchange *x) {
    set_awaited(x, false);
}

void nib_server_http_end(nib_server_exchange *x) {
    if (x->is_chunked) bufferevent_write(x->bev, "0\r\n\r\n", 5);
    finish(x);
}

/* ---- requests */

static void answer_fault(nib_server_exchange *x) {
    nib_buf body = {0};
    x->state = WORKING;
    x->closes = true;
    x->http->config.fault(x->http->config.user, x->in.status, x->in.fault, &body);
    nib_server_http_reply(x, x->in.status, "application/json", (nib_str){body.ptr, body.len});
    nib_buf_free(&body);
}

/* The head is complete; false when that settled it. */
static bool take_head(nib_server_exchange *x) {
    nib_server_http *http = x->http;
    x->has_seen_head = true;
    x->arrived = nib_sys_now();
    x->state = WORKING;
    if (!http->config.head(http->config.user, x)) return false;
    x->state = READING;
    if (x->in.stage != NIB_SERVER_BODY) return true;
    set_timer(x, http->config.body_s);
    if (x->in.expects_continue) bufferevent_write(x->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

/* Looks at what came of the request; true when more can be read. */
static bool look_at_request(nib_server_exchange *x) {
    nib_server_http *http = x->http;
    if (x->in.stage != NIB_SERVER_HEAD && x->in.stage != NIB_SERVER_BAD && !x->has_seen_head && !take_head(x)) return false;
    count_body(x, x->in.body.len);
    if (http->n_body_bytes > http->config.max_bodies && x->in.stage == NIB_SERVER_BODY) {
        x->in.stage = NIB_SERVER_BAD;
        x->in.status = 503;
        x->in.fault = "too many bytes are being received at the moment; try again later";
        nib_server_http_set(x, "Retry-After", "1");
    }
    if (x->in.stage == NIB_SERVER_BAD) {
        answer_fault(x);
        return false;
    }
    if (x->in.stage != NIB_SERVER_COMPLETE) return true;
    x->state = WORKING;
    x->arrived = nib_sys_now();
    set_timer(x, 0);
    set_awaited(x, true);
    http->hurries_until = 0; /* it has asked */
    http->config.request(http->config.user, x);
    return false;
}

/* Reads what has come, request after request, as long as they are answered at once. */
static void read_requests(nib_server_exchange *x) {
    struct evbuffer *input = bufferevent_get_input(x->bev);
    if (x->is_feeding) return;
    x->is_feeding = true;
    for (;;) {
        if (x->state == FLUSHING && !x->is_dead && !x->closes) {
            if (evbuffer_get_length(bufferevent_get_output(x->bev)) > x->http->config.max_unsent) break;
            x->state = READING;
            set_timer(x, x->http->config.idle_s);
        }
        if (x->is_dead || x->state != READING) break;
        struct evbuffer_iovec part;
        if (evbuffer_peek(input, -1, NULL, &part, 1) < 1 || !part.iov_len) break;
        if (!x->is_in_request) set_timer(x, x->http->config.head_s);
        x->is_in_request = true;
        size_t n = nib_server_message_feed(&x->in, part.iov_base, part.iov_len);
        evbuffer_drain(input, n);
        look_at_request(x);
    }
    x->is_feeding = false;
    if (x->is_dead) free_connection(x);
    else if (x->state == FLUSHING && x->closes) after_flush(x);
}

/* ---- new connections */

static void describe_peer(char *out, size_t size, const struct sockaddr *address, int len) {
    char host[48] = "?", port[8] = "?";
    getnameinfo(address, (socklen_t)len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* One connection too many: it is answered as well as that goes without keeping it. */
static void refuse(int fd) {
    static const char body[] = "{\"error\":{\"message\":\"too many connections; try again later\",\"type\":\"server_error\","
                               "\"param\":null,\"code\":\"too_many_connections\"}}";
    char text[sizeof body + 200];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
                     "Connection: close\r\nContent-Length: %zu\r\n\r\n%s", sizeof body - 1, body);
    ssize_t ignored = send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ignored;
    close(fd);
}

static void set_options(int fd) {
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1}, /* a token is a small packet that somebody waits for */
        {SOL_SOCKET, SO_KEEPALIVE, 1}, /* a machine that is gone without a word is noticed after a minute */
        {IPPROTO_TCP, TCP_KEEPIDLE, 30},
        {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

static struct bufferevent *new_bufferevent(nib_server_http *http, int fd) {
    if (http->tls) return nib_server_tls_bufferevent(http->tls, http->base, fd);
    return bufferevent_socket_new(http->base, fd, BEV_OPT_CLOSE_ON_FREE);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len, void *arg) {
    nib_server_http *http = arg;
    (void)listener;
    if (http->n_connections >= http->config.max_connections) {
        refuse(fd);
        return;
    }
    nib_server_exchange *x = nib_calloc(1, sizeof *x);
    struct bufferevent *bev = x ? new_bufferevent(http, fd) : NULL;
    struct event *timer = bev ? event_new(http->base, -1, 0, on_timer, x) : NULL;
    if (!timer) {
        if (bev) bufferevent_free(bev);
        else close(fd);
        nib_free(x);
        return;
    }
    set_options(fd);
    *x = (nib_server_exchange){.http = http, .bev = bev, .timer = timer, .next = http->connections,
                               .in = {.max_head = http->config.max_head, .max_body = http->config.max_body}};
    describe_peer(x->peer, sizeof x->peer, address, len);
    if (x->next) x->next->prev = x;
    http->connections = x;
    http->n_connections++;
    hurry(http);
    bufferevent_setcb(bev, on_read, on_write, on_event, x);
    bufferevent_setwatermark(bev, EV_READ, 0, 2 * MAX_PIPELINED);
    struct timeval write_time = {(time_t)http->config.write_s, 0};
    bufferevent_set_timeouts(bev, NULL, &write_time);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    set_timer(x, http->config.head_s);
}

/* Descriptors or memory are out: waiting for a connection to end is all that helps. */
static void on_accept_error(struct evconnlistener *listener, void *arg) {
    nib_server_http *http = arg;
    if (http->n_connections) evconnlistener_disable(listener);
    else usleep(10000);
}

/* ---- patience: a CPU is taken at once only for what somebody waits for (nib_server_http_flow) */

/* With the lock. */
static void set_patient(nib_server_http *http, bool is_patient) {
    if (http->is_running && http->is_patient != is_patient)
        http->is_patient = nib_sys_set_patient(http->loop, is_patient) && is_patient;
}

/* How the loop is to wake. */
static void choose_patience(nib_server_http *http) {
    bool hurries = !http->n_connections || http->n_awaited || nib_sys_now() < http->hurries_until;
    pthread_mutex_lock(&http->lock);
    set_patient(http, !hurries);
    pthread_mutex_unlock(&http->lock);
}

/* ---- tasks and ticks */

static nib_server_task *next_task(nib_server_http *http) {
    pthread_mutex_lock(&http->lock);
    nib_server_task *task = http->tasks.next;
    if (task == &http->tasks) {
        task = NULL;
    } else {
        task->prev->next = task->next;
        task->next->prev = task->prev;
        task->is_posted = false;
    }
    pthread_mutex_unlock(&http->lock);
    return task;
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
    uint64_t n;
    (void)what;
    ssize_t ignored = read(fd, &n, sizeof n);
    (void)ignored;
    for (nib_server_task *task; (task = next_task(arg));) task->run(task);
}

void nib_server_http_post(nib_server_http *http, nib_server_task *task, bool hurries) {
    static const uint64_t one = 1;
    pthread_mutex_lock(&http->lock);
    if (hurries) set_patient(http, false);
    bool is_first = http->tasks.next == &http->tasks;
    if (!task->is_posted) {
        task->is_posted = true;
        task->next = &http->tasks;
        task->prev = http->tasks.prev;
        task->prev->next = http->tasks.prev = task;
    }
    pthread_mutex_unlock(&http->lock);
    ssize_t ignored = is_first ? write(http->wake_fd, &one, sizeof one) : 0;
    (void)ignored;
}

void nib_server_http_unpost(nib_server_http *http, nib_server_task *task) {
    pthread_mutex_lock(&http->lock);
    if (task->is_posted) {
        task->prev->next = task->next;
        task->next->prev = task->prev;
        task->is_posted = false;
    }
    pthread_mutex_unlock(&http->lock);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    const struct tick *tick = arg;
    (void)fd, (void)what;
    tick->fn(tick->user);
}

nib_status nib_server_http_every(nib_server_http *http, double seconds, void (*fn)(void *user), void *user, nib_error *err) {
    size_t i = http->n_ticks;
    struct timeval tv = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    if (i == sizeof http->ticks / sizeof http->ticks[0]) return nib_fail(err, NIB_E_LIMIT, "too many timers");
    http->tick_fns[i] = (struct tick){fn, user};
    http->ticks[i] = event_new(http->base, -1, EV_PERSIST, on_tick, &http->tick_fns[i]);
    if (!http->ticks[i]) return nib_fail_nomem(err, 0, "a timer");
    http->n_ticks++;
    event_add(http->ticks[i], &tv);
    return NIB_OK;
}

/* ---- the whole */

static nib_status listen_at(nib_server_http *http, nib_error *err) {
    const nib_server_http_config *c = &http->config;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char port[8];
    snprintf(port, sizeof port, "%u", c->port);
    int code = getaddrinfo(c->host, port, &hints, &found);
    if (code) return nib_fail(err, NIB_E_ARG, "the address %s: %s", c->host, gai_strerror(code));
    http->listener = evconnlistener_new_bind(http->base, on_accept, http,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 1024,
                                             found->ai_addr, (int)found->ai_addrlen);
    int error = errno;
    freeaddrinfo(found);
    if (!http->listener) return nib_fail_errno(err, error, "cannot listen at %s, port %u", c->host, c->port);
    evconnlistener_set_error_cb(http->listener, on_accept_error);
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    getsockname(evconnlistener_get_fd(http->listener), (struct sockaddr *)&address, &len);
    getnameinfo((struct sockaddr *)&address, len, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    http->port = (uint16_t)strtoul(port, NULL, 10);
    return NIB_OK;
}

nib_status nib_server_http_new(nib_server_http **out, const nib_server_http_config *config, nib_error *err) {
    nib_status status;
    *out = NULL;
    nib_server_http *http = nib_calloc(1, sizeof *http);
    if (!http) return nib_fail_nomem(err, sizeof *http, "a server");
    http->config = *config;
    http->tasks.next = http->tasks.prev = &http->tasks;
    pthread_mutex_init(&http->lock, NULL);
    http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    http->base = event_base_new();
    if (http->base) http->wake = event_new(http->base, http->wake_fd, EV_READ | EV_PERSIST, on_wake, http);
    if (http->wake_fd < 0 || !http->wake) {
        status = nib_fail_nomem(err, 0, "a loop of events");
        goto out;
    }
    event_add(http->wake, NULL);
    if (config->tls_cert) NIB_TRY_OUT(nib_server_tls_new(&http->tls, config->tls_cert, config->tls_key, err));
    NIB_TRY_OUT(listen_at(http, err));
    http->config.host = http->config.tls_cert = http->config.tls_key = NULL;
    *out = http;
    return NIB_OK;
out:
    nib_server_http_free(http);
    return status;
}

uint16_t nib_server_http_port(const nib_server_http *http) {
    return http->port;
}

static void set_running(nib_server_http *http, bool is_running) {
    pthread_mutex_lock(&http->lock);
    http->loop = nib_sys_thread();
    set_patient(http, false);
    http->is_running = is_running;
    pthread_mutex_unlock(&http->lock);
}

void nib_server_http_run(nib_server_http *http) {
    set_running(http, true);
    do choose_patience(http);
    while (event_base_loop(http->base, EVLOOP_ONCE) == 0 && !event_base_got_break(http->base));
    set_running(http, false);
}

void nib_server_http_stop(nib_server_http *http) {
    event_base_loopbreak(http->base);
}

void nib_server_http_drain(nib_server_http *http) {
    http->is_draining = true;
}

size_t nib_server_http_n_busy(const nib_server_http *http) {
    size_t n = 0;
    for (const nib_server_exchange *x = http->connections; x; x = x->next)
        n += x->state == WORKING || x->state == FLUSHING;
    return n;
}

void nib_server_http_free(nib_server_http *http) {
    if (!http) return;
    while (http->connections) drop(http->connections);
    for (size_t i = 0; i < http->n_ticks; i++) event_free(http->ticks[i]);
    if (http->listener) evconnlistener_free(http->listener);
    if (http->wake) event_free(http->wake);
    if (http->base) event_base_free(http->base);
    if (http->wake_fd >= 0) close(http->wake_fd);
    nib_server_tls_free(http->tls);
    pthread_mutex_destroy(&http->lock);
    nib_free(http);
}

/* ---- what is asked of an exchange */

nib_str nib_server_http_method(const nib_server_exchange *x) {
    return x->in.method;
}

nib_str nib_server_http_path(const nib_server_exchange *x) {
    return x->in.path;
}

nib_str nib_server_http_query(const nib_server_exchange *x) {
    return x->in.query;
}

nib_str nib_server_http_header(const nib_server_exchange *x, const char *name) {
    return nib_server_message_header(&x->in, name);
}

nib_str nib_server_http_body(const nib_server_exchange *x) {
    return (nib_str){x->in.body.ptr ? x->in.body.ptr : "", x->in.body.len};
}

nib_buf nib_server_http_take_body(nib_server_exchange *x) {
    nib_buf body = x->in.body;
    x->in.body = (nib_buf){0};
    return body;
}

const char *nib_server_http_peer(const nib_server_exchange *x) {
    return x->peer;
}

double nib_server_http_age(const nib_server_exchange *x) {
    return x->arrived > 0 ? nib_sys_now() - x->arrived : 0;
}

char *nib_server_http_note(nib_server_exchange *x) {
    return x->note;
}

void nib_server_http_on_closed(nib_server_exchange *x, void (*closed)(void *user), void *user) {
    x->closed = closed;
    x->user = user;
}
