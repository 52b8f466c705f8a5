/* tests/test_text_detok.c - ids to text: flags, cleaning, and the stream, which gives the same text in whole
 * characters. */
#include "support/blocks.h"
#include "support/tokenizer.h"
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_text(const nib_tokenizer *tok, const nib_token *ids, size_t n, unsigned flags, const char *wanted) {
    char *text;
    size_t len;
    nib_error err;
    if (nib_detokenize(tok, ids, n, flags, &text, &len, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_string_equal(text, wanted);
    assert_int_equal(len, strlen(wanted));
    free(text);
}

static void test_flags(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "▁a", "b", "<mark>▁", "unused", "<0x0A>", NULL};
    static const float scores[8] = {0};
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = "?ccnnuxb", .scores = scores};
    nib_tokenizer *tok = tokenizer_must(&s);
    static const nib_token ids[] = {1, 3, 4, 3, 5, 6, 7, 0, 2};
    expect_text(tok, ids, 9, 0, " ab a<mark>▁\n"); /* unused tokens and control tokens stand for nothing */
    expect_text(tok, ids, 9, NIB_UNPARSE_SPECIAL, "<s> ab a<mark>▁\n<unk></s>");
    expect_text(tok, ids, 9, NIB_UNPARSE_SPECIAL | NIB_REMOVE_SPECIAL, " ab a<mark>▁\n<unk></s>"); /* adds no EOS */
    expect_text(tok, ids + 1, 3, 0, "ab a"); /* the space that the tokenizer puts in front */
    expect_text(tok, ids, 0, 0, "");
    char *text;
    size_t len;
    nib_error err;
    static const nib_token outside[] = {3, 8};
    assert_int_equal(nib_detokenize(tok, outside, 2, 0, &text, &len, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "token id 8, expected 0 to 7"));
    nib_tokenizer_free(tok);
}

/* Each part is its own token. */
static void test_clean(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "Ġ", "?", ".", ",", "!", "'", "s", "t", "r", "e", "m", NULL};
    static const char *const merges[] = {NULL};
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a ?", "a?"}, {"a .a", "a.a"}, {" .", "."}, {"a  ,", "a ,"}, {"a . . .", "a..."}, {".a", ".a"},
        {"a ' a", "a'a"}, {"a ' ' a", "a'' a"}, {"a 's", "a's"}, {"a 't", "a 't"}, {"a 're", "a're"}, {"a 'r", "a 'r"},
        {"a 'm", "a'm"}, {"a'", "a'"}, {"a '", "a '"}, {"a", "a"}, {"", ""},
    };
    tokenizer_spec s = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens, .types = "nnnnnnnnnnnn", .merges = merges};
    nib_tokenizer *tok = tokenizer_must(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_token_list ids = {0};
        assert_int_equal(nib_tokenize(tok, cases[i].in, strlen(cases[i].in), 0, &ids, NULL), NIB_OK);
        expect_text(tok, ids.ids, ids.n, 0, cases[i].out);
        expect_text(tok, ids.ids, ids.n, NIB_KEEP_SPACES, cases[i].in);
        nib_token_list_free(&ids);
    }
    nib_tokenizer_free(tok);
}

/* All that a stream gives; each piece is whole characters. */
static void stream(const nib_tokenizer *tok, const nib_token *ids, size_t n, unsigned flags, bool is_continuation,
                   nib_buf *out) {
    nib_detok *detok;
    nib_error err;
    nib_str piece;
    out->len = 0;
    assert_int_equal(nib_detok_new(&detok, tok, flags, is_continuation, &err), NIB_OK);
    for (size_t i = 0; i <= n; i++) {
        if (i < n) assert_int_equal(nib_detok_push(detok, ids[i], &piece, &err), NIB_OK);
        else piece = nib_detok_finish(detok);
        for (size_t at = 0, len; at < piece.len; at += len) {
            uint32_t c;
            len = nib_text_utf8_get(piece.ptr + at, piece.len - at, &c);
            assert_true(len > 0 && !(c >= 0xD800 && c < 0xE000));
        }
        nib_buf_append(out, piece.ptr, piece.len);
    }
    assert_non_null(nib_buf_cstr(out));
    nib_detok_free(detok);
}

static void test_stream_is_whole(void **state) {
    (void)state;
    static const char *const kinds[] = {"spm", "bpe"};
    uint64_t seed = 9;
    nib_buf out = {0};
    for (size_t k = 0; k < 2; k++) {
        nib_tokenizer *tok = tokenizer_small(kinds[k], NULL);
        for (int round = 0; round < 200; round++) {
            size_t len, wanted_len;
            char *text = tokenizer_random_text(blocks_random(&seed) % 200, &seed, &len);
            nib_token_list ids = {0};
            unsigned flags = (unsigned)blocks_random(&seed) % 4; /* of unparse and remove */
            assert_int_equal(nib_tokenize(tok, text, len, NIB_ADD_SPECIAL, &ids, NULL), NIB_OK);
            char *wanted = tokenizer_text(tok, &ids, flags | NIB_KEEP_SPACES, &wanted_len);
            stream(tok, ids.ids, ids.n, flags, false, &out);
            assert_int_equal(out.len, wanted_len);
            assert_memory_equal(out.ptr, wanted, wanted_len);
            free(wanted);
            free(text);
            nib_token_list_free(&ids);
        }
        nib_tokenizer_free(tok);
    }
    nib_buf_free(&out);
}

static nib_token byte(unsigned c) { /* of the small spm vocabulary */
    return (nib_token)(3 + c);
}

static void test_malformed(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"\xE4\xBD\xA0", "\xE4\xBD\xA0"},
        {"\xE4\xBD", "\xEF\xBF\xBD"},                                    /* cut: one for the whole */
        {"\xE4\xBD" "a", "\xEF\xBF\xBD" "a"},
        {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
        {"a\x80" "b", "a\xEF\xBF\xBD" "b"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},        /* a surrogate */
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},                        /* overlong */
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE2\x82\xE2\x82\xAC", "\xEF\xBF\xBD\xE2\x82\xAC"},
        {"\xFF", "\xEF\xBF\xBD"},
    };
    nib_tokenizer *tok = tokenizer_small("spm", NULL);
    nib_buf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_token ids[8];
        size_t n = strlen(cases[i].bytes);
        for (size_t k = 0; k < n; k++) ids[k] = byte((unsigned char)cases[i].bytes[k]);
        stream(tok, ids, n, 0, true, &out);
        assert_string_equal(out.ptr, cases[i].text);
    }
    nib_buf_free(&out);
    nib_tokenizer_free(tok);
}

static void test_held_back(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("spm", NULL);
    nib_detok *detok;
    nib_str piece;
    nib_error err;
    assert_int_equal(nib_detok_new(&detok, tok, 0, true, &err), NIB_OK);
    static const unsigned char smile[] = {0xF0, 0x9F, 0x98, 0x80};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(nib_detok_push(detok, byte(smile[i]), &piece, &err), NIB_OK);
        assert_int_equal(piece.len, i < 3 ? 0 : 4);
    }
    assert_memory_equal(piece.ptr, smile, 4);
    assert_int_equal(nib_detok_push(detok, -1, &piece, &err), NIB_E_ARG);
    assert_int_equal(nib_detok_push(detok, 320, &piece, &err), NIB_E_ARG);
    assert_int_equal(nib_detok_finish(detok).len, 0);
    nib_detok_free(detok);
    nib_detok_free(NULL);
    nib_tokenizer_free(tok);
}

static void test_first_space(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("spm", NULL);
    nib_token_list ids = {0};
    nib_buf out = {0};
    assert_int_equal(nib_tokenize(tok, "the and", 7, NIB_ADD_SPECIAL, &ids, NULL), NIB_OK);
    stream(tok, ids.ids + 1, ids.n - 1, 0, false, &out);
    assert_string_equal(out.ptr, "the and");
    stream(tok, ids.ids + 1, ids.n - 1, 0, true, &out);
    assert_string_equal(out.ptr, " the and");
    stream(tok, ids.ids, ids.n, NIB_REMOVE_SPECIAL, false, &out);
    assert_string_equal(out.ptr, " the and"); /* as nib_detokenize has it */
    nib_token_list_free(&ids);
    nib_buf_free(&out);
    nib_tokenizer_free(tok);
}

static void with_both(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "tokenizer.ggml.add_eos_token", NIB_GGUF_BOOL, 1);
}

/* An EOS inside stays, the last one goes; that is known only at the end. */
static void test_last_eos(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "a", NULL};
    static const float scores[4] = {0};
    tokenizer_spec s = {.model = "llama", .tokens = tokens, .types = "?ccn", .scores = scores, .more = with_both};
    nib_tokenizer *tok = tokenizer_must(&s);
    nib_buf out = {0};
    static const nib_token ids[] = {1, 3, 2, 3, 2};
    unsigned flags = NIB_UNPARSE_SPECIAL | NIB_REMOVE_SPECIAL;
    expect_text(tok, ids, 5, flags, "a</s>a");
    stream(tok, ids, 5, flags, false, &out);
    assert_string_equal(out.ptr, "a</s>a");
    tokenizer_expect(tok, "a", NIB_ADD_SPECIAL, "<s>|<unk>|<unk>|<unk>|a|</s>"); /* no token for the space in front */
    nib_buf_free(&out);
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags),      cmocka_unit_test(test_clean),     cmocka_unit_test(test_stream_is_whole),
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_held_back), cmocka_unit_test(test_first_space),
        cmocka_unit_test(test_last_eos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
