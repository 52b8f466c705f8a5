/* tests/test_chat_output.c - answers in every format (tests/answers.txt): the events, and the same ones however the
 * bytes are cut; the rules of the table of formats; limits and errors. */
#include "support/answers.h"

#include "base/buf.h"
#include "base/status.h"
#include "chat/format.h"
#include "chat/pattern.h"
#include "support/blocks.h"
#include "support/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char g_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"lookup\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {"
    "\"word\": {\"type\": \"string\"}, \"n\": {\"type\": [\"integer\", \"null\"]},"
    "\"list\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}},"
    "\"deep\": {\"anyOf\": [{\"type\": \"object\"}, {\"type\": \"null\"}]}}}}}, {\"name\": \"now\"}]";

typedef struct answer {
    char format[32], flags[8];
    nib_str text;
    json_t *events;
} answer;

enum { MAX_ANSWERS = 200 };
static answer g_answers[MAX_ANSWERS];
static size_t g_n;
static char *g_file;

static char *next_line(char *p) {
    p = strchr(p, '\n');
    if (!p) fail_msg("tests/answers.txt ends in the middle");
    return p + 1;
}

/* The answer that begins at "=== "; returns where its events end. */
static char *read_answer(char *p, answer *a) {
    char *text = next_line(p), *end = strstr(text - 1, "\n---\n");
    assert_non_null(end);
    sscanf(p, "=== %31s%*1[ ]%7[A-Z0]", a->format, a->flags);
    a->text = (nib_str){text, end < text ? 0 : (size_t)(end - text)};
    a->events = json_array();
    for (p = end + 5; *p == '['; p = next_line(p)) {
        json_t *event = json_loadb(p, (size_t)(next_line(p) - p), 0, NULL);
        if (!event) fail_msg("not JSON: %.80s", p);
        json_array_append_new(a->events, event);
    }
    return p;
}

static int read_answers(void **state) {
    (void)state;
    size_t n;
    g_file = files_read("tests/answers.txt", &n);
    for (char *p = g_file; *p;) {
        if (strncmp(p, "=== ", 4) != 0) {
            p = next_line(p);
            continue;
        }
        assert_in_range(g_n, 0, MAX_ANSWERS - 1);
        p = read_answer(p, &g_answers[g_n++]);
    }
    return 0;
}

static int free_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < g_n; i++) json_decref(g_answers[i].events);
    free(g_file);
    return 0;
}

static bool g_streams; /* arguments are given as they come */

static nib_chat_parser_config config_of(const answer *a) {
    nib_chat_parser_config c = NIB_CHAT_PARSER_CONFIG_INIT;
    c.format = a->format;
    c.starts_thinking = strchr(a->flags, 'T');
    c.parse_tools = !strchr(a->flags, 'N');
    c.parse_reasoning = !strchr(a->flags, 'R');
    c.tools = strchr(a->flags, '0') ? NULL : g_tools;
    c.tools_len = sizeof g_tools - 1;
    c.stream_calls = g_streams;
    return c;
}

static void assert_same(const answer *a, json_t *found, json_t *wanted, size_t cut) {
    if (found && json_equal(found, wanted)) return;
    char *f = json_dumps(found, 0), *w = json_dumps(wanted, 0);
    fail_msg("%s, cut %zu: %.*s\n  found  %s\n  wanted %s", a->format, cut, (int)a->text.len, a->text.ptr,
             f ? f : "an error", w);
}

/* The first piece has *user bytes, the others one more or all. */
static size_t cut_once(void *user) {
    size_t *first = user, n = *first;
    *first = SIZE_MAX;
    return n;
}

static size_t cut_randomly(void *user) {
    return blocks_random(user) % 7;
}

static size_t cut_bytes(void *user) {
    (void)user;
    return 1;
}

static void test_events(void **state) {
    (void)state;
    for (size_t i = 0; i < g_n; i++) {
        nib_chat_parser_config config = config_of(&g_answers[i]);
        json_t *found = answers_parse(&config, g_answers[i].text, NULL, NULL);
        assert_same(&g_answers[i], found, g_answers[i].events, 0);
        json_decref(found);
    }
}

static void check_cut(const answer *a, json_t *wanted, answers_cut cut, void *user, size_t at) {
    nib_chat_parser_config config = config_of(a);
    json_t *found = answers_parse(&config, a->text, cut, user);
    assert_same(a, found, wanted, at);
    json_decref(found);
}

static void test_cuts(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < g_n; i++) {
        const answer *a = &g_answers[i];
        json_t *wanted = a->events;
        check_cut(a, wanted, cut_bytes, NULL, 1);
        for (size_t at = 1; at < a->text.len; at++) {
            size_t first = at;
            check_cut(a, wanted, cut_once, &first, at);
        }
        for (int round = 0; round < 30; round++) check_cut(a, wanted, cut_randomly, &seed, (size_t)seed);
    }
}

/* Beginnings of answers end inside anything; they, too, must not depend on cuts, and text must not be lost. */
static void test_beginnings(void **state) {
    (void)state;
    for (size_t i = 0; i < g_n; i++)
        for (size_t len = 0; len < g_answers[i].text.len; len++) {
            answer a = g_answers[i];
            nib_chat_parser_config config = config_of(&a);
            a.text.len = len;
            json_t *wanted = answers_parse(&config, a.text, NULL, NULL);
            assert_non_null(wanted);
            check_cut(&a, wanted, cut_bytes, NULL, len);
            json_decref(wanted);
        }
}

/* ---- arguments as they come */

static bool has_warning(json_t *events) {
    json_t *event;
    size_t i;
    json_array_foreach(events, i, event)
        if (strcmp(json_string_value(json_array_get(event, 0)), "warning") == 0) return true;
    return false;
}

/* An id that follows the arguments comes too late. */
static void take_late_ids(json_t *events, json_t *wanted) {
    json_t *event;
    size_t i;
    json_array_foreach(events, i, event) {
        json_t *id = json_array_get(json_array_get(wanted, i), 2);
        bool is_made_up = json_array_size(event) == 5 && strncmp(json_string_value(json_array_get(event, 2)), "call_", 5) == 0;
        if (is_made_up && json_is_string(id)) json_array_set(event, 2, id);
    }
}

/* The same events as without, when the answer is well-formed; the same ones however it is cut, and wherever it ends. */
static void test_streams(void **state) {
    (void)state;
    uint64_t seed = 3;
    g_streams = true;
    for (size_t i = 0; i < g_n; i++) {
        const answer *a = &g_answers[i];
        nib_chat_parser_config config = config_of(a);
        json_t *whole = answers_parse(&config, a->text, NULL, NULL), *same = json_deep_copy(whole);
        take_late_ids(same, a->events);
        if (!has_warning(a->events)) assert_same(a, same, a->events, 0);
        json_decref(same);
        for (size_t at = 1; at < a->text.len; at++) {
            size_t first = at;
            check_cut(a, whole, cut_once, &first, at);
        }
        for (int round = 0; round < 30; round++) check_cut(a, whole, cut_randomly, &seed, (size_t)seed);
        json_decref(whole);
    }
    test_beginnings(NULL);
    g_streams = false;
}

static bool show(void *user, const nib_chat_event *e) {
    static const char *const kinds[] = {"content ", "reasoning ", "call ", "warning ", "begin ", "", "end "};
    nib_buf *out = user;
    if (e->kind == NIB_CHAT_CALL_BEGIN)
        return nib_buf_printf(out, "begin %u %.*s %.*s ", e->index, NIB_STR_ARG(e->id), NIB_STR_ARG(e->name));
    return nib_buf_printf(out, "%s%.*s%s", kinds[e->kind], NIB_STR_ARG(e->text), e->kind == NIB_CHAT_CALL_ARGUMENTS ? "|" : "");
}

/* What the pieces give, each shown behind a slash. */
static void shows(const char *format, const char *const *pieces, const char *wanted) {
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    nib_chat_parser *parser;
    nib_buf out = {0};
    config.format = format;
    config.stream_calls = true;
    config.event = show;
    config.user = &out;
    assert_int_equal(nib_chat_parser_new(&parser, &config, NULL), NIB_OK);
    for (; *pieces; pieces++) {
        assert_int_equal(nib_chat_parser_push(parser, (nib_str){*pieces, strlen(*pieces)}, NULL), NIB_OK);
        nib_buf_char(&out, '/');
    }
    assert_int_equal(nib_chat_parser_finish(parser, NULL), NIB_OK);
    assert_string_equal(nib_buf_cstr(&out), wanted);
    nib_chat_parser_free(parser);
    nib_buf_free(&out);
}

#define PIECES(...) (const char *const[]){__VA_ARGS__, NULL}

static void test_pieces(void **state) {
    (void)state;
    shows("hermes", PIECES("<tool_call>{\"name\": \"f\", \"arg", "uments\": {\"a\"", ": [1", "]}}", "\n</tool_call>"),
          "/begin 0 call_0 f {\"a\"|/: [1|/]}|end //");
    shows("hermes", PIECES("<tool_call>{\"arguments\": {\"a\": 1}, ", "\"name\": \"f\"}</tool_call>"),
          "/begin 0 call_0 f {\"a\": 1}|end /");
    shows("mistral",
          PIECES("[TOOL_CALLS]f[CALL_ID]x1[ARGS]{",
                 "}[TOOL_CALLS][{\"name\": \"g\", \"id\": \"y\", \"arguments\": {}}, ", "{\"name\": \"h\"}]"),
          "begin 0 x1 f {|/}|end begin 1 y g {}|end /begin 2 call_2 h {}|end /");
    shows("qwen3-coder", PIECES("<tool_call><function=f><parameter=a>1", "</parameter></function>", "</tool_call>"),
          "/begin 0 call_0 f {\"a\":1}|end //");
    /* Broken ones. */
    shows("hermes", PIECES("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "oops}} more"),
          "begin 0 call_0 f {\"a\": |/warning a tool call broke off at byte 44 of the answer: unexpected text; what follows is text"
          "end content oops}} more/");
    shows("kimi-k2", PIECES("<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\""),
          "begin 0 functions.f:0 f {\"a\"|/"
          "warning a tool call broke off at byte 92 of the answer, which ends thereend ");
    shows("hermes", PIECES("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}"),
          "begin 0 call_0 f {\"a\": 1}|/warning a tool call broke off at byte 46 of the answer, which ends thereend ");
    shows("hermes", PIECES("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n", "</tool_"), "begin 0 call_0 f {\"a\": 1}|end //");
    shows("hermes", PIECES("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_", "x"),
          "begin 0 call_0 f {\"a\": 1}|end /content </tool_x/");
    shows("kimi-k2", PIECES("<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call"),
          "begin 0 functions.f:0 f {}|end /");
    shows("minimax-m1", PIECES("<tool_calls>[{\"name\": \"f\", \"arguments\": {}}, 5]"),
          "begin 0 call_0 f {}|end "
          "warning a tool call broke off at byte 45 of the answer: unexpected text; what follows is textcontent ,"
          "content  5]/");
}

/* JSON that is not UTF-8 is none, and comes out as it is. */
static void test_bytes(void **state) {
    (void)state;
    static const char text[] = "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"\xFF\"}}</tool_call>";
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    json_t *found = answers_parse(&config, (nib_str){text, sizeof text - 1}, NULL, NULL);
    char *content = answers_joined(found, "content");
    assert_int_equal(json_array_size(found), 2); /* and a warning */
    assert_string_equal(content, "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"\xC3\xBF\"}}</tool_call>");
    free(content);
    json_decref(found);
}

/* Every format of the table has an answer. */
static void test_all_formats(void **state) {
    (void)state;
    for (const char *const *name = nib_chat_format_names(); *name; name++) {
        size_t i = 0;
        while (i < g_n && strcmp(g_answers[i].format, *name) != 0) i++;
        if (i == g_n) fail_msg("no answer in the format %s", *name);
    }
}

/* ---- the table */

static size_t literal_len(const char *p) {
    size_t n = 0;
    while (p[n] && !NIB_CHAT_IS_ELEMENT(p[n])) n++;
    return n;
}

static void check_pattern(const char *name, const char *pattern) {
    int depth = 0;
    for (const char *p = pattern; *p; p++) {
        bool is_up_to = *p == NIB_CHAT_VALUE || *p == NIB_CHAT_LINES || *p == NIB_CHAT_TREE || *p == NIB_CHAT_SKIP;
        if (is_up_to && !literal_len(p + 1)) fail_msg("%s: a value that no literal ends", name);
        if (*p == NIB_CHAT_OPT || *p == NIB_CHAT_MANY) depth++;
        if (*p == NIB_CHAT_END_OPT || *p == NIB_CHAT_END_MANY) depth--;
        assert_in_range(depth, 0, 4);
    }
    assert_int_equal(depth, 0);
}

static bool can_meet(unsigned a, unsigned b) {
    const unsigned fresh = NIB_CHAT_AT_START | NIB_CHAT_AT_FRESH | NIB_CHAT_IN_TEXT;
    const unsigned thinking = NIB_CHAT_AT_FRESH_THINKING | NIB_CHAT_IN_THINKING;
    return (a & fresh && b & fresh) || (a & thinking && b & thinking);
}

static void test_table(void **state) {
    (void)state;
    for (const char *const *name = nib_chat_format_names(); *name; name++) {
        const nib_chat_rule *rules = nib_chat_format_find(*name)->rules;
        for (size_t i = 0; i < NIB_CHAT_MAX_RULES && rules[i].pattern; i++) {
            size_t len = literal_len(rules[i].pattern);
            check_pattern(*name, rules[i].pattern);
            if (!len) assert_int_equal(rules[i].where & (NIB_CHAT_IN_TEXT | NIB_CHAT_IN_THINKING), 0);
            for (size_t k = 0; k < NIB_CHAT_MAX_RULES && rules[k].pattern; k++) {
                bool is_other = k != i && len && can_meet(rules[i].where, rules[k].where);
                if (is_other && strncmp(rules[i].pattern, rules[k].pattern, len) == 0)
                    fail_msg("%s: the opening of rule %zu begins that of rule %zu", *name, i, k);
            }
        }
    }
}

/* ---- limits and errors */

static size_t cut_user(void *user) {
    return *(size_t *)user;
}

static void test_limit(void **state) {
    (void)state;
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    char text[600], *p = text;
    config.format = "hermes";
    config.max_call_bytes = 100;
    p += sprintf(p, "a <tool_call>{\"name\": \"now\", \"arguments\": {\"x\": \"");
    memset(p, 'y', 300);
    p += 300;
    p += sprintf(p, "\"}}</tool_call><tool_call>{\"name\": \"now\"}</tool_call>");
    json_t *found = answers_parse(&config, (nib_str){text, (size_t)(p - text)}, NULL, NULL);
    assert_int_equal(json_array_size(found), 4);
    assert_string_equal(json_string_value(json_array_get(json_array_get(found, 1), 1)),
                        "a tool call of more than 100 bytes, from byte 2 of the answer on, stays text");
    assert_string_equal(json_string_value(json_array_get(json_array_get(found, 3), 0)), "call");
    for (size_t piece = 1; piece < 120; piece++) {
        json_t *cut = answers_parse(&config, (nib_str){text, (size_t)(p - text)}, cut_user, &piece);
        assert_true(json_equal(found, cut));
        json_decref(cut);
    }
    json_decref(found);
}

/* Blanks that never end are not kept for ever, and how they come makes no difference. */
static void test_blanks(void **state) {
    (void)state;
    enum { N = 10000 };
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    char *text = malloc(N + 60);
    config.format = "hermes";
    assert_non_null(text);
    memset(text, '\n', N);
    text[0] = 'a';
    strcpy(text + N, "<tool_call>{\"name\": \"now\"}</tool_call>");
    json_t *found = answers_parse(&config, (nib_str){text, strlen(text)}, NULL, NULL);
    assert_in_range(json_string_length(json_array_get(json_array_get(found, 0), 1)), N / 2, N);
    json_t *cut = answers_parse(&config, (nib_str){text, strlen(text)}, cut_bytes, NULL);
    assert_true(json_equal(found, cut));
    json_decref(cut);
    json_decref(found);
    free(text);
}

static bool refuse(void *user, const nib_chat_event *event) {
    (void)user;
    (void)event;
    return false;
}

static void test_errors(void **state) {
    (void)state;
    nib_error err;
    nib_chat_parser *parser;
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    config.event = refuse;
    config.format = "hermess";
    assert_int_equal(nib_chat_parser_new(&parser, &config, &err), NIB_E_ARG);
    assert_null(parser);
    assert_non_null(strstr(err.message, "'hermess'"));
    config.format = "hermes";
    config.tools = "[{]";
    config.tools_len = 3;
    assert_int_equal(nib_chat_parser_new(&parser, &config, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "tools"));
    config.tools = "{}";
    config.tools_len = 2;
    assert_int_equal(nib_chat_parser_new(&parser, &config, &err), NIB_E_ARG);
    assert_int_equal(nib_chat_parser_new(&parser, NULL, &err), NIB_E_ARG); /* no receiver */
    config.tools = NULL;
    assert_int_equal(nib_chat_parser_new(&parser, &config, &err), NIB_OK);
    assert_int_equal(nib_chat_parser_push(parser, (nib_str){"abc", 3}, &err), NIB_E_CANCELLED);
    assert_int_equal(nib_chat_parser_push(parser, (nib_str){"abc", 3}, &err), NIB_E_CANCELLED);
    assert_int_equal(nib_chat_parser_finish(parser, NULL), NIB_E_CANCELLED);
    assert_int_equal(nib_chat_parser_n_calls(parser), 0);
    nib_chat_parser_free(parser);
    assert_int_equal(nib_chat_parser_new(&parser, &config, &err), NIB_OK);
    assert_int_equal(nib_chat_parser_finish(parser, &err), NIB_OK);
    assert_int_equal(nib_chat_parser_push(parser, (nib_str){"abc", 3}, &err), NIB_E_ARG);
    nib_chat_parser_free(parser);
    nib_chat_parser_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events), cmocka_unit_test(test_cuts),        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_all_formats), cmocka_unit_test(test_table),
        cmocka_unit_test(test_limit),  cmocka_unit_test(test_blanks),      cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, read_answers, free_answers);
}
