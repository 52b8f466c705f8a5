/* bench/bench_engine.c - nib_engine under load, without a network: bench_engine MODEL [turn_ms].
 *
 * For 1 to 16 clients at once: tokens a second, the median and the longest wait for a first token, the longest gap between
 * two tokens of an answer. Prompts of their own (158 tokens), prompts of 574 tokens of which 512 are the same for all, and
 * four turns of a talk, of which each one continues the one before. Then a long prompt that comes while others answer. */
#include "base/sys.h"
#include "nib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAX = 16, MAX_PROMPT = 4096 };

typedef struct load {
    nib_engine *engine;
    uint32_t n_vocab, n_shared, n_prompt, n_answer, n_turns;
} load;

typedef struct client {
    pthread_t thread;
    const load *load;
    uint32_t number, n_tokens, n_cached;
    double ttft[8], gap; /* seconds; ttft by turn */
} client;

static nib_token token(const load *l, uint32_t seed, uint32_t i) {
    uint32_t x = (seed * 7919u + i + 1) * 2654435761u;
    return (nib_token)((x >> 7) % l->n_vocab);
}

/* One answer; its tokens go behind the prompt. */
static void ask(client *c, nib_token *ids, uint32_t *n, uint32_t turn) {
    nib_error err;
    nib_stream *stream;
    nib_stream_event event;
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    nib_request r = NIB_REQUEST_INIT;
    sampling.temp = 0;
    r.prompt = ids, r.n_prompt = *n, r.max_tokens = c->load->n_answer, r.sampling = &sampling;
    double start = nib_sys_now(), last = start;
    if (nib_engine_submit(&stream, c->load->engine, &r, &err) != NIB_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.message);
        exit(1);
    }
    for (uint32_t i = 0; nib_stream_next(stream, -1, &event) && event.kind == NIB_STREAM_TOKEN; i++) {
        double now = nib_sys_now();
        if (i == 0) c->ttft[turn] = now - start;
        else if (now - last > c->gap) c->gap = now - last;
        last = now;
        ids[(*n)++] = event.id;
        c->n_tokens++;
    }
    c->n_cached += event.usage.n_cached;
    nib_stream_free(stream);
}

static void *be_client(void *arg) {
    client *c = arg;
    const load *l = c->load;
    nib_token *ids = calloc(MAX_PROMPT * 2, sizeof *ids);
    uint32_t n = 0;
    while (n < l->n_shared) ids[n] = token(l, 1, n), n++;
    for (uint32_t turn = 0; turn < l->n_turns; turn++) {
        for (uint32_t i = n < l->n_shared ? 0 : l->n_shared; i < l->n_prompt; i++, n++) ids[n] = token(l, 100 + c->number, n);
        ask(c, ids, &n, turn);
    }
    free(ids);
    return NULL;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(const char *name, load l, uint32_t n) {
    static uint32_t number;
    client clients[N_MAX];
    double ttft[N_MAX], last[N_MAX], gap = 0, start = nib_sys_now();
    uint32_t n_tokens = 0, n_cached = 0;
    nib_engine_figures before, after;
    nib_engine_stats(l.engine, &before);
    for (uint32_t i = 0; i < n; i++) {
        clients[i] = (client){.load = &l, .number = number++};
        if (pthread_create(&clients[i].thread, NULL, be_client, &clients[i])) exit(1);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        n_tokens += clients[i].n_tokens;
        n_cached += clients[i].n_cached;
        ttft[i] = clients[i].ttft[0];
        last[i] = clients[i].ttft[l.n_turns - 1];
        if (clients[i].gap > gap) gap = clients[i].gap;
    }
    double s = nib_sys_now() - start;
    nib_engine_stats(l.engine, &after);
    qsort(ttft, n, sizeof *ttft, compare);
    qsort(last, n, sizeof *last, compare);
    printf("%-12s %2u  %8.1f tok/s  first token %6.0f ms (longest %6.0f, last turn %6.0f)  gap %5.0f ms  cached %u, %u turns\n",
           name, n,
           n_tokens / s, 1e3 * ttft[n / 2], 1e3 * ttft[n - 1], 1e3 * last[n / 2], 1e3 * gap, n_cached,
           (unsigned)(after.n_turns - before.n_turns));
    fflush(stdout);
}

/* Three answers run, then a long prompt comes. */
static void run_injection(load l) {
    client clients[4];
    load longer = l;
    longer.n_prompt = 3000;
    longer.n_answer = 1;
    l.n_answer = 200;
    for (uint32_t i = 0; i < 4; i++) {
        clients[i] = (client){.load = i == 3 ? &longer : &l, .number = 1000 + i};
        if (pthread_create(&clients[i].thread, NULL, be_client, &clients[i])) exit(1);
        double until = nib_sys_now() + (i == 2 ? 1.5 : 0);
        while (nib_sys_now() < until) {}
    }
    for (uint32_t i = 0; i < 4; i++) pthread_join(clients[i].thread, NULL);
    printf("a prompt of %u tokens beside three answers: first token %.0f ms, longest gaps %.0f %.0f %.0f ms\n", longer.n_prompt,
           1e3 * clients[3].ttft[0], 1e3 * clients[0].gap, 1e3 * clients[1].gap, 1e3 * clients[2].gap);
}

int main(int argc, char **argv) {
    nib_error err;
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_engine *engine;
    nib_engine_config config = NIB_ENGINE_CONFIG_INIT;
    config.context.n_ctx = 32768;
    config.max_context = 8192;
    if (argc > 2) config.turn_ms = atof(argv[2]);
    if (argc < 2 || nib_gguf_open(&file, argv[1], NULL, &err) != NIB_OK || nib_tokenizer_new(&tok, file, NULL, &err) != NIB_OK ||
        nib_model_open(&model, file, NULL, &err) != NIB_OK || nib_engine_new(&engine, model, tok, &config, &err) != NIB_OK) {
        fprintf(stderr, "bench_engine: %s\n", argc < 2 ? "usage: bench_engine MODEL [turn_ms]" : err.message);
        return 1;
    }
    load l = {.engine = engine, .n_vocab = nib_model_n_vocab(model), .n_answer = 64, .n_turns = 1};
    l.n_prompt = 158;
    for (uint32_t n = 1; n <= N_MAX; n *= 4) run("unique", l, n);
    l.n_prompt = 574, l.n_shared = 512;
    for (uint32_t n = 1; n <= N_MAX; n *= 4) run("shared", l, n);
    l.n_prompt = 158, l.n_shared = 0, l.n_turns = 4;
    run("four turns", l, 1);
    run("four turns", l, 4);
    l.n_turns = 1;
    run_injection(l);
    nib_engine_figures f;
    nib_engine_stats(engine, &f);
    printf("%llu turns, %.1f s, of which %.1f %% outside of nib_decode; longest with answers waiting: %.0f ms (turn_ms %.0f)\n",
           (unsigned long long)f.n_turns, f.turn_s, 100 * (1 - f.decode_s / f.turn_s), f.longest_turn_ms, config.turn_ms);
    nib_engine_free(engine);
    nib_model_close(model);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
