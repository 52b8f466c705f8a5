/* tests/test_chat_format.c - which format a template has, which tokens are markers, and where prompts leave reasoning
 * open. */
#include "chat/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static nib_str str(const char *text) {
    return (nib_str){text, strlen(text)};
}

static const nib_chat_format_row *find(const char *name) {
    const nib_chat_format_row *format = nib_chat_format_find(name);
    if (!format) fail_msg("no format %s", name);
    return format;
}

/* Words of a template, and the format that they mean: what is more special counts. */
static void test_detect(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "generic"},
        {"{{ m.content }}<|im_end|>", "generic"},
        {"<tool_call>\n{\"name\"", "hermes"},
        {"<tool_call>\n<function=f>\n<parameter=x>", "qwen3-coder"},
        {"<tool_call>{{ name }}<arg_key>", "glm"},
        {"<|start_header_id|>", "llama3"},
        {"<|start_header_id|> <function={{ f }}>{}</function>", "functionary-v3.1"},
        {"<|START_OF_TURN_TOKEN|> Action:", "command-r"},
        {"<|START_OF_TURN_TOKEN|><|START_ACTION|>", "command-r7b"},
        {"[INST]", "mistral"},
        {"<start_of_turn>", "gemma"},
        {"<|channel|>final<|message|>", "harmony"},
        {"<|channel|>", "generic"},
        {"<｜Assistant｜>", "deepseek"},
        {"<｜Assistant｜><｜DSML｜invoke", "deepseek-v3.2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = nib_chat_format_name(nib_chat_format_detect(str(cases[i][0])));
        if (strcmp(found, cases[i][1]) != 0) fail_msg("%s: %s, not %s", cases[i][0], found, cases[i][1]);
    }
    assert_null(nib_chat_format_find("Hermes"));
}

static void test_names(void **state) {
    (void)state;
    const char *const *names = nib_chat_format_names();
    for (size_t i = 0; names[i]; i++) {
        assert_string_equal(nib_chat_format_name(find(names[i])), names[i]);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
    }
}

static void test_stops(void **state) {
    (void)state;
    const nib_chat_format_row *format = find("glm");
    nib_str stop = nib_chat_format_stop(format, 1);
    assert_int_equal(stop.len, strlen("<|observation|>"));
    assert_null(nib_chat_format_stop(format, 2).ptr);
    assert_null(nib_chat_format_stop(format, 100).ptr);
    assert_null(nib_chat_format_stop(find("none"), 0).ptr);
}

static void test_marks(void **state) {
    (void)state;
    assert_true(nib_chat_format_is_mark(find("harmony"), str("<|channel|>")));
    assert_true(nib_chat_format_is_mark(find("harmony"), str("<|call|>")));
    assert_true(nib_chat_format_is_mark(find("deepseek"), str("<｜tool▁sep｜>")));
    assert_true(nib_chat_format_is_mark(find("mistral"), str("[ARGS]")));
    assert_false(nib_chat_format_is_mark(find("mistral"), str("</s>")));
    assert_false(nib_chat_format_is_mark(find("hermes"), str("<|im_end|>")));
    assert_false(nib_chat_format_is_mark(find("hermes"), str("")));
    assert_false(nib_chat_format_is_mark(find("none"), str("<think>")));
}

static void test_thinking(void **state) {
    (void)state;
    static const struct {
        const char *format, *prompt;
        bool starts, leaves;
    } cases[] = {
        {"hermes", "<|im_start|>assistant\n", false, false},
        {"hermes", "assistant\n<think>\n", true, true},
        {"hermes", "<think>\n\n</think>\n\n", false, false},
        {"hermes", "<think>a</think>b", false, false},
        {"hermes", "<think>a", false, true},
        {"mistral", "[THINK]", true, true},
        {"gemma", "<|channel>thought\n<channel|>", false, false},
        {"harmony", "<|channel|>analysis<|message|>", true, true},
        {"apriel", "Here are my reasoning steps:\n", true, true},
        {"command-r7b", "<|START_THINKING|><|END_THINKING|>", false, false},
        {"none", "<think>", false, false},
        {"hermes", "", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const nib_chat_format_row *format = find(cases[i].format);
        if (nib_chat_format_starts_thinking(format, str(cases[i].prompt)) != cases[i].starts)
            fail_msg("%s", cases[i].prompt);
        if (nib_chat_format_leaves_thinking(format, str(cases[i].prompt)) != cases[i].leaves)
            fail_msg("%s", cases[i].prompt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detect), cmocka_unit_test(test_names),    cmocka_unit_test(test_stops),
        cmocka_unit_test(test_marks),  cmocka_unit_test(test_thinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
