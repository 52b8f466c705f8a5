/* tests/test_text_pretok.c - every pre-tokenizer cuts a sample as the model's own tokenizer does; on any text the
 * pieces are the text, cut; long runs of one character are no trouble. */
#include "support/blocks.h"
#include "support/tokenizer.h"
#include "text/pretok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLE                                                                                                         \
    "You'LL pay 1234567.89 at  SãoPaulo's CAFÉs:\t中文123カナ 한국어 \r\n\n   a_b(c) $x=+y 10½ e\xCC\x81" "x  "

/* The first name of each group; pieces with '|' between. */
static const struct {
    const char *name, *pieces;
} samples[] = {
    {"default",
     "You|'|LL| pay| |123|456|7|.|89| at| | SãoPaulo|'|s| CAFÉs|:|\t|中文|123|カナ| 한국어| \r\n\n  | a|_|b|(|c|)|"
     " |$|x|=+|y| |10½| e|\xCC\x81" "|x|  "},
    {"gpt-2",
     "You|'|LL| pay| 1234567|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t|中文|123|カナ| 한국어| \r\n\n  | a|_|b|(|c|)| $|x|"
     "=+|y| 10½| e|\xCC\x81" "|x|  "},
    {"starcoder",
     "You|'|LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t|中文|1|2|3|カナ| 한국어| \r\n\n  | a|_|b|"
     "(|c|)| $|x|=+|y| |1|0|½| e|\xCC\x81" "|x|  "},
    {"llama-bpe",
     "You|'LL| pay| |123|456|7|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e|\xCC\x81" "x|  "},
    {"qwen2",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e|\xCC\x81" "x|  "},
    {"qwen35",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e\xCC\x81" "x|  "},
    {"ufakzeka",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e|\xCC\x81" "x|  "},
    {"laguna",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r|\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e|\xCC\x81" "x|  "},
    {"minicpm5",
     "You|'LL| pay| |123|456|7|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e|\xCC\x81" "x|  "},
    {"jais-2",
     "You|'LL| pay| |123|456|7|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e|\xCC\x81" "x|  "},
    {"seed-coder",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e|\xCC\x81" "x|  "},
    {"bailingmoe",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e|\xCC\x81" "x|  "},
    {"exaone-moe",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'s| CAFÉs|:|\t中文|1|2|3|カナ 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e\xCC\x81" "x|  "},
    {"gpt-4o",
     "You'LL| pay| |123|456|7|.|89| at| | São|Paulo's| CAFÉs|:|\t中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e\xCC\x81" "x|  "},
    {"tekken",
     "You|'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | São|Paulo|'s| CAFÉs|:|\t中文|1|2|3|カナ| 한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e\xCC\x81" "x|  "},
    {"kimi-k2",
     "You'LL| pay| |123|456|7|.|89| at| | São|Paulo's| CAFÉs|:|\t|中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e\xCC\x81" "x|  "},
    {"youtu",
     "You'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | São|Paulo's| CAFÉs|:|\t|中文|1|2|3|カナ| |한국어| \r\n\n|  | a|_b|(c|"
     ")| $|x|=+|y| |1|0|½| e\xCC\x81" "x|  "},
    {"tiny_aya",
     "You'LL| pay| |1|234|567|.|89| at| | São|Paulo's| CAFÉs|:|\t中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|x|"
     "=+|y| |10½| e\xCC\x81" "x|  "},
    {"superbpe",
     "You'LL pay |1|234|567|.|89| at  SãoPaulo's CAFÉs:\t中文|123|カナ 한국어 \r\n\n   a_b(c) $x=+y |10½| e\xCC\x81" "x  "},
    {"deepseek-llm",
     "You|'|LL| pay| |1234567|.|89| at| | S|ã|oPaulo|'|s| CAF|É|s|:|\t|中文|123|カナ| |한국어| |\r|\n|\n|  | a|_|b|"
     "(|c|)| $|x|=+|y| |10½| e|\xCC\x81" "|x|  "},
    {"deepseek-coder",
     "You|'|LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo|'|s| CAFÉs|:|\t|中文|1|2|3|カナ| |한국어| |\r|\n|\n|  | a|"
     "_|b|(|c|)| $|x|=+|y| |1|0|½| e|\xCC\x81" "|x|  "},
    {"deepseek-v3",
     "You|'LL| pay| |123|456|7|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t|中文|123|カナ| 한국어| \r\n\n|  | a|_b|(c|)| $|"
     "x|=+|y| |10½| e\xCC\x81" "x|  "},
    {"afmoe",
     "You|'LL| pay| |1|234|567|.|89| at| | SãoPaulo|'s| CAFÉs|:|\t|中文|123|カナ| |한국어| \r\n\n|  | a|_b|(c|)| $|"
     "x|=+|y| |10½| e\xCC\x81" "x|  "},
    {"falcon",
     "You|'|LL| pay| |123|456|7|.|89| at| | SãoPaulo|'|s| CAFÉs|:|\t|中文|123|カナ| 한국어| \r\n\n  | a|_|b|(|c|)|"
     " |$|x|=+|y| 10½| e|\xCC\x81" "|x|  "},
    {"bloom",
     "You'LL| pay| 1234567|.|89| at| | SãoPaulo's| CAFÉs:|\t|中文123カナ| 한국어| \r\n\n  | a_b|(|c|)| $x=+y| 10½|"
     " e\xCC\x81" "x|  "},
    {"viking",
     "You'LL| pay| |1|2|3|4|5|6|7|.|8|9| at| | SãoPaulo's| CAFÉs:|\t|中文|1|2|3|カナ| 한국어| \r\n\n  | a_b|(|c|)|"
     " $x=+y| |1|0|½| e\xCC\x81" "x|  "},
    {"chameleon",
     "You|'|LL| pay| |1|2|3|4|5|6|7|.|8|9| at|  |SãoPaulo|'|s| CAFÉs|:|\t|中文|1|2|3|カナ| 한국어| \r|\n|\n|  | a|"
     "_|b|(|c|)| |$|x|=|+|y| |1|0|½| e|\xCC\x81" "|x|  "},
    {"gemma4",
     "You'LL pay 1234567.89 at  SãoPaulo's CAFÉs:\t中文123カナ 한국어 \r|\n\n|   a_b(c) $x=+y 10½ e\xCC\x81" "x  "},
};

static const char *pieces_of(const char *name) { /* of its group */
    const nib_text_pre *pre = nib_text_pre_find((nib_str){name, strlen(name)});
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const nib_text_pre *first = nib_text_pre_find((nib_str){samples[i].name, strlen(samples[i].name)});
        if (first && first->passes == pre->passes) return samples[i].pieces;
    }
    return "no sample";
}

/* All pieces with '|' between. */
static void cut(const nib_text_pre *pre, nib_str text, nib_buf *out) {
    nib_text_pretok pretok;
    nib_text_pretok_walk walk = {0};
    nib_str word;
    nib_error err;
    out->len = 0;
    if (nib_text_pretok_init(&pretok, pre, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_int_equal(nib_text_pretok_begin(&walk, &pretok, text, &err), NIB_OK);
    for (bool is_first = true; nib_text_pretok_next(&walk, &word, &err); is_first = false) {
        if (!is_first) nib_buf_char(out, '|');
        nib_buf_append(out, word.ptr, word.len);
    }
    if (walk.status != NIB_OK) fail_msg("%s: %s", pre->name, err.message);
    nib_text_pretok_end(&walk);
    nib_text_pretok_free(&pretok);
}

static void test_samples(void **state) {
    (void)state;
    nib_buf out = {0};
    const nib_text_pre *pre;
    for (size_t i = 0; (pre = nib_text_pre_at(i)) != NULL; i++) {
        cut(pre, (nib_str){SAMPLE, sizeof SAMPLE - 1}, &out);
        assert_string_equal(nib_buf_cstr(&out), pieces_of(pre->name));
    }
    nib_buf_free(&out);
}

static void test_names(void **state) {
    (void)state;
    nib_buf list = {0};
    const nib_text_pre *pre;
    for (size_t i = 0; (pre = nib_text_pre_at(i)) != NULL; i++)
        assert_ptr_equal(nib_text_pre_find((nib_str){pre->name, strlen(pre->name)}), pre); /* no name twice */
    assert_null(nib_text_pre_find((nib_str){"nosuch", 6}));
    assert_null(nib_text_pre_find((nib_str){"", 0}));
    assert_null(nib_text_pre_find((nib_str){"gpt-22", 5 + 1}));
    nib_text_pre_list(&list);
    assert_true(list.len < 360); /* fits into an error message with what stands before it */
    assert_non_null(strstr(nib_buf_cstr(&list), "default gpt-2 starcoder llama-bpe"));
    nib_buf_free(&list);
}

/* U+0085 is white space and U+180E is not; the long s is an s without case. */
static void test_unicode(void **state) {
    (void)state;
    nib_buf out = {0};
    static const struct {
        const char *name, *text, *pieces;
    } cases[] = {
        {"llama-bpe", "a\xC2\x85\xC2\x85" "b", "a|\xC2\x85|\xC2\x85" "b"},
        {"gpt-2", "1\xE1\xA0\x8E" "2", "1|\xE1\xA0\x8E|2"},
        {"gpt-2", "a\xE3\x80\x80 b", "a|\xE3\x80\x80| b"},
        {"llama-bpe", "a'\xC5\xBF" "b", "a|'\xC5\xBF|b"},
        {"kimi-k2", "a\xE3\x80\x87\xE3\x80\x85" "b", "a|\xE3\x80\x87\xE3\x80\x85|b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_str name = {cases[i].name, strlen(cases[i].name)};
        cut(nib_text_pre_find(name), (nib_str){cases[i].text, strlen(cases[i].text)}, &out);
        assert_string_equal(nib_buf_cstr(&out), cases[i].pieces);
    }
    nib_buf_free(&out);
}

static void test_digits(void **state) {
    (void)state;
    nib_buf out = {0};
    static const struct {
        const char *name, *text, *pieces;
    } cases[] = {
        {"tiny_aya", "1", "1"},
        {"tiny_aya", "1234567", "1|234|567"},
        {"tiny_aya", "12345a", "123|45|a"}, /* no group where a word goes on */
        {"tiny_aya", "12345_ 12345-", "123|45|_| |12|345|-"},
        {"superbpe", "123", "123"},
        {"superbpe", "1234567", "1|234|567"},
        {"superbpe", "123456 12", "123|456| |12"},
        {"superbpe", "12\xC2\xBD" "345", "12\xC2\xBD|345"},
        {"afmoe", "12\xC2\xBD" "3456", "1|2\xC2\xBD" "3|456"}, /* all numbers count */
        {"afmoe", "123456", "123|456"},
        {"deepseek-llm", "a  b  ", "a| | b|  "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_str name = {cases[i].name, strlen(cases[i].name)};
        cut(nib_text_pre_find(name), (nib_str){cases[i].text, strlen(cases[i].text)}, &out);
        assert_string_equal(nib_buf_cstr(&out), cases[i].pieces);
    }
    nib_buf_free(&out);
}

/* The pieces joined are the text, and none is empty. */
static void check_pieces(const nib_text_pretok *pretok, nib_str text) {
    nib_text_pretok_walk walk = {0};
    nib_error err;
    size_t at = 0;
    nib_str word;
    assert_int_equal(nib_text_pretok_begin(&walk, pretok, text, &err), NIB_OK);
    while (nib_text_pretok_next(&walk, &word, &err)) {
        assert_ptr_equal(word.ptr, text.ptr + at);
        assert_true(word.len > 0);
        at += word.len;
    }
    if (walk.status != NIB_OK) fail_msg("%s: %s", pretok->row->name, err.message);
    assert_int_equal(at, text.len);
    nib_text_pretok_end(&walk);
}

static void test_pieces_are_the_text(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        nib_text_pretok pretok;
        nib_str name = {samples[i].name, strlen(samples[i].name)};
        assert_int_equal(nib_text_pretok_init(&pretok, nib_text_pre_find(name), NULL), NIB_OK);
        check_pieces(&pretok, (nib_str){"", 0});
        for (int k = 0; k < 100; k++) {
            size_t len;
            char *text = tokenizer_random_text(blocks_random(&seed) % 300, &seed, &len);
            check_pieces(&pretok, (nib_str){text, len});
            free(text);
        }
        nib_text_pretok_free(&pretok);
    }
}

/* A quarter of a megabyte of the same few bytes. Anything quadratic would take hours, anything recursive the stack. */
static void test_long_runs(void **state) {
    (void)state;
    static const char *const runs[] = {"a",  "A",  " ",   "\n",      "1", ".", "a ", "\xE4\xB8\xAD", "\xCC\x81",
                                       "1a", "'s", " \t", "\xC2\x85"};
    enum { N = 1 << 18 };
    char *text = malloc(N + 8);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        nib_text_pretok pretok;
        nib_str name = {samples[i].name, strlen(samples[i].name)};
        assert_int_equal(nib_text_pretok_init(&pretok, nib_text_pre_find(name), NULL), NIB_OK);
        for (size_t k = 0; k < sizeof runs / sizeof runs[0]; k++) {
            size_t len = 0, n = strlen(runs[k]);
            for (; len + n <= N; len += n) memcpy(text + len, runs[k], n);
            check_pieces(&pretok, (nib_str){text, len});
            text[len - n] = 'x'; /* what stands behind a run decides over it */
            check_pieces(&pretok, (nib_str){text, len - n + 1});
        }
        nib_text_pretok_free(&pretok);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples), cmocka_unit_test(test_names),
        cmocka_unit_test(test_unicode), cmocka_unit_test(test_digits),
        cmocka_unit_test(test_pieces_are_the_text), cmocka_unit_test(test_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
