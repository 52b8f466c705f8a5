/* bench/bench_chat.c - milliseconds to render a conversation of 100 messages, system message and question included, and to
 * tokenize the prompt; and to find out what a template can do, once for each model.
 *
 * usage: bench_chat MODEL [TEMPLATE]...   TEMPLATE: a file, or the name of a built-in template; none: that of the model.
 * Each figure is the median of 200 rounds. The bound that counts: 2 ms for a render. */
#define _POSIX_C_SOURCE 200809L
#include "base/buf.h"
#include "nib.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_MESSAGES = 100, N_ROUNDS = 200 };

static void must(nib_status status, const nib_error *err) {
    if (status == NIB_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void write_request(nib_buf *out) {
    nib_buf_str(out, "{\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"}");
    for (int i = 1; i < N_MESSAGES; i++) {
        nib_buf_printf(out, ",{\"role\":\"%s\",\"content\":\"", i % 2 ? "user" : "assistant");
        for (int k = 0; k < 5 + i % 7; k++) nib_buf_printf(out, "Sentence %d of message %d says little, but it takes its time.\\n", k, i);
        nib_buf_str(out, "\"}");
    }
    nib_buf_str(out, "]}");
}

static void bench(const nib_gguf *file, const nib_tokenizer *tok, const nib_chat_config *config, const nib_buf *request) {
    static double render[N_ROUNDS], tokenize[N_ROUNDS];
    nib_error err;
    nib_chat *chat;
    nib_chat_prompt prompt;
    nib_token_list ids = {0};
    size_t n_bytes = 0;
    double start = now_ms();
    must(nib_chat_new(&chat, file, tok, config, &err), &err);
    double opening = now_ms() - start;
    for (int i = 0; i < N_ROUNDS; i++) {
        start = now_ms();
        must(nib_chat_render(chat, request->ptr, request->len, NULL, &prompt, &err), &err);
        render[i] = now_ms() - start;
        ids.n = 0;
        must(nib_tokenize_spans(tok, &prompt.rendered, NIB_ADD_SPECIAL, &ids, &err), &err);
        tokenize[i] = now_ms() - start - render[i];
        n_bytes = prompt.rendered.len;
        nib_chat_prompt_free(&prompt);
    }
    printf("%-24s open %5.2f  render %5.3f  tokenize %6.3f ms, %zu bytes, %zu tokens\n", nib_chat_source(chat), opening,
           median(render, N_ROUNDS), median(tokenize, N_ROUNDS), n_bytes, ids.n);
    nib_token_list_free(&ids);
    nib_chat_free(chat);
}

static bool read_file(const char *path, nib_buf *out) {
    char block[4096];
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) nib_buf_append(out, block, n);
    fclose(f);
    return true;
}

int main(int argc, char **argv) {
    nib_gguf *file = NULL;
    nib_tokenizer *tok = NULL;
    nib_error err;
    nib_buf request = {0}, text = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_chat MODEL [TEMPLATE]...\n");
        return 1;
    }
    must(nib_gguf_open(&file, argv[1], NULL, &err), &err);
    must(nib_tokenizer_new(&tok, file, NULL, &err), &err);
    write_request(&request);
    if (argc == 2) bench(file, tok, NULL, &request);
    for (int i = 2; i < argc; i++) {
        nib_chat_config config = NIB_CHAT_CONFIG_INIT;
        text.len = 0;
        if (read_file(argv[i], &text)) config.text = text.ptr, config.text_len = text.len;
        else config.builtin = argv[i];
        bench(file, tok, &config, &request);
    }
    nib_buf_free(&request);
    nib_buf_free(&text);
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return 0;
}
