/* tests/test_text_tokenize.c - nib_tokenize as a whole: flags, there and back, words that come again, long texts. */
#include "support/blocks.h"
#include "support/tokenizer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_flags(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("spm", NULL);
    tokenizer_expect(tok, "he", 0, "▁|he");
    tokenizer_expect(tok, "he", NIB_ADD_SPECIAL, "<s>|▁|he");
    tokenizer_expect(tok, "a</s>", NIB_ADD_SPECIAL | NIB_PARSE_SPECIAL, "<s>|▁a|</s>");
    tokenizer_expect(tok, "a</s>", 0, "▁a|<0x3C>|<0x2F>|s|<0x3E>");
    nib_tokenizer_free(tok);
    tok = tokenizer_small("bpe", NULL);
    tokenizer_expect(tok, "in the <|im_end|>", NIB_ADD_SPECIAL | NIB_PARSE_SPECIAL, "in|Ġthe|Ġ|<|im_end|>");
    nib_tokenizer_free(tok);
}

static void test_appends(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    nib_token_list ids = {0};
    nib_error err;
    assert_int_equal(nib_tokenize(tok, "the", 3, 0, &ids, &err), NIB_OK);
    size_t n = ids.n;
    nib_token first = ids.ids[0];
    assert_int_equal(nib_tokenize(tok, "the", 3, 0, &ids, &err), NIB_OK);
    assert_int_equal(ids.n, 2 * n);
    assert_int_equal(ids.ids[0], first);
    assert_int_equal(ids.ids[n], first);
    assert_int_equal(nib_tokenize(tok, NULL, 0, 0, &ids, &err), NIB_OK);
    assert_int_equal(nib_tokenize(tok, "", ((size_t)1 << 30) + 1, 0, &ids, &err), NIB_E_LIMIT);
    assert_int_equal(ids.n, 2 * n);
    nib_token_list_free(&ids);
    nib_token_list_free(&ids);
    nib_token_list_free(NULL);
    nib_tokenizer_free(tok);
}

/* decode(encode(x)) = x, for vocabularies with all bytes and for every pre-tokenizer that does not normalise. */
static void test_there_and_back(void **state) {
    (void)state;
    static const struct {
        const char *kind, *pre;
    } vocabularies[] = {{"spm", NULL},       {"bpe", "gpt-2"},       {"bpe", "default"},     {"bpe", "llama-bpe"},
                        {"bpe", "smollm"},   {"bpe", "gpt-4o"},      {"bpe", "deepseek-v3"}, {"bpe", "deepseek-llm"},
                        {"bpe", "superbpe"}, {"bpe", "chameleon"},   {"bpe", "jais-2"},      {"bpe", "bloom"}};
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof vocabularies / sizeof vocabularies[0]; i++) {
        nib_tokenizer *tok = tokenizer_small(vocabularies[i].kind, vocabularies[i].pre);
        for (int k = 0; k < 60; k++) {
            size_t len, back_len;
            char *text = tokenizer_random_text(blocks_random(&seed) % 2000, &seed, &len);
            nib_token_list ids = {0};
            assert_int_equal(nib_tokenize(tok, text, len, NIB_PARSE_SPECIAL, &ids, NULL), NIB_OK);
            char *back = tokenizer_text(tok, &ids, NIB_UNPARSE_SPECIAL | NIB_KEEP_SPACES, &back_len);
            assert_int_equal(back_len, len);
            assert_memory_equal(back, text, len);
            free(back);
            free(text);
            nib_token_list_free(&ids);
        }
        nib_tokenizer_free(tok);
    }
}

/* Words that are met again give the tokens that they give alone. */
static void test_repeated_words(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    uint64_t seed = 5;
    nib_token_list apart = {0}, together = {0};
    nib_buf text = {0};
    for (int i = 0; i < 3000; i++) {
        char word[40];
        size_t n = 1 + blocks_random(&seed) % (i % 3 ? 4 : 30); /* short ones come again; long ones are not kept */
        word[0] = ' ';
        for (size_t k = 1; k <= n; k++) word[k] = "theinoa"[blocks_random(&seed) % 7];
        nib_buf_append(&text, word, n + 1);
        assert_int_equal(nib_tokenize(tok, word, n + 1, 0, &apart, NULL), NIB_OK);
    }
    assert_int_equal(nib_tokenize(tok, text.ptr, text.len, 0, &together, NULL), NIB_OK);
    assert_int_equal(together.n, apart.n);
    assert_memory_equal(together.ids, apart.ids, apart.n * sizeof *apart.ids);
    nib_token_list_free(&apart);
    nib_token_list_free(&together);
    nib_buf_free(&text);
    nib_tokenizer_free(tok);
}

/* Half a megabyte of the same character: every stage is far from quadratic. */
static void test_long_runs(void **state) {
    (void)state;
    enum { N = 1 << 19 };
    static const char *const kinds[] = {"spm", "bpe"};
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t i = 0; i < 2; i++) {
        nib_tokenizer *tok = tokenizer_small(kinds[i], NULL);
        for (const char *c = "a \n1\x80<"; *c; c++) {
            nib_token_list ids = {0};
            memset(text, *c, N);
            assert_int_equal(nib_tokenize(tok, text, N, NIB_PARSE_SPECIAL, &ids, NULL), NIB_OK);
            assert_true(ids.n >= N / 16);
            nib_token_list_free(&ids);
        }
        nib_tokenizer_free(tok);
    }
    free(text);
}

typedef struct job {
    const nib_tokenizer *tok;
    const char *text;
    size_t len;
    nib_token_list ids;
} job;

static void *run_job(void *arg) {
    job *j = arg;
    nib_tokenize(j->tok, j->text, j->len, 0, &j->ids, NULL);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    enum { N = 4 };
    uint64_t seed = 13;
    job jobs[N + 1]; /* the last one runs alone */
    pthread_t threads[N];
    size_t len;
    nib_tokenizer *tok = tokenizer_small("bpe", "gpt-4o");
    char *text = tokenizer_random_text(20000, &seed, &len);
    for (int i = 0; i <= N; i++) jobs[i] = (job){tok, text, len, {0}};
    for (int i = 0; i < N; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    for (int i = 0; i < N; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    run_job(&jobs[N]);
    for (int i = 0; i <= N; i++) {
        assert_int_equal(jobs[i].ids.n, jobs[N].ids.n);
        assert_memory_equal(jobs[i].ids.ids, jobs[N].ids.ids, jobs[N].ids.n * sizeof(nib_token));
        if (i < N) nib_token_list_free(&jobs[i].ids);
    }
    nib_token_list_free(&jobs[N].ids);
    free(text);
    nib_tokenizer_free(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags),          cmocka_unit_test(test_appends),   cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_repeated_words), cmocka_unit_test(test_long_runs), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
