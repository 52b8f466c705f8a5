/* tests/test_text_wordpiece.c - WordPiece: cleaning, words, the longest token at each place. */
#include "support/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "aff", "able", "▁a", "▁,", "▁the",
                                     "s",     "▁the s", "▁中", "▁+",   "▁É",   NULL};
static const char types[] = "cccccnnnnnnnnnn";

static void roles(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "tokenizer.ggml.unknown_token_id", NIB_GGUF_U32, 1);
    nib_gguf_write_uint(w, "tokenizer.ggml.cls_token_id", NIB_GGUF_U32, 2);
    nib_gguf_write_uint(w, "tokenizer.ggml.seperator_token_id", NIB_GGUF_U32, 3);
}

static void cased(nib_gguf_writer *w) {
    roles(w);
    nib_gguf_write_uint(w, "tokenizer.ggml.normalizer.lowercase", NIB_GGUF_BOOL, 0);
}

static void test_words(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "bert", .tokens = tokens, .types = types, .more = roles};
    nib_tokenizer *tok = tokenizer_must(&s);
    assert_string_equal(nib_tokenizer_kind(tok), "wordpiece");
    tokenizer_expect(tok, "unaffable", 0, "▁un|aff|able");
    tokenizer_expect(tok, "Unaffable,a", NIB_ADD_SPECIAL, "[CLS]|▁un|aff|able|▁,|▁a|[SEP]");
    tokenizer_expect(tok, "unx a", 0, "[UNK]|▁a"); /* a part that is unknown makes the word unknown */
    tokenizer_expect(tok, "thes a", 0, "▁the|s|▁a");
    tokenizer_expect(tok, "\xC3\x82 a\xCC\x81", 0, "▁a|▁a"); /* accents go */
    tokenizer_expect(tok, "a\x01\xE2\x80\x8B" "a\xC2\xA0" "a", 0, "[UNK]|▁a"); /* control characters go too */
    tokenizer_expect(tok, "a中a++", 0, "▁a|▁中|▁a|▁+|▁+");
    tokenizer_expect(tok, "", NIB_ADD_SPECIAL, "[CLS]|[SEP]");
    tokenizer_expect(tok, "\xFF" "a", 0, "▁a");
    nib_tokenizer_free(tok);
}

static void test_cased(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "bert", .tokens = tokens, .types = types, .more = cased};
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "a A É", 0, "▁a|[UNK]|▁É");
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_cased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
