/* examples/parallel.c - many requests at once against nib.h: how much faster N answers come together than one by one.
 *
 *     cc parallel.c $(pkg-config --cflags --libs nib) -o parallel
 *     ./parallel models/SmolLM2-135M-Instruct.Q4_1.gguf
 *
 * A stream for each request; the engine puts their tokens into one batch. The answers are the same in both ways. */
#include <nib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != NIB_OK) {                                                                                        \
            fprintf(stderr, "parallel: %s\n", err.message);                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { N_MAX = 16, N_TOKENS = 48 };

static nib_error err;

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static nib_stream *ask(nib_engine *engine, const nib_tokenizer *tok, int i) {
    char text[100];
    nib_stream *stream;
    nib_token_list ids = {0};
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    nib_request request = NIB_REQUEST_INIT;
    snprintf(text, sizeof text, "%d things that everybody should know about the sea:", i + 2);
    TRY(nib_tokenize(tok, text, strlen(text), NIB_ADD_SPECIAL, &ids, &err));
    sampling.seed = (uint32_t)i;
    request.prompt = ids.ids;
    request.n_prompt = ids.n;
    request.sampling = &sampling;
    request.max_tokens = N_TOKENS;
    request.hash_logits = true;
    TRY(nib_engine_submit(&stream, engine, &request, &err));
    nib_token_list_free(&ids);
    return stream;
}

/* Tokens of an answer; *hash: of all its logits. */
static unsigned listen(nib_stream *stream, uint64_t *hash) {
    nib_stream_event event;
    unsigned n = 0;
    for (*hash = 0; nib_stream_next(stream, -1, &event) && event.kind == NIB_STREAM_TOKEN; n++) *hash = *hash * 31 + event.logits_hash;
    nib_stream_free(stream);
    return n;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: parallel MODEL.gguf\n");
        return 2;
    }
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_engine *engine;
    nib_engine_config config = NIB_ENGINE_CONFIG_INIT;
    config.context.n_ctx = 4096;
    config.no_prefix_cache = true; /* every run computes all */
    TRY(nib_gguf_open(&file, argv[1], NULL, &err));
    TRY(nib_tokenizer_new(&tok, file, NULL, &err));
    TRY(nib_model_open(&model, file, NULL, &err));
    TRY(nib_engine_new(&engine, model, tok, &config, &err));
    printf("requests   one by one     together\n");
    for (int n = 1; n <= N_MAX; n *= 2) {
        nib_stream *streams[N_MAX];
        uint64_t alone[N_MAX], together[N_MAX];
        unsigned n_alone = 0, n_together = 0;
        double start = now();
        for (int i = 0; i < n; i++) n_alone += listen(ask(engine, tok, i), &alone[i]);
        double alone_s = now() - start;
        start = now();
        for (int i = 0; i < n; i++) streams[i] = ask(engine, tok, i);
        for (int i = 0; i < n; i++) n_together += listen(streams[i], &together[i]);
        double together_s = now() - start;
        bool is_same = n_alone == n_together && memcmp(alone, together, sizeof *alone * (size_t)n) == 0;
        printf("%8d %8.1f tok/s %8.1f tok/s   %s\n", n, n_alone / alone_s, n_together / together_s,
               is_same ? "the same bits" : "DIFFERENT BITS");
        if (!is_same) return 1;
    }
    nib_engine_free(engine);
    nib_model_close(model);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
