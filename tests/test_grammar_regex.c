/* tests/test_grammar_regex.c - regular expressions: what they match, by hand and against PCRE2 on the common subset,
 * and what is refused. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "support/blocks.h"
#include "support/grammar.h"

#include <pcre2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_matches(void **state) {
    static const struct {
        const char *pattern, *text;
        grammar_verdict verdict;
    } rows[] = {
        {"", "", GRAMMAR_MATCH},
        {"a|", "", GRAMMAR_MATCH},
        {"^a$|^b", "b", GRAMMAR_MATCH},
        {"(?:^a|b)c", "bc", GRAMMAR_MATCH},
        {"(a$)?b?", "ab", GRAMMAR_DEAD},
        {"(a$)?b?", "b", GRAMMAR_MATCH},
        {"[a-c\\d_]{2,3}", "b7", GRAMMAR_MATCH},
        {"[^\\W\\d]+", "a_b", GRAMMAR_MATCH},
        {"[^\\W\\d]+", "a1", GRAMMAR_DEAD},
        {".+", "a\nb", GRAMMAR_DEAD},
        {"[\\s\\S]+", "a\nb", GRAMMAR_MATCH},
        {"a{,3}", "a{,3}", GRAMMAR_MATCH},
        {"a{2}", "a", GRAMMAR_INCOMPLETE},
        {"\\u00e9\\x41\\u{1F600}\\uD83D\\uDE00",
         "\xC3\xA9"
         "A\xF0\x9F\x98\x80\xF0\x9F\x98\x80",
         GRAMMAR_MATCH},
        {"\\p{Lu}\\P{L}",
         "\xC3\x89"
         "1",
         GRAMMAR_MATCH},
        {"\\p{L}+", "\xD0\xB6\xE6\xBC\xA2z", GRAMMAR_MATCH},
        {"\\p{Nd}", "x", GRAMMAR_DEAD},
        {"(?<year>\\d{4})-\\d\\d", "2024-1", GRAMMAR_INCOMPLETE},
        {"a*?b+?", "aab", GRAMMAR_MATCH},
        {"\\/\\.\\-\\]", "/.-]", GRAMMAR_MATCH},
        {"[\\b-]", "-", GRAMMAR_MATCH},
        {"(a|b)*a(a|b){12}", "bbabbbbbbbbbbbb", GRAMMAR_MATCH},
        {"((a?){20}){20}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", GRAMMAR_MATCH},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grammar_verdict found = grammar_try(NIB_SYNTAX_REGEX, rows[i].pattern, rows[i].text, NULL);
        if (found != rows[i].verdict) print_error("%s / %s\n", rows[i].pattern, rows[i].text);
        assert_int_equal(found, rows[i].verdict);
    }
}

static void test_refusals(void **state) {
    static const struct {
        const char *pattern;
        nib_status code;
        uint64_t offset;
        const char *says;
    } rows[] = {
        {"(a)\\1", NIB_E_UNSUPPORTED, 3, "back-references"},
        {"a(?=b)", NIB_E_UNSUPPORTED, 1, "look-ahead"},
        {"(?<!a)b", NIB_E_UNSUPPORTED, 0, "look-behind"},
        {"\\bword", NIB_E_UNSUPPORTED, 0, "edge of a word"},
        {"(?i)a", NIB_E_UNSUPPORTED, 0, "kind of group"},
        {"a++", NIB_E_UNSUPPORTED, 2, "possessive"},
        {"\\q", NIB_E_UNSUPPORTED, 0, "escape"},
        {"\\p{Script=Greek}", NIB_E_UNSUPPORTED, 2, "general category"},
        {"\\p{Xx}", NIB_E_FORMAT, 2, "no general category"},
        {"(a", NIB_E_FORMAT, 0, "closing )"},
        {"a)", NIB_E_FORMAT, 1, ") without"},
        {"[a", NIB_E_FORMAT, 0, "closing ]"},
        {"[z-a]", NIB_E_FORMAT, 1, "before its first"},
        {"[\\d-z]", NIB_E_FORMAT, 1, "both ends"},
        {"*a", NIB_E_FORMAT, 0, "nothing to repeat"},
        {"a{3,2}", NIB_E_FORMAT, 1, "below the least"},
        {"^*", NIB_E_FORMAT, 1, "cannot be repeated"},
        {"a**", NIB_E_FORMAT, 2, "needs a group"},
        {"\\u12", NIB_E_FORMAT, 2, "character"},
        {"[]", NIB_E_FORMAT, NIB_NO_OFFSET, "no text"},
        {"a\\", NIB_E_UNSUPPORTED, 1, "escape"},
        {"\xFF", NIB_E_FORMAT, 0, "UTF-8"},
        {"((a{1000}){1000}){1000}", NIB_E_LIMIT, 0, "multiply"},
        {"(x+x+)+y{0,100000000}", NIB_E_LIMIT, 0, "multiply"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
        nib_grammar *g;
        nib_error err;
        config.syntax = NIB_SYNTAX_REGEX;
        nib_status status = nib_grammar_new(&g, rows[i].pattern, strlen(rows[i].pattern), NULL, &config, &err);
        if (status != rows[i].code || !strstr(err.message, rows[i].says))
            print_error("%s: %d %s\n", rows[i].pattern, status, err.message);
        assert_int_equal(status, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_int_equal(err.offset, rows[i].offset);
    }
}

/* Random patterns of a few parts, random texts: the same verdict as PCRE2's. */
static void test_against_pcre2(void **state) {
    static const char *const parts[] = {"a",        "b",    "[ab]",       "[^a]",   ".",   "\\d", "(a|bc)",
                                        "(?:ab?)+", "(b|)", "c{2,3}",     "a*",     "b+?", "c?",  "^",
                                        "$",        "|",    "[a-c]{0,2}", "(a|b$)", "\\w"};
    uint64_t seed = 3;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        char pattern[200] = "", text[12] = "", anchored[220];
        int error;
        size_t offset;
        for (uint64_t n = 1 + blocks_random(&seed) % 6; n; n--)
            strcat(pattern, parts[blocks_random(&seed) % (sizeof parts / sizeof *parts)]);
        snprintf(anchored, sizeof anchored, "^(?:%s)$", pattern);
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)anchored, PCRE2_ZERO_TERMINATED, PCRE2_DOLLAR_ENDONLY | PCRE2_UTF,
                                         &error, &offset, NULL);
        assert_non_null(code);
        nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
        nib_grammar *g = NULL;
        nib_error err;
        config.syntax = NIB_SYNTAX_REGEX;
        nib_status status = nib_grammar_new(&g, pattern, strlen(pattern), NULL, &config, &err);
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
        for (int k = 0; k < 20; k++) {
            size_t n = blocks_random(&seed) % 9;
            for (size_t c = 0; c < n; c++) text[c] = "abc1"[blocks_random(&seed) % 4];
            bool wanted = pcre2_match(code, (PCRE2_SPTR)text, n, 0, 0, data, NULL) >= 0;
            bool found = g && grammar_match(g, (nib_str){text, n}, NULL) == GRAMMAR_MATCH;
            if (wanted != found) print_error("%s / %.*s: %d %s\n", pattern, (int)n, text, found, g ? "" : err.message);
            assert_int_equal(wanted, found);
        }
        assert_true(status == NIB_OK || strstr(err.message, "no text"));
        pcre2_match_data_free(data);
        pcre2_code_free(code);
        nib_grammar_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matches), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_against_pcre2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
