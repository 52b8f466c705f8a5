/* tests/test_grammar_cache.c - grammars that are shared: the same request gives the same one, also to many threads at once;
 * the oldest go; errors are told to everybody and not kept. */
#include "nib.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static nib_grammar *get(nib_grammar_cache *c, const char *text) {
    nib_grammar *g;
    nib_error err;
    if (nib_grammar_cache_get(c, &g, text, strlen(text), NULL, NULL, &err) != NIB_OK) fail_msg("%s", err.message);
    return g;
}

static nib_grammar_cache *cache(uint32_t max_grammars, size_t max_bytes) {
    nib_grammar_cache *c;
    assert_int_equal(nib_grammar_cache_new(&c, max_grammars, max_bytes, NULL), NIB_OK);
    return c;
}

static void same_requests_share(void **state) {
    (void)state;
    nib_grammar_cache *c = cache(8, (size_t)1 << 24);
    nib_grammar_cache_figures figures;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *a = get(c, "root ::= \"a\""), *b = get(c, "root ::= \"a\""), *d = get(c, "root ::= \"b\""), *e;
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, d);
    config.syntax = NIB_SYNTAX_REGEX;
    assert_int_equal(nib_grammar_cache_get(c, &e, "root ::= \"a\"", 12, NULL, &config, NULL), NIB_OK);
    assert_ptr_not_equal(a, e);
    nib_grammar_cache_stats(c, &figures);
    assert_int_equal(figures.n_hits, 1);
    assert_int_equal(figures.n_misses, 3);
    assert_int_equal(figures.n_grammars, 3);
    nib_grammar_free(a);
    nib_grammar_free(d);
    nib_grammar_free(e);
    nib_grammar_cache_free(c);
    nib_matcher *m; /* it is still there, and goes with its last matcher */
    assert_int_equal(nib_matcher_new(&m, b, NULL), NIB_OK);
    nib_grammar_free(b);
    assert_int_equal(nib_matcher_feed(m, (nib_str){"a", 1}, NULL, NULL), NIB_OK);
    nib_matcher_free(m);
}

static void oldest_go(void **state) {
    (void)state;
    char text[40];
    nib_grammar_cache *c = cache(4, (size_t)1 << 24), *small = cache(100, 1);
    nib_grammar_cache_figures figures;
    nib_grammar *first = get(c, "root ::= \"first\"");
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "root ::= \"x%d\"", i);
        nib_grammar_free(get(c, text));
        nib_grammar_free(get(small, text));
        nib_grammar *again = get(c, "root ::= \"first\""); /* it is used, so it stays */
        assert_ptr_equal(first, again);
        nib_grammar_free(again);
    }
    nib_grammar_cache_stats(c, &figures);
    assert_int_equal(figures.n_grammars, 4);
    assert_int_equal(figures.n_evicted, 17);
    nib_grammar_cache_stats(small, &figures);
    assert_int_equal(figures.n_grammars, 1); /* the newest, however large */
    nib_grammar_free(first);
    nib_grammar_cache_free(c);
    nib_grammar_cache_free(small);
}

static void answers_share(void **state) {
    (void)state;
    nib_grammar_cache *c = cache(8, (size_t)1 << 24);
    nib_chat_grammar_config config = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    nib_grammar *a, *b;
    config.content = "root ::= \"a\"";
    config.content_len = 12;
    assert_int_equal(nib_grammar_cache_chat(c, &a, &config, NULL, NULL), NIB_OK);
    assert_int_equal(nib_grammar_cache_chat(c, &b, &config, NULL, NULL), NIB_OK);
    assert_ptr_equal(a, b);
    nib_grammar_free(b);
    config.starts_thinking = true;
    assert_int_equal(nib_grammar_cache_chat(c, &b, &config, NULL, NULL), NIB_OK);
    assert_ptr_not_equal(a, b);
    nib_grammar_free(a);
    nib_grammar_free(b);
    config.content = NULL;
    assert_int_equal(nib_grammar_cache_chat(c, &a, &config, NULL, NULL), NIB_OK);
    assert_null(a);
    nib_grammar_cache_free(c);
}

enum { N_THREADS = 4, N_ROUNDS = 40 };

static void *use(void *user) {
    nib_grammar_cache *c = user;
    nib_error err;
    for (int i = 0; i < N_ROUNDS; i++) {
        char text[80];
        nib_grammar *g;
        nib_matcher *m;
        snprintf(text, sizeof text, i % 5 ? "root ::= \"r%d\" [a-z]{0,20}" : "root ::= \"r%d", i % 9);
        nib_status status = nib_grammar_cache_get(c, &g, text, strlen(text), NULL, NULL, &err);
        if ((status == NIB_OK) != (i % 5 != 0) || (status != NIB_OK && !err.message[0])) return "wrong";
        if (status != NIB_OK) continue;
        if (nib_matcher_new(&m, g, NULL) != NIB_OK) return "no matcher";
        nib_grammar_free(g);
        snprintf(text, sizeof text, "r%dabc", i % 9);
        if (nib_matcher_feed(m, (nib_str){text, strlen(text)}, NULL, NULL) != NIB_OK) return "no match";
        nib_matcher_free(m);
    }
    return NULL;
}

static void threads_share(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    nib_grammar_cache *c = cache(3, (size_t)1 << 24);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use, c), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong) fail_msg("%s", (const char *)wrong);
    }
    nib_grammar_cache_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_requests_share),
        cmocka_unit_test(oldest_go),
        cmocka_unit_test(answers_share),
        cmocka_unit_test(threads_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
