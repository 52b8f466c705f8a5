/* server/errand.c - from the loop to a work thread and back (errand.h). */
#include "errand.h"

#include "base/mem.h"
#include "base/status.h"
#include "fields.h"
#include "internal.h"

struct nib_server_errand {
    nib_server *server;
    nib_server_exchange *x; /* NULL: the client is gone */
    const nib_server_dialect *dialect;
    nib_server_errand_fn fn;
    nib_server_ask ask;
    nib_buf body, out;
    nib_status status;
    nib_server_fault fault;
    nib_server_job job;
    nib_server_task done;
    nib_server_errand *next, *prev;
};

static void free_errand(nib_server_errand *e) {
    if (e->next) e->next->prev = e->prev;
    if (e->prev) e->prev->next = e->next;
    else e->server->errands = e->next;
    e->server->n_errands--;
    if (e->x) nib_server_http_on_closed(e->x, NULL, NULL);
    nib_server_http_unpost(e->server->http, &e->done);
    nib_server_ask_fini(&e->ask);
    nib_buf_free(&e->body);
    nib_buf_free(&e->out);
    nib_free(e);
}

static nib_status run(nib_server_errand *e) {
    json_t *body;
    nib_error err;
    nib_str text = {e->body.ptr ? e->body.ptr : "", e->body.len};
    if (nib_server_json_parse(text, &body, &err) != NIB_OK) return nib_server_fault_of(&e->fault, &err, NULL);
    nib_server_ask_init(&e->ask, e->server, body);
    if (!json_is_object(body))
        return nib_server_refuse(&e->fault, NULL, "the body is %s, expected an object", nib_server_fields_kind_of(body));
    NIB_TRY(e->fn(&e->ask, &e->out, &e->fault));
    return e->out.failed ? nib_server_fail(&e->fault, 503, "out_of_memory", "out of memory for an answer") : NIB_OK;
}

static void run_job(nib_server_job *job) {
    nib_server_errand *e = (nib_server_errand *)((char *)job - offsetof(nib_server_errand, job));
    e->status = run(e);
    nib_server_http_post(e->server->http, &e->done, true);
}

static void run_done(nib_server_task *task) {
    nib_server_errand *e = (nib_server_errand *)((char *)task - offsetof(nib_server_errand, done));
    nib_server_exchange *x = e->x;
    if (x) nib_server_http_on_closed(x, NULL, NULL);
    e->x = NULL;
    if (x && e->status != NIB_OK) nib_server_reply_fault(x, e->dialect, &e->fault);
    else if (x) nib_server_http_reply(x, 200, "application/json", (nib_str){e->out.ptr, e->out.len});
    free_errand(e);
}

static void on_closed(void *user) {
    nib_server_errand *e = user;
    e->x = NULL;
}

void nib_server_errand_run(nib_server *server, nib_server_exchange *x, nib_server_errand_fn fn, const nib_server_dialect *dialect) {
    nib_server_fault fault;
    nib_server_errand *e = server->n_errands < server->config.max_requests ? nib_calloc(1, sizeof *e) : NULL;
    if (!e) {
        nib_server_fail(&fault, 503, "queue_full", "%zu requests wait already: try again", server->n_errands);
        fault.retry_s = 1;
        nib_server_reply_fault(x, dialect, &fault);
        return;
    }
    *e = (nib_server_errand){.server = server, .x = x, .dialect = dialect, .fn = fn, .next = server->errands, .job.run = run_job,
                             .done.run = run_done};
    e->body = nib_server_http_take_body(x);
    e->job.is_long = e->body.len > NIB_SERVER_LONG_BODY;
    if (e->next) e->next->prev = e;
    server->errands = e;
    server->n_errands++;
    nib_server_http_on_closed(x, on_closed, e);
    nib_server_work_add(server->work, &e->job);
}

void nib_server_errand_none(nib_server *server) {
    while (server->errands) free_errand(server->errands);
}
