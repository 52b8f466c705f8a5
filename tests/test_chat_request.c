/* tests/test_chat_request.c - what stands around the messages of a request: tools, choices, switches, variables; and system
 * messages where a template has no place for them. */
#include "support/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WITH(more) "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]," more "}"
#define TOOL "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}}"
#define TOOLS "\"tools\":[" TOOL "]"

static void test_faults(void **state) {
    (void)state;
    static const struct {
        const char *request, *message;
    } rows[] = {
        {WITH("\"tools\":{}"), "tools: is an object, expected a list"},
        {WITH("\"tools\":[5]"), "tools[0]: is a number, expected an object"},
        {WITH("\"tools\":[{}]"), "tools[0].type: missing"},
        {WITH("\"tools\":[{\"type\":\"web_search\"}]"), "tools[0].type: is \"web_search\""},
        {WITH("\"tools\":[{\"type\":\"function\"}]"), "tools[0].function: missing"},
        {WITH("\"tools\":[" TOOL ",{\"type\":\"function\",\"function\":{}}]"), "tools[1].function.name: missing"},
        {WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":[]}}]"),
         "tools[0].function.parameters: is a list"},
        {WITH(TOOLS ",\"tool_choice\":5"), "tool_choice: is a number"},
        {WITH(TOOLS ",\"tool_choice\":\"some\""), "tool_choice: is \"some\""},
        {WITH("\"tool_choice\":\"required\""), "there are no tools"},
        {WITH(TOOLS ",\"tool_choice\":{\"type\":\"function\"}"), "tool_choice.function: missing"},
        {WITH(TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g\"}}"),
         "tool_choice.function.name: is \"g\", expected the name of one of the tools"},
        {WITH("\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"), "tool_choice.function.name: is \"f\""},
        {WITH("\"documents\":[5]"), "documents[0]: is a number"},
        {WITH("\"add_generation_prompt\":1"), "add_generation_prompt: is a number, expected true or false"},
        {WITH("\"continue_final_message\":\"yes\""), "continue_final_message: is a string"},
        {WITH("\"continue_final_message\":true,\"add_generation_prompt\":true"),
         "continue_final_message: cannot be true together"},
        {WITH("\"enable_thinking\":\"no\""), "enable_thinking: is a string"},
        {WITH("\"reasoning_effort\":3"), "reasoning_effort: is a number"},
        {WITH("\"chat_template_kwargs\":[]"), "chat_template_kwargs: is a list"},
        {WITH("\"chat_template_kwargs\":{\"messages\":[]}"), "chat_template_kwargs.messages: cannot be set here"},
        {WITH("\"chat_template_kwargs\":{\"bos_token\":\"x\"}"), "chat_template_kwargs.bos_token: cannot be set here"},
        {WITH("\"chat_template_kwargs\":{\"enable_thinking\":\"no\"}"), "chat_template_kwargs.enable_thinking: is a string"},
    };
    chat_fixture f;
    chat_must(&f, chat_simple);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) chat_refuses(f.chat, rows[i].request, NIB_E_ARG, rows[i].message);
    chat_close(&f);
}

static void test_variables(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{{ messages[0].content }}{{ bos_token }}{{ eos_token }} {{ tools|length if tools }} {{ documents|length if documents }} "
                  "{{ add_generation_prompt }} {{ enable_thinking }} {{ reasoning_effort }} {{ mood }} {{ continue_final_message }}");
    chat_prints(f.chat, WITH("\"n\":1"), "Hi<|endoftext|><|im_end|>   True    ");
    chat_prints(f.chat, WITH("\"tools\":null,\"tool_choice\":null,\"documents\":null,\"add_generation_prompt\":null,"
                             "\"continue_final_message\":null,\"enable_thinking\":null,\"reasoning_effort\":null,"
                             "\"chat_template_kwargs\":null"),
                "Hi<|endoftext|><|im_end|>   True    ");
    chat_prints(f.chat, WITH(TOOLS ",\"documents\":[{},{}],\"add_generation_prompt\":false,\"enable_thinking\":false,"
                                   "\"reasoning_effort\":\"low\",\"chat_template_kwargs\":{\"mood\":\"gay\"}"),
                "Hi<|endoftext|><|im_end|> 1 2 False False low gay ");
    chat_prints(f.chat, WITH(TOOLS ",\"tool_choice\":\"none\""), "Hi<|endoftext|><|im_end|>   True    ");
    chat_prints(f.chat, WITH(TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
                "Hi<|endoftext|><|im_end|> 1  True    ");
    chat_prints(f.chat, WITH("\"enable_thinking\":false,\"reasoning_effort\":\"low\","
                "\"chat_template_kwargs\":{\"enable_thinking\":true,"
                             "\"reasoning_effort\":\"high\"}"), "Hi<|endoftext|><|im_end|>   True True high  ");
    chat_close(&f);
}

static void test_toggle(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{{ messages[0].content }}{% if thinking %} thinks{% endif %}");
    chat_prints(f.chat, WITH("\"enable_thinking\":true"), "Hi thinks");
    chat_prints(f.chat, WITH("\"enable_thinking\":false"), "Hi");
    chat_close(&f);
}

static void test_needs_tools(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{% for t in tools %}{{ t.function.name }}{% endfor %}{{ messages[0].content }}");
    chat_prints(f.chat, WITH(TOOLS), "fHi");
    chat_close(&f);
    chat_must(&f, "{{ tools|length }}{{ messages[0].content }}"); /* goes wrong where there are none */
    chat_prints(f.chat, WITH("\"n\":1"), "0Hi");
    chat_prints(f.chat, WITH(TOOLS), "1Hi");
    chat_close(&f);
}

#define LONG_TOOL                                                                                                       \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":"     \
    "{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"b\"]}}}]"

static void test_tool_shapes(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{{ messages[0].content }}{% for t in tools or [] %}{{ t.name + (t.parameters.required|join) }}{% endfor %}");
    chat_prints(f.chat, WITH(LONG_TOOL), "Hifb");
    chat_close(&f);
    chat_must(&f, "{{ messages[0].content }}{% for t in tools %} {{ t.name }}{% for k, v in t.parameter_definitions.items() %},{{ k }}:"
                  "{{ v.type }}{{ '!' if v.required }}{% endfor %}{% endfor %}");
    chat_prints(f.chat, WITH(LONG_TOOL), "Hi f,a:string,b:integer!");
    chat_prints(f.chat, WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"), "Hi f");
    chat_prints(f.chat, WITH("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":[]}}}]"),
                "Hi f");
    chat_prints(f.chat, WITH("\"tools\":[]"), "Hi");
    chat_close(&f);
}

static void notes_are(const nib_chat *chat, const char *request, const char *const *parts) {
    nib_chat_prompt prompt;
    assert_int_equal(nib_chat_render(chat, request, strlen(request), NULL, &prompt, NULL), NIB_OK);
    size_t n = 0;
    for (; parts[n]; n++) {
        assert_non_null(prompt.notes[n]);
        assert_non_null(strstr(prompt.notes[n], parts[n]));
    }
    assert_null(prompt.notes[n]);
    nib_chat_prompt_free(&prompt);
}
#define NOTES(...) (const char *const[]){__VA_ARGS__, NULL}

static void test_notes(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, chat_simple);
    notes_are(f.chat, WITH("\"n\":1"), NOTES(NULL));
    notes_are(f.chat, WITH(TOOLS ",\"enable_thinking\":false"), NOTES("does not show tools")); /* it does not think */
    notes_are(f.chat, WITH(TOOLS ",\"tool_choice\":\"none\",\"enable_thinking\":true"), NOTES(NULL));
    chat_close(&f);
    chat_must(&f, "{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}");
    notes_are(f.chat, "{\"messages\":[{\"role\":\"tool\",\"content\":\"5\"}]}", NOTES("what tools answered"));
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{{ m.content }}{{ m.reasoning_content }}{% endfor %}");
    notes_are(f.chat, WITH("\"enable_thinking\":false"), NOTES("cannot turn thinking off"));
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call><think>\n");
    notes_are(f.chat, WITH("\"enable_thinking\":false"), NOTES("cannot turn thinking off"));
    notes_are(f.chat, WITH("\"enable_thinking\":true"), NOTES(NULL));
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{% if m.role == 'developer' or m.role == 'system' %}"
              "<{{ m.content }}>{% endif %}{% endfor %}");
    notes_are(f.chat, "{\"messages\":[{\"role\":\"developer\",\"content\":\"D\"}]}", NOTES(NULL));
    chat_close(&f);
}

#define SAYS(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"

/* No role but user and assistant, in turn, as Gemma 2 has it. */
static void test_no_system(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) or m.role == 'system' %}"
                  "{{ raise_exception('turns') }}{% endif %}{{ m.role[0] + ':' + m.content + '|' }}{% endfor %}");
    chat_prints(f.chat, "{\"messages\":[" SAYS("system", "S") "," SAYS("user", "a") "]}", "u:S\n\na|");
    chat_prints(f.chat, "{\"messages\":[" SAYS("system", "S") "," SAYS("developer", "T") ",{\"role\":\"user\",\"content\":"
                        "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},"
                        SAYS("assistant", "c") "," SAYS("user", "d") "]}",
                "u:S\n\nT\n\na\nb|a:c|u:d|");
    chat_prints(f.chat, "{\"messages\":[" SAYS("system", "S") "]}", "u:S|");
    chat_prints(f.chat, "{\"messages\":[" SAYS("user", "a") "," SAYS("assistant", "b") "," SAYS("system", "S") "]}",
                "u:a|a:b|u:S|");
    chat_prints(f.chat, "{\"messages\":[" SAYS("system", "S") "," SAYS("assistant", "b") "]}", "u:S|a:b|");
    chat_prints(f.chat, "{\"messages\":[" SAYS("system", "") "," SAYS("user", "a") "]}", "u:\n\na|");
    chat_refuses(f.chat, "{\"messages\":[" SAYS("assistant", "b") "]}", NIB_E_FORMAT, "the model's template:1:117: turns");
    notes_are(f.chat, "{\"messages\":[" SAYS("developer", "S") "," SAYS("user", "a") "]}",
              NOTES("role developer", "no place for system messages"));
    chat_close(&f);
}

/* enable_thinking: false reaches templates that have another switch; what the request itself says of that goes first. */
static void test_less_thinking(void **state) {
    (void)state;
    static const char *const templates[] = {
        "{{ messages[0].content }} {{ 'no thoughts' if thinking_budget is defined and thinking_budget == 0 else 'thoughts' }}",
        "{{ messages[0].content }}{% if reasoning_effort is defined and reasoning_effort == 'none' %} no{% endif %} thoughts",
        "{{ messages[0].content }} effort {{ reasoning_effort if reasoning_effort is defined else 'medium' }}",
    };
    static const char *const wanted[][3] = {{"Hi thoughts", "Hi no thoughts", "Hi thoughts"},
                                            {"Hi thoughts", "Hi no thoughts", "Hi thoughts"},
                                            {"Hi effort medium", "Hi effort low", "Hi effort high"}};
    for (size_t i = 0; i < 3; i++) {
        chat_fixture f;
        chat_must(&f, templates[i]);
        chat_prints(f.chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", wanted[i][0]);
        chat_prints(f.chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"enable_thinking\":false}", wanted[i][1]);
        chat_prints(f.chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"enable_thinking\":false,"
                            "\"reasoning_effort\":\"high\",\"chat_template_kwargs\":{\"thinking_budget\":9}}", wanted[i][2]);
        chat_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_less_thinking),
        cmocka_unit_test(test_faults),      cmocka_unit_test(test_variables), cmocka_unit_test(test_toggle),
        cmocka_unit_test(test_needs_tools), cmocka_unit_test(test_tool_shapes), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_no_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
