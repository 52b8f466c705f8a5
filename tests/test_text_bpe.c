/* tests/test_text_bpe.c - byte-pair encoding with a vocabulary that can be followed by hand. */
#include "support/tokenizer.h"
#include "text/bpe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "Ġ" is a space, "Ã" and "©" the two bytes of é. "xyz" comes from a rule whose parts are no tokens. */
static const char *const tokens[] = {"a", "b", "c", "Ġ", "ab",  "bc",  "abc",     "Ġa",          "Ã", "©",
                                     "x", "y", "z", "xyz", "cab", "<|end|>", "<|unused0|>", "q", NULL};
static const char *const merges[] = {"b c", "a b", "ab c", "Ġ a", "y z", "x yz", "a b", NULL};

static tokenizer_spec spec(const char *pre) {
    static const char types[] = "nnnnnnnnnnnnnnnccn";
    return (tokenizer_spec){.model = "gpt2", .pre = pre, .tokens = tokens, .types = types, .merges = merges};
}

static void test_order(void **state) {
    (void)state;
    tokenizer_spec s = spec("gpt-2");
    nib_tokenizer *tok = tokenizer_must(&s);
    assert_string_equal(nib_tokenizer_kind(tok), "bpe");
    assert_string_equal(nib_tokenizer_pre(tok), "gpt-2");
    tokenizer_expect(tok, "abc", 0, "a|bc");     /* b c comes before a b, and a bc is no rule */
    tokenizer_expect(tok, "abab", 0, "ab|ab");
    tokenizer_expect(tok, "cab", 0, "c|ab");     /* a token, but no rule leads to it */
    tokenizer_expect(tok, " ab", 0, "Ġ|ab");
    tokenizer_expect(tok, "b ac", 0, "b|Ġa|c");
    tokenizer_expect(tok, "xyz", 0, "xyz");      /* by way of yz, which is no token */
    tokenizer_expect(tok, "yz", 0, "y|z");
    tokenizer_expect(tok, "é", 0, "Ã|©");
    tokenizer_expect(tok, "adb", 0, "a|b");      /* no token for d: it is lost */
    tokenizer_expect(tok, "", 0, "");
    nib_tokenizer_free(tok);
}

static void test_ignore_merges(void **state) {
    (void)state;
    tokenizer_spec s = spec("llama-bpe");
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "abc", 0, "abc");
    tokenizer_expect(tok, "cab", 0, "cab");
    tokenizer_expect(tok, "cabc", 0, "c|a|bc");
    nib_tokenizer_free(tok);
}

static void test_special(void **state) {
    (void)state;
    tokenizer_spec s = spec("gpt-2");
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "ab<|end|>ab", NIB_PARSE_SPECIAL, "ab|<|end|>|ab");
    tokenizer_expect(tok, "ab<|end|>ab", 0, "ab|ab"); /* plain text now, and no token for any of it */
    nib_tokenizer_free(tok);
}

/* Tokens in UTF-8, spaces shown, bytes as <0x..>, newlines looked up as a whole. */
static void test_raw(void **state) {
    (void)state;
    static const char *const raw_tokens[] = {"<bos>", "a", "▁", "▁a", "\n", "\n\n\n", "<0xC3>", "<0xA9>", "é", "aé",
                                             "\n\n", NULL};
    static const char *const raw_merges[] = {"▁ a", "\n \n", NULL};
    tokenizer_spec s = {.model = "gemma4", .tokens = raw_tokens, .types = "cnnnnnbbnnn", .merges = raw_merges};
    nib_tokenizer *tok = tokenizer_must(&s);
    assert_string_equal(nib_tokenizer_pre(tok), "gemma4");
    tokenizer_expect(tok, "a a", 0, "a|▁a");
    tokenizer_expect(tok, "\n\n\n", 0, "\n\n\n");
    tokenizer_expect(tok, "\n\n\n\n", 0, "\n\n|\n\n");
    tokenizer_expect(tok, "é", 0, "é");
    tokenizer_expect(tok, "è", 0, "<0xC3>"); /* the second byte has no token */
    nib_tokenizer_free(tok);
}

static void test_alphabet(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char c[2];
        size_t n = nib_text_bpe_alphabet((unsigned char)byte, c);
        uint32_t cp = n == 1 ? (unsigned char)c[0] : ((unsigned char)c[0] & 0x1Fu) << 6 | ((unsigned char)c[1] & 0x3Fu);
        assert_int_equal(nib_text_bpe_byte_of(cp), byte);
    }
    assert_int_equal(nib_text_bpe_byte_of(' '), -1);
    assert_int_equal(nib_text_bpe_byte_of(0x120), ' ');
    assert_int_equal(nib_text_bpe_byte_of(0x143), 0xAD);
    assert_int_equal(nib_text_bpe_byte_of(0x144), -1);
    assert_int_equal(nib_text_bpe_byte_of(0x2581), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_ignore_merges), cmocka_unit_test(test_special),
        cmocka_unit_test(test_raw),   cmocka_unit_test(test_alphabet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
