/* tests/test_text_tokenize.c - nib_tokenize as a whole: flags, there and back, words that come again, long texts. */
#include "base/mem.h"
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

static void expect_spans(const nib_tokenizer *tok, char *text, nib_span *spans, size_t n, const char *tokens) {
    nib_token_list ids = {0};
    nib_buf found = {0};
    nib_error err;
    nib_rendered r = {text, strlen(text), spans, n};
    if (nib_tokenize_spans(tok, &r, NIB_ADD_SPECIAL, &ids, &err) != NIB_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < ids.n; i++) {
        nib_str token = nib_tokenizer_text(tok, ids.ids[i]);
        nib_buf_printf(&found, "%s%.*s", i ? "|" : "", (int)token.len, token.ptr);
    }
    assert_string_equal(found.len ? nib_buf_cstr(&found) : "", tokens);
    nib_buf_free(&found);
    nib_token_list_free(&ids);
}
#define SPANS(...) (nib_span[]){__VA_ARGS__}, sizeof(nib_span[]){__VA_ARGS__} / sizeof(nib_span)

static void test_spans(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    char turn[] = "<|im_start|>in <|im_end|><|im_end|>", words[] = "in the in", end[] = "<|im_end|>";
    expect_spans(tok, turn, SPANS({12, true}, {13, false}, {10, true}), "<|im_start|>|in|Ġ|<|||i|m|_|en|d|||>|<|im_end|>");
    expect_spans(tok, words, SPANS({1, true}, {4, false}, {4, true}), "in|Ġthe|Ġ|in"); /* merged across borders */
    expect_spans(tok, end, SPANS({9, true}, {1, false}), "<|||i|m|_|en|d|||>");
    nib_tokenizer_free(tok);
    tok = tokenizer_small("spm", NULL);
    char bos[] = "<s>a</s>", eos[] = "a</s>", typed[] = "<s>a", empty[] = "";
    expect_spans(tok, bos, SPANS({3, true}, {1, false}, {4, true}), "<s>|▁a|</s>"); /* BOS is there already */
    expect_spans(tok, eos, SPANS({5, false}), "<s>|▁a|<0x3C>|<0x2F>|s|<0x3E>");
    expect_spans(tok, typed, SPANS({4, false}), "<s>|▁|<0x3C>|s|<0x3E>|a");
    expect_spans(tok, empty, NULL, 0, "<s>");
    nib_tokenizer_free(tok);
}

static void test_wrong_spans(void **state) {
    (void)state;
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    nib_token_list ids = {0};
    char text[] = "abc";
    nib_span spans[] = {{2, true}, {SIZE_MAX, false}};
    nib_rendered r = {text, 3, spans, 2};
    for (; r.n_spans < 3; r.n_spans--) assert_int_equal(nib_tokenize_spans(tok, &r, 0, &ids, NULL), NIB_E_ARG);
    assert_int_equal(ids.n, 0);
    nib_tokenizer_free(tok);
}

/* User-defined tokens that look like markers, or that the file's template is written with, are not to be typed by users. */
static void write_template(nib_gguf_writer *w) {
    nib_gguf_write_str(w, "tokenizer.chat_template", "{{ '<call>' }}{{ messages }}");
}

static void test_markup(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<|u|>", "<call>", "<b>", "<", "|", "u", ">", "c", "a", "l", NULL};
    static const float scores[13];
    nib_tokenizer *tok = tokenizer_must(&(tokenizer_spec){"llama", NULL, tokens, "?ccuuunnnnnnn", scores, NULL, write_template});
    char text[] = "<|u|><call><b>";
    expect_spans(tok, text, SPANS({14, true}), "<s>|<|u|>|<call>|<b>");
    expect_spans(tok, text, SPANS({14, false}), "<s>|<unk>|<unk>|<unk>|<|||u|||>|<|c|a|l|l|>|<b>"); /* the unknown: space prefix */
    tokenizer_expect(tok, text, 0, "<|u|>|<call>|<b>"); /* as others do it */
    nib_tokenizer_free(tok);
}

/* Random text, cut at random: trusted all of it is what nib_tokenize parses, untrusted all of it what it does not. */
static void test_spans_random(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int k = 0; k < 4; k++) {
        nib_tokenizer *tok = tokenizer_small(k % 2 ? "spm" : "bpe", NULL);
        for (int i = 0; i < 200; i++) {
            size_t len, n = 0;
            char *text = tokenizer_random_text(300, &seed, &len);
            nib_span spans[400];
            for (size_t left = len; left > 0; left -= spans[n++].len)
                spans[n] = (nib_span){1 + blocks_random(&seed) % left, k < 2};
            nib_token_list found = {0}, wanted = {0};
            nib_rendered r = {text, len, spans, n};
            assert_int_equal(nib_tokenize_spans(tok, &r, 0, &found, NULL), NIB_OK);
            assert_int_equal(nib_tokenize(tok, text, len, k < 2 ? NIB_PARSE_SPECIAL : 0, &wanted, NULL), NIB_OK);
            assert_int_equal(found.n, wanted.n);
            assert_memory_equal(found.ids, wanted.ids, found.n * sizeof *found.ids);
            nib_token_list_free(&found);
            nib_token_list_free(&wanted);
            free(text);
        }
        nib_tokenizer_free(tok);
    }
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

/* A list takes as many tokens as it may, to the last one, and nothing of a text that has more. */
static void test_limit(void **state) {
    (void)state;
    static const char *const kinds[] = {"spm", "bpe"};
    uint64_t seed = 13;
    for (int k = 0; k < 400; k++) {
        nib_tokenizer *tok = tokenizer_small(kinds[k % 2], NULL);
        size_t len;
        char *text = tokenizer_random_text(1 + blocks_random(&seed) % 400, &seed, &len);
        nib_token_list all = {0}, list = {0};
        unsigned flags = (unsigned)(k / 2 % 4);
        assert_int_equal(nib_tokenize(tok, text, len, flags, &all, NULL), NIB_OK);
        list.most = all.n;
        assert_int_equal(nib_tokenize(tok, text, len, flags, &list, NULL), NIB_OK);
        assert_int_equal(list.n, all.n);
        assert_memory_equal(list.ids, all.ids, all.n * sizeof *all.ids);
        list.n = 0;
        list.most = all.n > 1 ? 1 + blocks_random(&seed) % (all.n - 1) : 0;
        nib_error err;
        assert_int_equal(nib_tokenize(tok, text, len, flags, &list, &err), list.most ? NIB_E_LIMIT : NIB_OK);
        assert_int_equal(list.n, list.most ? 0 : all.n);
        nib_token_list_free(&all);
        nib_token_list_free(&list);
        free(text);
        nib_tokenizer_free(tok);
    }
}

/* A word of half a megabyte is known to be too long by its length: it is not merged, which would take memory. */
static void test_limit_early(void **state) {
    (void)state;
    enum { N = 1 << 19 };
    char *run = malloc(N);
    memset(run, 'e', N);
    nib_tokenizer *tok = tokenizer_small("bpe", NULL);
    for (size_t most = 0; most < 2; most++) {
        nib_token_list list = {.most = most};
        uint64_t before = nib_alloc_count();
        assert_int_equal(nib_tokenize(tok, run, N, 0, &list, NULL), most ? NIB_E_LIMIT : NIB_OK);
        if (most) assert_in_range(nib_alloc_count() - before, 0, 8);
        else assert_true(nib_alloc_count() - before > 8);
        nib_token_list_free(&list);
    }
    nib_tokenizer_free(tok);
    free(run);
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
        cmocka_unit_test(test_limit),          cmocka_unit_test(test_limit_early),
        cmocka_unit_test(test_repeated_words), cmocka_unit_test(test_long_runs), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_spans),          cmocka_unit_test(test_markup),    cmocka_unit_test(test_spans_random),
        cmocka_unit_test(test_wrong_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
