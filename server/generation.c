/* server/generation.c - answers, from the request to their last byte (generation.h). */
#include "generation.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sys.h"
#include "auth.h"
#include "dialect.h"
#include "errand.h"
#include "internal.h"
#include "prepare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SILENCE_S = 15 };

/* ---- an answer's life */

static void free_choice(nib_server_choice *c) {
    nib_chat_parser_free(c->parser);
    nib_buf_free(&c->content);
    nib_buf_free(&c->reasoning);
    for (size_t i = 0; i < c->n_calls; i++) {
        nib_buf_free(&c->calls[i].id);
        nib_buf_free(&c->calls[i].name);
        nib_buf_free(&c->calls[i].arguments);
    }
    nib_free(c->calls);
    nib_free(c->parts);
    nib_free(c->tokens);
    nib_free(c->tops);
    nib_free(c->embedding);
}

/* Its streams are cancelled, if they still run. */
static void free_answer(nib_server_answer *a) {
    nib_server *server = a->server;
    nib_server_metrics_answer(&server->metrics, a);
    if (a->next) a->next->prev = a->prev;
    if (a->prev) a->prev->next = a->next;
    else server->answers = a->next;
    server->n_answers--;
    if (a->x) nib_server_http_on_closed(a->x, NULL, NULL);
    for (size_t i = 0; i < a->n_sources; i++) nib_stream_free(a->sources[i].stream);
    nib_server_http_unpost(server->http, &a->ready);
    nib_server_http_unpost(server->http, &a->prepared);
    for (size_t i = 0; i < a->n_choices; i++) free_choice(&a->choices[i]);
    nib_free(a->choices);
    nib_free(a->sources);
    nib_grammar_free(a->grammar);
    nib_free(a->tools);
    nib_server_ask_fini(&a->ask);
    nib_buf_free(&a->body);
    nib_buf_free(&a->out);
    nib_free(a->state);
    nib_free(a);
}

void nib_server_reply_json(nib_server_exchange *x, json_t *value) {
    nib_buf out = {0};
    nib_server_json_put(value, &out);
    nib_server_http_reply(x, 200, "application/json", (nib_str){out.ptr, out.len});
    nib_buf_free(&out);
}

void nib_server_reply_fault(nib_server_exchange *x, const nib_server_dialect *dialect, const nib_server_fault *fault) {
    nib_buf body = {0};
    char seconds[16];
    if (fault->retry_s) {
        snprintf(seconds, sizeof seconds, "%u", fault->retry_s);
        nib_server_http_set(x, "Retry-After", seconds);
    }
    if (dialect && dialect->error) dialect->error(fault, &body);
    else nib_server_error_json(fault, &body);
    snprintf(nib_server_http_note(x), NIB_SERVER_NOTE, "refused: %.150s", fault->message);
    nib_server_http_reply(x, fault->status, "application/json", (nib_str){body.ptr, body.len});
    nib_buf_free(&body);
}

/* ---- what a choice says */

static void tell(nib_server_answer *a, const nib_server_event *event) {
    if (a->ask.stream) a->dialect->event(a, event, &a->out);
}

static bool add_part(nib_server_choice *c, const nib_server_part *part) {
    if (!nib_grow(&c->parts, &c->parts_capacity, c->n_parts + 1, sizeof *c->parts)) return false;
    c->parts[c->n_parts++] = *part;
    return true;
}

/* False: memory is out. */
static bool tell_text(nib_server_choice *c, nib_server_event_kind kind, nib_str text) {
    bool is_content = kind == NIB_SERVER_CONTENT;
    nib_buf *all = is_content ? &c->content : &c->reasoning;
    c->is_reasoning = !is_content;
    if (!is_content && c->answer->ask.hides_reasoning) return true;
    bool goes_on = c->n_parts && c->parts[c->n_parts - 1].kind == kind;
    if (!goes_on && !add_part(c, &(nib_server_part){.kind = kind, .from = all->len})) return false;
    nib_buf_append(all, text.ptr, text.len);
    c->parts[c->n_parts - 1].to = all->len;
    tell(c->answer, &(nib_server_event){.kind = kind, .choice = c, .text = text});
    return !all->failed;
}

/* The id that a model wrote is kept; one that only counts would come again with the next answer. */
static void put_call_id(nib_server_choice *c, nib_server_call *call, const nib_chat_event *event) {
    char counted[24];
    snprintf(counted, sizeof counted, "call_%u", event->index);
    bool is_counted = event->id.len == strlen(counted) && memcmp(event->id.ptr, counted, event->id.len) == 0;
    if (is_counted) nib_buf_printf(&call->id, "call_%s%u%u", c->answer->id, c->index, event->index);
    else nib_buf_append(&call->id, event->id.ptr, event->id.len);
}

/* False: memory is out. */
static bool begin_call(nib_server_choice *c, const nib_chat_event *event) {
    if (c->answer->ask.one_call && c->n_calls) return true;
    if (!nib_grow(&c->calls, &c->calls_capacity, c->n_calls + 1, sizeof *c->calls)) return false;
    if (!add_part(c, &(nib_server_part){.kind = NIB_SERVER_CALL_BEGIN, .call = c->n_calls})) return false;
    nib_server_call *call = &c->calls[c->n_calls++];
    *call = (nib_server_call){0};
    put_call_id(c, call, event);
    nib_buf_append(&call->name, event->name.ptr, event->name.len);
    tell(c->answer, &(nib_server_event){.kind = NIB_SERVER_CALL_BEGIN, .choice = c, .call = call, .call_index = event->index});
    return true;
}

static void go_on_with_call(nib_server_choice *c, nib_server_event_kind kind, const nib_chat_event *event) {
    if (event->index >= c->n_calls) return; /* one that was not wanted */
    nib_server_call *call = &c->calls[event->index];
    nib_buf_append(&call->arguments, event->text.ptr, event->text.len);
    tell(c->answer, &(nib_server_event){.kind = kind, .choice = c, .call = call, .call_index = event->index, .text = event->text});
}

bool nib_server_choice_event(void *choice, const nib_chat_event *event) {
    nib_server_choice *c = choice;
    if (event->kind >= NIB_CHAT_CALL_BEGIN) c->is_reasoning = false;
    switch (event->kind) {
    case NIB_CHAT_CONTENT: return tell_text(c, NIB_SERVER_CONTENT, event->text);
    case NIB_CHAT_REASONING: return tell_text(c, NIB_SERVER_REASONING, event->text);
    case NIB_CHAT_CALL_BEGIN: return begin_call(c, event);
    case NIB_CHAT_CALL_ARGUMENTS: go_on_with_call(c, NIB_SERVER_CALL_ARGUMENTS, event); break;
    case NIB_CHAT_CALL_END: go_on_with_call(c, NIB_SERVER_CALL_END, event); break;
    default: break;
    }
    return true;
}

/* Ends an answer that cannot go on. The request is to blame where its form and its biases leave nothing to say, or where the form
 * is too much work. */
static void fail(nib_server_answer *a, const nib_error *err) {
    if (a->has_failed) return;
    a->has_failed = true;
    bool is_its_own = err->code == NIB_E_ARG || err->code == NIB_E_LIMIT;
    const char *limit = a->ask.n_biases ? "logit_bias" : a->ask.allowed_ids ? "allowed_token_ids" : NULL;
    nib_server_fault_of(&a->fault, err, limit && err->code == NIB_E_ARG ? limit : a->ask.grammar_param);
    if (a->fault.status < 500 && !is_its_own) a->fault.status = 500; /* it was good enough to be begun */
}

/* It was not even begun in time. */
static void fail_late(nib_server_answer *a) {
    if (a->has_failed) return;
    a->has_failed = true;
    nib_server_fail(&a->fault, 504, "timeout", "the request waited longer than this server lets it");
}

static void take_text(nib_server_choice *c, nib_str text) {
    nib_error err;
    if (!text.len) return;
    nib_status status = NIB_OK;
    if (c->parser) status = nib_chat_parser_push(c->parser, text, &err);
    else if (!tell_text(c, NIB_SERVER_CONTENT, text)) status = nib_fail_nomem(&err, c->content.len, "an answer");
    if (status != NIB_OK) fail(c->answer, &err);
}

/* A token and its log-probability; false: memory is out. */
static bool take_logprobs(nib_server_choice *c, const nib_stream_event *event) {
    if (!nib_grow(&c->tokens, &c->tokens_capacity, c->n_tokens + 1, sizeof *c->tokens) ||
        !nib_grow(&c->tops, &c->tops_capacity, c->n_tops + event->n_top, sizeof *c->tops))
        return false;
    c->tokens[c->n_tokens++] = (nib_server_token){event->id, event->logprob, event->n_top, c->n_tops};
    if (event->n_top) memcpy(c->tops + c->n_tops, event->top, event->n_top * sizeof *c->tops);
    c->n_tops += event->n_top;
    return true;
}

static void note_logprobs(nib_server_choice *c, const nib_stream_event *event) {
    nib_error err;
    if (take_logprobs(c, event)) return;
    nib_fail_nomem(&err, 0, "log-probabilities");
    fail(c->answer, &err);
}

/* A token of the prompt, for all of its answers. The engine tells of none for the first one. */
static void take_prompt(const nib_server_source *s, const nib_stream_event *event) {
    const nib_server_ask *ask = &s->choices->answer->ask;
    nib_stream_event first = {.id = ask->prompts[s->choices->prompt].ids.ids[0], .logprob = NAN};
    for (uint32_t i = 0; i < ask->n; i++) {
        if (!s->choices[i].n_tokens) note_logprobs(&s->choices[i], &first);
        note_logprobs(&s->choices[i], event);
    }
}

static void take_token(nib_server_choice *c, const nib_stream_event *event) {
    if (c->answer->ask.only_prompt) return;
    c->usage.n_generated++;
    nib_server_metrics_token(&c->answer->server->metrics, c);
    if (c->answer->ask.logprobs) note_logprobs(c, event);
    take_text(c, event->text);
    c->n_reasoning += c->is_reasoning;
}

static nib_server_finish finish_of(const nib_server_choice *c, nib_finish finish) {
    if (finish == NIB_FINISH_LENGTH) return NIB_SERVER_FINISH_LENGTH;
    if (finish == NIB_FINISH_TIMEOUT) return NIB_SERVER_FINISH_TIMEOUT;
    if (finish != NIB_FINISH_STOP) return NIB_SERVER_FINISH_ABORT;
    return c->n_calls ? NIB_SERVER_FINISH_CALLS : NIB_SERVER_FINISH_STOP;
}

static void take_embedding(nib_server_choice *c, const float *embedding) {
    uint32_t n = nib_model_n_embd(c->answer->server->model.model);
    nib_error err;
    c->embedding = nib_alloc(n, sizeof *c->embedding);
    if (!embedding) nib_fail(&err, NIB_E_CANCELLED, "the server is shutting down");
    else if (!c->embedding) nib_fail_nomem(&err, n * sizeof *c->embedding, "an embedding");
    if (!embedding || !c->embedding) {
        fail(c->answer, &err);
        return;
    }
    memcpy(c->embedding, embedding, n * sizeof *c->embedding);
    if (!c->answer->ask.keeps_length) nib_normalise(c->embedding, n);
}

static void take_end(nib_server_choice *c, const nib_stream_event *event) {
    nib_server_answer *a = c->answer;
    nib_error err;
    c->stop = event->stop < (int)a->ask.n_own_stops ? event->stop : -1;
    if (!a->ask.only_prompt) take_text(c, event->text);
    if (c->stop >= 0 && a->ask.include_stop) take_text(c, a->ask.stops[c->stop]);
    if (c->parser && nib_chat_parser_finish(c->parser, &err) != NIB_OK) fail(a, &err);
    if (event->finish == NIB_FINISH_ERROR) fail(a, event->error);
    if (event->finish == NIB_FINISH_TIMEOUT && !c->usage.n_generated) fail_late(a);
    if (a->ask.pooling) take_embedding(c, event->embedding);
    c->usage = event->usage;
    if (a->ask.only_prompt) c->usage.n_generated = 0;
    c->finish = finish_of(c, event->finish);
    a->n_open--;
    if (a->has_failed) return; /* which is told instead */
    tell(a, &(nib_server_event){.kind = NIB_SERVER_CHOICE_END, .choice = c});
    a->has_failed = nib_server_prepare_more(a, &a->fault) != NIB_OK;
}

/* ---- reading and writing */

nib_server_usage nib_server_usage_of(const nib_server_answer *a) {
    nib_server_usage u = {0};
    for (size_t i = 0; i < a->n_choices; i++) {
        const nib_server_choice *c = &a->choices[i];
        u.n_generated += c->usage.n_generated;
        u.n_reasoning += c->n_reasoning;
        if (i && c->prompt == a->choices[i - 1].prompt) continue;
        u.n_prompt += c->usage.n_prompt;
        u.n_cached += c->usage.n_cached;
    }
    return u;
}

static void note_usage(nib_server_answer *a) {
    nib_server_usage u = nib_server_usage_of(a);
    const nib_usage *first = &a->choices[0].usage;
    snprintf(nib_server_http_note(a->x), NIB_SERVER_NOTE,
             "%s: prompt %llu (%llu cached), generated %llu, queue %.0f ms, first token %.0f ms%s%.50s", a->id,
             (unsigned long long)u.n_prompt, (unsigned long long)u.n_cached, (unsigned long long)u.n_generated, first->queue_ms,
             first->ttft_ms, a->has_failed ? ", failed: " : "", a->has_failed ? a->fault.message : "");
}

/* Sends what was said in this wake; the client may be gone afterwards. */
static void flush(nib_server_answer *a) {
    nib_error err;
    if (a->out.failed) {
        nib_fail_nomem(&err, a->out.len, "an answer");
        fail(a, &err);
    } else if (a->x && a->out.len) {
        a->last_sent = nib_sys_now();
        nib_server_http_write(a->x, (nib_str){a->out.ptr, a->out.len});
    }
    a->out.len = 0;
}

static void end_stream(nib_server_answer *a) {
    nib_server_event end = {.kind = NIB_SERVER_END};
    if (a->has_failed) end = (nib_server_event){.kind = NIB_SERVER_ERROR, .fault = &a->fault};
    tell(a, &end);
    note_usage(a);
    flush(a);
    if (a->x) nib_server_http_end(a->x);
}

static void end_whole(nib_server_answer *a) {
    if (a->has_failed) {
        nib_server_reply_fault(a->x, a->dialect, &a->fault);
        return;
    }
    a->dialect->whole(a, &a->out);
    note_usage(a);
    nib_server_http_reply(a->x, 200, "application/json", (nib_str){a->out.ptr, a->out.len});
}

/* Reads all that the engine has for an answer. */
static void take_events(nib_server_answer *a) {
    nib_stream_event event;
    a->is_reading = true; /* so that a client that goes away now is only noted */
    for (size_t i = 0; i < a->n_sources; i++)
        while (a->x && !a->has_failed && nib_stream_next(a->sources[i].stream, 0, &event)) {
            nib_server_choice *c = &a->sources[i].choices[event.choice];
            nib_server_http_flow(a->x);
            if (event.kind == NIB_STREAM_TOKEN) take_token(c, &event);
            else if (event.kind == NIB_STREAM_END) take_end(c, &event);
            else take_prompt(&a->sources[i], &event);
        }
}

/* The same, and sends it; frees the answer when it is over. */
static void read_streams(nib_server_answer *a) {
    take_events(a);
    bool is_over = !a->n_open || a->has_failed;
    if (a->x && is_over) {
        if (a->ask.stream) end_stream(a);
        else end_whole(a);
        a->x = NULL;
    } else if (a->x && a->ask.stream) {
        flush(a);
    }
    a->is_reading = false;
    if (!a->x) free_answer(a);
}

void nib_server_generate_tick(void *arg) {
    const nib_server *server = arg;
    double long_ago = nib_sys_now() - SILENCE_S;
    for (nib_server_answer *a = server->answers, *next; a; a = next) {
        next = a->next;
        if (!a->x || !a->is_prepared || !a->ask.stream || !a->dialect->stream_idle || a->last_sent > long_ago) continue;
        a->last_sent = nib_sys_now();
        nib_server_http_write(a->x, (nib_str){a->dialect->stream_idle, strlen(a->dialect->stream_idle)}); /* may free it */
    }
}

/* ---- from thread to thread */

static void on_closed(void *user) {
    nib_server_answer *a = user;
    a->x = NULL;
    atomic_store(&a->is_gone, true);
    if (a->is_prepared && !a->is_reading) free_answer(a);
}

/* On the engine's thread. */
static void on_ready(void *user, bool is_awaited) {
    nib_server_answer *a = user;
    nib_server_http_post(a->server->http, &a->ready, is_awaited);
}

static void run_ready(nib_server_task *task) {
    nib_server_answer *a = (nib_server_answer *)((char *)task - offsetof(nib_server_answer, ready));
    if (a->is_prepared) read_streams(a);
}

static void begin_stream(nib_server_answer *a) {
    nib_server_http_set(a->x, "Cache-Control", "no-cache");
    nib_server_http_set(a->x, "X-Accel-Buffering", "no"); /* nginx would collect it */
    nib_server_http_begin(a->x, 200, a->dialect->stream_type);
    a->last_sent = nib_sys_now();
    tell(a, &(nib_server_event){.kind = NIB_SERVER_BEGIN});
}

static void run_prepared(nib_server_task *task) {
    nib_server_answer *a = (nib_server_answer *)((char *)task - offsetof(nib_server_answer, prepared));
    a->is_prepared = true;
    if (a->x && a->status != NIB_OK) {
        nib_server_reply_fault(a->x, a->dialect, &a->fault);
        a->x = NULL;
    } else if (a->x && a->ask.stream) {
        begin_stream(a);
    }
    if (!a->x) free_answer(a);
    else read_streams(a);
}

/* On a work thread. */
static void run_job(nib_server_job *job) {
    nib_server_answer *a = (nib_server_answer *)((char *)job - offsetof(nib_server_answer, job));
    a->on_ready = on_ready;
    a->status = nib_server_prepare(a, &a->fault);
    nib_server_http_post(a->server->http, &a->prepared, true);
}

/* ---- the beginning */

/* Refuses before any work is done. */
static nib_status admit(const nib_server *server, nib_server_fault *fault) {
    nib_engine_figures figures;
    nib_error err;
    if (server->n_answers < server->config.max_requests && nib_engine_admits(server->model.engine, 1, &err) == NIB_OK) return NIB_OK;
    nib_engine_stats(server->model.engine, &figures);
    nib_server_fail(fault, 503, "queue_full", "%u requests run and %u wait already: try again in %u s", figures.n_running,
                    figures.n_waiting, figures.retry_s);
    fault->retry_s = figures.retry_s;
    return NIB_E_BUSY;
}

static void name_answer(nib_server_answer *a) {
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const nib_server *server = a->server;
    uint32_t counter[4] = {(uint32_t)server->n_made, (uint32_t)(server->n_made >> 32)}, random[4];
    uint32_t key[2] = {(uint32_t)server->secret, (uint32_t)(server->secret >> 32)};
    nib_rng_philox(counter, key, random);
    for (size_t i = 0; i < 20; i++) {
        a->id[i] = letters[random[i / 5] % 62];
        random[i / 5] /= 62;
    }
}

void nib_server_generate(nib_server *server, nib_server_exchange *x, const nib_server_dialect *dialect) {
    nib_server_fault fault;
    if (admit(server, &fault) != NIB_OK) {
        nib_server_metrics_count(&server->metrics.rejected, fault.code);
        nib_server_reply_fault(x, dialect, &fault);
        return;
    }
    nib_server_answer *a = nib_calloc(1, sizeof *a);
    void *state = nib_calloc(1, dialect->state_size);
    if (!a || !state) {
        nib_free(a);
        nib_free(state);
        nib_server_fail(&fault, 503, "out_of_memory", "out of memory for an answer");
        nib_server_reply_fault(x, dialect, &fault);
        return;
    }
    *a = (nib_server_answer){.server = server, .x = x, .dialect = dialect, .state = state, .next = server->answers,
                             .created = (int64_t)time(NULL), .started = nib_sys_now(), .job.run = run_job,
                             .prepared.run = run_prepared, .ready.run = run_ready};
    a->ask.owner = nib_server_auth_owner(server, x);
    a->body = nib_server_http_take_body(x);
    a->job.is_long = a->body.len > NIB_SERVER_LONG_BODY;
    if (a->next) a->next->prev = a;
    server->answers = a;
    server->n_answers++;
    server->n_made++;
    name_answer(a);
    nib_server_http_set(x, "X-Request-Id", a->id);
    nib_server_http_on_closed(x, on_closed, a);
    nib_server_work_add(server->work, &a->job);
}

void nib_server_generate_cut(nib_server *server) {
    nib_server_fault fault;
    nib_server_fail(&fault, 503, "shutting_down", "the server is shutting down");
    for (nib_server_answer *a = server->answers, *next; a; a = next) {
        next = a->next;
        if (a->x && a->is_prepared) {
            take_events(a); /* what was said until now */
            if (a->n_open && !a->has_failed) a->fault = fault, a->has_failed = true;
            read_streams(a);
        } else if (a->x) {
            nib_server_reply_fault(a->x, a->dialect, &fault);
            a->x = NULL;
            atomic_store(&a->is_gone, true);
        }
    }
}

void nib_server_generate_none(nib_server *server) {
    for (nib_server_answer *a = server->answers; a; a = a->next) atomic_store(&a->is_gone, true);
    nib_server_work_free(server->work); /* jobs that waited have run */
    server->work = NULL;
    nib_server_errand_none(server);
    while (server->answers) free_answer(server->answers);
}
