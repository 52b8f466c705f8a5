/* tests/test_text_roles.c - tokens known by their text: roles, ends of a generation, white space that goes with them. */
#include "support/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const merges[] = {"a b", NULL};

static nib_tokenizer *make(const char *const *tokens, const char *types, void (*more)(nib_gguf_writer *)) {
    tokenizer_spec s = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens, .types = types, .merges = merges};
    s.more = more;
    return tokenizer_must(&s);
}

static void test_by_text(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_pad|>",
                                         "<|unused7|>", NULL};
    nib_tokenizer *tok = make(tokens, "ncncnc", NULL);
    assert_int_equal(nib_tokenizer_special(tok, "eot"), 2); /* both may be it; <|im_end|> comes first */
    assert_int_equal(nib_tokenizer_special(tok, "fim_pre"), 3);
    assert_int_equal(nib_tokenizer_special(tok, "fim_suf"), NIB_TOKEN_NONE);
    assert_true(nib_tokenizer_is_eog(tok, 1));
    assert_true(nib_tokenizer_is_eog(tok, 2));
    assert_true(nib_tokenizer_is_eog(tok, 4));
    assert_false(nib_tokenizer_is_eog(tok, 3));
    assert_true(nib_tokenizer_attr(tok, 2) & NIB_TOKEN_CONTROL); /* whatever the file says */
    assert_int_equal(nib_tokenizer_attr(tok, 5), NIB_TOKEN_CONTROL | NIB_TOKEN_UNUSED);
    nib_tokenizer_free(tok);
}

static void keys(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "tokenizer.ggml.eos_token_id", NIB_GGUF_U32, 1);
    nib_gguf_write_uint(w, "tokenizer.ggml.eot_token_id", NIB_GGUF_U64, 0);
    nib_gguf_write_uint(w, "tokenizer.ggml.prefix_token_id", NIB_GGUF_U32, 2);
    nib_gguf_write_uint(w, "tokenizer.ggml.mask_token_id", NIB_GGUF_I32, (uint64_t)-1); /* none */
}

static void test_by_key(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "b", "c", "<|im_end|>", NULL};
    nib_tokenizer *tok = make(tokens, "nnnc", keys);
    assert_int_equal(nib_tokenizer_special(tok, "eos"), 1);
    assert_int_equal(nib_tokenizer_special(tok, "eot"), 0); /* the key wins over the text */
    assert_int_equal(nib_tokenizer_special(tok, "fim_pre"), 2);
    assert_int_equal(nib_tokenizer_special(tok, "mask"), NIB_TOKEN_NONE);
    assert_true(nib_tokenizer_is_eog(tok, 0) && nib_tokenizer_is_eog(tok, 1) && nib_tokenizer_is_eog(tok, 3));
    assert_null(nib_tokenizer_warning(tok, 0));
    nib_tokenizer_free(tok);
}

/* Messages that end with <|end|> inside a turn that ends otherwise. */
static void test_harmony(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "<|end|>", "<|return|>", "<|call|>", "<|channel|>", NULL};
    nib_tokenizer *tok = make(tokens, "ncccc", NULL);
    assert_false(nib_tokenizer_is_eog(tok, 1));
    assert_true(nib_tokenizer_is_eog(tok, 2) && nib_tokenizer_is_eog(tok, 3));
    assert_int_equal(nib_tokenizer_attr(tok, 4), NIB_TOKEN_USER);
    nib_tokenizer_free(tok);
    static const char *const plain[] = {"a", "<|end|>", NULL};
    tok = make(plain, "nc", NULL);
    assert_true(nib_tokenizer_is_eog(tok, 1));
    nib_tokenizer_free(tok);
    static const char *const html[] = {"a", "</s>", "<|tool_response>", NULL};
    tok = make(html, "nnc", NULL);
    assert_false(nib_tokenizer_is_eog(tok, 1));
    assert_int_equal(nib_tokenizer_attr(tok, 1), NIB_TOKEN_NORMAL);
    nib_tokenizer_free(tok);
}

static void phi3(nib_gguf_writer *w) {
    nib_gguf_write_str(w, "general.name", "My PHI-3 mini");
}

static void test_strip(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<|user|>", "▁", "a", NULL};
    static const float scores[] = {0, 0, 0, 0, -1, -2};
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = "?cucnn", .scores = scores, .more = phi3};
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "<|user|>\n a", NIB_PARSE_SPECIAL, "<|user|>|▁|a");
    tokenizer_expect(tok, "</s> a", NIB_PARSE_SPECIAL, "</s>|▁|a");
    tokenizer_expect(tok, "<s> a", NIB_PARSE_SPECIAL, "<s>|▁|▁|a"); /* this one keeps it */
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_text),
        cmocka_unit_test(test_by_key),
        cmocka_unit_test(test_harmony),
        cmocka_unit_test(test_strip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
