/* tests/support/tokenizer.h - tokenizers for tests: keys or a few tokens in, nib_tokenizer out. */
#ifndef NIB_TESTS_SUPPORT_TOKENIZER_H
#define NIB_TESTS_SUPPORT_TOKENIZER_H

#include "gguf/write.h"
#include "nib.h"

/* A vocabulary as a test writes it down. */
typedef struct tokenizer_spec {
    const char *model;         /* tokenizer.ggml.model */
    const char *pre;           /* NULL: no key */
    const char *const *tokens; /* up to NULL */
    const char *types; /* a letter for each: n(ormal) ?(unknown) c(ontrol) u(ser) x(unused) b(yte); NULL: no key */
    const float *scores;       /* NULL: no key */
    const char *const *merges; /* up to NULL; NULL: no key */
    void (*more)(nib_gguf_writer *w); /* writes further keys; NULL: none */
} tokenizer_spec;

/* A file with the keys of the writer, which is freed, and its tokenizer. pre: as in nib_tokenizer_config. */
nib_status tokenizer_from(nib_gguf_writer *w, const char *pre, nib_tokenizer **out, nib_error *err);
nib_status tokenizer_make(const tokenizer_spec *spec, nib_tokenizer **out, nib_error *err);
/* The same; a failure ends the test. */
nib_tokenizer *tokenizer_must(const tokenizer_spec *spec);
/* The byte-complete vocabularies of support/vocab.h, "bpe" and "spm"; pre: NULL for "gpt-2". */
nib_tokenizer *tokenizer_small(const char *kind, const char *pre);

/* Fails the test unless the text gives the tokens, written as texts of the vocabulary with '|' between. */
void tokenizer_expect(const nib_tokenizer *tok, const char *text, unsigned flags, const char *tokens);
/* The text of ids; free(). */
char *tokenizer_text(const nib_tokenizer *tok, const nib_token_list *ids, unsigned flags, size_t *len);

/* Random text of about n bytes: words, digits, punctuation, spaces and characters of 1 to 4 bytes; free(). */
char *tokenizer_random_text(size_t n, uint64_t *state, size_t *len);

#endif
