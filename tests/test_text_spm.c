/* tests/test_text_spm.c - SentencePiece's byte-pair kind: order of merges, bytes, and where a space is put in front. */
#include "support/blocks.h"
#include "support/tokenizer.h"
#include "text/cut.h"
#include "text/normalize.h"
#include "text/spm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const tokens[] = {"<unk>", "<s>",   "</s>", "<0x00>", "<0x0A>", "<0xC3>", "<0xA9>",
                                     "▁",     "t",     "e",    "x",      "te",     "ex",     "▁te",
                                     "text",  "▁text", "xt",   "▁▁",     "t▁t",    "\t",     "t▁",
                                     NULL};
static const float scores[] = {0, 0, 0, 0, 0, 0, 0, -9, -8, -8, -8, -2, -3, -4, -6, -7, -1, -5, -20, 0, -15};
static const char types[] = "?ccbbbbnnnnnnnnnnnnun";

static void no_prefix(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "tokenizer.ggml.add_space_prefix", NIB_GGUF_BOOL, 0);
}

static void test_order(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = types, .scores = scores, .more = no_prefix};
    nib_tokenizer *tok = tokenizer_must(&s);
    assert_string_equal(nib_tokenizer_kind(tok), "spm");
    assert_string_equal(nib_tokenizer_pre(tok), "");
    tokenizer_expect(tok, "text", 0, "text"); /* xt, te, then text */
    tokenizer_expect(tok, "exe", 0, "ex|e");
    tokenizer_expect(tok, "text text", 0, "text|▁text");
    tokenizer_expect(tok, "t t", 0, "t▁t"); /* a token across a space: not to be cut there */
    tokenizer_expect(tok, "e t", 0, "e|▁|t");
    tokenizer_expect(tok, "  text", 0, "▁|▁text");
    tokenizer_expect(tok, "e\tt", 0, "e|\t|t"); /* user-defined */
    tokenizer_expect(tok, "é\n", 0, "<0xC3>|<0xA9>|<0x0A>");
    tokenizer_expect(tok, "z", 0, "<unk>"); /* neither a token nor its byte */
    nib_tokenizer_free(tok);
}

static void test_prefix(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = types, .scores = scores};
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "text", 0, "▁text");
    tokenizer_expect(tok, " text", 0, "▁|▁text");
    tokenizer_expect(tok, "", 0, "");
    tokenizer_expect(tok, "", NIB_ADD_SPECIAL, "<s>");
    tokenizer_expect(tok, "text", NIB_ADD_SPECIAL, "<s>|▁text");
    tokenizer_expect(tok, "<s>text</s>", NIB_PARSE_SPECIAL, "<s>|▁text|</s>"); /* text behind a special token too */
    nib_tokenizer_free(tok);
}

/* Cutting at spaces changes nothing: all of random text at once gives the same tokens. */
static void test_cut(void **state) {
    (void)state;
    static const char letters[] = "tex  t e";
    nib_text_vocab vocab;
    nib_text_spm spm;
    nib_text_cut cut;
    nib_text_spm_work work = {0};
    nib_buf escaped = {0};
    uint64_t seed = 3;
    assert_int_equal(nib_text_vocab_init(&vocab, 21, 256, NULL), NIB_OK);
    for (size_t i = 0; tokens[i]; i++) {
        assert_true(nib_text_vocab_add(&vocab, (nib_str){tokens[i], strlen(tokens[i])}));
        vocab.score[i] = scores[i];
    }
    nib_text_spm_init(&spm, &vocab, 0);
    nib_text_cut_init(&cut, &vocab);
    for (int round = 0; round < 500; round++) {
        char text[80];
        size_t n = blocks_random(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++) text[i] = letters[blocks_random(&seed) % (sizeof letters - 1)];
        nib_token_list whole = {0}, parts = {0};
        nib_str all = nib_text_escape((nib_str){text, n}, false, &escaped), left = all, part;
        if (all.len) assert_true(nib_text_spm_word(&spm, &work, all, &whole));
        while (nib_text_cut_next(&cut, &left, &part)) assert_true(nib_text_spm_word(&spm, &work, part, &parts));
        assert_int_equal(parts.n, whole.n);
        if (whole.n) assert_memory_equal(parts.ids, whole.ids, whole.n * sizeof *whole.ids);
        nib_token_list_free(&whole);
        nib_token_list_free(&parts);
    }
    nib_buf_free(&escaped);
    nib_text_spm_work_free(&work);
    nib_text_vocab_free(&vocab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
