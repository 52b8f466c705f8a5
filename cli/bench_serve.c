/* cli/bench_serve.c - a server and numbers of clients in -> times that the clients saw, tokens a second, cached tokens out.
 *
 * A closed loop: each client is a thread with a connection of its own and sends its next request when its last one ended.
 * TTFT is from sending to the first text, ITL between two pieces of text, TPOT the mean time of a token after the first,
 * E2E from sending to the end. Tokens are those that the server counts in its usage. */
#include "bench_serve.h"

#include "api.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "median.h"
#include "signals.h"
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct sample {
    double ttft_ms, tpot_ms, e2e_ms;
    nib_cli_api_usage usage;
    bool is_done, has_failed;
} sample;

/* A number of clients. */
typedef struct level {
    const nib_cli_options *opt;
    const nib_cli_api *api; /* to be copied */
    const json_t *extra;    /* fields of every request; NULL: none */
    nib_cli_workload workload;
    uint32_t n_clients, n_conversations;
    atomic_uint next;       /* conversation that nobody has taken yet */
    sample *samples;        /* n_turns of each conversation */
    double seconds;
} level;

typedef struct client {
    level *l;
    pthread_t thread;
    bool is_running;
    nib_cli_api api;
    const json_t *extra;
    /* Of the request that is on its way. */
    double last_ms, first_ms;
    size_t n_pieces;
    bool has_ended;
    nib_buf text;
    sample now;
    nib_cli_list gaps; /* double: all ITLs */
    nib_error err;     /* of the first request that failed */
} client;

/* ---- one request */

static bool on_event(void *user, json_t *event) {
    client *c = user;
    json_t *delta = nib_cli_api_delta(event);
    nib_str content = nib_cli_api_content(delta), reasoning = nib_cli_api_reasoning(delta);
    double now = nib_cli_now_ms();
    nib_cli_api_usage_of(event, &c->now.usage);
    c->has_ended |= nib_cli_api_finish_reason(event) != NULL;
    if (!content.len && !reasoning.len) return true;
    double gap = now - c->last_ms;
    if (!c->n_pieces++) c->first_ms = now;
    else nib_cli_list_append(&c->gaps, &gap, 1, sizeof gap);
    c->last_ms = now;
    return nib_buf_append(&c->text, content.ptr, content.len);
}

static nib_status ask(client *c, json_t *messages, uint32_t n_tokens, nib_error *err) {
    json_t *request = json_object();
    double start = nib_cli_now_ms();
    c->now = (sample){0};
    c->n_pieces = c->text.len = 0;
    c->has_ended = false;
    json_object_set(request, "messages", messages);
    nib_cli_json_set_int(request, "max_tokens", n_tokens);
    nib_cli_json_set_int(request, "temperature", 0);
    json_object_set_new(request, "ignore_eos", json_true());
    json_t *extra = json_deep_copy(c->extra); /* other clients have the same */
    json_object_update(request, extra);
    json_decref(extra);
    nib_status status = nib_cli_api_chat(&c->api, request, on_event, c, err);
    json_decref(request);
    if (status == NIB_OK && !c->has_ended) status = nib_fail(err, NIB_E_IO, "the server's answer ends before the model's");
    size_t n = c->now.usage.n_generated = c->now.usage.n_generated ? c->now.usage.n_generated : c->n_pieces;
    c->now.e2e_ms = nib_cli_now_ms() - start;
    c->now.ttft_ms = c->n_pieces ? c->first_ms - start : c->now.e2e_ms;
    c->now.tpot_ms = n > 1 && c->n_pieces ? (c->last_ms - c->first_ms) / (double)(n - 1) : 0;
    c->now.is_done = status == NIB_OK;
    c->now.has_failed = status != NIB_OK && !nib_cli_interrupted();
    return status;
}

/* ---- clients */

static void converse(client *c, uint32_t conversation) {
    level *l = c->l;
    json_t *messages = nib_cli_workload_begin(&l->workload, conversation);
    for (uint32_t turn = 0; turn < l->workload.n_turns; turn++) {
        nib_error err;
        if (turn) nib_cli_workload_go_on(&l->workload, messages, conversation, nib_cli_bytes(&c->text));
        nib_status status = ask(c, messages, l->opt->serve_max_tokens, &err);
        l->samples[(size_t)conversation * l->workload.n_turns + turn] = c->now;
        if (status == NIB_OK) continue;
        if (c->now.has_failed && !c->err.message[0]) c->err = err;
        break;
    }
    json_decref(messages);
}

static void *run_client(void *user) {
    client *c = user;
    uint32_t conversation;
    while ((conversation = atomic_fetch_add(&c->l->next, 1)) < c->l->n_conversations && !nib_cli_interrupted())
        converse(c, conversation);
    return NULL;
}

static nib_status start_clients(level *l, client *clients, nib_error *err) {
    for (uint32_t i = 0; i < l->n_clients; i++) {
        clients[i].l = l;
        clients[i].extra = l->extra;
        NIB_TRY(nib_cli_api_copy(&clients[i].api, l->api, err));
    }
    for (uint32_t i = 0; i < l->n_clients; i++) {
        int error = pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
        if (error) {
            atomic_store(&l->next, l->n_conversations);
            return nib_fail_errno(err, error, "cannot start client %u", i);
        }
        clients[i].is_running = true;
    }
    return NIB_OK;
}

/* ---- figures */

enum { N_KINDS = 4 };
static const char *const kinds[N_KINDS] = {"ttft", "tpot", "itl", "e2e"};

typedef struct figures {
    size_t n_done, n_failed;
    uint64_t n_prompt, n_cached, n_generated;
    nib_cli_list ms[N_KINDS]; /* double, sorted */
    nib_cli_list turns;       /* double: median of TTFT for each turn */
} figures;

static void add(nib_cli_list *list, double value) {
    nib_cli_list_append(list, &value, 1, sizeof value);
}

static void count(const level *l, figures *f) {
    size_t n = (size_t)l->n_conversations * l->workload.n_turns;
    for (size_t i = 0; i < n; i++) {
        const sample *s = &l->samples[i];
        f->n_failed += s->has_failed;
        if (!s->is_done) continue;
        f->n_done++;
        f->n_prompt += s->usage.n_prompt;
        f->n_cached += s->usage.n_cached;
        f->n_generated += s->usage.n_generated;
        add(&f->ms[0], s->ttft_ms);
        if (s->usage.n_generated > 1) add(&f->ms[1], s->tpot_ms);
        add(&f->ms[3], s->e2e_ms);
    }
    for (uint32_t turn = 0; turn < l->workload.n_turns; turn++) {
        nib_cli_list list = {0};
        for (size_t i = turn; i < n; i += l->workload.n_turns)
            if (l->samples[i].is_done) add(&list, l->samples[i].ttft_ms);
        add(&f->turns, list.n ? nib_cli_median(list.items, list.n) : 0);
        nib_cli_list_free(&list);
    }
    for (int k = 0; k < N_KINDS; k++)
        if (f->ms[k].n) nib_cli_median(f->ms[k].items, f->ms[k].n);
}

static void free_figures(figures *f) {
    for (int k = 0; k < N_KINDS; k++) nib_cli_list_free(&f->ms[k]);
    nib_cli_list_free(&f->turns);
}

static double mean(const nib_cli_list *list) {
    double sum = 0;
    for (size_t i = 0; i < list->n; i++) sum += ((const double *)list->items)[i];
    return list->n ? sum / (double)list->n : 0;
}

static double percentile(const nib_cli_list *list, double p) {
    return list->n ? nib_cli_percentile(list->items, list->n, p) : 0;
}

static json_t *figures_json(const level *l, const figures *f, const char *workload) {
    json_t *o = json_object();
    nib_cli_json_set_str(o, "workload", workload);
    nib_cli_json_set_int(o, "concurrency", l->n_clients);
    nib_cli_json_set_int(o, "requests", (int64_t)f->n_done);
    nib_cli_json_set_int(o, "failed", (int64_t)f->n_failed);
    nib_cli_json_set_real(o, "seconds", l->seconds);
    nib_cli_json_set_int(o, "prompt_tokens", (int64_t)f->n_prompt);
    nib_cli_json_set_int(o, "cached_tokens", (int64_t)f->n_cached);
    nib_cli_json_set_int(o, "output_tokens", (int64_t)f->n_generated);
    nib_cli_json_set_real(o, "output_tok_s", (double)f->n_generated / l->seconds);
    nib_cli_json_set_real(o, "prompt_tok_s", (double)f->n_prompt / l->seconds);
    for (int k = 0; k < N_KINDS; k++) {
        char key[16];
        json_t *ms = json_object();
        nib_cli_json_set_real(ms, "mean", mean(&f->ms[k]));
        nib_cli_json_set_real(ms, "p50", percentile(&f->ms[k], 0.5));
        nib_cli_json_set_real(ms, "p90", percentile(&f->ms[k], 0.9));
        nib_cli_json_set_real(ms, "p99", percentile(&f->ms[k], 0.99));
        nib_cli_json_set_real(ms, "max", percentile(&f->ms[k], 1));
        strcpy(key, kinds[k]);
        json_object_set_new(o, strcat(key, "_ms"), ms);
    }
    json_t *turns = json_array();
    for (size_t i = 0; i < f->turns.n; i++) json_array_append_new(turns, nib_cli_json_number(((const double *)f->turns.items)[i]));
    json_object_set_new(o, "ttft_ms_by_turn", turns);
    return o;
}

static void print_figures(nib_cli_out *out, const level *l, const figures *f) {
    static const char *const names[N_KINDS] = {"TTFT", "TPOT", "ITL", "E2E"};
    for (int k = 0; k < N_KINDS; k++) {
        if (k == 0)
            nib_cli_out_printf(out, "%7u %8zu %9.1f %9.1f %6.1f %%", l->n_clients, f->n_done, (double)f->n_generated / l->seconds,
                               (double)f->n_prompt / l->seconds, f->n_prompt ? 100.0 * (double)f->n_cached / (double)f->n_prompt : 0);
        else
            nib_cli_out_printf(out, "%44s", "");
        nib_cli_out_printf(out, "  %-4s %9.1f %9.1f %9.1f %9.1f\n", names[k], percentile(&f->ms[k], 0.5), percentile(&f->ms[k], 0.9),
                           percentile(&f->ms[k], 0.99), percentile(&f->ms[k], 1));
    }
    if (l->workload.n_turns > 1) {
        nib_cli_out_printf(out, "%44s  TTFT p50 by turn:", "");
        for (size_t i = 0; i < f->turns.n; i++) nib_cli_out_printf(out, " %.1f", ((const double *)f->turns.items)[i]);
        nib_cli_out_puts(out, "\n");
    }
    nib_cli_out_flush(out);
}

/* ---- levels */

typedef struct serve_bench {
    const nib_cli_options *opt;
    const nib_cli_term *term;
    nib_cli_out *out;
    nib_cli_api api;
    nib_cli_workload workload;
    nib_buf workload_name;
    json_t *results, *extra; /* extra: fields of every request; NULL: none */
    size_t n_failed;
} serve_bench;

static void finish_level(serve_bench *b, level *l, client *clients) {
    figures f = {0};
    count(l, &f);
    for (uint32_t i = 0; i < l->n_clients; i++) {
        if (clients[i].gaps.n) nib_cli_list_append(&f.ms[2], clients[i].gaps.items, clients[i].gaps.n, sizeof(double));
        if (clients[i].err.message[0] && !b->n_failed++) nib_cli_warning(b->term, "%s", clients[i].err.message);
    }
    if (f.ms[2].n) nib_cli_median(f.ms[2].items, f.ms[2].n);
    if (f.n_failed) nib_cli_warning(b->term, "%zu of %zu requests failed", f.n_failed, f.n_failed + f.n_done);
    if (b->opt->json) json_array_append_new(b->results, figures_json(l, &f, nib_buf_cstr(&b->workload_name)));
    else print_figures(b->out, l, &f);
    free_figures(&f);
}

static nib_status run_level(serve_bench *b, uint32_t number, uint32_t n_clients, nib_error *err) {
    level l = {.opt = b->opt, .api = &b->api, .extra = b->extra, .workload = b->workload, .n_clients = n_clients};
    l.n_conversations = (b->opt->serve_requests + b->workload.n_turns - 1) / b->workload.n_turns;
    l.workload.salt[1] ^= number; /* no level finds in a cache what another one left there */
    l.samples = nib_calloc((size_t)l.n_conversations * b->workload.n_turns, sizeof *l.samples);
    client *clients = nib_calloc(n_clients, sizeof *clients);
    nib_status status = l.samples && clients ? NIB_OK : nib_fail_nomem(err, 0, "clients");
    double start = nib_cli_now_ms();
    if (status == NIB_OK) status = start_clients(&l, clients, err);
    for (uint32_t i = 0; clients && i < n_clients; i++)
        if (clients[i].is_running) pthread_join(clients[i].thread, NULL);
    l.seconds = (nib_cli_now_ms() - start) / 1e3;
    if (status == NIB_OK && nib_cli_interrupted()) status = nib_fail(err, NIB_E_CANCELLED, "interrupted");
    if (status == NIB_OK) finish_level(b, &l, clients);
    for (uint32_t i = 0; clients && i < n_clients; i++) {
        nib_cli_api_close(&clients[i].api);
        nib_buf_free(&clients[i].text);
        nib_cli_list_free(&clients[i].gaps);
    }
    nib_free(clients);
    nib_free(l.samples);
    return status;
}

/* Two small requests tell how many tokens a word has, and wake the server up. */
static nib_status measure_words(serve_bench *b, nib_error *err) {
    enum { N = 64 };
    size_t n_tokens[2];
    client c = {.extra = b->extra};
    NIB_TRY(nib_cli_api_copy(&c.api, &b->api, err));
    nib_status status = NIB_OK;
    for (uint32_t i = 0; i < 2 && status == NIB_OK; i++) {
        nib_cli_workload w = {.salt = {b->workload.salt[0], b->workload.salt[1]}, .n_words = N * (1 + i), .n_turns = 1};
        json_t *messages = nib_cli_workload_begin(&w, i);
        status = ask(&c, messages, 4, err);
        n_tokens[i] = c.now.usage.n_prompt;
        json_decref(messages);
    }
    nib_cli_api_close(&c.api);
    nib_buf_free(&c.text);
    nib_cli_list_free(&c.gaps);
    NIB_TRY(status);
    double tokens = n_tokens[1] > n_tokens[0] ? (double)(n_tokens[1] - n_tokens[0]) / N : 1; /* it may tell no usage */
    b->workload.n_words = (size_t)(b->opt->serve_prompt / tokens) + 1;
    b->workload.n_prefix_words = (size_t)(b->opt->serve_prefix / tokens) + 1;
    return NIB_OK;
}

static bool is_local(const nib_cli_option *option) {
    return option->group == NIB_CLI_GROUP_COMPUTE || option->group == NIB_CLI_GROUP_LENGTH;
}

static nib_status bench(serve_bench *b, nib_error *err) {
    const nib_cli_options *opt = b->opt;
    const uint32_t *n_clients = opt->serve_concurrency.items;
    nib_cli_value_print(nib_cli_option_find(NIB_CLI_BENCH, (nib_str){"--workload", 10}), opt, &b->workload_name);
    b->workload.kind = opt->serve_workload;
    b->workload.n_turns = opt->serve_workload == NIB_CLI_WORKLOAD_MULTI_TURN ? opt->serve_turns : 1;
    if (!nib_rng_system(&b->workload.salt[0])) b->workload.salt[0] = (uint32_t)nib_cli_now_ms();
    NIB_TRY(nib_cli_api_check(opt, is_local, err));
    NIB_TRY(nib_cli_json_option("--extra-body", opt->serve_extra, &b->extra, err));
    nib_cli_signals_catch();
    NIB_TRY(nib_cli_api_open(&b->api, opt, err));
    NIB_TRY(measure_words(b, err));
    if (!opt->json)
        nib_cli_out_printf(b->out, "%.*s, %s, questions of %u tokens, answers of %u\n%7s %8s %9s %9s %8s  %-4s %9s %9s %9s %9s\n",
                           (int)b->api.model.len, b->api.model.ptr, nib_buf_cstr(&b->workload_name), opt->serve_prompt,
                           opt->serve_max_tokens, "clients", "requests", "tokens/s", "prompt/s", "cached", "ms", "p50", "p90", "p99",
                           "max");
    nib_cli_out_flush(b->out);
    for (size_t i = 0; i < opt->serve_concurrency.n; i++) NIB_TRY(run_level(b, (uint32_t)i + 1, n_clients[i], err));
    if (opt->json) nib_cli_json_write(b->out, json_incref(b->results));
    return b->n_failed ? nib_fail(err, NIB_E_IO, "some requests failed") : NIB_OK;
}

nib_status nib_cli_bench_serve(nib_cli_out *out, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    serve_bench b = {.opt = opt, .term = term, .out = out, .api.http.fd = -1, .results = json_array()};
    nib_status status = bench(&b, err);
    nib_cli_api_close(&b.api);
    nib_buf_free(&b.workload_name);
    json_decref(b.results);
    json_decref(b.extra);
    return status;
}
