/* server/server.c - the server as a whole: its loop, its states, its log (server.h). */
#include "server.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "internal.h"
#include "routes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_WORKERS = 2, MOST_GRAMMARS = 64 };

/* ---- what http.c calls back */

static bool on_head(void *user, nib_server_exchange *x) {
    return nib_server_routes_admit(user, x);
}

static void log_line(const nib_server *server, const char *line) {
    if (server->config.log) server->config.log(server->config.user, line);
}

static void log_body(const nib_server *server, nib_server_exchange *x) {
    nib_str body = nib_server_http_body(x);
    nib_buf line = {0};
    nib_buf_printf(&line, "%s request: ", nib_server_http_peer(x));
    nib_buf_append(&line, body.ptr, body.len);
    char *text = nib_buf_cstr(&line);
    if (text) {
        nib_clean_line(text);
        log_line(server, text);
    }
    nib_buf_free(&line);
}

static void on_request(void *user, nib_server_exchange *x) {
    nib_server *server = user;
    if (server->config.log_text && nib_server_http_body(x).len) log_body(server, x);
    nib_server_routes_run(server, x);
}

/* One line for each request, without its text: paths come from clients, so they are cleaned. */
static void on_done(void *user, nib_server_exchange *x, int status) {
    nib_server *server = user;
    nib_server_metrics_http(&server->metrics, status ? status : 499);
    nib_str method = nib_server_http_method(x), path = nib_server_http_path(x);
    const char *note = nib_server_http_note(x);
    char line[512], when[32];
    time_t now = time(NULL);
    struct tm tm;
    if (!server->config.log) return;
    gmtime_r(&now, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(line, sizeof line, "%s %s %.*s %.*s %d %.0f ms%s%s", when, nib_server_http_peer(x), method.len > 16 ? 16 : (int)method.len,
             method.ptr ? method.ptr : "", path.len > 120 ? 120 : (int)path.len, path.ptr ? path.ptr : "",
             status ? status : 499, 1e3 * nib_server_http_age(x), note[0] ? " " : "", note);
    nib_clean_line(line);
    log_line(server, line);
}

static void on_fault(void *user, int status, const char *text, nib_buf *body) {
    nib_server_fault fault;
    (void)user;
    nib_server_fail(&fault, status, status == 413 ? "request_too_large" : NULL, "%s", text);
    nib_server_error_json(&fault, body);
}

/* ---- life */

static void *run_loop(void *arg) {
    nib_server *server = arg;
    nib_server_http_run(server->http);
    return NULL;
}

static nib_status start_http(nib_server *server, nib_error *err) {
    const nib_server_config *c = &server->config;
    nib_server_http_config http = {
        .host = c->host, .port = c->port, .tls_cert = c->tls_cert, .tls_key = c->tls_key,
        .max_connections = c->max_connections, .max_head = 32768, .max_body = c->max_body,
        .max_bodies = c->max_body > SIZE_MAX / 16 ? SIZE_MAX : 16 * c->max_body, .max_unsent = (size_t)1 << 20,
        .head_s = 10, .body_s = c->timeout_s, .idle_s = 75, .write_s = c->timeout_s,
        .head = on_head, .request = on_request, .done = on_done, .fault = on_fault, .user = server,
    };
    NIB_TRY(nib_server_http_new(&server->http, &http, err));
    NIB_TRY(nib_server_http_every(server->http, 5, nib_server_generate_tick, server, err));
    int code = pthread_create(&server->loop, NULL, run_loop, server);
    if (code) return nib_fail_errno(err, code, "the server's thread could not be started");
    server->has_loop = true;
    return NIB_OK;
}

nib_status nib_server_new(nib_server **out, const nib_server_config *config, nib_error *err) {
    nib_status status;
    uint32_t random[2] = {0};
    *out = NULL;
    nib_server *server = nib_calloc(1, sizeof *server);
    if (!server) return nib_fail_nomem(err, sizeof *server, "a server");
    server->config = *config;
    server->started = (int64_t)time(NULL);
    if (!nib_rng_system(&random[0]) || !nib_rng_system(&random[1])) {
        status = nib_fail(err, NIB_E_IO, "the system has no random numbers");
        goto out;
    }
    server->secret = (uint64_t)random[0] << 32 | random[1];
    json_object_seed(0); /* before threads share the library */
    NIB_TRY_OUT(nib_server_work_new(&server->work, N_WORKERS, err));
    NIB_TRY_OUT(start_http(server, err));
    *out = server;
    return NIB_OK;
out:
    nib_server_free(server);
    return status;
}

uint16_t nib_server_port(const nib_server *server) {
    return nib_server_http_port(server->http);
}

nib_status nib_server_open(nib_server *server, const nib_server_model *model, nib_error *err) {
    server->model = *model;
    NIB_TRY(model->chat ? nib_chat_vocab_new(&server->vocab, model->chat, err) : nib_grammar_vocab_new(&server->vocab, model->tok, err));
    NIB_TRY(nib_grammar_cache_new(&server->grammars, MOST_GRAMMARS, NIB_SERVER_GRAMMAR_BYTES, err));
    atomic_store(&server->state, NIB_SERVER_READY);
    return NIB_OK;
}

static void look_whether_idle(void *user) {
    nib_server *server = user;
    atomic_store(&server->is_idle, !server->answers && !server->errands && !nib_server_http_n_busy(server->http));
}

static void drain(nib_server_task *task) {
    nib_server *server = (nib_server *)((char *)task - offsetof(nib_server, drain));
    nib_server_http_drain(server->http);
    look_whether_idle(server);
    nib_server_http_every(server->http, 0.02, look_whether_idle, server, NULL);
}

void nib_server_drain(nib_server *server) {
    atomic_store(&server->state, NIB_SERVER_DRAINING);
    server->drain.run = drain;
    nib_server_http_post(server->http, &server->drain, true);
}

static void cut(nib_server_task *task) {
    nib_server *server = (nib_server *)((char *)task - offsetof(nib_server, cut));
    nib_server_generate_cut(server);
}

void nib_server_cut(nib_server *server) {
    server->cut.run = cut;
    nib_server_http_post(server->http, &server->cut, true);
}

bool nib_server_is_idle(const nib_server *server) {
    return atomic_load(&server->is_idle);
}

static void stop(nib_server_task *task) {
    nib_server *server = (nib_server *)((char *)task - offsetof(nib_server, stop));
    nib_server_http_stop(server->http);
}

void nib_server_free(nib_server *server) {
    if (!server) return;
    atomic_store(&server->state, NIB_SERVER_DRAINING);
    if (server->has_loop) {
        server->stop.run = stop;
        nib_server_http_post(server->http, &server->stop, true);
        pthread_join(server->loop, NULL);
    }
    nib_server_generate_none(server);
    nib_server_work_free(server->work);
    nib_server_http_free(server->http);
    nib_server_engine_view_free(server->engine_view);
    nib_grammar_cache_free(server->grammars);
    nib_grammar_vocab_free(server->vocab);
    nib_free(server);
}
