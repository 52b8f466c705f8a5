/* tests/test_text_unigram.c - SentencePiece's unigram kind: the best path, spaces, unknown characters, replacements. */
#include "support/tokenizer.h"
#include "text/charsmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const tokens[] = {"<pad>", "</s>", "<unk>", "▁",  "a",      "b",   "ab",
                                     "▁a",    "abab", "▁b",    "<mark>", "▁ab", NULL};
static const float scores[] = {0, 0, 0, -2, -3, -3, -4, -4, -7, -4, 0, -9};
static const char types[] = "cc?nnnnnnnun";

static void with_prefix(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "tokenizer.ggml.add_space_prefix", NIB_GGUF_BOOL, 1);
}

static void with_merged_spaces(nib_gguf_writer *w) {
    with_prefix(w);
    nib_gguf_write_uint(w, "tokenizer.ggml.remove_extra_whitespaces", NIB_GGUF_BOOL, 1);
}

static void test_path(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "t5", .tokens = tokens, .types = types, .scores = scores};
    nib_tokenizer *tok = tokenizer_must(&s);
    assert_string_equal(nib_tokenizer_kind(tok), "unigram");
    tokenizer_expect(tok, "ab", 0, "ab");       /* -4, and a b has -6 */
    tokenizer_expect(tok, "abab", 0, "abab");   /* -7 before -8 */
    tokenizer_expect(tok, "ababb", 0, "abab|b");
    tokenizer_expect(tok, " ab", 0, "▁|ab");    /* -6; ▁a b has -7, ▁ab -9 */
    tokenizer_expect(tok, "a", NIB_ADD_SPECIAL, "a|</s>");
    tokenizer_expect(tok, "xyz", 0, "<unk>");   /* neighbours are one */
    tokenizer_expect(tok, "axyb", 0, "a|<unk>|b");
    tokenizer_expect(tok, "a  b", 0, "a|▁|▁b");
    tokenizer_expect(tok, "a<mark>b", 0, "a|<mark>|b");
    tokenizer_expect(tok, "\xFF", 0, "<unk>");
    tokenizer_expect(tok, "", NIB_ADD_SPECIAL, "</s>");
    nib_tokenizer_free(tok);
}

static void test_spaces(void **state) {
    (void)state;
    tokenizer_spec s = {.model = "t5", .tokens = tokens, .types = types, .scores = scores, .more = with_prefix};
    nib_tokenizer *tok = tokenizer_must(&s);
    tokenizer_expect(tok, "a", 0, "▁a");
    tokenizer_expect(tok, " a ", 0, "▁|▁a|▁");
    tokenizer_expect(tok, "a<mark>a", 0, "▁a|<mark>|▁a");
    nib_tokenizer_free(tok);
    s.more = with_merged_spaces;
    tok = tokenizer_must(&s);
    tokenizer_expect(tok, "  a   b  ", 0, "▁a|▁b");
    tokenizer_expect(tok, "   ", 0, "");
    nib_tokenizer_free(tok);
}

/* A double array that knows A -> "a" and AB -> "": the root's children are at 256, those of A at 512 from there. */
#define ROOT 256u
#define AT_A (ROOT ^ 'A')
#define A_DISTANCE 512u
#define AT_AB (AT_A ^ A_DISTANCE ^ 'B')
#define AB_DISTANCE 1024u
#define N_UNITS 2048u

static nib_str make_map(char *blob, uint32_t size_said) {
    uint32_t units[N_UNITS] = {0};
    units[0] = ROOT << 10;
    units[AT_A] = A_DISTANCE << 10 | 1u << 8 | 'A';
    units[AT_A ^ A_DISTANCE] = 1u << 31 | 0; /* "a" */
    units[AT_AB] = AB_DISTANCE << 10 | 1u << 8 | 'B';
    units[AT_AB ^ AB_DISTANCE] = 1u << 31 | 2; /* "" */
    memcpy(blob, &size_said, 4);
    memcpy(blob + 4, units, sizeof units);
    memcpy(blob + 4 + sizeof units, "a\0\0", 3);
    return (nib_str){blob, 4 + sizeof units + 3};
}

static void expect_next(const nib_text_charsmap *map, const char *text, size_t from, const char *to) {
    size_t found_from;
    nib_str found;
    nib_text_charsmap_next(map, (nib_str){text, strlen(text)}, &found_from, &found);
    assert_int_equal(found_from, from);
    assert_int_equal(found.len, strlen(to));
    assert_memory_equal(found.ptr, to, found.len);
}

static void test_charsmap(void **state) {
    (void)state;
    static char blob[4 + 4 * N_UNITS + 3];
    nib_text_charsmap map;
    nib_error err;
    assert_int_equal(nib_text_charsmap_init(&map, make_map(blob, 4 * N_UNITS), &err), NIB_OK);
    expect_next(&map, "Ax", 1, "a");
    expect_next(&map, "ABx", 2, "");
    expect_next(&map, "Bx", 1, "B");
    expect_next(&map, "é", 2, "é");
    expect_next(&map, "\xC3(", 1, "\xEF\xBF\xBD");
    nib_text_charsmap_free(&map);
    /* Places beyond the array and the texts end a match; wrong sizes are refused. */
    nib_str cut = make_map(blob, 4 * 400);
    cut.len = 4 + 4 * 400;
    assert_int_equal(nib_text_charsmap_init(&map, cut, &err), NIB_OK);
    expect_next(&map, "ABx", 1, "A");
    nib_text_charsmap_free(&map);
    assert_int_equal(nib_text_charsmap_init(&map, make_map(blob, 4 * N_UNITS + 4), &err), NIB_E_FORMAT);
    assert_int_equal(nib_text_charsmap_init(&map, make_map(blob, 5), &err), NIB_E_FORMAT);
    assert_int_equal(nib_text_charsmap_init(&map, (nib_str){"abc", 3}, &err), NIB_E_FORMAT);
    assert_non_null(strstr(err.message, "precompiled_charsmap has 3 bytes"));
    assert_int_equal(nib_text_charsmap_init(&map, (nib_str){NULL, 0}, &err), NIB_OK);
    expect_next(&map, "A", 1, "A");
    nib_text_charsmap_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_charsmap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
