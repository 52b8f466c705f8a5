/* tests/test_engine_breakers.c - breakers of DRY: every way in which tokens can write them. */
#include "support/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Breakers as token texts: "a b|c" are two, the first of two tokens. */
static void expect(const nib_tokenizer *tok, const char *const *texts, size_t n_texts, const char *wanted) {
    nib_token *ids;
    uint32_t *lengths, n;
    nib_error err;
    nib_buf found = {0};
    if (nib_sampler_breakers(tok, texts, n_texts, &ids, &lengths, &n, &err) != NIB_OK) fail_msg("%s", err.message);
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < lengths[i]; k++) {
            nib_str text = nib_tokenizer_text(tok, ids[at++]);
            if (found.len) nib_buf_char(&found, k ? ' ' : '|');
            nib_buf_append(&found, text.ptr, text.len);
        }
    }
    assert_string_equal(nib_buf_cstr(&found), wanted);
    nib_buf_free(&found);
    free(ids);
    free(lengths);
}

static void test_spm(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", ":", "a:", ":\"", "x", "\"", "▁\"",
                                         "▁:", "xx:", "<::>", NULL};
    static const float scores[] = {0, 0, 0, -1, -2, -3, -4, -5, -6, -7, -8, 0};
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = "?ccnnnnnnnnc", .scores = scores};
    nib_tokenizer *tok = tokenizer_must(&s);
    static const char *const colon[] = {":"}, *const quoted[] = {"x:\""}, *const both[] = {"x", "\""};
    expect(tok, colon, 1, ":|a:|:\"|▁:|xx:|<::>"); /* each token that contains it */
    expect(tok, quoted, 1, "x :\"|xx: \"");        /* no space comes before the rest of a breaker */
    expect(tok, both, 2, "x|xx:|:\"|\"|▁\"");
    expect(tok, NULL, 0, "");
    nib_tokenizer_free(tok);
}

static void test_bpe(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    static const char *const newline[] = {"\n"}, *const word[] = {" the"};
    expect(tok, newline, 1, "Ċ");
    expect(tok, word, 1, "Ġ t he|Ġt he|Ġthe");
    nib_tokenizer_free(tok);
}

static void test_errors(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    const char *const bad[][2] = {{"a", ""}, {"a", text}};
    for (size_t i = 0; i < 2; i++) {
        nib_token *ids;
        uint32_t *lengths, n;
        nib_error err;
        assert_int_equal(nib_sampler_breakers(tok, bad[i], 2, &ids, &lengths, &n, &err), NIB_E_ARG);
        assert_non_null(strstr(err.message, "breaker 1 has"));
        assert_null(ids);
        assert_null(lengths);
        assert_int_equal(n, 0);
    }
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spm),
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
