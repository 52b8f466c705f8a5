/* tests/support/tokenizer.c - tokenizers for tests, by way of a file as everybody's. */
#include "support/tokenizer.h"

#include "support/blocks.h"
#include "support/files.h"
#include "support/vocab.h"
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

nib_status tokenizer_from(nib_gguf_writer *w, const char *pre, nib_tokenizer **out, nib_error *err) {
    nib_buf bytes = {0};
    nib_gguf *file = NULL;
    nib_tokenizer_config config = NIB_TOKENIZER_CONFIG_INIT;
    config.pre = pre;
    *out = NULL;
    nib_status status = nib_gguf_write_bytes(w, &bytes, err);
    char *folder = files_folder(), *path = files_path(folder, "vocab.gguf");
    if (status == NIB_OK) files_write(path, bytes.ptr, bytes.len);
    if (status == NIB_OK) status = nib_gguf_open(&file, path, NULL, err);
    if (status == NIB_OK) status = nib_tokenizer_new(out, file, &config, err);
    nib_gguf_close(file);
    files_remove(folder);
    free(path);
    nib_buf_free(&bytes);
    nib_gguf_write_free(w);
    return status;
}

static size_t count(const char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static void write_strings(nib_gguf_writer *w, const char *key, const char *const *list) {
    size_t n = count(list);
    nib_str *strings = calloc(n + 1, sizeof *strings);
    assert_non_null(strings);
    for (size_t i = 0; i < n; i++) strings[i] = (nib_str){list[i], strlen(list[i])};
    nib_gguf_write_strings(w, key, strings, n);
    free(strings);
}

nib_status tokenizer_make(const tokenizer_spec *spec, nib_tokenizer **out, nib_error *err) {
    nib_gguf_writer w = {0};
    size_t n = count(spec->tokens);
    nib_gguf_write_str(&w, "general.architecture", "llama");
    nib_gguf_write_str(&w, "tokenizer.ggml.model", spec->model);
    if (spec->pre) nib_gguf_write_str(&w, "tokenizer.ggml.pre", spec->pre);
    write_strings(&w, "tokenizer.ggml.tokens", spec->tokens);
    if (spec->merges) write_strings(&w, "tokenizer.ggml.merges", spec->merges);
    int32_t *types = calloc(n + 1, sizeof *types);
    assert_non_null(types);
    for (size_t i = 0; spec->types && i < n; i++) types[i] = (int32_t)(strchr(" n?cuxb", spec->types[i]) - " n?cuxb");
    nib_str raw_types = {(const char *)types, n * sizeof *types};
    if (spec->types) nib_gguf_write_array(&w, "tokenizer.ggml.token_type", NIB_GGUF_I32, n, raw_types);
    nib_str raw_scores = {(const char *)spec->scores, n * sizeof *spec->scores};
    if (spec->scores) nib_gguf_write_array(&w, "tokenizer.ggml.scores", NIB_GGUF_F32, n, raw_scores);
    if (spec->more) spec->more(&w);
    nib_status status = tokenizer_from(&w, NULL, out, err);
    free(types);
    return status;
}

nib_tokenizer *tokenizer_must(const tokenizer_spec *spec) {
    nib_tokenizer *tok = NULL;
    nib_error err;
    if (tokenizer_make(spec, &tok, &err) != NIB_OK) fail_msg("%s", err.message);
    return tok;
}

nib_tokenizer *tokenizer_small(const char *kind, const char *pre) {
    nib_gguf_writer w = {0};
    nib_tokenizer *tok = NULL;
    nib_error err;
    nib_gguf_write_str(&w, "general.architecture", "llama");
    nib_status status = vocab_write(&w, kind, 320, &err);
    if (status == NIB_OK) status = tokenizer_from(&w, pre, &tok, &err);
    if (status != NIB_OK) fail_msg("%s", err.message);
    return tok;
}

void tokenizer_expect(const nib_tokenizer *tok, const char *text, unsigned flags, const char *tokens) {
    nib_token_list ids = {0};
    nib_buf found = {0};
    nib_error err;
    if (nib_tokenize(tok, text, strlen(text), flags, &ids, &err) != NIB_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < ids.n; i++) {
        nib_str token = nib_tokenizer_text(tok, ids.ids[i]);
        if (i) nib_buf_char(&found, '|');
        nib_buf_append(&found, token.ptr, token.len);
    }
    assert_string_equal(nib_buf_cstr(&found), tokens);
    nib_buf_free(&found);
    nib_token_list_free(&ids);
}

char *tokenizer_text(const nib_tokenizer *tok, const nib_token_list *ids, unsigned flags, size_t *len) {
    char *text;
    nib_error err;
    if (nib_detokenize(tok, ids->ids, ids->n, flags, &text, len, &err) != NIB_OK) fail_msg("%s", err.message);
    return text;
}

/* A character of a kind that comes up at random. */
static uint32_t random_char(uint64_t *state) {
    static const char ascii[] = "etaoinshrdlu ETAOIN 0123456789 .,;:!?'\"()[]{}<>|/\\-_=+*&^%$#@~`\t\n\r  ";
    static const uint32_t firsts[] = {0xA0,  0x300,  0x370,  0x400,  0x590,  0x900,
                                      0xE00, 0x2000, 0x3040, 0x4E00, 0xAC00, 0x1F600};
    uint64_t r = blocks_random(state);
    if (r % 4) return (uint32_t)ascii[(r >> 8) % (sizeof ascii - 1)];
    if (r % 64 == 0) return (uint32_t)((r >> 8) % 0xD800);
    return firsts[(r >> 8) % (sizeof firsts / sizeof firsts[0])] + (uint32_t)((r >> 16) % 96);
}

char *tokenizer_random_text(size_t n, uint64_t *state, size_t *len) {
    char *text = malloc(n + 64);
    assert_non_null(text);
    *len = 0;
    while (*len < n) {
        uint32_t c = random_char(state);
        size_t times = blocks_random(state) % 8 ? 1 : 1 + blocks_random(state) % 12;
        for (; times > 0 && *len < n; times--) *len += nib_text_utf8_put(c, text + *len);
    }
    return text;
}
