/* tests/test_text_vocab.c - texts to ids and back, in the table and in the tree. */
#include "support/blocks.h"
#include "text/trie.h"
#include "text/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static nib_str str(const char *text) {
    return (nib_str){text, strlen(text)};
}

static void test_find(void **state) {
    (void)state;
    nib_text_vocab v;
    static const char *const texts[] = {"a", "ab", "", "abc", "ab", "a much longer token than eight bytes", "\xC4\xA0"};
    assert_int_equal(nib_text_vocab_init(&v, 7, 64, NULL), NIB_OK);
    for (size_t i = 0; i < 7; i++) assert_true(nib_text_vocab_add(&v, str(texts[i])));
    assert_false(nib_text_vocab_add(&v, str("x")));
    assert_int_equal(v.n, 7);
    assert_int_equal(v.n_duplicates, 1);
    assert_int_equal(v.max_len, strlen(texts[5]));
    for (nib_token id = 0; id < 7; id++) {
        nib_str text = nib_text_vocab_text(&v, id);
        assert_int_equal(text.len, strlen(texts[id]));
        assert_memory_equal(text.ptr, texts[id], text.len);
        nib_token expected = id == 2 ? NIB_TOKEN_NONE : id == 4 ? 1 : id; /* empty; twice */
        assert_int_equal(nib_text_vocab_find(&v, text.ptr, text.len), expected);
    }
    assert_int_equal(nib_text_vocab_find(&v, "abd", 3), NIB_TOKEN_NONE);
    assert_int_equal(nib_text_vocab_find(&v, "b", 1), NIB_TOKEN_NONE);
    nib_text_vocab_free(&v);
}

static void test_limits(void **state) {
    (void)state;
    nib_text_vocab v;
    nib_error err;
    assert_int_equal(nib_text_vocab_init(&v, NIB_TEXT_MAX_TOKENS + 1, 1, &err), NIB_E_LIMIT);
    assert_int_equal(nib_text_vocab_init(&v, 1, (uint64_t)UINT32_MAX + 1, &err), NIB_E_LIMIT);
    assert_int_equal(nib_text_vocab_init(&v, 2, 3, &err), NIB_OK);
    assert_true(nib_text_vocab_add(&v, str("ab")));
    assert_false(nib_text_vocab_add(&v, str("cd"))); /* four bytes, three were announced */
    nib_text_vocab_free(&v);
}

#define N_MANY 20000

static void test_many(void **state) {
    (void)state;
    nib_text_vocab v;
    nib_text_trie trie = {0};
    char text[32];
    assert_int_equal(nib_text_vocab_init(&v, N_MANY, N_MANY * sizeof text, NULL), NIB_OK);
    for (int i = 0; i < N_MANY; i++) {
        snprintf(text, sizeof text, "%x:%d", (unsigned)i * 2654435761u, i);
        assert_true(nib_text_vocab_add(&v, str(text)));
        assert_int_equal(nib_text_trie_add(&trie, str(text), i, NULL), NIB_OK);
    }
    for (int i = 0; i < N_MANY; i++) {
        snprintf(text, sizeof text, "%x:%d", (unsigned)i * 2654435761u, i);
        assert_int_equal(nib_text_vocab_find(&v, text, strlen(text)), i);
        uint32_t node = 0;
        for (const char *p = text; *p; p++) {
            node = nib_text_trie_step(&trie, node, (unsigned char)*p);
            assert_int_not_equal(node, 0);
        }
        assert_int_equal(trie.value[node], i);
        assert_int_equal(nib_text_trie_step(&trie, node, 'z'), 0);
    }
    nib_text_trie_free(&trie);
    nib_text_vocab_free(&v);
}

static void test_trie_prefixes(void **state) {
    (void)state;
    nib_text_trie trie = {0};
    assert_int_equal(nib_text_trie_step(&trie, 0, 'a'), 0); /* empty */
    assert_int_equal(nib_text_trie_add(&trie, str("abc"), 1, NULL), NIB_OK);
    assert_int_equal(nib_text_trie_add(&trie, str("a"), 2, NULL), NIB_OK);
    assert_int_equal(nib_text_trie_add(&trie, str("a"), 3, NULL), NIB_OK); /* the first stays */
    assert_int_equal(nib_text_trie_add(&trie, (nib_str){"\0\xFF", 2}, 4, NULL), NIB_OK);
    uint32_t a = nib_text_trie_step(&trie, 0, 'a'), ab = nib_text_trie_step(&trie, a, 'b');
    assert_int_equal(trie.value[a], 2);
    assert_int_equal(trie.value[ab], NIB_TOKEN_NONE);
    assert_int_equal(trie.value[nib_text_trie_step(&trie, ab, 'c')], 1);
    assert_int_equal(trie.value[nib_text_trie_step(&trie, nib_text_trie_step(&trie, 0, 0), 0xFF)], 4);
    nib_text_trie_free(&trie);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_trie_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
