/* tests/test_chat_output_json.c - strict JSON, byte by byte: what is valid is what jansson takes, on texts that are
 * nearly JSON; where a value ends; members; strings in and out. */
#include "chat/output/json.h"

#include "base/buf.h"
#include "support/blocks.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nib_str str(const char *text) {
    return (nib_str){text, strlen(text)};
}

static void test_valid(void **state) {
    (void)state;
    static const char *const good[] = {
        "{}",
        "[]",
        " [ 1 , -0.5e+3 , 0E1, true,false ,null ] ",
        "{\"a\":{\"a\":[]},\"a\":\"\"}",
        "\"\\u00e4\\ud83d\\ude00\\n\\/\"",
        "0",
        "-7",
        "1.25",
        "\"\xF0\x9F\x98\x80\xED\x9F\xBF\"",
        "\"\\u0000\"",
    };
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "[1}",
        "01",
        "-",
        "-a",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "0x1",
        "tru",
        "truee",
        "nul",
        "NaN",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\ud800\\n\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\xFF\"",
        "\"\xC0\x80\"",
        "\"\xED\xA0\x80\"",
        "\"\xE4\x22",
        "\"\xF4\x90\x80\x80\"",
        "1 2",
        "{} {}",
        "[1]]",
        "// a\n1",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!nib_chat_json_is_valid(str(good[i]))) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (nib_chat_json_is_valid(str(bad[i]))) fail_msg("taken: %s", bad[i]);
}

static void test_against_jansson(void **state) {
    (void)state;
    static const char alphabet[] = "{}[]\",:\\u0123456789abcdefDE+-.truefalsn \n\xC3\xA4\xED\x9F\xBF";
    static const char *const starts[] = {"{\"a\": [1, 2.5, {\"b\": \"\\ud83d\\ude00\"}]}", "[true, false, null, -1e-2]",
                                         "\"a\\u00e4\xC3\xA4\"", "[[[[]]]]"};
    uint64_t seed = 1;
    unsigned n_good = 0;
    for (int round = 0; round < 200000; round++) {
        char text[64];
        size_t len = strlen(starts[round % 4]);
        memcpy(text, starts[round % 4], len);
        for (uint64_t n = blocks_random(&seed) % 3; n > 0; n--) {
            size_t at = blocks_random(&seed) % len;
            char c = alphabet[blocks_random(&seed) % (sizeof alphabet - 1)];
            if (blocks_random(&seed) % 2) memmove(text + at + 1, text + at, len++ - at);
            text[at] = c;
        }
        json_t *wanted = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        bool found = nib_chat_json_is_valid((nib_str){text, len});
        if (found != !!wanted) fail_msg("%.*s: %s", (int)len, text, found ? "taken" : "refused");
        n_good += found;
        json_decref(wanted);
    }
    assert_in_range(n_good, 1000, 199000);
}

/* The end is seen at the last byte of a container, and one byte later of a number. */
static void test_end(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } values[] = {{"{\"a\": [\"}]\", {}]} x", 17}, {"[]]", 2}, {"\"a\\\"\" ", 5}, {"12,", 2}, {"true]", 4}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (size_t piece = 1; piece < 20; piece++) {
            nib_chat_json j = {0};
            nib_chat_json_result result = NIB_CHAT_JSON_MORE;
            size_t at = 0, used;
            while (result == NIB_CHAT_JSON_MORE) {
                size_t n = strlen(values[i].text) - at;
                result = nib_chat_json_read(&j, values[i].text + at, n < piece ? n : piece, &used);
                at += used;
            }
            assert_int_equal(result, NIB_CHAT_JSON_DONE);
            assert_int_equal(at, values[i].len);
        }
}

static void test_depth(void **state) {
    (void)state;
    char text[200];
    for (size_t n = 1; n < 90; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(nib_chat_json_is_valid((nib_str){text, 2 * n}), n <= NIB_CHAT_JSON_DEPTH);
    }
}

static void test_members(void **state) {
    (void)state;
    nib_str key, value;
    nib_chat_json_iter iter = nib_chat_json_begin(str("{ \"a:,\" : {\"x\": [1]} ,\"b\":-2.5}"));
    assert_true(nib_chat_json_next(&iter, &key, &value));
    assert_memory_equal(key.ptr, "\"a:,\"", key.len);
    assert_int_equal(value.len, 10);
    assert_memory_equal(value.ptr, "{\"x\": [1]}", value.len);
    assert_true(nib_chat_json_next(&iter, &key, &value));
    assert_int_equal(value.len, 4);
    assert_false(nib_chat_json_next(&iter, &key, &value));
    iter = nib_chat_json_begin(str("[ ]"));
    assert_false(nib_chat_json_next(&iter, &key, &value));
    iter = nib_chat_json_begin(str("[1,\"]\"]"));
    assert_true(nib_chat_json_next(&iter, &key, &value));
    assert_int_equal(key.len, 0);
    assert_true(nib_chat_json_next(&iter, &key, &value));
    assert_int_equal(value.len, 3);
    assert_false(nib_chat_json_next(&iter, &key, &value));
}

static void test_strings(void **state) {
    (void)state;
    static const char bytes[] = "a\"\\\b\f\n\r\t\x01\x7F\xC3\xA4\xF0\x9F\x98\x80";
    nib_buf json = {0}, text = {0};
    assert_true(nib_chat_json_put(&json, (nib_str){bytes, sizeof bytes})); /* with the NUL */
    assert_true(nib_chat_json_is_valid((nib_str){json.ptr, json.len}));
    assert_true(nib_chat_json_decode((nib_str){json.ptr, json.len}, &text));
    assert_int_equal(text.len, sizeof bytes);
    assert_memory_equal(text.ptr, bytes, sizeof bytes);
    json.len = text.len = 0;
    assert_true(nib_chat_json_put(&json, str("\xFF|\xC3")));
    assert_string_equal(nib_buf_cstr(&json), "\"\xEF\xBF\xBD|\xEF\xBF\xBD\"");
    assert_true(nib_chat_json_decode(str("\"\\ud83d\\ude00\\u00E4\\/\""), &text));
    assert_string_equal(nib_buf_cstr(&text), "\xF0\x9F\x98\x80\xC3\xA4/");
    nib_buf_free(&json);
    nib_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid), cmocka_unit_test(test_against_jansson), cmocka_unit_test(test_end),
        cmocka_unit_test(test_depth), cmocka_unit_test(test_members),         cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
