/* tests/test_engine_breakers.c - the breakers made of texts are all the ways a vocabulary can write them, no others. */
#include "support/files.h"
#include "support/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nib_tokenizer *open_vocab(const char *kind) {
    nib_gguf_writer w = {0};
    nib_buf bytes = {0};
    nib_error err = {0};
    nib_gguf *file = NULL;
    nib_tokenizer *tok = NULL;
    char *folder = files_folder(), *path = files_path(folder, "vocab.gguf");
    nib_gguf_write_str(&w, "general.architecture", "llama");
    if (vocab_write(&w, kind, VOCAB_MIN + 40, &err) != NIB_OK || nib_gguf_write_bytes(&w, &bytes, &err) != NIB_OK)
        fail_msg("%s", err.message);
    files_write(path, bytes.ptr, bytes.len);
    if (nib_gguf_open(&file, path, NULL, &err) != NIB_OK || nib_tokenizer_new(&tok, file, NULL, &err) != NIB_OK)
        fail_msg("%s", err.message);
    nib_gguf_close(file);
    nib_gguf_write_free(&w);
    nib_buf_free(&bytes);
    free(path);
    files_remove(folder);
    return tok;
}

/* What a token stands for in the middle of a text, found another way than engine/breakers.c does. */
static void append_token(const nib_tokenizer *tok, nib_token id, nib_buf *out) {
    nib_str text = nib_tokenizer_text(tok, id);
    if (strcmp(nib_tokenizer_kind(tok), "spm") == 0) {
        if (nib_tokenizer_attr(tok, id) & NIB_TOKEN_BYTE) {
            nib_buf_char(out, (char)strtol(text.ptr + 3, NULL, 16));
            return;
        }
        for (size_t i = 0; i < text.len;) {
            bool is_space = text.len - i >= 3 && memcmp(text.ptr + i, "\xe2\x96\x81", 3) == 0;
            nib_buf_char(out, is_space ? ' ' : text.ptr[i]);
            i += is_space ? 3 : 1;
        }
        return;
    }
    char *bytes;
    size_t len;
    assert_int_equal(nib_detokenize(tok, &id, 1, NIB_UNPARSE_SPECIAL, &bytes, &len, NULL), NIB_OK);
    nib_buf_append(out, bytes, len);
    free(bytes);
}

static bool contains(const nib_buf *buf, const char *text) {
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= buf->len; i++)
        if (memcmp(buf->ptr + i, text, len) == 0) return true;
    return false;
}

/* True when some breaker of the list begins with id and reads id's bytes + rest. */
static bool has_breaker(const nib_tokenizer *tok, const nib_token *ids, const uint32_t *lengths, uint32_t n,
                        nib_token id, const char *rest) {
    nib_buf wanted = {0};
    bool found = false;
    append_token(tok, id, &wanted);
    nib_buf_append(&wanted, rest, strlen(rest));
    for (uint32_t i = 0; i < n; ids += lengths[i++]) {
        if (ids[0] != id) continue;
        nib_buf text = {0};
        for (uint32_t j = 0; j < lengths[i]; j++) append_token(tok, ids[j], &text);
        found |= text.len == wanted.len && memcmp(text.ptr, wanted.ptr, text.len) == 0;
        nib_buf_free(&text);
    }
    nib_buf_free(&wanted);
    return found;
}

static void check_text(const nib_tokenizer *tok, const char *text) {
    nib_token *ids;
    uint32_t *lengths, n, n_expected = 0;
    assert_int_equal(nib_sampler_breakers(tok, &text, 1, &ids, &lengths, &n, NULL), NIB_OK);
    for (nib_token id = 0; id < (nib_token)nib_tokenizer_n_tokens(tok); id++) {
        nib_buf word = {0};
        append_token(tok, id, &word);
        if (contains(&word, text)) {
            n_expected++;
            assert_true(has_breaker(tok, ids, lengths, n, id, ""));
        } else {
            for (size_t head = 1; head < strlen(text) && head <= word.len; head++) {
                if (memcmp(word.ptr + word.len - head, text, head) != 0) continue;
                n_expected++;
                if (!has_breaker(tok, ids, lengths, n, id, text + head)) fail_msg("'%s': token %d", text, id);
            }
        }
        nib_buf_free(&word);
    }
    assert_int_equal(n, n_expected);
    free(ids);
    free(lengths);
}

static void test_every_way(void **state) {
    (void)state;
    static const char *const kinds[] = {"bpe", "spm"};
    static const char *const texts[] = {"\n",     ":",          ".",    "the",        " the", "he",
                                        "and of", "nn", "<|im_end|>", "  "};
    for (size_t k = 0; k < 2; k++) {
        nib_tokenizer *tok = open_vocab(kinds[k]);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_text(tok, texts[i]);
        nib_tokenizer_free(tok);
    }
}

static void test_many_and_none(void **state) {
    (void)state;
    nib_tokenizer *tok = open_vocab("bpe");
    static const char *const texts[] = {"\n", ":", "\"", "*"};
    nib_token *ids;
    uint32_t *lengths, n;
    assert_int_equal(nib_sampler_breakers(tok, texts, 4, &ids, &lengths, &n, NULL), NIB_OK);
    assert_int_equal(n, 4); /* each is one byte, in no other token */
    nib_sampler_params p = NIB_SAMPLER_PARAMS_INIT;
    p.dry_multiplier = 1, p.dry_breakers = ids, p.dry_breaker_lengths = lengths, p.n_dry_breakers = n;
    nib_sampler *s;
    assert_int_equal(nib_sampler_new(&s, &p, nib_tokenizer_n_tokens(tok), NULL), NIB_OK);
    nib_sampler_free(s);
    free(ids);
    free(lengths);
    assert_int_equal(nib_sampler_breakers(tok, NULL, 0, &ids, &lengths, &n, NULL), NIB_OK);
    assert_int_equal(n, 0);
    free(ids);
    free(lengths);
    nib_tokenizer_free(tok);
}

static void test_refusals(void **state) {
    (void)state;
    nib_tokenizer *tok = open_vocab("bpe");
    char too_long[300];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    const char *empty[] = {"a", ""}, *longer[] = {too_long};
    nib_token *ids;
    uint32_t *lengths, n;
    nib_error err;
    assert_int_equal(nib_sampler_breakers(tok, empty, 2, &ids, &lengths, &n, &err), NIB_E_ARG);
    assert_string_equal(err.message, "breaker 1 has 0 bytes, expected 1 to 255");
    assert_true(!ids && !lengths && !n);
    assert_int_equal(nib_sampler_breakers(tok, longer, 1, &ids, &lengths, &n, &err), NIB_E_ARG);
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_many_and_none),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
