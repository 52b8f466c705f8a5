/* examples/chat.c - a conversation against nib.h: MODEL in; lines of stdin are answered, and each turn computes only its
 * new tokens.
 *
 *     cc chat.c $(pkg-config --cflags --libs nib) -o chat
 *     ./chat models/SmolLM2-135M-Instruct.Q4_1.gguf
 *
 * messages (JSON) -> nib_chat_render -> text that knows what is trusted -> ids -> nib_decode -> id -> text -> parser ->
 * the next message. Every call may fail and says why in err; the macro keeps the loop readable. */
#include <nib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != NIB_OK) {                                                                                        \
            fprintf(stderr, "chat: %s\n", err.message);                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static nib_error err;

typedef struct text {
    char *ptr;
    size_t len;
} text;

static void append(text *t, const char *bytes, size_t n) {
    t->ptr = realloc(t->ptr, t->len + n + 1);
    if (!t->ptr) exit(1);
    memcpy(t->ptr + t->len, bytes, n);
    t->len += n;
    t->ptr[t->len] = 0;
}

/* ,{"role":…,"content":…} */
static void add_message(text *messages, const char *role, const char *content, size_t n) {
    char escape[8];
    append(messages, messages->len ? ",{\"role\":\"" : "{\"role\":\"", messages->len ? 10 : 9);
    append(messages, role, strlen(role));
    append(messages, "\",\"content\":\"", 13);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)content[i];
        if (c < ' ' || c == '"' || c == '\\') append(messages, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
        else append(messages, content + i, 1);
    }
    append(messages, "\"}", 2);
}

/* Writes what the model says, and keeps it. */
static bool on_event(void *user, const nib_chat_event *event) {
    if (event->kind != NIB_CHAT_CONTENT) return true;
    append(user, event->text.ptr, event->text.len);
    fwrite(event->text.ptr, 1, event->text.len, stdout);
    fflush(stdout);
    return true;
}

typedef struct engine {
    nib_tokenizer *tok;
    nib_context *ctx;
    nib_batch *batch;
    nib_sampler *sampler;
    nib_chat *chat;
    nib_token *held; /* the ids in sequence 0, with room for all that the context holds */
} engine;

/* The ids of the prompt go into the batch, but for those that the sequence holds already. */
static void begin(engine *e, const nib_token_list *prompt) {
    size_t same = 0, n_held = nib_seq_length(e->ctx, 0);
    if (prompt->n > nib_context_n_ctx(e->ctx)) {
        fprintf(stderr, "chat: the conversation is too long\n");
        exit(1);
    }
    while (same < n_held && same + 1 < prompt->n && e->held[same] == prompt->ids[same]) same++;
    memcpy(e->held, prompt->ids, prompt->n * sizeof *e->held);
    TRY(nib_seq_truncate(e->ctx, 0, (uint32_t)same, &err));
    nib_batch_clear(e->batch);
    nib_sampler_reset(e->sampler);
    for (size_t i = 0; i < prompt->n; i++) {
        TRY(nib_sampler_accept(e->sampler, prompt->ids[i], &err));
        if (i >= same) TRY(nib_batch_add(e->batch, prompt->ids[i], NIB_POS_NEXT, 0, i + 1 == prompt->n, &err));
    }
}

static void answer(engine *e, const text *messages, text *reply) {
    nib_chat_prompt prompt;
    nib_token_list ids = {0};
    text request = {0};
    nib_detok *detok;
    nib_chat_parser *parser;
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    append(&request, "{\"messages\":[", 13);
    append(&request, messages->ptr, messages->len);
    append(&request, "]}", 2);
    TRY(nib_chat_render(e->chat, request.ptr, request.len, NULL, &prompt, &err));
    TRY(nib_tokenize_spans(e->tok, &prompt.rendered, NIB_ADD_SPECIAL, &ids, &err));
    config.format = nib_chat_format(e->chat);
    config.starts_thinking = prompt.starts_thinking;
    config.event = on_event;
    config.user = reply;
    TRY(nib_chat_parser_new(&parser, &config, &err));
    TRY(nib_detok_new(&detok, e->tok, 0, true, &err));
    begin(e, &ids);
    for (;;) {
        nib_token id;
        nib_str piece;
        TRY(nib_decode(e->ctx, e->batch, &err));
        TRY(nib_sampler_sample(e->sampler, nib_logits(e->ctx, 0), NULL, nib_seq_length(e->ctx, 0), &id, &err));
        if (nib_chat_ends_turn(e->chat, id)) break;
        TRY(nib_sampler_accept(e->sampler, id, &err));
        TRY(nib_detok_push(detok, id, &piece, &err));
        TRY(nib_chat_parser_push(parser, piece, &err));
        if (nib_seq_length(e->ctx, 0) == nib_context_n_ctx(e->ctx)) break;
        e->held[nib_seq_length(e->ctx, 0)] = id;
        nib_batch_clear(e->batch);
        TRY(nib_batch_add(e->batch, id, NIB_POS_NEXT, 0, true, &err));
    }
    TRY(nib_chat_parser_push(parser, nib_detok_finish(detok), &err));
    TRY(nib_chat_parser_finish(parser, &err));
    nib_token_list_free(&ids);
    nib_detok_free(detok);
    nib_chat_parser_free(parser);
    nib_chat_prompt_free(&prompt);
    free(request.ptr);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: chat MODEL.gguf\n");
        return 2;
    }
    engine e = {0};
    nib_gguf *file;
    nib_model *model;
    text messages = {0}, reply = {0};
    char line[4096];
    TRY(nib_gguf_open(&file, argv[1], NULL, &err));
    TRY(nib_tokenizer_new(&e.tok, file, NULL, &err));
    TRY(nib_chat_new(&e.chat, file, e.tok, NULL, &err));
    TRY(nib_model_open(&model, file, NULL, &err));
    nib_context_config config = NIB_CONTEXT_CONFIG_INIT;
    config.n_ctx = config.n_batch = 2048;
    TRY(nib_context_new(&e.ctx, model, &config, &err));
    TRY(nib_batch_new(&e.batch, nib_context_n_batch(e.ctx), &err));
    TRY(nib_sampler_new(&e.sampler, NULL, nib_model_n_vocab(model), &err));
    e.held = calloc(nib_context_n_ctx(e.ctx), sizeof *e.held);
    if (!e.held) return 1;

    while (fgets(line, sizeof line, stdin)) {
        add_message(&messages, "user", line, strcspn(line, "\n"));
        reply.len = 0;
        answer(&e, &messages, &reply);
        add_message(&messages, "assistant", reply.ptr ? reply.ptr : "", reply.len);
        printf("\n");
    }

    free(messages.ptr);
    free(reply.ptr);
    free(e.held);
    nib_sampler_free(e.sampler);
    nib_batch_free(e.batch);
    nib_context_free(e.ctx);
    nib_model_close(model);
    nib_chat_free(e.chat);
    nib_tokenizer_free(e.tok);
    nib_gguf_close(file);
    return 0;
}
