/* tests/test_grammar_mask.c - masks against the definition: a token is allowed when its bytes, one by one, are;
 * matchers that go back, fork and lose their cache say the same. */
#include "support/blocks.h"
#include "support/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_WORDS = 3000, N_TOKENS = GRAMMAR_BYTE_IDS + 256 + N_WORDS, N_MASK = (N_TOKENS + 31) / 32 };
static char g_words[N_WORDS][80]; /* 39 bytes twice */
static nib_grammar_vocab *g_vocab;

/* Words of the pieces that grammars tell apart. */
static void make_words(void) {
    static const char *const pieces[] = {"a",
                                         "b",
                                         "z",
                                         "0",
                                         "12",
                                         "\"",
                                         "\",",
                                         "\":",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         " ",
                                         "\n",
                                         "\t",
                                         "<",
                                         "\\",
                                         "\\n",
                                         "\\u",
                                         "-",
                                         ".",
                                         "e",
                                         "tr",
                                         "ue",
                                         "null",
                                         "\xC3\xA9",
                                         "\xE2\x82",
                                         "\xAC",
                                         "\xF0\x9F",
                                         "ab",
                                         "name",
                                         "A",
                                         "\xE2\x80\xA8",
                                         "\xC3\xA9\xC3\xA9"};
    uint64_t seed = 7;
    const char *words[N_WORDS];
    for (size_t i = 0; i < N_WORDS; i++) {
        words[i] = g_words[i];
        for (uint64_t n = 1 + blocks_random(&seed) % 4; n; n--)
            strcat(g_words[i], pieces[blocks_random(&seed) % (sizeof pieces / sizeof *pieces)]);
        for (size_t n = strlen(g_words[i]); i % 30 == 0 && n < 40; n *= 2) memcpy(g_words[i] + n, g_words[i], n);
    }
    g_vocab = grammar_vocab(words, N_WORDS);
}

static nib_str bytes_of(nib_token id, char *byte) {
    if (id < GRAMMAR_BYTE_IDS) return (nib_str){"", 0};
    *byte = (char)(id - GRAMMAR_BYTE_IDS);
    if (id < GRAMMAR_BYTE_IDS + 256) return (nib_str){byte, 1};
    return (nib_str){g_words[id - GRAMMAR_BYTE_IDS - 256], strlen(g_words[id - GRAMMAR_BYTE_IDS - 256])};
}

/* By feeding bytes; tokens without text only where the grammar names none. */
static bool is_allowed(nib_matcher *m, nib_token id) {
    char byte;
    nib_str bytes = bytes_of(id, &byte);
    if (id == 0) return nib_matcher_may_end(m);
    if (!bytes.len || nib_matcher_feed(m, bytes, NULL, NULL) != NIB_OK) return false;
    assert_int_equal(nib_matcher_rollback(m, 1, NULL), NIB_OK);
    return true;
}

enum { N_CHOICES = 14 };

static const struct {
    nib_syntax syntax;
    const char *text;
} GRAMMARS[] = {
    {NIB_SYNTAX_GBNF, "root ::= [a-z]+ (\",\" [0-9]{1,3})*"},
    {NIB_SYNTAX_GBNF, "root ::= .{0,5} | \"ab\"* | [^\\n]{3,9} \"\\n\""},
    {NIB_SYNTAX_GBNF, "root ::= (\"a\" | . \"b\"){0,4} \"z\""},
    {NIB_SYNTAX_GBNF, "root ::= \"x\" root \"y\"? | [a-z0]{2,7} | \"\\\"\" .* \"\\\"\""},
    {NIB_SYNTAX_GBNF, "root ::= .{0,5} \"ab\" | .{2,3} \"z0\""},
    {NIB_SYNTAX_GBNF, "root ::= ([^<] | \"<\" [^a])* \"<a\" [ \\t\\n]{0,20} [0-9]{2}"},
    {NIB_SYNTAX_GBNF, "root ::= [ \\n]{0,30} ([a-z]{2,60} | [ \\t]{3,50} \"0\"?) [ \\n\\t]*"},
    {NIB_SYNTAX_GBNF, "root ::= [\\t\\n\\r]* [^\\t\\n\\r]*"},
    {NIB_SYNTAX_GBNF, "root ::= ([a-y] | [a-z0-9A-Z ]* \"z\")+ \"0\""},
    {NIB_SYNTAX_REGEX, "(a|ab|name){2,5}[^z]{0,3}"},
    {NIB_SYNTAX_REGEX, "[a-z]{1,30}[0-9 ]{2,9}|[a-z0-9.-]+:[^x]{1,40}"},
    {NIB_SYNTAX_REGEX, ".{1,30}"},
    {NIB_SYNTAX_REGEX, "[\\s\\S]{2,45}a|[a-z]*\\n?[0-9]"},
    {NIB_SYNTAX_JSON_OBJECT, ""},
    [N_CHOICES] = {NIB_SYNTAX_CHOICES, "[\"true\",\"null\",\"nullab\"]"},
    {NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"string\",\"maxLength\":4}"},
    {NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"string\",\"minLength\":3,\"maxLength\":400}"},
    {NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^[a-z0]+$\",\"maxLength\":9}"},
    {NIB_SYNTAX_JSON_SCHEMA,
     "{\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-12},\"ab\":{\"enum\":[\"z\",null]}},"
     "\"required\":[\"ab\"],\"additionalProperties\":{\"type\":\"array\",\"maxItems\":3}}"},
};

/* Walks random allowed tokens; every mask on the way is compared for all tokens. */
static void walk(nib_grammar *g, uint64_t *seed, int n_steps) {
    uint32_t mask[N_MASK + 1];
    nib_matcher *m, *fork;
    nib_error err;
    assert_int_equal(nib_matcher_new(&m, g, &err), NIB_OK);
    for (int i = 0; i < n_steps; i++) {
        nib_token allowed[N_TOKENS];
        size_t n = 0;
        assert_int_equal(nib_matcher_mask(m, mask, N_TOKENS + 32, &err), NIB_OK);
        for (nib_token id = 0; id < N_TOKENS; id++) {
            bool said = mask[id / 32] >> id % 32 & 1;
            if (said != is_allowed(m, id)) print_error("token %d, step %d\n", id, i);
            assert_int_equal(said, is_allowed(m, id));
            if (said && id) allowed[n++] = id;
        }
        assert_int_equal(mask[N_MASK], 0);
        assert_true(n || nib_matcher_may_end(m)); /* no dead end */
        assert_int_equal(nib_matcher_must_end(m), n == 0);
        if (!n) break;
        nib_token id = allowed[blocks_random(seed) % n];
        assert_int_equal(nib_matcher_fork(&fork, m, &err), NIB_OK);
        assert_int_equal(nib_matcher_accept(fork, id, &err), NIB_OK);
        assert_int_equal(nib_matcher_accept(m, id, &err), NIB_OK);
        assert_int_equal(nib_matcher_may_end(fork), nib_matcher_may_end(m));
        nib_matcher_free(fork);
    }
    nib_matcher_free(m);
}

static nib_grammar *compile(size_t i, size_t cache_bytes) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    config.syntax = GRAMMARS[i].syntax;
    if (cache_bytes) config.max_cache_bytes = cache_bytes;
    if (nib_grammar_new(&g, GRAMMARS[i].text, strlen(GRAMMARS[i].text), g_vocab, &config, &err) != NIB_OK)
        fail_msg("%s", err.message);
    return g;
}

static void test_masks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof GRAMMARS / sizeof *GRAMMARS; i++) {
        uint64_t seed = i + 1;
        nib_grammar *g = compile(i, 0);
        for (int k = 0; k < 3; k++) walk(g, &seed, 12);
        nib_grammar_free(g);
    }
}

/* The cache is thrown away at nearly every step. */
static void test_small_cache(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof GRAMMARS / sizeof *GRAMMARS; i++) {
        uint64_t seed = i + 50;
        nib_grammar *g = compile(i, 1);
        walk(g, &seed, 3);
        nib_grammar_free(g);
    }
}

static void test_rollback_and_end(void **state) {
    nib_grammar *g = compile(N_CHOICES, 0);
    nib_matcher *m;
    nib_error err;
    size_t taken;
    (void)state;
    assert_int_equal(nib_matcher_new(&m, g, &err), NIB_OK);
    assert_int_equal(nib_matcher_rollback(m, 1, &err), NIB_E_ARG);
    assert_int_equal(nib_matcher_accept(m, 0, &err), NIB_E_ARG); /* not yet */
    assert_int_equal(nib_matcher_feed(m, (nib_str){"nulx", 4}, &taken, &err), NIB_E_ARG);
    assert_int_equal(taken, 3);
    assert_int_equal(nib_matcher_feed(m, (nib_str){"nu", 2}, &taken, &err), NIB_OK);
    nib_str forced = nib_matcher_forced(m);
    assert_int_equal(forced.len, 2);
    assert_memory_equal(forced.ptr, "ll", 2);
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 'l', &err), NIB_OK);
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 'l', &err), NIB_OK);
    assert_true(nib_matcher_may_end(m) && !nib_matcher_must_end(m));
    nib_str expected = nib_matcher_expected(m);
    assert_int_equal(expected.len, strlen("'a' or the end"));
    assert_memory_equal(expected.ptr, "'a' or the end", expected.len);
    assert_int_equal(nib_matcher_accept(m, 0, &err), NIB_OK);
    assert_true(nib_matcher_must_end(m));
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 'a', &err), NIB_E_ARG);
    assert_int_equal(nib_matcher_rollback(m, 2, &err), NIB_OK);
    assert_false(nib_matcher_may_end(m));
    assert_int_equal(nib_matcher_rollback(m, 2, &err), NIB_OK);
    assert_int_equal(nib_matcher_feed(m, (nib_str){"true", 4}, &taken, &err), NIB_OK);
    nib_matcher_reset(m);
    assert_int_equal(nib_matcher_feed(m, (nib_str){"nullab", 6}, &taken, &err), NIB_OK);
    assert_true(nib_matcher_must_end(m));
    nib_matcher_free(m);
    nib_grammar_free(g);
}

/* Tokens that stand for no text, by id and by name. */
static void test_named_tokens(void **state) {
    static const char text[] = "root ::= <[10]> (!<t11>)* <t11> \"z\"";
    nib_grammar *g;
    nib_matcher *m;
    nib_error err;
    uint32_t mask[N_MASK];
    (void)state;
    if (nib_grammar_new(&g, text, strlen(text), g_vocab, NULL, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_int_equal(nib_matcher_new(&m, g, &err), NIB_OK);
    assert_int_equal(nib_matcher_mask(m, mask, N_TOKENS, &err), NIB_OK);
    for (size_t w = 0; w < N_MASK; w++) assert_int_equal(mask[w], w == 0 ? 1u << 10 : 0);
    assert_int_equal(nib_matcher_accept(m, 10, &err), NIB_OK);
    assert_int_equal(nib_matcher_mask(m, mask, N_TOKENS, &err), NIB_OK);
    assert_int_equal(mask[0], 0xFFFFFFFEu); /* 11 as well: by the other way; not the one that ends a text */
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 300, &err), NIB_OK);
    assert_int_equal(nib_matcher_accept(m, 11, &err), NIB_OK);
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 'a', &err), NIB_E_ARG);
    assert_int_equal(nib_matcher_accept(m, GRAMMAR_BYTE_IDS + 'z', &err), NIB_OK);
    assert_true(nib_matcher_must_end(m));
    nib_matcher_free(m);
    nib_grammar_free(g);
    assert_int_equal(nib_grammar_new(&g, "root ::= <[0]>", 14, g_vocab, NULL, &err), NIB_E_FORMAT); /* ends the text */
}

/* Ambiguity beyond max_items is an error that names it, and the matcher stays where it was. */
static void test_max_items(void **state) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_matcher *m;
    nib_error err;
    size_t taken;
    char text[600];
    (void)state;
    memset(text, 'x', sizeof text);
    config.max_items = 200;
    assert_int_equal(nib_grammar_new(&g, "root ::= .{0,900} .{0,900}", 26, NULL, &config, &err), NIB_OK);
    assert_int_equal(nib_matcher_new(&m, g, &err), NIB_OK);
    assert_int_equal(nib_matcher_feed(m, (nib_str){text, 50}, &taken, &err), NIB_OK);
    assert_int_equal(nib_matcher_feed(m, (nib_str){text, sizeof text}, &taken, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_items"));
    assert_int_equal(nib_matcher_feed(m, (nib_str){text, 10}, &taken, &err), NIB_OK);
    nib_matcher_free(m);
    nib_grammar_free(g);
}

int main(void) {
    make_words();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks), cmocka_unit_test(test_small_cache),
                                       cmocka_unit_test(test_rollback_and_end), cmocka_unit_test(test_named_tokens),
                                       cmocka_unit_test(test_max_items)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    nib_grammar_vocab_free(g_vocab);
    return bad;
}
