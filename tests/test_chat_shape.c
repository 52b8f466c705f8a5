/* tests/test_chat_shape.c - grammars of answers: whatever they permit, the parser of the format reads as it was meant, for
 * every format; arguments are valid by their schemas; what models write is permitted. */
#include "chat/format.h"
#include "chat/pattern.h"
#include "grammar/vocab.h"
#include "support/answers.h"
#include "support/blocks.h"
#include "support/files.h"
#include "support/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char g_tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"lookup\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"word\":{\"type\":\"string\"},\"n\":{\"type\":[\"integer\",\"null\"],\"minimum\":-5,\"maximum\":99},"
    "\"unit\":{\"enum\":[\"km\",\"mi les\"]},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":3},"
    "\"deep\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"},\"s\":{\"type\":\"string\"}},\"required\":[\"a\"],"
    "\"additionalProperties\":false}},\"required\":[\"word\"],\"additionalProperties\":false}}},"
    "{\"name\":\"now\"},"
    "{\"name\":\"look\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"any\":{\"anyOf\":[{\"type\":\"number\",\"minimum\":-1000,\"maximum\":1000},{\"type\":\"string\",\"minLength\":2,\"maxLength\":5}]},"
    "\"flag\":{\"$ref\":\"#/$defs/flag\"},\"maybe\":{\"type\":\"string\",\"nullable\":true}},"
    "\"required\":[\"flag\"],\"additionalProperties\":false,\"$defs\":{\"flag\":{\"type\":\"string\",\"enum\":[\"1\",\"x\"]}}}}]";

/* ---- a small validator of the keywords above */

static bool is_type(const json_t *v, const char *name) {
    return (strcmp(name, "string") == 0 && json_is_string(v)) || (strcmp(name, "null") == 0 && json_is_null(v)) ||
           (strcmp(name, "boolean") == 0 && json_is_boolean(v)) || (strcmp(name, "object") == 0 && json_is_object(v)) ||
           (strcmp(name, "array") == 0 && json_is_array(v)) || (strcmp(name, "integer") == 0 && json_is_integer(v)) ||
           (strcmp(name, "number") == 0 && json_is_number(v));
}

static bool has_type(const json_t *schema, const json_t *v) {
    const json_t *type = json_object_get(schema, "type");
    if (!type || (json_is_true(json_object_get(schema, "nullable")) && json_is_null(v))) return true;
    if (json_is_string(type)) return is_type(v, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        if (is_type(v, json_string_value(json_array_get(type, i)))) return true;
    return false;
}

static size_t count_chars(const char *s) {
    size_t n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static bool in_bounds(const json_t *schema, const json_t *v) {
    const char *const names[][2] = {{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}};
    double x[] = {json_number_value(v), json_is_string(v) ? (double)count_chars(json_string_value(v)) : 0, (double)json_array_size(v)};
    bool of[] = {json_is_number(v), json_is_string(v), json_is_array(v)};
    for (size_t i = 0; i < 3; i++) {
        const json_t *low = json_object_get(schema, names[i][0]), *high = json_object_get(schema, names[i][1]);
        if (of[i] && ((low && x[i] < json_number_value(low)) || (high && x[i] > json_number_value(high)))) return false;
    }
    return true;
}

static bool is_valid(const json_t *root, const json_t *schema, const json_t *v);

static bool is_one_of(const json_t *root, const json_t *schema, const json_t *v) {
    const json_t *any = json_object_get(schema, "anyOf"), *values = json_object_get(schema, "enum");
    bool fits = !any, is_value = !values;
    for (size_t i = 0; i < json_array_size(any); i++) fits |= is_valid(root, json_array_get(any, i), v);
    for (size_t i = 0; i < json_array_size(values); i++) is_value |= json_equal(json_array_get(values, i), v);
    return fits && is_value;
}

static bool is_valid(const json_t *root, const json_t *schema, const json_t *v) {
    const json_t *props = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
    const char *key;
    json_t *item;
    size_t i;
    if (json_object_get(schema, "$ref")) schema = json_object_get(json_object_get(root, "$defs"), "flag");
    if (!has_type(schema, v) || !in_bounds(schema, v) || !is_one_of(root, schema, v)) return false;
    const json_t *items = json_object_get(schema, "items");
    json_array_foreach(v, i, item) if (items && !is_valid(root, items, item)) return false;
    json_array_foreach(required, i, item) if (json_is_object(v) && !json_object_get(v, json_string_value(item))) return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, item) {
        const json_t *own = json_object_get(props, key);
        if (own ? !is_valid(root, own, item) : is_closed) return false;
    }
    return true;
}

/* The schema of a tool; NULL: there is no such tool. *is_empty: it takes no arguments. */
static const json_t *schema_of(const json_t *tools, const char *name, bool *is_empty) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *function = json_object_get(tool, "function");
        if (!function) function = tool;
        if (strcmp(json_string_value(json_object_get(function, "name")), name) != 0) continue;
        const json_t *schema = json_object_get(function, "parameters");
        *is_empty = !schema;
        return schema ? schema : function;
    }
    return NULL;
}

static const char *name_of(const json_t *event) {
    return json_string_value(json_array_get(event, 3));
}

static bool is_valid_call(const json_t *event) {
    json_t *tools = json_loads(g_tools, 0, NULL), *v = json_loads(json_string_value(json_array_get(event, 4)), 0, NULL);
    bool is_empty;
    const json_t *schema = schema_of(tools, name_of(event), &is_empty);
    bool ok = v && schema && (is_empty ? json_object_size(v) == 0 : is_valid(schema, schema, v));
    json_decref(tools);
    json_decref(v);
    return ok;
}

/* ---- vocabularies: bytes, and the literals of a format, as text or as control tokens */

enum { N_BYTES = 256 };

static bool is_special(const char *text, size_t n) {
    return n > 4 && *text == '<' && text[n - 1] == '>' && memchr(text, '|', n);
}

static nib_grammar_vocab *make_vocab(const nib_chat_format_row *format, bool with_control) {
    static char words[400][64];
    size_t n = 0;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++)
        for (const char *p = format->rules[i].pattern; *p;) {
            size_t len = 0;
            while (p[len] && !NIB_CHAT_IS_ELEMENT(p[len])) len++;
            if (len > 1 && len < 64 && n < 400) snprintf(words[n++], 64, "%.*s", (int)len, p);
            p += len ? len : 1;
        }
    static const char *const more[] = {"<|\"|>", "]<]minimax[>[</", "\"}", "\")", "\", ", "\\\"", "</"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) snprintf(words[n++], 64, "%s", more[i]);
    nib_grammar_vocab *v;
    assert_int_equal(nib_grammar_vocab_begin(&v, (uint32_t)(N_BYTES + 1 + n), NULL), NIB_OK);
    for (int i = 0; i < N_BYTES; i++) {
        char byte = (char)i;
        assert_true(nib_grammar_vocab_add(v, (nib_str){&byte, 1}, (nib_str){"b", 1}, false));
    }
    assert_true(nib_grammar_vocab_add(v, (nib_str){"", 0}, (nib_str){"<end>", 5}, true));
    for (size_t i = 0; i < n; i++) {
        nib_str name = {words[i], strlen(words[i])};
        bool is_control = with_control && is_special(words[i], name.len) && nib_chat_format_is_mark(format, name);
        assert_true(nib_grammar_vocab_add(v, is_control ? (nib_str){"", 0} : name, name, false));
    }
    assert_int_equal(nib_grammar_vocab_finish(v, NULL), NIB_OK);
    return v;
}

/* ---- texts that a grammar permits */

enum { MAX_STEPS = 3000, PATIENCE = 60 };

static size_t count_bits(const uint32_t *mask, uint32_t from, uint32_t to) {
    size_t n = 0;
    for (uint32_t i = from; i < to; i++) n += mask[i / 32] >> i % 32 & 1;
    return n;
}

static uint32_t nth_bit(const uint32_t *mask, uint32_t from, size_t k) {
    for (uint32_t i = from;; i++)
        if (mask[i / 32] >> i % 32 & 1 && k-- == 0) return i;
}

/* Words and brackets go first when the text grows long, so that it ends. */
static uint32_t choose(const uint32_t *mask, uint32_t n, size_t step, uint64_t *seed) {
    size_t n_words = count_bits(mask, N_BYTES + 1, n), n_all = count_bits(mask, 0, n);
    bool is_late = step > PATIENCE;
    assert_true(n_all > 0); /* no dead ends */
    if ((mask[N_BYTES / 32] & 1) && (is_late || blocks_random(seed) % 6 == 0)) return N_BYTES;
    if (n_words && (is_late ? blocks_random(seed) % 4 != 0 : blocks_random(seed) % 8 == 0))
        return nth_bit(mask, N_BYTES + 1, blocks_random(seed) % n_words);
    for (const char *c = "\"'}])>/"; is_late && *c; c++)
        if (mask[(unsigned char)*c / 32] >> (unsigned char)*c % 32 & 1 && blocks_random(seed) % 3) return (uint32_t)(unsigned char)*c;
    for (int i = 0; i < 8; i++) { /* mostly plain letters */
        unsigned char c = (unsigned char)(' ' + blocks_random(seed) % 95);
        if (mask[c / 32] >> c % 32 & 1) return c;
    }
    return nth_bit(mask, 0, blocks_random(seed) % n_all);
}

/* False: it did not come to an end. */
static bool generate(nib_grammar *g, const nib_grammar_vocab *v, uint64_t *seed, nib_buf *text) {
    uint32_t mask[64];
    nib_matcher *m;
    nib_error err;
    bool ends = false;
    text->len = 0;
    assert_true(v->n_tokens <= 64 * 32);
    assert_int_equal(nib_matcher_new(&m, g, &err), NIB_OK);
    for (size_t step = 0; !ends && step < MAX_STEPS; step++) {
        if (nib_matcher_mask(m, mask, v->n_tokens, &err) != NIB_OK) fail_msg("%s", err.message);
        uint32_t id = choose(mask, v->n_tokens, step, seed);
        if (nib_matcher_accept(m, (nib_token)id, &err) != NIB_OK) fail_msg("%s", err.message);
        ends = id == N_BYTES;
        nib_str bytes = v->bytes[id].len ? v->bytes[id] : v->names[id];
        if (!ends) nib_buf_append(text, bytes.ptr, bytes.len);
        ends = ends || nib_matcher_must_end(m);
    }
    nib_matcher_free(m);
    return ends;
}

static json_t *parse(const nib_chat_grammar_config *c, nib_str text) {
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    config.format = c->format;
    config.starts_thinking = c->starts_thinking;
    config.tools = c->tools;
    config.tools_len = c->tools_len;
    config.parse_tools = c->tools != NULL;
    json_t *events = answers_parse(&config, text, NULL, NULL);
    assert_non_null(events);
    return events;
}

static nib_grammar *compile(const nib_chat_grammar_config *c, const nib_grammar_vocab *v) {
    nib_grammar *g;
    nib_error err;
    if (nib_chat_grammar_new(&g, c, v, &err) != NIB_OK) fail_msg("%s: %s", c->format, err.message);
    assert_non_null(g);
    return g;
}

static nib_chat_grammar_config config_for(const char *format) {
    nib_chat_grammar_config c = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    c.format = format;
    c.tools = g_tools;
    c.tools_len = strlen(g_tools);
    return c;
}

static size_t count_events(json_t *events, const char *kind) {
    size_t n = 0, i;
    json_t *event;
    json_array_foreach(events, i, event) n += strcmp(json_string_value(json_array_get(event, 0)), kind) == 0;
    return n;
}

static void fail_text(const nib_chat_grammar_config *c, nib_str text, json_t *events) {
    char *dump = json_dumps(events, 0);
    fail_msg("%s (%s): %.*s\n%s", c->format, c->tool_choice ? c->tool_choice : "auto", (int)text.len, text.ptr, dump);
}

/* Every text is calls, which are valid; of `content`, when calls are not required, it may be text as well. */
static void check_texts(const nib_chat_grammar_config *c, bool with_control, int n_texts) {
    nib_grammar_vocab *v = make_vocab(nib_chat_format_find(c->format), with_control);
    nib_grammar *g = compile(c, v);
    nib_buf text = {0};
    uint64_t seed = 11;
    int n_done = 0;
    bool must = c->tool_choice && strcmp(c->tool_choice, "required") == 0;
    for (int i = 0; i < n_texts; i++) {
        if (!generate(g, v, &seed, &text)) continue;
        nib_str s = {text.ptr ? text.ptr : "", text.len};
        json_t *events = parse(c, s), *event;
        size_t n_calls = count_events(events, "call"), k;
        bool ok = count_events(events, "warning") == 0 && (!must || (n_calls && count_events(events, "content") == 0)) &&
                  (!c->one_call || n_calls <= 1);
        json_array_foreach(events, k, event)
            if (strcmp(json_string_value(json_array_get(event, 0)), "call") == 0)
                ok = ok && is_valid_call(event) && (!c->tool_name || strcmp(name_of(event), c->tool_name) == 0);
        if (!ok) fail_text(c, s, events);
        json_decref(events);
        n_done++;
    }
    if (n_done < n_texts * 3 / 4) fail_msg("%s: only %d of %d texts came to an end", c->format, n_done, n_texts);
    nib_buf_free(&text);
    nib_grammar_free(g);
    nib_grammar_vocab_free(v);
}

enum { N_TEXTS = 24 };

static bool thinks(const char *format) {
    const nib_chat_format_row *row = nib_chat_format_find(format);
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && row->rules[i].pattern; i++)
        if (row->rules[i].where & NIB_CHAT_IN_THINKING && strchr(row->rules[i].pattern, NIB_CHAT_TEXT)) return true;
    return false;
}

static void requires_calls(void **state) {
    (void)state;
    for (const char *const *name = nib_chat_format_names(); *name; name++) {
        nib_chat_grammar_config c = config_for(*name);
        if (strcmp(*name, "none") == 0) continue;
        c.tool_choice = "required";
        check_texts(&c, false, N_TEXTS);
        check_texts(&c, true, N_TEXTS);
        c.one_call = true;
        check_texts(&c, false, N_TEXTS);
        c.tool_name = "lookup";
        c.starts_thinking = thinks(*name);
        check_texts(&c, true, N_TEXTS);
    }
}

static void lets_choose(void **state) {
    (void)state;
    for (const char *const *name = nib_chat_format_names(); *name; name++) {
        nib_chat_grammar_config c = config_for(*name);
        c.strict = true;
        check_texts(&c, false, N_TEXTS);
        c.starts_thinking = thinks(*name);
        check_texts(&c, true, N_TEXTS);
    }
}

/* The content is what was asked for, behind whatever thoughts. */
static void constrains_content(void **state) {
    static const char schema[] = "{\"type\":\"object\",\"properties\":"
                                 "{\"a\":{\"type\":\"integer\",\"minimum\":-9,\"maximum\":99}}"
                                 ",\"required\":[\"a\"],\"additionalProperties\":false}";
    (void)state;
    for (const char *const *name = nib_chat_format_names(); *name; name++)
        for (int variant = 0; variant < 3; variant++) {
            nib_chat_grammar_config c = config_for(*name);
            c.tools = NULL;
            c.content = schema;
            c.content_len = sizeof schema - 1;
            c.grammar.syntax = NIB_SYNTAX_JSON_SCHEMA;
            c.starts_thinking = variant == 1 && thinks(*name);
            c.no_thinking = variant == 2;
            nib_grammar_vocab *v = make_vocab(nib_chat_format_find(*name), variant == 0);
            nib_grammar *g = compile(&c, v);
            nib_buf text = {0};
            uint64_t seed = 5;
            for (int i = 0, n_done = 0; n_done < N_TEXTS && i < 4 * N_TEXTS; i++) {
                if (!generate(g, v, &seed, &text)) continue;
                nib_str s = {text.ptr, text.len};
                json_t *events = parse(&c, s);
                char *content = answers_joined(events, "content");
                json_t *value = json_loads(content, 0, NULL);
                if (!json_is_integer(json_object_get(value, "a")) || json_object_size(value) != 1) fail_text(&c, s, events);
                if (variant == 2 && count_events(events, "reasoning")) fail_text(&c, s, events);
                json_decref(value);
                free(content);
                json_decref(events);
                n_done++;
            }
            nib_buf_free(&text);
            nib_grammar_free(g);
            nib_grammar_vocab_free(v);
        }
}

/* ---- what models write */

static const char *find_in(const char *p, size_t len, const char *word, size_t n) {
    for (; len >= n; p++, len--)
        if (memcmp(p, word, n) == 0) return p;
    return NULL;
}

static void takes_answers(void **state) {
    static const char tools[] =
        "[{\"name\":\"lookup\",\"parameters\":{\"properties\":{\"word\":{\"type\":\"string\"},\"n\":{\"type\":[\"integer\",\"null\"]},"
        "\"list\":{\"type\":\"array\"},\"deep\":{\"type\":\"object\"}}}},{\"name\":\"now\"}]";
    (void)state;
    size_t n, n_taken = 0, n_calls = 0;
    char *file = files_read("tests/answers.txt", &n);
    for (char *p = strstr(file, "\n=== "); p; p = strstr(p, "\n=== ")) {
        char format[32] = "", flags[8] = "";
        sscanf(p, "\n=== %31s%*1[ ]%7[A-Z0]", format, flags);
        char *text = strchr(p + 1, '\n') + 1, *end = strstr(text - 1, "\n---\n");
        p = end + 4;
        char *events = end + 5, *last = strstr(events, "\n=== ");
        size_t len = last ? (size_t)(last - events) : strlen(events);
        nib_str all = {events, len};
        bool has_call = find_in(all.ptr, all.len, "[\"call\"", 7) != NULL;
        bool warns = find_in(all.ptr, all.len, "[\"warning\"", 10) != NULL;
        if (!has_call || warns || strpbrk(flags, "RN0")) continue;
        nib_chat_grammar_config c = config_for(format);
        c.strict = true;
        c.tools = tools;
        c.tools_len = sizeof tools - 1;
        c.starts_thinking = strchr(flags, 'T') != NULL;
        nib_grammar *g = compile(&c, NULL);
        nib_str s = {text, end < text ? 0 : (size_t)(end - text)};
        n_calls++;
        n_taken += grammar_match(g, s, NULL) == GRAMMAR_MATCH;
        nib_grammar_free(g);
    }
    free(file);
    /* The others: text where calls are to end, a tag that was not closed, Python's lists, quoted keys, an object of which
     * nothing is said as tags. */
    assert_int_equal(n_calls, 44);
    assert_int_equal(n_taken, 39);
}

/* What tools have in common is drawn once, so that many of them are no more than that. */
static void takes_many_tools(void **state) {
    (void)state;
    nib_buf tools = {0};
    for (int i = 0; i < 8; i++) {
        nib_buf_printf(&tools, "%s{\"name\":\"tool_%d\",\"parameters\":{\"type\":\"object\",\"properties\":{", i ? "," : "[", i);
        for (int k = 0; k < 6; k++) nib_buf_printf(&tools, "\"text_%d\":{\"type\":\"string\"},", k);
        nib_buf_str(&tools, "\"maybe\":{\"type\":[\"string\",\"null\"]},\"list\":{\"type\":\"array\"}},\"required\":[\"text_0\"]}}");
    }
    nib_buf_char(&tools, ']');
    for (const char *const *name = nib_chat_format_names(); *name; name++) {
        nib_chat_grammar_config c = config_for(*name);
        c.tools = tools.ptr;
        c.tools_len = tools.len;
        c.strict = true;
        nib_grammar *g = compile(&c, NULL);
        assert_in_range(nib_grammar_n_states(g), 1, 20000);
        nib_grammar_free(g);
    }
    nib_buf_free(&tools);
}

/* ---- errors */

static void refuses(const nib_chat_grammar_config *c, nib_status code, const char *part) {
    nib_grammar *g;
    nib_error err;
    assert_int_equal(nib_chat_grammar_new(&g, c, NULL, &err), code);
    assert_null(g);
    if (!strstr(err.message, part)) fail_msg("\"%s\" is not in \"%s\"", part, err.message);
}

static nib_chat_grammar_config with_tools(const char *tools) {
    nib_chat_grammar_config c = config_for("qwen3-coder");
    c.tools = tools;
    c.tools_len = strlen(tools);
    c.tool_choice = "required";
    return c;
}

static void tells_what_is_wrong(void **state) {
    (void)state;
    nib_grammar *g;
    nib_chat_grammar_config c = with_tools("[{\"function\":{\"name\":\"a\",\"parameters\":{\"properties\":{\"x\":{\"if\":{}}}}}}]");
    refuses(&c, NIB_E_UNSUPPORTED, "#/0/function/parameters/properties/x/if: ");
    c.format = "hermes";
    refuses(&c, NIB_E_UNSUPPORTED, "#/0/function/parameters/properties/x/if: ");
    c = with_tools("[{\"name\":\"a\",\"parameters\":{\"type\":\"object\",\"properties\":{\"<\":{}}}}]");
    refuses(&c, NIB_E_UNSUPPORTED, "#/0/parameters: ");
    c = with_tools("[{\"name\":\"a b\"}]");
    refuses(&c, NIB_E_UNSUPPORTED, "#/0/name: ");
    c = with_tools("[{}]");
    refuses(&c, NIB_E_FORMAT, "#/0: ");
    c = with_tools("[]");
    refuses(&c, NIB_E_FORMAT, "#: ");
    c = with_tools("[");
    refuses(&c, NIB_E_FORMAT, "#: not JSON");
    c = with_tools("[{\"name\":\"9\"}]");
    c.format = "llama4";
    refuses(&c, NIB_E_UNSUPPORTED, "#/0: ");
    c = config_for("hermes");
    c.tool_choice = "any";
    refuses(&c, NIB_E_ARG, "\"any\"");
    c.tool_choice = "required";
    c.tool_name = "other";
    refuses(&c, NIB_E_ARG, "\"other\"");
    c.tool_name = NULL;
    c.format = "none";
    refuses(&c, NIB_E_UNSUPPORTED, "none");
    c.tools = NULL;
    refuses(&c, NIB_E_ARG, "no tools");
    c = config_for("hermes");
    c.grammar.max_states = 100;
    c.strict = true;
    refuses(&c, NIB_E_LIMIT, "max_states");
    c = config_for("hermes"); /* nothing is asked for */
    assert_int_equal(nib_chat_grammar_new(&g, &c, NULL, NULL), NIB_OK);
    assert_null(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requires_calls),
        cmocka_unit_test(lets_choose),
        cmocka_unit_test(constrains_content),
        cmocka_unit_test(takes_answers),
        cmocka_unit_test(takes_many_tools),
        cmocka_unit_test(tells_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
