/* tests/test_text_load.c - what a file may say about its tokenizer, and what not: errors name the key, what it holds
 * and what was expected. */
#include "support/tokenizer.h"
#include "support/vocab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY(name) "tokenizer.ggml." name

/* Keys of a good file with three tokens, each of which a case may leave out or write otherwise. */
enum { MODEL = 1, PRE = 2, TOKENS = 4, SCORES = 8, TYPES = 16, MERGES = 32, ALL = 63 };

static void write_list(nib_gguf_writer *w, const char *key, const char *a, const char *b, const char *c) {
    nib_str list[3] = {{a, strlen(a)}, {b, strlen(b)}, {c, strlen(c)}};
    nib_gguf_write_strings(w, key, list, 3);
}

static void write_numbers(nib_gguf_writer *w, const char *key, nib_gguf_type elem, const void *numbers,
                          size_t n_bytes) {
    size_t size = elem == NIB_GGUF_U8 ? 1 : 4;
    nib_gguf_write_array(w, key, elem, n_bytes / size, (nib_str){numbers, n_bytes});
}

static void write_good(nib_gguf_writer *w, const char *model, unsigned keys) {
    static const float scores[] = {0, -1, -2};
    static const int32_t types[] = {1, 1, 3};
    nib_gguf_write_str(w, "general.architecture", "llama");
    if (keys & MODEL) nib_gguf_write_str(w, KEY("model"), model);
    if (keys & PRE) nib_gguf_write_str(w, KEY("pre"), "gpt-2");
    if (keys & TOKENS) write_list(w, KEY("tokens"), "a", "b", "<s>");
    if (keys & SCORES) write_numbers(w, KEY("scores"), NIB_GGUF_F32, scores, sizeof scores);
    if (keys & TYPES) write_numbers(w, KEY("token_type"), NIB_GGUF_I32, types, sizeof types);
    if (keys & MERGES) write_list(w, KEY("merges"), "a b", "b a", "a a");
}

static void tokens_of_numbers(nib_gguf_writer *w) {
    static const uint32_t n[] = {1, 2, 3};
    write_numbers(w, KEY("tokens"), NIB_GGUF_U32, n, sizeof n);
}
static void tokens_none(nib_gguf_writer *w) {
    nib_gguf_write_strings(w, KEY("tokens"), NULL, 0);
}
static void types_of_bytes(nib_gguf_writer *w) {
    static const uint8_t n[] = {1, 1, 1};
    write_numbers(w, KEY("token_type"), NIB_GGUF_U8, n, sizeof n);
}
static void types_too_few(nib_gguf_writer *w) {
    static const int32_t n[] = {1, 1};
    write_numbers(w, KEY("token_type"), NIB_GGUF_I32, n, sizeof n);
}
static void type_unknown(nib_gguf_writer *w) {
    static const int32_t n[] = {1, 7, 1};
    write_numbers(w, KEY("token_type"), NIB_GGUF_I32, n, sizeof n);
}
static void type_byte(nib_gguf_writer *w) {
    static const int32_t n[] = {1, 6, 1};
    write_numbers(w, KEY("token_type"), NIB_GGUF_I32, n, sizeof n);
}
static void scores_too_many(nib_gguf_writer *w) {
    static const float n[] = {1, 2, 3, 4};
    write_numbers(w, KEY("scores"), NIB_GGUF_F32, n, sizeof n);
}
static void score_nan(nib_gguf_writer *w) {
    static const float n[] = {1, NAN, 3};
    write_numbers(w, KEY("scores"), NIB_GGUF_F32, n, sizeof n);
}
static void merges_without_space(nib_gguf_writer *w) {
    write_list(w, KEY("merges"), "a b", "ab", "a a");
}
static void merges_with_two(nib_gguf_writer *w) {
    write_list(w, KEY("merges"), "a b", "b a", "a a a");
}
static void merges_half(nib_gguf_writer *w) {
    write_list(w, KEY("merges"), "a b", "b ", " a");
}
static void pre_unknown(nib_gguf_writer *w) {
    nib_gguf_write_str(w, KEY("pre"), "nosuch");
}
static void pre_number(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, KEY("pre"), NIB_GGUF_U32, 1);
}
static void bos_string(nib_gguf_writer *w) {
    nib_gguf_write_str(w, KEY("bos_token_id"), "<s>");
}
static void add_bos_number(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, KEY("add_bos_token"), NIB_GGUF_U32, 1);
}
static void charsmap_short(nib_gguf_writer *w) {
    write_numbers(w, KEY("precompiled_charsmap"), NIB_GGUF_U8, "abc", 3);
}

static const struct {
    const char *model;
    unsigned keys; /* written as in a good file */
    void (*more)(nib_gguf_writer *w);
    nib_status status;
    const char *parts[3]; /* of the message */
} bad[] = {
    {"gpt2", ALL & ~MODEL, NULL, NIB_E_FORMAT, {KEY("model"), "missing", NULL}},
    {"rwkv", ALL, NULL, NIB_E_UNSUPPORTED, {KEY("model") " is \"rwkv\"", "llama gpt2", NULL}},
    {"gpt2", ALL & ~TOKENS, NULL, NIB_E_FORMAT, {KEY("tokens"), "missing", NULL}},
    {"gpt2", ALL & ~TOKENS, tokens_of_numbers, NIB_E_FORMAT, {KEY("tokens"), "array of u32", "array of str"}},
    {"gpt2", ALL & ~TOKENS, tokens_none, NIB_E_FORMAT, {KEY("tokens"), "0 elements", NULL}},
    {"gpt2", ALL & ~TYPES, types_of_bytes, NIB_E_FORMAT, {KEY("token_type"), "array of u8", "array of i32"}},
    {"gpt2", ALL & ~TYPES, types_too_few, NIB_E_FORMAT, {KEY("token_type"), "2 elements", "expected 3"}},
    {"gpt2", ALL & ~TYPES, type_unknown, NIB_E_FORMAT, {KEY("token_type") "[1] is 7", "0 to 6", NULL}},
    {"llama", ALL & ~TYPES, type_byte, NIB_E_FORMAT, {KEY("tokens") "[1]", "\"b\"", "<0x00>"}},
    {"llama", ALL & ~SCORES, scores_too_many, NIB_E_FORMAT, {KEY("scores"), "4 elements", "expected 3"}},
    {"llama", ALL & ~SCORES, score_nan, NIB_E_FORMAT, {KEY("scores") "[1] is nan", "finite", NULL}},
    {"gpt2", ALL & ~MERGES, NULL, NIB_E_FORMAT, {KEY("merges"), "missing", NULL}},
    {"gpt2", ALL & ~MERGES, merges_without_space, NIB_E_FORMAT, {KEY("merges") "[1] is \"ab\"", "one space", NULL}},
    {"gpt2", ALL & ~MERGES, merges_with_two, NIB_E_FORMAT, {KEY("merges") "[2] is \"a a a\"", "one space", NULL}},
    {"gpt2", ALL & ~MERGES, merges_half, NIB_E_FORMAT, {KEY("merges") "[1] is \"b \"", "one space", NULL}},
    {"gpt2", ALL & ~PRE, pre_unknown, NIB_E_UNSUPPORTED, {KEY("pre") " is \"nosuch\"", "`pre`", "llama-bpe"}},
    {"gpt2", ALL & ~PRE, pre_number, NIB_E_FORMAT, {KEY("pre"), "u32", "string"}},
    {"gpt2", ALL, bos_string, NIB_E_FORMAT, {KEY("bos_token_id"), "str", "integer"}},
    {"gpt2", ALL, add_bos_number, NIB_E_FORMAT, {KEY("add_bos_token"), "u32", "bool"}},
    {"t5", ALL, charsmap_short, NIB_E_FORMAT, {KEY("precompiled_charsmap"), "3 bytes", NULL}},
};

static void test_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nib_gguf_writer w = {0};
        nib_tokenizer *tok;
        nib_error err = {0};
        write_good(&w, bad[i].model, bad[i].keys);
        if (bad[i].more) bad[i].more(&w);
        nib_status status = tokenizer_from(&w, NULL, &tok, &err);
        if (status != bad[i].status) print_message("case %zu: %s\n", i, err.message);
        assert_int_equal(status, bad[i].status);
        assert_int_equal(err.code, status);
        assert_null(tok);
        for (size_t k = 0; k < 3 && bad[i].parts[k]; k++)
            if (!strstr(err.message, bad[i].parts[k])) fail_msg("'%s' is not in: %s", bad[i].parts[k], err.message);
    }
}

static nib_tokenizer *good(const char *model, unsigned keys, void (*more)(nib_gguf_writer *), const char *pre) {
    nib_gguf_writer w = {0};
    nib_tokenizer *tok;
    nib_error err;
    write_good(&w, model, keys);
    if (more) more(&w);
    if (tokenizer_from(&w, pre, &tok, &err) != NIB_OK) fail_msg("%s", err.message);
    return tok;
}

static void bos_out_of_range(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, KEY("bos_token_id"), NIB_GGUF_U32, 5000);
    nib_gguf_write_uint(w, KEY("eos_token_id"), NIB_GGUF_I32, (uint64_t)-2);
    nib_gguf_write_uint(w, KEY("add_bos_token"), NIB_GGUF_BOOL, 1);
}
static void two_alike(nib_gguf_writer *w) {
    write_list(w, KEY("tokens"), "a", "a", "\x1b[2J");
}

static void test_warnings(void **state) {
    (void)state;
    nib_tokenizer *tok = good("gpt2", ALL, NULL, NULL);
    assert_null(nib_tokenizer_warning(tok, 0));
    nib_tokenizer_free(tok);
    tok = good("gpt2", ALL & ~PRE, NULL, NULL); /* one warning that says what it means */
    assert_non_null(strstr(nib_tokenizer_warning(tok, 0), "answers worse"));
    assert_null(nib_tokenizer_warning(tok, 1));
    assert_string_equal(nib_tokenizer_pre(tok), "default");
    nib_tokenizer_free(tok);
    tok = good("gpt2", ALL, bos_out_of_range, NULL);
    assert_non_null(strstr(nib_tokenizer_warning(tok, 0), "bos_token_id is 5000, expected 0 to 2"));
    assert_non_null(strstr(nib_tokenizer_warning(tok, 1), "eos_token_id is -2, expected 0 to 2"));
    assert_non_null(strstr(nib_tokenizer_warning(tok, 2), "a bos token added"));
    assert_null(nib_tokenizer_warning(tok, 3));
    assert_int_equal(nib_tokenizer_special(tok, "bos"), NIB_TOKEN_NONE);
    assert_false(nib_tokenizer_add_bos(tok));
    tokenizer_expect(tok, "ab", NIB_ADD_SPECIAL, "a|b");
    nib_tokenizer_free(tok);
    tok = good("gpt2", ALL & ~TOKENS, two_alike, NULL);
    assert_non_null(strstr(nib_tokenizer_warning(tok, 0), "1 texts twice"));
    nib_tokenizer_free(tok);
}

static void test_pre_of_caller(void **state) {
    (void)state;
    nib_tokenizer *tok = good("gpt2", ALL & ~PRE, pre_unknown, "qwen2");
    assert_string_equal(nib_tokenizer_pre(tok), "qwen2");
    assert_null(nib_tokenizer_warning(tok, 0));
    nib_tokenizer_free(tok);
    tok = good("llama", ALL, NULL, "qwen2");
    assert_string_equal(nib_tokenizer_pre(tok), "");
    assert_non_null(strstr(nib_tokenizer_warning(tok, 0), "\"qwen2\" is not used"));
    nib_tokenizer_free(tok);
    nib_gguf_writer w = {0};
    nib_error err;
    write_good(&w, "gpt2", ALL);
    assert_int_equal(tokenizer_from(&w, "qwen3", &tok, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "config.pre is \"qwen3\""));
}

static void test_accessors(void **state) {
    (void)state;
    nib_tokenizer *tok = good("llama", ALL, NULL, NULL);
    assert_int_equal(nib_tokenizer_n_tokens(tok), 3);
    assert_int_equal(nib_tokenizer_special(tok, "bos"), 1); /* the kind's own ids */
    assert_int_equal(nib_tokenizer_special(tok, "eos"), 2);
    assert_int_equal(nib_tokenizer_special(tok, "nosuch"), NIB_TOKEN_NONE);
    assert_true(nib_tokenizer_add_bos(tok));
    assert_false(nib_tokenizer_add_eos(tok));
    assert_memory_equal(nib_tokenizer_text(tok, 2).ptr, "<s>", 3);
    assert_int_equal(nib_tokenizer_attr(tok, 2), NIB_TOKEN_CONTROL | NIB_TOKEN_EOG);
    assert_int_equal(nib_tokenizer_attr(tok, 0), NIB_TOKEN_NORMAL);
    static const nib_token outside[] = {-1, 3, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(nib_tokenizer_text(tok, outside[i]).len, 0);
        assert_int_equal(nib_tokenizer_attr(tok, outside[i]), 0);
        assert_false(nib_tokenizer_is_eog(tok, outside[i]));
    }
    nib_tokenizer_free(tok);
    nib_tokenizer_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_pre_of_caller),
        cmocka_unit_test(test_accessors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
