/* bench/bench_draft.c - what guesses from an answer's own text bring: bench_draft MODEL [rounds].
 *
 * Two engines, with guesses and without, are asked the same in turn: to go on with the second copy of a text, which repeats
 * what stands in the prompt, and to go on with prose, greedy and sampled. Tokens a second after the first one: medians, and
 * the median of the ratios of a round. The answers must be equal. */
#include "nib.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 100, N_ANSWER = 96 };

static const char text[] =
    "The harbour lay quiet when the last of the boats came in. Marta counted the crates on the quay, wrote the numbers into her "
    "book and crossed out the two that had been broken on the way. Nobody had asked her to do it, but the clerk was ill and the "
    "buyers from the city would not wait. By noon the ice had to be brought down from the shed, the scales had to be checked and "
    "somebody had to tell the captain that his price was too high. She did all of it in the order in which she met people, and "
    "in the evening, when the lamps were lit along the wall, there was nothing left to do but to wash the stones.";

typedef struct task {
    const char *name, *from; /* the prompt is the text and then its beginning up to here, or nothing more */
    float temp;
} task;

static void die(const nib_error *err) {
    fprintf(stderr, "bench_draft: %s\n", err->message);
    exit(1);
}

static void make_prompt(const nib_tokenizer *tok, const task *t, nib_token_list *ids) {
    nib_error err;
    ids->n = 0;
    if (nib_tokenize(tok, text, sizeof text - 1, NIB_ADD_SPECIAL, ids, &err) != NIB_OK) die(&err);
    if (!t->from) return;
    if (nib_tokenize(tok, "\n\n", 2, 0, ids, &err) != NIB_OK) die(&err);
    if (nib_tokenize(tok, text, (size_t)(strstr(text, t->from) - text), 0, ids, &err) != NIB_OK) die(&err);
}

/* Tokens a second behind the first one; *hash of the ids. */
static double ask(nib_engine *engine, const nib_token_list *ids, const task *t, uint32_t seed, uint64_t *hash, nib_usage *usage) {
    nib_error err;
    nib_stream *stream;
    nib_stream_event event;
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    nib_request r = NIB_REQUEST_INIT;
    sampling.temp = t->temp;
    sampling.seed = seed;
    r.prompt = ids->ids, r.n_prompt = ids->n, r.max_tokens = N_ANSWER, r.sampling = &sampling, r.ignore_eos = true;
    if (nib_engine_submit(&stream, engine, &r, &err) != NIB_OK) die(&err);
    *hash = 0;
    while (nib_stream_next(stream, -1, &event) && event.kind == NIB_STREAM_TOKEN) *hash = *hash * 31 + (uint64_t)event.id;
    nib_stream_free(stream);
    *usage = event.usage;
    return (event.usage.n_generated - 1) / (1e-3 * (event.usage.total_ms - event.usage.ttft_ms));
}

static void run(nib_engine *const *engines, const nib_tokenizer *tok, const task *t, uint32_t rounds) {
    double speed[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
    uint64_t hash[2], n_drafted = 0, n_accepted = 0;
    nib_token_list ids = {0};
    nib_usage usage;
    make_prompt(tok, t, &ids);
    for (int k = 0; k < 2; k++) ask(engines[k], &ids, t, 1, &hash[k], &usage); /* from here on the prompt is known */
    for (uint32_t i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            int which = (int)(i + (uint32_t)k) % 2;
            speed[which][i] = ask(engines[which], &ids, t, i, &hash[which], &usage);
            n_drafted += usage.n_drafted, n_accepted += usage.n_accepted;
        }
        if (hash[0] != hash[1]) {
            fprintf(stderr, "bench_draft: the answers differ\n");
            exit(1);
        }
        ratio[i] = speed[1][i] / speed[0][i];
    }
    printf("%-16s %7.1f tok/s without, %7.1f with: %5.2fx  (%.2f of %u guesses were right, %.1f a token)\n", t->name,
           median(speed[0], rounds), median(speed[1], rounds), median(ratio, rounds),
           n_drafted ? (double)n_accepted / (double)n_drafted : 0, (unsigned)n_drafted,
           (double)n_drafted / (N_ANSWER * (double)rounds));
    fflush(stdout);
    nib_token_list_free(&ids);
}

int main(int argc, char **argv) {
    static const task tasks[] = {{"copy", "Nobody", 0}, {"copy, sampled", "Nobody", 0.6f},
                                 {"prose", NULL, 0}, {"prose, sampled", NULL, 0.8f}};
    nib_error err;
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_engine *engines[2];
    nib_engine_config config = NIB_ENGINE_CONFIG_INIT;
    uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 7;
    config.context.n_ctx = 4096;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_draft MODEL [rounds]\n");
        return 1;
    }
    if (nib_gguf_open(&file, argv[1], NULL, &err) != NIB_OK || nib_tokenizer_new(&tok, file, NULL, &err) != NIB_OK ||
        nib_model_open(&model, file, NULL, &err) != NIB_OK)
        die(&err);
    for (int k = 0; k < 2; k++) {
        config.max_draft = k ? 8 : 0;
        if (nib_engine_new(&engines[k], model, tok, &config, &err) != NIB_OK) die(&err);
    }
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) run(engines, tok, &tasks[i], rounds);
    for (int k = 0; k < 2; k++) nib_engine_free(engines[k]);
    nib_model_close(model);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
