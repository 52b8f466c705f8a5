/* tests/test_chat_message.c - what a client may send as a message: every fault is named by its field, and what is legal
 * comes out as the template wants it. */
#include "support/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ONE(message) "{\"messages\":[" message "]}"
#define USER "{\"role\":\"user\",\"content\":\"Hi\"}"
#define CALL(function) "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":" function "}]}"

static void test_faults(void **state) {
    (void)state;
    static const struct {
        const char *request, *message;
    } rows[] = {
        {"", "the data is not JSON"},
        {"{", "the data is not JSON"},
        {"[]", "a request must be a JSON object"},
        {"{}", "messages: missing"},
        {"{\"messages\":null}", "messages: is null, expected a list"},
        {"{\"messages\":{\"role\":\"user\"}}", "messages: is an object, expected a list"},
        {"{\"messages\":[]}", "messages: is empty"},
        {ONE("5"), "messages[0]: is a number, expected an object"},
        {ONE("{\"content\":\"Hi\"}"), "messages[0].role: missing"},
        {ONE("{\"role\":5,\"content\":\"Hi\"}"), "messages[0].role: is a number"},
        {ONE("{\"role\":\"\",\"content\":\"Hi\"}"), "messages[0].role: is empty"},
        {ONE(USER ",{\"role\":\"user\",\"content\":5}"), "messages[1].content: is a number, expected a string"},
        {ONE("{\"role\":\"user\",\"content\":null}"), "messages[0].content: is null"},
        {ONE("{\"role\":\"user\"}"), "messages[0].content: missing"},
        {ONE("{\"role\":\"tool\",\"content\":{\"t\":1}}"), "messages[0].content: is an object"},
        {ONE("{\"role\":\"user\",\"content\":[]}"), "messages[0].content: is an empty list"},
        {ONE("{\"role\":\"user\",\"content\":[\"Hi\"]}"), "messages[0].content[0]: is a string, expected an object"},
        {ONE("{\"role\":\"user\",\"content\":[{\"text\":\"Hi\"}]}"), "messages[0].content[0].type: missing"},
        {ONE("{\"role\":\"user\",\"content\":[{\"type\":\"smell\"}]}"),
         "messages[0].content[0].type: is \"smell\", expected \"text\""},
        {ONE("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":5}]}"), "messages[0].content[0].text: is a number"},
        {ONE("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"), "messages[0].content[0].text: missing"},
        {ONE("{\"role\":\"user\",\"content\":\"Hi\",\"name\":5}"), "messages[0].name: is a number"},
        {ONE("{\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":5}"), "messages[0].tool_call_id: is a number"},
        {ONE("{\"role\":\"assistant\",\"content\":null}"),
         "messages[0].content: is null, expected a string or a list of parts, or else tool_calls"},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":[]}"), "messages[0].content: missing"},
        {ONE("{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":5}"),
         "messages[0].reasoning_content: is a number"},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":{}}"), "messages[0].tool_calls: is an object, expected a list"},
        {ONE("{\"role\":\"user\",\"content\":\"Hi\",\"tool_calls\":[{}]}"), "messages[0].tool_calls: only the role assistant"},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":[5]}"), "messages[0].tool_calls[0]: is a number"},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"custom\"}]}"),
         "messages[0].tool_calls[0].type: is \"custom\""},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":1}]}"), "messages[0].tool_calls[0].id: is a number"},
        {ONE("{\"role\":\"assistant\",\"tool_calls\":[{}]}"), "messages[0].tool_calls[0].function: missing"},
        {ONE(CALL("{}")), "messages[0].tool_calls[0].function.name: missing"},
        {ONE(CALL("{\"name\":\"\"}")), "messages[0].tool_calls[0].function.name: is empty"},
        {ONE(CALL("{\"name\":\"f\",\"arguments\":5}")), "messages[0].tool_calls[0].function.arguments: is a number"},
        {ONE(CALL("{\"name\":\"f\",\"arguments\":\"[1]\"}")), "messages[0].tool_calls[0].function.arguments: is a list"},
        {ONE(CALL("{\"name\":\"f\",\"arguments\":\"{x\"}")),
         "messages[0].tool_calls[0].function.arguments: the data is not JSON"},
        {ONE("{\"role\":\"user\",\"content\":\"\\ud800\"}"), "surrogate"},
        {ONE("{\"role\":\"user\",\"content\":\"\xff\"}"), "UTF-8"},
    };
    chat_fixture f;
    chat_must(&f, chat_simple);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) chat_refuses(f.chat, rows[i].request, NIB_E_ARG, rows[i].message);
    chat_refuses(f.chat, ONE("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}"), NIB_E_UNSUPPORTED,
                 "messages[0].content[0].type: is \"image_url\"");
    chat_close(&f);
}

static void test_nested(void **state) {
    (void)state;
    char request[100000];
    chat_fixture f;
    size_t n = (size_t)snprintf(request, sizeof request, "{\"messages\":");
    memset(request + n, '[', sizeof request - n - 1);
    request[sizeof request - 1] = 0;
    chat_must(&f, chat_simple);
    chat_refuses(f.chat, request, NIB_E_ARG, "nested too deep");
    chat_close(&f);
}

/* Every field of messages as a template sees it. */
static const char shows_all[] =
    "{% for m in messages %}{% for k, v in m|dictsort %}{{ k }}={{ v|tojson }};{% endfor %}|{% endfor %}";

static void test_fields(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, shows_all);
    chat_prints(f.chat, ONE("{\"role\":\"user\",\"content\":\"Hi\",\"name\":\"Ann\",\"refusal\":null,\"x\":[1]}"),
                "content=\"Hi\";name=\"Ann\";role=\"user\";x=[1];|");
    chat_prints(f.chat, ONE("{\"role\":\"critic\",\"content\":\"Hm\"}"), "content=\"Hm\";role=\"critic\";|");
    chat_prints(f.chat, ONE("{\"role\":\"assistant\",\"content\":null,\"reasoning\":\"R\"}"),
                "content=null;reasoning_content=\"R\";role=\"assistant\";|");
    chat_prints(f.chat, ONE(CALL("{\"name\":\"f\"}")),
                "content=null;role=\"assistant\";tool_calls=[{\"id\": \"c1\", \"type\": \"function\", \"function\": "
                "{\"name\": \"f\", \"arguments\": {}}}];|");
    chat_prints(f.chat, ONE(CALL("{\"name\":\"f\",\"arguments\":\"\"}") ",{\"role\":\"tool\",\"content\":\"5\","
                "\"tool_call_id\":\"c1\"}"),
                "content=null;role=\"assistant\";tool_calls=[{\"id\": \"c1\", \"type\": \"function\", \"function\": "
                "{\"name\": \"f\", \"arguments\": {}}}];|content=\"5\";name=\"f\";role=\"tool\";tool_call_id=\"c1\";|");
    chat_close(&f);
}

#define PARTS "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}"

static void test_parts(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, chat_simple); /* strings only */
    chat_prints(f.chat, ONE(PARTS), "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n");
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}"); /* parts only */
    chat_prints(f.chat, ONE(PARTS "," USER), "<a><b><Hi>");
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
                  "<{{ p.text }}>{% endfor %}{% endif %}{% endfor %}"); /* both */
    chat_prints(f.chat, ONE(PARTS "," USER), "<a><b>Hi");
    chat_close(&f);
}

#define F "{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}"

static void test_arguments(void **state) {
    (void)state;
    static const char template[] = "{%% for m in messages %%}{%% if m.tool_calls %%}{%% for c in m.tool_calls %%}%s"
                                   "{%% endfor %%}{%% else %%}{{ m.content }}{%% endif %%}{%% endfor %%}";
    static const char *const rows[][2] = {
        {"{{ c.function.arguments|tojson }}", "{\"x\": 1}"},
        {"{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }};{% endfor %}", "x=1;"},
        {"{{ c.function.arguments }}", "{\"x\":1}"},
        {"{{ '\\n' + c.function.arguments }}", "\n{\"x\":1}"},
        {"{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}", "{\"x\": 1}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        chat_fixture f;
        char text[600];
        snprintf(text, sizeof text, template, rows[i][0]);
        chat_must(&f, text);
        chat_prints(f.chat, ONE(CALL(F)), rows[i][1]);
        chat_close(&f);
    }
    chat_fixture f;
    char text[600];
    snprintf(text, sizeof text, template, rows[2][0]); /* wants text, gets an object */
    chat_must(&f, text);
    chat_prints(f.chat, ONE(CALL("{\"name\":\"f\",\"arguments\":{\"x\":[1,\"é\"]}}")), "{\"x\": [1, \"é\"]}");
    chat_close(&f);
}

static void test_null_content(void **state) {
    (void)state;
    chat_fixture f;
    chat_must(&f, "{% for m in messages %}[{{ m.content }}]{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}"
              "{% endfor %}");
    chat_prints(f.chat, ONE("{\"role\":\"assistant\",\"content\":null,\"reasoning\":\"R\"}"), "[]");
    chat_close(&f);
    chat_must(&f, "{% for m in messages %}{% if m.content is not none %}[{{ m.content }}]{% endif %}{% if m.tool_calls %}"
                  "{{ m.tool_calls|tojson }}{% endif %}{% endfor %}");
    chat_prints(f.chat, ONE("{\"role\":\"assistant\",\"content\":null,\"reasoning\":\"R\"}"), "");
    chat_close(&f);
}

static void test_reasoning(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{{ '<' + m.reasoning_content + '>' if m.reasoning_content }}{{ m.content }}", "Hi<R>A"},
        {"{{ '<' + m.thinking + '>' if m.thinking }}{{ m.content }}", "Hi<R>A"},
        {"{{ '<' + m.reasoning + '>' if m.reasoning }}{{ m.content }}", "Hi<R>A"},
        {"{{ m.content }}", "HiA"},
        {"{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
         "{{ '<' + p.thinking + '>' if p.type == 'thinking' else p.text }}{% endfor %}{% endif %}", "Hi<R>A"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        chat_fixture f;
        char text[600];
        snprintf(text, sizeof text, "{%% for m in messages %%}%s{%% endfor %%}", rows[i][0]);
        chat_must(&f, text);
        chat_prints(f.chat, ONE(USER ",{\"role\":\"assistant\",\"content\":\"A\",\"reasoning_content\":\"R\"}"), rows[i][1]);
        chat_prints(f.chat, ONE(USER ",{\"role\":\"assistant\",\"content\":\"A\",\"thinking\":\"R\"}"), rows[i][1]);
        chat_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),    cmocka_unit_test(test_nested),       cmocka_unit_test(test_fields),
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_arguments),    cmocka_unit_test(test_null_content),
        cmocka_unit_test(test_reasoning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
