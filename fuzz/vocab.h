/* fuzz/vocab.h - tokenizers for the fuzzers: keys in, nib_tokenizer out, by way of one temporary file that is written
 * again and again. */
#ifndef NIB_FUZZ_VOCAB_H
#define NIB_FUZZ_VOCAB_H

#include "gguf/write.h"
#include "nib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void check(bool holds) {
    if (!holds) abort();
}

/* Writes the file and frees the writer. NULL when nib refuses it, which must come with a message. */
static inline nib_tokenizer *vocab_tokenizer(nib_gguf_writer *w) {
    static char path[] = "/tmp/nib-fuzz-XXXXXX";
    static int fd = -1;
    nib_buf bytes = {0};
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_error err = {.code = NIB_OK};
    if (fd < 0) check((fd = mkstemp(path)) >= 0);
    check(nib_gguf_write_bytes(w, &bytes, &err) == NIB_OK);
    check(ftruncate(fd, 0) == 0 && pwrite(fd, bytes.ptr, bytes.len, 0) == (ssize_t)bytes.len);
    nib_buf_free(&bytes);
    nib_gguf_write_free(w);
    nib_status status = nib_gguf_open(&file, path, NULL, &err);
    if (status == NIB_OK) {
        status = nib_tokenizer_new(&tok, file, NULL, &err);
        nib_gguf_close(file);
    }
    if (status == NIB_OK) return tok;
    check(err.code == status && err.message[0]);
    return NULL;
}

/* Tokens and their types, as the keys want them. */
typedef struct vocab_list {
    nib_str text[1024];
    int32_t type[1024];
    size_t n;
    char memory[8192]; /* of texts made here */
    size_t used;
} vocab_list;

static inline void vocab_add(vocab_list *list, const char *text, size_t len, int32_t type) {
    if (list->n == sizeof list->text / sizeof list->text[0]) return;
    list->text[list->n] = (nib_str){text, len};
    list->type[list->n++] = type;
}

/* A token for each byte: characters of GPT-2's alphabet, or "<0x00>" and on. */
static inline void vocab_add_bytes(vocab_list *list, bool as_alphabet) {
    unsigned other = 256;
    for (unsigned b = 0; b < 256 && list->used + 8 < sizeof list->memory; b++) {
        char *p = list->memory + list->used;
        bool prints = (b > 32 && b < 127) || (b > 160 && b != 173);
        unsigned c = prints ? b : other;
        int len = as_alphabet && c < 128 ? snprintf(p, 8, "%c", (char)c)
                  : as_alphabet          ? snprintf(p, 8, "%c%c", (char)(0xC0 | c >> 6), (char)(0x80 | (c & 63)))
                                         : snprintf(p, 8, "<0x%02X>", b);
        other += !prints;
        vocab_add(list, p, (size_t)len, as_alphabet ? 1 : 6);
        list->used += (size_t)len;
    }
}

static inline void vocab_write(nib_gguf_writer *w, const vocab_list *list) {
    static float scores[1024];
    for (size_t i = 0; i < list->n; i++) scores[i] = -(float)(i % 61);
    nib_gguf_write_strings(w, "tokenizer.ggml.tokens", list->text, list->n);
    nib_gguf_write_array(w, "tokenizer.ggml.token_type", NIB_GGUF_I32, list->n,
                         (nib_str){(const char *)list->type, list->n * sizeof list->type[0]});
    nib_gguf_write_array(w, "tokenizer.ggml.scores", NIB_GGUF_F32, list->n,
                         (nib_str){(const char *)scores, list->n * sizeof scores[0]});
}

#endif
