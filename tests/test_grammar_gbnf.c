/* tests/test_grammar_gbnf.c - llama.cpp's notation: what each construct matches, and what is refused, where and why. */
#include "support/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct row {
    const char *grammar, *text;
    grammar_verdict verdict;
    size_t dead_at;
} row;

static void run(const row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t dead_at;
        grammar_verdict verdict = grammar_try(NIB_SYNTAX_GBNF, rows[i].grammar, rows[i].text, &dead_at);
        if (verdict != rows[i].verdict) print_error("%s / %s\n", rows[i].grammar, rows[i].text);
        assert_int_equal(verdict, rows[i].verdict);
        if (verdict == GRAMMAR_DEAD) assert_int_equal(dead_at, rows[i].dead_at);
    }
}
#define RUN(rows) run(rows, sizeof(rows) / sizeof *(rows))

#define M GRAMMAR_MATCH
#define I GRAMMAR_INCOMPLETE
#define D GRAMMAR_DEAD

static void test_matches(void **state) {
    static const row rows[] = {
        {"root ::= \"\"", "", M, 0},
        {"root ::= \"\"", "a", D, 0},
        {"root ::= \"a\\n\\x41\\u00e9\\U0001F600\\\"\"", "a\nA\xC3\xA9\xF0\x9F\x98\x80\"", M, 0},
        {"root ::= [^a-c]+", "xyz\xE2\x82\xAC", M, 0},
        {"root ::= [^a-c]+", "xb", D, 1},
        {"root ::= [a\\]\\-]+", "a]-", M, 0},
        {"root ::= [-a]+", "-a-", M, 0},
        {"root ::= [a-]+", "-a", M, 0},
        {"root ::= .", "\xF0\x9F\x98", I, 0},
        {"root ::= .", "\xF0\x9F\x98\x80", M, 0},
        {"root ::= .", "\n", M, 0},
        {"root ::= .", "\xC0\x80", D, 0},
        {"root ::= .", "\xED\xA0\x80", D, 1}, /* overlong, surrogate */
        {"root ::= [\xC3\xA0-\xC3\xBF]", "\xC3\xA9", M, 0},
        {"root ::= [\xC3\xA0-\xC3\xBF]", "\xC3\x9F", D, 1},
        {"root ::= x | y # c\nx ::= \"x\"\ny ::= (\n \"y\" |\n \"z\" )+", "yzy", M, 0},
        {"root ::= \"a\"\n     | \"b\"", "b", M, 0},
        {"root ::=\n \"a\"", "a", M, 0},
        {"root ::= (\"a\"?)*", "aaa", M, 0},
        {"root ::= (\"a\"?){3}", "aa", M, 0},
        {"root ::= (\"a\"?){2,3}", "aaaa", D, 3},
        {"root ::= (\"a\"* \"b\"*)*", "abba", M, 0},
        {"root ::= x* \"c\"\nx ::= \"a\"? \"b\"?", "abbac", M, 0},
        {"root ::= (\"a\" | \"ab\"){2}", "aba", M, 0},
        {"root ::= (\"a\" | \"ab\"){2}", "abab", M, 0},
        {"root ::= (\"a\" | \"ab\"){2}", "abb", D, 2},
        {"root ::= \"(\" root \")\" | \"x\"", "((x))", M, 0},
        {"root ::= \"(\" root \")\" | \"x\"", "((x)", I, 0},
        {"root ::= \"a\" root | \"\"", "aaaaaaaaaaaaaaaa", M, 0},
        {"root ::= \"x\" root \"y\"? | \"\"", "xxxyy", M, 0},
        {"root ::= \"x\" root \"y\"? | \"\"", "xyy", D, 2},
        {"root ::= a a a\na ::= \"x\"*", "xxxxx", M, 0},
        {"root ::= ([a-z]{2,3} \",\"){2}", "ab,abc,", M, 0},
        {"root ::= ([a-z]{2,3} \",\"){2}", "abcd", D, 3},
        {"root ::= \"a\"{0}", "", M, 0},
        {"root ::= \"a\"{0,1}", "aa", D, 1},
        {"root ::= \"a\"{ 1 , 2 }", "aa", M, 0},
        {"root ::= \"a\"{2}{2}", "aaaa", M, 0},
        {"root ::= \"a\"{2}{2}", "aaa", I, 0},
        {"root ::= \"a\" loop | \"b\"\nloop ::= \"x\" loop", "b", M, 0},
        {"root ::= \"a\" loop | \"b\"\nloop ::= \"x\" loop", "a", D, 0}, /* no dead end behind a */
    };
    (void)state;
    RUN(rows);
}

typedef struct refusal {
    const char *grammar;
    nib_status code;
    uint64_t offset;
    const char *says;
} refusal;

static void test_refusals(void **state) {
    static const refusal rows[] = {
        {"", NIB_E_FORMAT, 0, "root"},
        {"rot ::= \"a\"", NIB_E_FORMAT, 0, "root"},
        {"root ::= x", NIB_E_FORMAT, 9, "rule x is not defined"},
        {"root ::= \"a\nroot", NIB_E_FORMAT, 9, "closing quote"},
        {"root ::= [a", NIB_E_FORMAT, 9, "closing ]"},
        {"root ::= []", NIB_E_FORMAT, 9, "empty class"},
        {"root ::= [b-a]", NIB_E_FORMAT, 10, "before its first"},
        {"root ::= (\"a\"", NIB_E_FORMAT, 9, "closing )"},
        {"root ::= \"a\")", NIB_E_FORMAT, 12, ") without ("},
        {"root ::= \"\\q\"", NIB_E_FORMAT, 10, "unknown escape"},
        {"root ::= \"\\uD800\"", NIB_E_FORMAT, 10, "no character"},
        {"root ::= \"\xFF\"", NIB_E_FORMAT, 10, "not UTF-8"},
        {"root ::= *", NIB_E_FORMAT, 9, "not the start"},
        {"root : \"a\"", NIB_E_FORMAT, 5, "::="},
        {"root ::= \"a\"{2,1}", NIB_E_FORMAT, 12, "below the least"},
        {"root ::= \"a\"{,}", NIB_E_FORMAT, 13, "least number"},
        {"root ::= \"a\"{5000}", NIB_E_LIMIT, 12, "2000"},
        {"root ::= \"a\"\nroot ::= \"b\"", NIB_E_FORMAT, 13, "twice"},
        {"root ::= \"a\" | root \"b\"", NIB_E_FORMAT, 0, "left recursion: rule root"},
        {"root ::= x\nx ::= y? x \"b\" | \"c\"\ny ::= \"y\"", NIB_E_FORMAT, 11, "left recursion: rule x"},
        {"root ::= root", NIB_E_FORMAT, NIB_NO_OFFSET, "no text"},
        {"root ::= <[5]", NIB_E_FORMAT, 12, "]>"},
        {"root ::= <think>", NIB_E_FORMAT, 9, "vocabulary"},
        {"root ::= !x", NIB_E_FORMAT, 10, "token"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nib_grammar *g;
        nib_error err;
        nib_status status = nib_grammar_new(&g, rows[i].grammar, strlen(rows[i].grammar), NULL, NULL, &err);
        if (status != rows[i].code || !strstr(err.message, rows[i].says))
            print_error("%s: %s\n", rows[i].grammar, err.message);
        assert_int_equal(status, rows[i].code);
        assert_null(g);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_int_equal(err.offset, rows[i].offset);
    }
}

static void test_limits(void **state) {
    enum { DEPTH = 60000 };
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    char *text = malloc(DEPTH * 2 + 100);
    size_t n = (size_t)sprintf(text, "root ::= ");
    (void)state;
    memset(text + n, '(', DEPTH);
    strcpy(text + n + DEPTH, "\"a\"");
    n += DEPTH + 3;
    memset(text + n, ')', DEPTH);
    n += DEPTH;
    assert_int_equal(nib_grammar_new(&g, text, n, NULL, NULL, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_depth"));
    config.max_text_bytes = 100;
    assert_int_equal(nib_grammar_new(&g, text, n, NULL, &config, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_text_bytes"));
    config = (nib_grammar_config)NIB_GRAMMAR_CONFIG_INIT;
    config.max_states = 10;
    assert_int_equal(nib_grammar_new(&g, "root ::= \"0123456789\"", 21, NULL, &config, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_states"));
    config = (nib_grammar_config)NIB_GRAMMAR_CONFIG_INIT;
    config.max_edges = 10;
    assert_int_equal(nib_grammar_new(&g, "root ::= \"0123456789\"", 21, NULL, &config, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_edges"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matches), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
