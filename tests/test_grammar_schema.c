/* tests/test_grammar_schema.c - JSON Schema: each keyword with texts that are valid and texts that are not; bounds of
 * numbers against arithmetic; order of keys, space, limits. tests/schema_oracle.py compares with Python. */
#include "support/blocks.h"
#include "support/grammar.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_TEXTS 12

/* Texts after the first NULL do not match. */
typedef struct row {
    const char *schema, *texts[MAX_TEXTS];
} row;

static void check(const row *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0, wanted = 1; k < MAX_TEXTS; k++) {
            if (!rows[i].texts[k] && !wanted) break;
            if (!rows[i].texts[k]) {
                wanted = 0;
                continue;
            }
            bool found = grammar_try(NIB_SYNTAX_JSON_SCHEMA, rows[i].schema, rows[i].texts[k], NULL) == GRAMMAR_MATCH;
            if (found != wanted) print_error("%s / %s\n", rows[i].schema, rows[i].texts[k]);
            assert_int_equal(found, wanted);
        }
}

static void test_keywords(void **state) {
    static const row rows[] = {
        {"true", {"1", "\"a\"", "{\"a\": [null]}", NULL, "", "nul", "\"\\ud800\"", "\"\n\"", "01", "1.", ".5", "+1"}},
        {"{}",
         {"\"\\u00e9\\ud83d\\ude00\\/\\\"\"", "-0.5e+07", " [ ] ", "{ }", NULL, "[1,]", "{\"a\"}", "\"\\x\"", "'a'"}},
        {"{\"type\":[\"integer\",\"null\"]}", {"12", "null", "-0", NULL, "1.5", "\"1\"", "1e2"}},
        {"{\"anyOf\":[{\"const\":1},{\"const\":2}],\"discriminator\":{\"propertyName\":\"kind\"}}", {"1", "2", NULL, "3"}},
        {"{\"type\":\"string\",\"nullable\":true}", {"\"a\"", "null", NULL, "1"}},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
         {"\"ab\"", "\"\\u00e9\xC3\xA9z\"", "\"\\ud83d\\ude00\xF0\x9F\x98\x80\"", NULL, "\"a\"", "\"abcd\""}},
        {"{\"type\":\"string\",\"pattern\":\"[0-9]\"}",
         {"\"1\"", "\"a1b\"", "\"\\u0031\\n2\"", NULL, "\"ab\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^a+$\",\"maxLength\":2}",
         {"\"a\"", "\"aa\"", NULL, "\"aaa\"", "\"\"", "\"ab\""}},
        {"{\"type\":\"string\",\"pattern\":\"^\\\"\\\\\\\\$\"}", {"\"\\\"\\\\\"", NULL, "\"\"\\\"", "\"\\\"\""}},
        {"{\"type\":\"string\",\"format\":\"date\"}",
         {"\"2024-02-29\"", "\"2000-12-31\"", NULL, "\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"",
          "\"2024-04-31\""}},
        {"{\"type\":\"string\",\"format\":\"duration\"}",
         {"\"P1Y2M3DT4H5M6S\"", "\"PT36H\"", "\"P2W\"", NULL, "\"P\"", "\"PT\"", "\"P1DT\"", "\"P1Y2D\"", "\"P1S\""}},
        {"{\"type\":\"string\",\"format\":\"ipv6\"}",
         {"\"::\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1\"", "\"::ffff:1.2.3.4\"", NULL, "\":1\"", "\"1::2::3\"",
          "\"1:2:3:4:5:6:7\""}},
        {"{\"type\":\"string\",\"format\":\"uri\"}",
         {"\"https://a.b/c?d=e#f\"", "\"mailto:x@y\"", "\"urn:a:b\"", NULL, "\"a b\"", "\"//x\"", "\"x\""}},
        {"{\"const\":{\"a\":[1,\"\xC3\xA9\"]}}",
         {"{\"a\":[1,\"\xC3\xA9\"]}", "{ \"a\" : [ 1, \"\\u00e9\" ] }", NULL, "{\"a\":[1]}"}},
        {"{\"enum\":[1,\"a\",null,12],\"type\":[\"integer\",\"null\"],\"minimum\":5}",
         {"12", "null", NULL, "1", "\"a\""}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
         {"[1]", "[1,2,3]", NULL, "[]", "[1,2,3,4]", "[\"a\"]"}},
        {"{\"prefixItems\":[{\"type\":\"null\"}],\"items\":false,\"type\":\"array\"}",
         {"[]", "[null]", NULL, "[null,1]", "[1]"}},
        {"{\"type\":\"array\",\"items\":[{\"type\":\"null\"}],\"additionalItems\":{\"type\":\"boolean\"},\"minItems\":"
         "2}",
         {"[null,true]", NULL, "[null]", "[null,1]"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"ab\":{}},\"required\":[\"ab\"],"
         "\"additionalProperties\":false}",
         {"{\"ab\":1}", "{\"ab\":1,\"a\":null}", "{\"a\":null,\"ab\":[]}", NULL, "{}", "{\"a\":null}",
          "{\"ab\":1,\"ab\":2}", "{\"ab\":1,\"abc\":2}", "{\"ab\":1,}"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"additionalProperties\":{\"type\":"
         "\"integer\"}}",
         {"{\"aa\":1,\"\":2}", "{\"b\":1,\"a\":null}", NULL, "{\"a\":1}", "{\"b\":null}", "{\"\\u0061\":1}"}},
        {"{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"null\"},\"y$\":{\"type\":[\"null\","
         "\"integer\"]}},\"additionalProperties\":{\"type\":\"string\"}}",
         {"{\"xa\":null,\"zy\":1,\"xy\":null,\"q\":\"s\"}", NULL, "{\"xy\":1}", "{\"q\":1}", "{\"xa\":\"s\"}"}},
        {"{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[ab]*$\",\"minLength\":1},\"maxProperties\":2}",
         {"{}", "{\"a\":1,\"bb\":2}", NULL, "{\"\":1}", "{\"c\":1}", "{\"a\":1,\"b\":1,\"aa\":1}"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"additionalProperties\":false,"
         "\"minProperties\":2,\"maxProperties\":2,\"required\":[\"c\"]}",
         {"{\"a\":1,\"c\":1}", "{\"c\":1,\"b\":1}", NULL, "{\"c\":1}", "{\"a\":1,\"b\":1}",
          "{\"a\":1,\"b\":1,\"c\":1}"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}}},{\"properties\":{\"a\":{\"minimum\":3}},\"type\":"
         "\"object\",\"required\":[\"a\"]}]}",
         {"{\"a\":3}", NULL, "{\"a\":2}", "{}", "{\"a\":null}"}},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"minLength\":2}],\"type\":[\"string\",\"integer\"]}",
         {"5", "\"ab\"", NULL, "\"a\"", "null"}},
        {"{\"oneOf\":[{\"required\":[\"k\"],\"properties\":{\"k\":{\"const\":1}}},{\"required\":[\"k\"],\"properties\":"
         "{\"k\":{\"const\":2}}}],\"type\":\"object\"}",
         {"{\"k\":1}", "{\"k\":2}", NULL, "{\"k\":3}", "{}"}},
        {"{\"oneOf\":[{\"type\":\"integer\",\"maximum\":3},{\"type\":\"number\",\"exclusiveMinimum\":3}]}",
         {"3", "3.5", "-7", NULL, "2.5"}},
        {"{\"not\":{\"type\":[\"string\",\"number\"]}}", {"null", "[]", NULL, "1", "\"\""}},
        {"{\"$ref\":\"#/$defs/n%25~1\",\"$defs\":{\"n%/"
         "\":{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}}}",
         {"{\"next\":{\"next\":{}}}", NULL, "{\"next\":1}"}},
        {"{\"$defs\":{\"t\":{\"$anchor\":\"tree\",\"type\":\"array\",\"items\":{\"$ref\":\"#tree\"}}},\"$ref\":\"#"
         "tree\"}",
         {"[[],[[]]]", NULL, "[1]"}},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":"
         "\"null\"}]}}}",
         {"{\"a\":{\"a\":null}}", NULL, "{\"a\":{}}"}},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

/* Whole and decimal numbers around random bounds, written in several ways. */
static void test_bounds(void **state) {
    static const char *const formats[] = {"%.0f", "%.1f", "%.2f", "%.3e", "%.0e", "%.10f"};
    uint64_t seed = 9;
    (void)state;
    for (int i = 0; i < 400; i++) {
        char schema[200], text[64];
        double low = ((double)(blocks_random(&seed) % 4001) - 2000) / (i % 3 == 0 ? 1 : 8),
               high = low + (double)(blocks_random(&seed) % 3000) / 4;
        bool ex_low = blocks_random(&seed) % 2, ex_high = blocks_random(&seed) % 2, has_low = blocks_random(&seed) % 4,
             has_high = blocks_random(&seed) % 4;
        uint32_t multiple = i % 5 == 0 ? 7 : 1;
        size_t n = (size_t)snprintf(schema, sizeof schema, "{\"type\":\"%s\"", multiple > 1 ? "integer" : "number");
        if (has_low)
            n += (size_t)snprintf(schema + n, sizeof schema - n, ",\"%s\":%.4f",
                                  ex_low ? "exclusiveMinimum" : "minimum", low);
        if (has_high)
            n += (size_t)snprintf(schema + n, sizeof schema - n, ",\"%s\":%.4f",
                                  ex_high ? "exclusiveMaximum" : "maximum", high);
        if (multiple > 1) n += (size_t)snprintf(schema + n, sizeof schema - n, ",\"multipleOf\":%u", multiple);
        strcat(schema, "}");
        nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
        nib_grammar *g;
        nib_error err;
        config.syntax = NIB_SYNTAX_JSON_SCHEMA;
        if (nib_grammar_new(&g, schema, strlen(schema), NULL, &config, &err) != NIB_OK) {
            assert_non_null(strstr(err.message, "no text")); /* an empty range */
            continue;
        }
        for (int k = 0; k < 40; k++) {
            const char *format = formats[multiple > 1 ? 0 : blocks_random(&seed) % 6];
            double base = k % 3 == 0 ? low : k % 3 == 1 ? high : 0;
            snprintf(text, sizeof text, format, base + ((double)(blocks_random(&seed) % 41) - 20) / (k % 2 ? 1 : 16));
            double x = strtod(text, NULL);
            bool is_zero_with_exponent = x == 0 && strchr(text, 'e'); /* 0e+00 is written as 0 */
            bool wanted = (!has_low || (ex_low ? x > low : x >= low)) &&
                          (!has_high || (ex_high ? x < high : x <= high)) && (multiple == 1 || fmod(x, multiple) == 0);
            bool found = grammar_match(g, (nib_str){text, strlen(text)}, NULL) == GRAMMAR_MATCH;
            bool has_bound = has_low || has_high;
            if (is_zero_with_exponent && has_bound) continue;
            if (found != wanted) print_error("%s / %s\n", schema, text);
            assert_int_equal(found, wanted);
        }
        nib_grammar_free(g);
    }
}

static grammar_verdict with(const char *schema, nib_json_space space, bool key_order, const char *text) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    config.syntax = NIB_SYNTAX_JSON_SCHEMA;
    config.space = space;
    config.key_order = key_order;
    if (nib_grammar_new(&g, schema, strlen(schema), NULL, &config, &err) != NIB_OK) fail_msg("%s", err.message);
    grammar_verdict verdict = grammar_match(g, (nib_str){text, strlen(text)}, NULL);
    nib_grammar_free(g);
    return verdict;
}

static void test_space_and_order(void **state) {
    static const char s[] = "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"required\":[\"b\"]}";
    (void)state;
    assert_int_equal(with(s, NIB_JSON_SPACE_COMPACT, false, "{\"b\":1,\"z\":[1,2]}"), GRAMMAR_MATCH);
    assert_int_equal(with(s, NIB_JSON_SPACE_COMPACT, false, "{\"b\": 1}"), GRAMMAR_DEAD);
    assert_int_equal(with(s, NIB_JSON_SPACE_PRETTY, false, "{\n  \"b\": 1\n}"), GRAMMAR_MATCH);
    assert_int_equal(with(s, NIB_JSON_SPACE_PRETTY, false, "{  \"b\":1}"), GRAMMAR_DEAD);
    assert_int_equal(with(s, NIB_JSON_SPACE_PRETTY, false, " {\"b\":1}"), GRAMMAR_DEAD);
    assert_int_equal(with(s, NIB_JSON_SPACE_ANY, false, " \t{\r\n\"b\" : 1 } "), GRAMMAR_MATCH);
    assert_int_equal(with(s, NIB_JSON_SPACE_ANY, true, "{\"a\":1,\"b\":1,\"z\":1,\"y\":1}"), GRAMMAR_MATCH);
    assert_int_equal(with(s, NIB_JSON_SPACE_ANY, true, "{\"b\":1,\"a\":1}"), GRAMMAR_DEAD);
    assert_int_equal(with(s, NIB_JSON_SPACE_ANY, true, "{\"a\":1,\"c\":1"), GRAMMAR_DEAD); /* b is missing */
    assert_int_equal(with(s, NIB_JSON_SPACE_ANY, true, "{\"b\":1,\"z\":1,\"c\":1}"), GRAMMAR_DEAD);
}

static void test_refusals(void **state) {
    static const struct {
        const char *schema;
        nib_status code;
        const char *says;
    } rows[] = {
        {"{\"properties\":{\"a/b~\":{\"if\":{}}}}", NIB_E_UNSUPPORTED,
         "#/properties/a~1b~0/if: the keyword \"if\" is not supported"},
        {"{\"items\":{\"x-y\":1}}", NIB_E_UNSUPPORTED, "#/items/x-y: the keyword \"x-y\" is not known"},
        {"{\"type\":\"strin\"}", NIB_E_FORMAT, "#/type: no type"},
        {"{\"required\":\"a\"}", NIB_E_FORMAT, "#/required: required is a list"},
        {"{\"minLength\":-1}", NIB_E_FORMAT, "#/minLength: a whole number"},
        {"{\"pattern\":\"(\"}", NIB_E_FORMAT, "#/pattern: "},
        {"{\"pattern\":\"(?=a)\"}", NIB_E_UNSUPPORTED, "#/pattern: look-ahead"},
        {"{\"format\":\"json-pointer\"}", NIB_E_UNSUPPORTED, "#/format: the format"},
        {"{\"multipleOf\":0.5}", NIB_E_UNSUPPORTED, "#/multipleOf"},
        {"{\"uniqueItems\":true}", NIB_E_UNSUPPORTED, "#/uniqueItems"},
        {"{\"oneOf\":[{\"minimum\":1},{\"maximum\":2}]}", NIB_E_UNSUPPORTED, "#/oneOf/1: branches 0 and 1"},
        {"{\"not\":{\"const\":1}}", NIB_E_UNSUPPORTED, "#/not"},
        {"{\"$ref\":\"http://x/y\"}", NIB_E_UNSUPPORTED, "#/$ref: only references"},
        {"{\"$ref\":\"#/nowhere\"}", NIB_E_FORMAT, "#/$ref: nothing stands at"},
        {"{\"$ref\":\"#\"}", NIB_E_FORMAT, "#/$ref: the reference leads back"},
        {"{\"anyOf\":[]}", NIB_E_FORMAT, "#/anyOf"},
        {"[]", NIB_E_FORMAT, "#: a schema was expected"},
        {"{", NIB_E_FORMAT, "#: not JSON"},
        {"{\"a\":1,\"a\":1}", NIB_E_FORMAT, "twice"},
        {"false", NIB_E_FORMAT, "no text"},
        {"{\"enum\":[1],\"type\":\"null\"}", NIB_E_FORMAT, "no text"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"$ref\":\"#\"}}}", NIB_E_FORMAT, "no text"},
        {"{\"type\":\"object\",\"minProperties\":2,\"properties\":{\"a\":{},\"b\":false},\"additionalProperties\":false}", NIB_E_FORMAT,
         "no text"},
        {"{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"enum\":[1],\"type\":\"null\"}}", NIB_E_FORMAT, "no text"},
        {"{\"$defs\":{\"x\":{\"if\":{}}},\"type\":\"null\"}", NIB_E_UNSUPPORTED, "#/$defs/x/if: "}, /* nothing refers to it */
        {"{\"$defs\":{\"x\":{\"$defs\":{\"y\":{\"then\":1}}}}}", NIB_E_UNSUPPORTED, "#/$defs/x/$defs/y/then: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
        nib_grammar *g;
        nib_error err;
        config.syntax = NIB_SYNTAX_JSON_SCHEMA;
        nib_status status = nib_grammar_new(&g, rows[i].schema, strlen(rows[i].schema), NULL, &config, &err);
        if (status != rows[i].code || !strstr(err.message, rows[i].says))
            print_error("%s: %d %s\n", rows[i].schema, status, err.message);
        assert_int_equal(status, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].says));
    }
}

/* What would cost much is an error that names a limit, or works. */
static void test_limits(void **state) {
    enum { DEPTH = 10000, N_ENUM = 150000 };
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    char *text = malloc(DEPTH * 12 + N_ENUM * 12), *p = text;
    (void)state;
    config.syntax = NIB_SYNTAX_JSON_SCHEMA;
    for (int i = 0; i < DEPTH; i++) p += sprintf(p, "{\"items\":");
    p += sprintf(p, "{}");
    for (int i = 0; i < DEPTH; i++) *p++ = '}';
    assert_int_equal(nib_grammar_new(&g, text, (size_t)(p - text), NULL, &config, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_depth"));
    p = text + sprintf(text, "{\"enum\":[0");
    for (int i = 1; i < N_ENUM && p - text < 1000000; i++) p += sprintf(p, ",%d", i);
    p += sprintf(p, "]}");
    assert_int_equal(nib_grammar_new(&g, text, (size_t)(p - text), NULL, &config, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "max_states"));
    free(text);
    assert_int_equal(grammar_try(NIB_SYNTAX_JSON_SCHEMA,
                                 "{\"type\":\"string\",\"maxLength\":1000000000,\"minLength\":3}", "\"abcd\"", NULL),
                     GRAMMAR_MATCH);
    assert_int_equal(grammar_try(NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"array\",\"maxItems\":1000000000,\"minItems\":2}",
                                 "[1,2]", NULL),
                     GRAMMAR_MATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keywords), cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_space_and_order), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
