/* server/metrics.c - counting, and GET /metrics (metrics.h). */
#include "metrics.h"

#include "base/status.h"
#include "base/sys.h"
#include "internal.h"
#include "openai.h"
#include "routes.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Upper bounds of buckets. */
static const double SECONDS[] = {.01, .025, .05, .1, .25, .5, 1, 1.5, 2.5, 5, 10, 15, 20, 30, 60, 120, 240, 480, 960};
static const double TOKEN_SECONDS[] = {.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 10};
static const double TOKENS[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

#define N_OF(bounds) (sizeof(bounds) / sizeof *(bounds))
_Static_assert(N_OF(SECONDS) < NIB_SERVER_MAX_BUCKETS && N_OF(TOKEN_SECONDS) < NIB_SERVER_MAX_BUCKETS, "raise NIB_SERVER_MAX_BUCKETS");

/* ---- counting */

static void observe(nib_server_histogram *h, const double *bounds, size_t n, double value) {
    size_t i = 0;
    while (i < n && value > bounds[i]) i++;
    h->counts[i]++;
    h->sum += value;
}

void nib_server_metrics_count(nib_server_tally *t, const char *label) {
    size_t i = 0;
    while (i < t->n && strcmp(t->labels[i], label) != 0) i++;
    if (i == NIB_SERVER_MAX_LABELS) i--;
    if (i == t->n) snprintf(t->labels[t->n++], sizeof t->labels[0], "%s", label);
    t->counts[i]++;
}

void nib_server_metrics_token(nib_server_metrics *m, nib_server_choice *c) {
    double now = nib_sys_now();
    if (c->last_token > 0) observe(&m->itl, TOKEN_SECONDS, N_OF(TOKEN_SECONDS), now - c->last_token);
    c->last_token = now;
}

static void take_choice(nib_server_metrics *m, const nib_server_choice *c) {
    const nib_usage *u = &c->usage;
    const nib_server_answer *a = c->answer;
    const char *finish = nib_server_openai_finish(c);
    if (c->finish == NIB_SERVER_FINISH_NOTHING) return;
    bool is_success = c->finish == NIB_SERVER_FINISH_STOP || c->finish == NIB_SERVER_FINISH_LENGTH || c->finish == NIB_SERVER_FINISH_CALLS;
    if (is_success && !a->has_failed) nib_server_metrics_count(&m->finished, finish);
    else nib_server_metrics_count(&m->aborted, a->has_failed ? "error" : finish ? finish : "client");
    if (!finish) return;
    bool is_first = c->index == 0 || c[-1].prompt != c->prompt;
    if (u->ttft_ms > 0) observe(&m->ttft, SECONDS, N_OF(SECONDS), u->ttft_ms / 1e3);
    if (u->queue_ms > 0) observe(&m->queue, SECONDS, N_OF(SECONDS), u->queue_ms / 1e3);
    if (is_first) observe(&m->prompt, TOKENS, N_OF(TOKENS), u->n_prompt);
    observe(&m->e2e, SECONDS, N_OF(SECONDS), u->total_ms / 1e3);
    if (a->ask.pooling) return;
    observe(&m->generation, TOKENS, N_OF(TOKENS), u->n_generated);
    if (u->n_generated > 1) observe(&m->tpot, TOKEN_SECONDS, N_OF(TOKEN_SECONDS), (u->total_ms - u->ttft_ms) / 1e3 / (u->n_generated - 1));
}

void nib_server_metrics_answer(nib_server_metrics *m, const nib_server_answer *a) {
    if (a->status != NIB_OK) {
        nib_server_metrics_count(&m->rejected, a->fault.code ? a->fault.code : a->fault.status == 499 ? "client" : "invalid_request");
        return;
    }
    for (size_t i = 0; i < a->n_choices; i++) take_choice(m, &a->choices[i]);
}

void nib_server_metrics_http(nib_server_metrics *m, int status) {
    char label[16];
    snprintf(label, sizeof label, "%d", status);
    nib_server_metrics_count(&m->http, label);
}

/* ---- telling */

static void put_head(nib_buf *out, const char *type, const char *name, const char *help) {
    nib_buf_printf(out, "# HELP nib_%s %s.\n# TYPE nib_%s %s\n", name, help, name, type);
}

static void put_figure(nib_buf *out, const char *type, const char *name, const char *help, double value) {
    put_head(out, type, name, help);
    nib_buf_printf(out, "nib_%s %.17g\n", name, value);
}

static void put_histogram(nib_buf *out, const nib_server_histogram *h, const char *name, const double *bounds, size_t n) {
    uint64_t count = 0;
    for (size_t i = 0; i <= n; i++) {
        count += h->counts[i];
        if (i < n) nib_buf_printf(out, "nib_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)count);
        else nib_buf_printf(out, "nib_%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)count);
    }
    nib_buf_printf(out, "nib_%s_sum %.17g\nnib_%s_count %llu\n", name, h->sum, name, (unsigned long long)count);
}

static void put_tally(nib_buf *out, const nib_server_tally *t, const char *name, const char *label) {
    for (size_t i = 0; i < t->n; i++)
        nib_buf_printf(out, "nib_%s{%s=\"%s\"} %llu\n", name, label, t->labels[i], (unsigned long long)t->counts[i]);
}

/* A label's value: backslash, quote and line feed are escaped. */
static void put_value(nib_buf *out, nib_str text) {
    nib_buf clean = {0};
    nib_buf_utf8(&clean, text);
    for (size_t i = 0; i < clean.len; i++) {
        char c = clean.ptr[i];
        if (c == '\\' || c == '"' || c == '\n') nib_buf_char(out, '\\');
        nib_buf_char(out, c == '\n' ? 'n' : c);
    }
    nib_buf_free(&clean);
}

static void put_server(const nib_server *server, nib_buf *out) {
    put_head(out, "gauge", "info", "What this server is; always 1");
    nib_buf_str(out, "nib_info{version=\"" NIB_VERSION "\",model_name=\"");
    put_value(out, nib_server_model_name(server));
    bool is_loaded = atomic_load(&server->state) != NIB_SERVER_LOADING;
    nib_buf_printf(out, "\",isa=\"%s\"} 1\n", is_loaded ? nib_model_isa(server->model.model) : "");
    put_figure(out, "gauge", "start_time_seconds", "When it was started, in seconds since 1970", (double)server->started);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    put_figure(out, "counter", "cpu_seconds_total", "Processor time of the process", cpu);
    put_figure(out, "gauge", "peak_resident_memory_bytes", "The most memory that the process had", 1024.0 * (double)usage.ru_maxrss);
}

static void put_all(const nib_server_metrics *m, const nib_engine_figures *f, nib_buf *out) {
    const char *name = "", *of = "";
#define FIGURE(type, name_, value, help) put_figure(out, #type, name_, help, (double)(value));
#define LABELLED(type, name_, label_, help) put_head(out, #type, name = name_, help), of = label_;
#define VALUE(label, value) nib_buf_printf(out, "nib_%s{%s=\"%s\"} %.17g\n", name, of, label, (double)(value));
#define HISTOGRAM(member, name_, bounds, help)   \
    put_head(out, "histogram", name_, help); \
    put_histogram(out, &m->member, name_, bounds, N_OF(bounds));
#define TALLY(member, name_, label, help)      \
    put_head(out, "counter", name_, help); \
    put_tally(out, &m->member, name_, label);
#include "metrics.def"
#undef FIGURE
#undef LABELLED
#undef VALUE
#undef HISTOGRAM
#undef TALLY
}

void nib_server_route_metrics(nib_server *server, nib_server_exchange *x) {
    nib_engine_figures figures = {0};
    nib_buf out = {0};
    if (atomic_load(&server->state) != NIB_SERVER_LOADING) nib_engine_stats(server->model.engine, &figures);
    put_server(server, &out);
    put_all(&server->metrics, &figures, &out);
    nib_server_http_reply(x, out.failed ? 503 : 200, "text/plain; version=0.0.4; charset=utf-8", (nib_str){out.ptr, out.len});
    nib_buf_free(&out);
}
