/* tests/support/answers_main.c - answers_main MODEL.gguf N MAX_TOKENS: JSON schemas, one a line, from standard input ->
 * N answers of a model to each, at temperature 1.2, as lines of JSON: {"schema": from 0, "text", "finish"}. Many at
 * once, as one by one would take hours. */
#include "nib.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEQ = 40, AT_ONCE = 4, MAX_LINE = 1 << 16 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != NIB_OK) {                                                                                        \
            fprintf(stderr, "answers_main: %s\n", err.message);                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static nib_error err;

typedef struct question {
    nib_grammar *grammar;
    nib_stream *stream;
} question;

typedef struct asker {
    nib_engine *engine;
    nib_grammar_vocab *vocab;
    nib_token_list prompt;
    uint32_t n_answers, max_tokens;
} asker;

static question ask(const asker *a, const char *schema, uint32_t seed) {
    question q;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_sampler_params sampling = NIB_SAMPLER_PARAMS_INIT;
    nib_request request = NIB_REQUEST_INIT;
    config.syntax = NIB_SYNTAX_JSON_SCHEMA;
    config.space = (nib_json_space)(seed % 3);
    TRY(nib_grammar_new(&q.grammar, schema, strlen(schema), a->vocab, &config, &err));
    sampling.temp = 1.2f;
    sampling.seed = seed * 1000;
    request.prompt = a->prompt.ids;
    request.n_prompt = a->prompt.n;
    request.sampling = &sampling;
    request.max_tokens = a->max_tokens;
    request.n_choices = a->n_answers;
    request.grammar = q.grammar;
    TRY(nib_engine_submit(&q.stream, a->engine, &request, &err));
    return q;
}

static void print_answer(size_t number, const char *text, size_t len, const nib_stream_event *end) {
    json_t *line = json_pack("{s:I, s:s%, s:s}", "schema", (json_int_t)number, "text", text, len, "finish",
                             end->finish == NIB_FINISH_STOP     ? "stop"
                             : end->finish == NIB_FINISH_LENGTH ? "length"
                             : end->error                       ? end->error->message
                                                                : "error");
    char *dump = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (!dump) exit(1);
    puts(dump);
    free(dump);
    json_decref(line);
}

static void listen(const asker *a, question *q, size_t number) {
    struct {
        char *text;
        size_t len;
    } answers[N_SEQ] = {0};
    nib_stream_event event;
    while (nib_stream_next(q->stream, -1, &event)) {
        if (event.choice >= a->n_answers) continue;
        char **text = &answers[event.choice].text;
        size_t *len = &answers[event.choice].len;
        *text = realloc(*text, *len + event.text.len + 1);
        if (!*text) exit(1);
        memcpy(*text + *len, event.text.ptr, event.text.len);
        *len += event.text.len;
        if (event.kind == NIB_STREAM_END) print_answer(number, *text, *len, &event);
    }
    for (uint32_t i = 0; i < a->n_answers; i++) free(answers[i].text);
    nib_stream_free(q->stream);
    nib_grammar_free(q->grammar);
}

int main(int argc, char **argv) {
    static char line[MAX_LINE];
    static const char prompt[] = "JSON: ";
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_engine_config config = NIB_ENGINE_CONFIG_INIT;
    asker a = {0};
    question open[AT_ONCE];
    size_t n_asked = 0, n_heard = 0;
    if (argc != 4 || (a.n_answers = (uint32_t)atoi(argv[2])) - 1 >= N_SEQ ||
        (a.max_tokens = (uint32_t)atoi(argv[3])) < 1) {
        fprintf(stderr, "usage: answers_main MODEL.gguf N MAX_TOKENS < schemas, N at most %d\n", N_SEQ);
        return 2;
    }
    config.context.n_threads = 1; /* run several side by side */
    config.context.n_seq = N_SEQ;
    config.context.n_ctx = N_SEQ * (a.max_tokens + 64);
    TRY(nib_gguf_open(&file, argv[1], NULL, &err));
    TRY(nib_tokenizer_new(&tok, file, NULL, &err));
    TRY(nib_model_open(&model, file, NULL, &err));
    TRY(nib_engine_new(&a.engine, model, tok, &config, &err));
    TRY(nib_grammar_vocab_new(&a.vocab, tok, &err));
    TRY(nib_tokenize(tok, prompt, strlen(prompt), NIB_ADD_SPECIAL, &a.prompt, &err));
    while (fgets(line, sizeof line, stdin)) {
        if (n_asked - n_heard == AT_ONCE) listen(&a, &open[n_heard % AT_ONCE], n_heard), n_heard++;
        open[n_asked % AT_ONCE] = ask(&a, line, (uint32_t)n_asked);
        n_asked++;
    }
    for (; n_heard < n_asked; n_heard++) listen(&a, &open[n_heard % AT_ONCE], n_heard);
    nib_token_list_free(&a.prompt);
    nib_grammar_vocab_free(a.vocab);
    nib_engine_free(a.engine);
    nib_model_close(model);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
