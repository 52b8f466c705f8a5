/* tests/test_chat_output_literal.c - values that are not JSON -> JSON: Python's, Gemma's, nested tags, and parameters
 * as their schema wants them. */
#include "chat/output/literal.h"

#include "base/buf.h"
#include "chat/output/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static nib_str str(const char *text) {
    return (nib_str){text, strlen(text)};
}

/* wanted NULL: it must be refused. */
static void check(const char *text, bool ok, nib_buf *out, const char *wanted) {
    nib_buf_cstr(out);
    if (wanted && (!ok || strcmp(out->ptr, wanted) != 0))
        fail_msg("%s: %s, not %s", text, ok ? out->ptr : "refused", wanted);
    if (!wanted && ok) fail_msg("%s: taken for %s", text, out->ptr);
    if (wanted) assert_true(nib_chat_json_is_valid((nib_str){out->ptr, out->len}));
    nib_buf_free(out);
}

static void test_python(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"None", "null"},
        {" True ", "true"},
        {"false", "false"},
        {"-1.5e3", "-1.5e3"},
        {"'a\"b'", "\"a\\\"b\""},
        {"\"it's\"", "\"it's\""},
        {"'\\x41\\u00e4\\U0001F600\\n\\q\\''", "\"A\xC3\xA4\xF0\x9F\x98\x80\\n\\\\q'\""},
        {"[1, 'a', [], (2,), ]", "[1,\"a\",[],[2]]"},
        {"{'a': {'b': None}, \"c\": 1,}", "{\"a\":{\"b\":null},\"c\":1}"},
        {"{}", "{}"},
        {"", NULL},
        {"[1", NULL},
        {"[1 2]", NULL},
        {"[1] 2", NULL},
        {"[,]", NULL},
        {"{1: 2}", NULL},
        {"{'a' 1}", NULL},
        {"'a", NULL},
        {"0x10", NULL},
        {"1_000", NULL},
        {"nan", NULL},
        {"[[1] 2]", NULL},
        {"'\\u12'", NULL},
        {"'\\ud800'", NULL},
        {"f(1)", NULL},
        {"-", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nib_buf out = {0};
        bool ok = nib_chat_python_value(str(cases[i][0]), &out);
        check(cases[i][0], ok, &out, cases[i][1]);
    }
    char deep[300] = "";
    nib_buf out = {0};
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_false(nib_chat_python_value(str(deep), &out));
    nib_buf_free(&out);
}

static void test_python_calls(void **state) {
    (void)state;
    static const char text[] = " a.b-c( x = 1, y=['(', \")\"], ) , now(), z(1)";
    nib_chat_python python = {text, text + sizeof text - 1, 0};
    nib_str name;
    nib_buf out = {0};
    bool ok = nib_chat_python_call(&python, &name, &out);
    check(text, ok, &out, "{\"x\":1,\"y\":[\"(\",\")\"]}");
    assert_int_equal(name.len, 5);
    assert_true(nib_chat_python_char(&python, ','));
    out = (nib_buf){0};
    ok = nib_chat_python_call(&python, &name, &out);
    check(text, ok, &out, "{}");
    assert_true(nib_chat_python_char(&python, ','));
    out = (nib_buf){0};
    ok = nib_chat_python_call(&python, &name, &out); /* what has no name is no argument of a tool */
    check(text, ok, &out, NULL);
}

static void test_gemma(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "{}"},
        {"{a:1,b:<|\"|>x, }<|\"|>,c:[true,null,{<|\"|>d e<|\"|>:-2.5}]}",
         "{\"a\":1,\"b\":\"x, }\",\"c\":[true,null,{\"d e\":-2.5}]}"},
        {"{ a : plain words , b:[] }", "{\"a\":\"plain words\",\"b\":[]}"},
        {"{a:<|\"|><|\"|>}", "{\"a\":\"\"}"},
        {"{a}", NULL},
        {"{a:}", NULL},
        {"{a:1", NULL},
        {"{a:1}}", NULL},
        {"{:1}", NULL},
        {"{a:<|\"|>x}", NULL},
        {"{a:1,}", NULL},
        {"[1]", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nib_buf out = {0};
        bool ok = nib_chat_gemma_object(str(cases[i][0]), &out);
        check(cases[i][0], ok, &out, cases[i][1]);
    }
}

/* ---- with schemas */

static const char g_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"s\": {\"type\": "
    "\"string\"}, \"i\": {\"type\": \"integer\"},"
    "\"sn\": {\"type\": [\"string\", \"null\"]}, \"b\": {\"type\": \"boolean\"}, \"a\": {\"type\": \"array\", "
    "\"items\": {\"type\": \"string\"}},"
    "\"o\": {\"properties\": {\"s\": {\"type\": \"string\"}}, \"type\": \"object\"}, \"any\": {\"anyOf\": [{\"type\": "
    "\"number\"}, {\"type\": \"null\"}]},"
    "\"e\": {\"enum\": [\"1\", \"2\"]}, \"c\": {\"const\": 1}, \"x\": {}}}}}, {\"name\": \"g\"}, 7]";

static void test_params(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"s", "12", "\"12\""},
        {"s", " a\n", "\" a\\n\""},
        {"s", "{}", "\"{}\""},
        {"i", " 12\n", "12"},
        {"i", "twelve", "\"twelve\""},
        {"i", "1.0", "1.0"},
        {"i", "true", "true"},
        {"sn", "null", "null"},
        {"sn", "12", "\"12\""},
        {"b", "True", "true"},
        {"b", "false", "false"},
        {"a", "[\"x\", 1]", "[\"x\", 1]"},
        {"a", "['x', None]", "[\"x\",null]"},
        {"a", "x", "\"x\""},
        {"o", "{'s': 1}", "{\"s\":1}"},
        {"o", "{\"s\": 1}", "{\"s\": 1}"},
        {"any", "None", "null"},
        {"any", "3", "3"},
        {"e", "1", "\"1\""},
        {"c", "1", "1"},
        {"x", "12", "12"},
        {"x", "\"12\"", "\"\\\"12\\\"\""},
        {"x", "['a']", "\"['a']\""},
        {"unknown", "{\"a\": 1}", "{\"a\": 1}"},
        {"x", "", "\"\""},
    };
    nib_chat_tools tools;
    assert_int_equal(nib_chat_tools_init(&tools, str(g_tools), NULL), NIB_OK);
    assert_true(nib_chat_tools_has(&tools, str("g")));
    assert_false(nib_chat_tools_has(&tools, str("h")));
    const nib_chat_schema *schema = nib_chat_tools_find(&tools, str("f"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nib_buf out = {0};
        bool ok = nib_chat_param_put(str(cases[i][1]), nib_chat_schema_property(schema, str(cases[i][0])), &out);
        check(cases[i][1], ok, &out, cases[i][2]);
    }
    assert_null(nib_chat_tools_find(&tools, str("g")));
    nib_chat_tools_fini(&tools);
}

#define T "]<]minimax[>["

static void test_tree(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "{}"},
        {T "<s>1 < 2" T "</s>" T "<i>3" T "</i>\n", "{\"s\":\"1 < 2\",\"i\":3}"},
        {T "<a>" T "<item>1" T "</item>" T "<item>b" T "</item>" T "</a>", "{\"a\":[\"1\",\"b\"]}"},
        {T "<a>" T "</a>", "{\"a\":[]}"},
        {T "<o>" T "<s>1" T "</s>" T "<item>" T "<k>true" T "</k>" T "</item>" T "</o>",
         NULL}, /* items among members */
        {T "<o>\n" T "<s>1" T "</s>\n" T "<n>" T "<k>true" T "</k>" T "</n>" T "</o>",
         "{\"o\":{\"s\":\"1\",\"n\":{\"k\":true}}}"},
        {T "<s>" T "</s>", "{\"s\":\"\"}"},
        {T "<item>1" T "</item>", "{\"item\":1}"},
        {"x", NULL},
        {T "<s>1", NULL},
        {T "<s>1" T "</i>", NULL},
        {T "</s>", NULL},
        {T "<>1" T "</>", NULL},
        {T "<o>x" T "<s>1" T "</s>" T "</o>", NULL},
    };
    nib_chat_tools tools;
    assert_int_equal(nib_chat_tools_init(&tools, str(g_tools), NULL), NIB_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nib_buf out = {0};
        bool ok = nib_chat_tree_object(str(cases[i][0]), nib_chat_tools_find(&tools, str("f")), &out);
        check(cases[i][0], ok, &out, cases[i][1]);
    }
    nib_chat_tools_fini(&tools);
    nib_buf deep = {0}, out = {0};
    for (int i = 0; i < 100; i++) nib_buf_str(&deep, T "<a>");
    for (int i = 0; i < 100; i++) nib_buf_str(&deep, T "</a>");
    assert_false(nib_chat_tree_object((nib_str){deep.ptr, deep.len}, NULL, &out));
    nib_buf_free(&deep);
    nib_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python), cmocka_unit_test(test_python_calls), cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_params), cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
