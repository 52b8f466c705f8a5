/* server/engine_view.c - one view of the engine for all who look: a timer asks for a picture and sends each of them what changed
 * (engine_view.h). The view goes when the last of them does. All of it runs on the loop. */
#include "engine_view.h"

#include "base/mem.h"
#include "base/status.h"
#include "error.h"
#include "internal.h"
#include "routes.h"

#include <string.h>

#define EVERY_S 0.2
enum { QUIET_TICKS = 5, PAGE_TOKENS = 32 }; /* pictures that show nothing new are sent once a second */

typedef struct watcher {
    nib_server_engine_view *owner;
    nib_server_exchange *x;
    struct watcher *next;
    bool is_new; /* has no pages yet */
} watcher;

struct nib_server_engine_view {
    nib_server *server;
    nib_engine_view *view; /* NULL while nobody looks */
    watcher *watchers;
    nib_page_view *shown;  /* pages as they were sent */
    uint32_t n_shown;
    unsigned n_quiet;
};

static watcher **place_of(const watcher *w) {
    watcher **at = &w->owner->watchers;
    while (*at != w) at = &(*at)->next;
    return at;
}

static void on_closed(void *user) {
    watcher *w = user;
    *place_of(w) = w->next;
    nib_free(w);
}

/* ---- a picture as JSON: numbers only */

static bool is_same_page(const nib_page_view *a, const nib_page_view *b) {
    return a->state == b->state && a->n_users == b->n_users && a->link == b->link;
}

static long long or_none(uint32_t n) {
    return n == NIB_NO_PAGE ? -1 : (long long)n;
}

/* Those that differ from `before`; NULL: from free ones. Returns how many. */
static uint32_t put_pages(nib_buf *out, const nib_engine_picture *p, const nib_page_view *before) {
    static const nib_page_view empty = {NIB_PAGE_FREE, 0, NIB_NO_PAGE};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_pages; i++) {
        const nib_page_view *page = &p->pages[i];
        if (is_same_page(page, before ? &before[i] : &empty)) continue;
        nib_buf_printf(out, "%s%u,%d,%u,%lld", n++ ? "," : "", i, (int)page->state, page->n_users, or_none(page->link));
    }
    return n;
}

static void put_request(nib_buf *out, const nib_request_view *r) {
    static const char *const phases[] = {"waiting", "prefill", "decode"};
    nib_buf_printf(out, "{\"number\":%llu,\"phase\":\"%s\",\"priority\":%d,\"n_prompt\":%u,\"n_cached\":%u,\"n_computed\":%u,"
                   "\"n_generated\":%u,\"n_max\":%u,\"n_preempted\":%u,\"seq\":%lld,\"page\":%lld,\"n_pages\":%u,\"age_ms\":%.1f,"
                   "\"ttft_ms\":%.1f}", (unsigned long long)r->number, phases[r->phase], (int)r->priority, r->n_prompt, r->n_cached,
                   r->n_computed, r->n_generated, r->n_max, r->n_preempted, or_none(r->seq), or_none(r->page), r->n_pages, r->age_ms,
                   r->ttft_ms);
}

static void put_turn(nib_buf *out, const nib_turn_view *t) {
    nib_buf_printf(out, "{\"number\":%llu,\"ms\":%.3f,\"parts\":[", (unsigned long long)t->number, t->ms);
    for (uint32_t i = 0; i < t->n_parts; i++)
        nib_buf_printf(out, "%s%llu,%u,%d", i ? "," : "", (unsigned long long)t->parts[i].number, t->parts[i].n_tok,
                       t->parts[i].is_prompt);
    nib_buf_str(out, "]}");
}

static void put_figures(nib_buf *out, const nib_engine_figures *f) {
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"running", f->n_running}, {"waiting", f->n_waiting}, {"queued_tokens", f->queued_tokens}, {"turns", f->n_turns},
                  {"prompt", f->n_prompt}, {"reused", f->n_reused}, {"generated", f->n_generated}, {"preempted", f->n_preempted},
                  {"evicted", f->n_evicted}, {"refused", f->n_refused}};
    nib_buf_str(out, "\"figures\":{");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        nib_buf_printf(out, "\"%s\":%llu,", counts[i].name, (unsigned long long)counts[i].value);
    nib_buf_printf(out, "\"last_turn_ms\":%.3f,\"longest_turn_ms\":%.3f}", f->last_turn_ms, f->longest_turn_ms);
}

/* Returns the number of pages in it. */
static uint32_t put_event(nib_buf *out, const nib_engine_picture *p, const nib_page_view *before, const nib_engine_figures *figures) {
    nib_buf_printf(out, "data: {\"full\":%s,\"page\":%d,\"n_pages\":%u,\"pages\":[", before ? "false" : "true", PAGE_TOKENS, p->n_pages);
    uint32_t n = put_pages(out, p, before);
    nib_buf_str(out, "],\"requests\":[");
    for (uint32_t i = 0; i < p->n_requests; i++) {
        if (i) nib_buf_char(out, ',');
        put_request(out, &p->requests[i]);
    }
    nib_buf_str(out, "],\"turns\":[");
    for (uint32_t i = 0; i < p->n_turns; i++) {
        if (i) nib_buf_char(out, ',');
        put_turn(out, &p->turns[i]);
    }
    nib_buf_printf(out, "],\"missed\":%llu,", (unsigned long long)p->n_missed);
    put_figures(out, figures);
    nib_buf_str(out, "}\n\n");
    return n;
}

/* ---- who gets it */

static void send_all(nib_server_engine_view *v, const nib_buf *event, bool is_new) {
    for (watcher *w = v->watchers, *next; w; w = next) {
        next = w->next;
        if (w->is_new != is_new) continue;
        w->is_new = false;
        nib_server_http_write(w->x, (nib_str){event->ptr, event->len}); /* a slow one is gone by this */
    }
}

static bool has_watchers(const nib_server_engine_view *v, bool is_new) {
    for (const watcher *w = v->watchers; w; w = w->next)
        if (w->is_new == is_new) return true;
    return false;
}

static void send_picture(nib_server_engine_view *v, const nib_engine_picture *p) {
    nib_engine_figures figures;
    nib_buf full = {0}, changes = {0};
    nib_engine_stats(v->server->model.engine, &figures);
    if (has_watchers(v, false)) {
        bool is_quiet = put_event(&changes, p, v->shown, &figures) == 0 && !p->n_turns && !p->n_requests;
        v->n_quiet = is_quiet ? v->n_quiet + 1 : 0;
        if (!changes.failed && (!is_quiet || v->n_quiet % QUIET_TICKS == 0)) send_all(v, &changes, false);
    }
    if (has_watchers(v, true)) {
        put_event(&full, p, NULL, &figures);
        if (!full.failed) send_all(v, &full, true);
    }
    memcpy(v->shown, p->pages, v->n_shown * sizeof *v->shown);
    nib_buf_free(&full);
    nib_buf_free(&changes);
}

static void close_view(nib_server_engine_view *v) {
    nib_engine_view_free(v->view);
    nib_free(v->shown);
    v->view = NULL;
    v->shown = NULL;
}

static void end_all(nib_server_engine_view *v) {
    for (watcher *w; (w = v->watchers);) {
        nib_server_exchange *x = w->x;
        nib_server_http_on_closed(x, NULL, NULL);
        on_closed(w);
        nib_server_http_end(x);
    }
}

static void tick(void *user) {
    nib_server_engine_view *v = user;
    if (atomic_load(&v->server->state) != NIB_SERVER_READY) end_all(v);
    if (!v->watchers && v->view) close_view(v);
    if (!v->view) return;
    const nib_engine_picture *p = nib_engine_view_next(v->view);
    if (p) send_picture(v, p);
}

/* ---- the route */

static nib_status open_view(nib_server_engine_view *v, nib_error *err) {
    nib_engine_figures figures;
    if (v->view) return NIB_OK;
    nib_engine_stats(v->server->model.engine, &figures);
    v->shown = nib_calloc(figures.n_pages, sizeof *v->shown);
    if (!v->shown) return nib_fail_nomem(err, figures.n_pages * sizeof *v->shown, "pages that were shown");
    v->n_shown = figures.n_pages;
    NIB_TRY(nib_engine_view_new(&v->view, v->server->model.engine, err));
    nib_engine_view_next(v->view); /* asks for the first one */
    return NIB_OK;
}

static nib_status start(nib_server *server, nib_error *err) {
    if (server->engine_view) return NIB_OK;
    nib_server_engine_view *v = nib_calloc(1, sizeof *v);
    if (!v) return nib_fail_nomem(err, sizeof *v, "a view of the engine");
    v->server = server;
    nib_status status = nib_server_http_every(server->http, EVERY_S, tick, v, err);
    if (status != NIB_OK) nib_free(v);
    else server->engine_view = v;
    return status;
}

static nib_status watch(nib_server *server, nib_server_exchange *x, nib_error *err) {
    NIB_TRY(start(server, err));
    nib_server_engine_view *v = server->engine_view;
    NIB_TRY(open_view(v, err));
    watcher *w = nib_calloc(1, sizeof *w);
    if (!w) return nib_fail_nomem(err, sizeof *w, "a watcher of the engine");
    *w = (watcher){.owner = v, .x = x, .next = v->watchers, .is_new = true};
    v->watchers = w;
    nib_server_http_on_closed(x, on_closed, w);
    nib_server_http_set(x, "Cache-Control", "no-store");
    nib_server_http_begin(x, 200, "text/event-stream");
    nib_server_http_flow(x);
    return NIB_OK;
}

void nib_server_route_engine_events(nib_server *server, nib_server_exchange *x) {
    nib_error err;
    nib_server_fault fault;
    if (nib_server_http_method(x).len == 4) { /* HEAD */
        nib_server_http_reply(x, 200, "text/event-stream", (nib_str){0});
        return;
    }
    if (watch(server, x, &err) == NIB_OK) return;
    nib_server_fault_of(&fault, &err, NULL);
    nib_server_reply_fault(x, NULL, &fault);
}

void nib_server_engine_view_free(nib_server_engine_view *v) {
    if (!v) return;
    close_view(v);
    nib_free(v);
}
