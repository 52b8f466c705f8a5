/* tests/test_chat_chat.c - where a template comes from, what ends an answer, and files that have none. */
#include "support/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define DEFAULT "tokenizer.chat_template"
#define NAMED(name) "tokenizer.chat_template." name
#define REQUEST "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"
#define TOOLS_REQUEST                                                                                                  \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"

static void must_open(chat_fixture *f, const char *const *keys, const nib_chat_config *config, const char *source) {
    nib_error err;
    if (chat_open(f, keys, config, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_string_equal(nib_chat_source(f->chat), source);
}

static void test_sources(void **state) {
    (void)state;
    static const char *const keys[] = {DEFAULT, "default {{ messages[0].content }}", NAMED("tool_use"),
                                       "tools {{ messages[0].content }}{{ tools|tojson }}", NAMED("rag"),
                                       "rag {{ messages[0].content }}", NULL};
    chat_fixture f;
    must_open(&f, keys, NULL, "the model's template");
    chat_prints(f.chat, REQUEST, "default Hi");
    chat_prints(f.chat, TOOLS_REQUEST, "tools Hi[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]");
    chat_close(&f);
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    config.variant = "rag";
    must_open(&f, keys, &config, "the model's template rag");
    chat_prints(f.chat, TOOLS_REQUEST, "rag Hi");
    chat_close(&f);
    config.builtin = "chatml";
    must_open(&f, keys, &config, "built-in template chatml");
    chat_prints(f.chat, REQUEST, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    chat_close(&f);
    config.text = "given {{ messages[0].content }}, and more";
    config.text_len = strlen("given {{ messages[0].content }}");
    must_open(&f, keys, &config, "the given template");
    chat_prints(f.chat, REQUEST, "given Hi");
    chat_close(&f);
}

static void refuses_to_open(const char *const *keys, const nib_chat_config *config, nib_status code, const char *part) {
    chat_fixture f;
    nib_error err = {0};
    nib_status status = chat_open(&f, keys, config, &err);
    if (status != code || !strstr(err.message, part)) fail_msg("%d, %s", status, err.message);
    assert_null(f.chat);
    assert_non_null(f.tok); /* completion works */
    chat_close(&f);
}

static void test_missing(void **state) {
    (void)state;
    static const char *const none[] = {NULL}, *const named[] = {NAMED("tool_use"), "x", NAMED("rag"), "y", NULL};
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    refuses_to_open(none, NULL, NIB_E_ARG, "the file has no chat template (tokenizer.chat_template)");
    refuses_to_open(named, NULL, NIB_E_ARG, "choose one of: tokenizer.chat_template.tool_use tokenizer.chat_template.rag");
    config.variant = "no";
    refuses_to_open(named, &config, NIB_E_ARG,
                    "the file has no template tokenizer.chat_template.no; named ones: tokenizer.chat_template.tool_use");
    config.builtin = "nosuch";
    refuses_to_open(named, &config, NIB_E_ARG, "there is no built-in template \"nosuch\"");
    config.builtin = "chatml";
    config.format = "nosuch";
    refuses_to_open(named, &config, NIB_E_ARG, "no format of answers is called 'nosuch'");
}

static void test_broken(void **state) {
    (void)state;
    static const char *const broken[] = {DEFAULT, "{% for m in messages %}\n  {{ m. }}{% endfor %}", NULL};
    static const char *const tools[] = {DEFAULT, "fine {{ messages }}", NAMED("tool_use"), "{% if %}", NULL};
    refuses_to_open(broken, NULL, NIB_E_FORMAT, "the model's template:2:9: ");
    refuses_to_open(tools, NULL, NIB_E_FORMAT, "the model's template tool_use:1:7: ");
}

/* A template that does nothing sensible is still no reason to fail before it is used. */
static void test_odd(void **state) {
    (void)state;
    static const char *const rows[] = {"", "constant", "{{ raise_exception('no') }}", "{{ messages[7].content.x.y }}",
                                       "{% for i in range(1000000) %}{% for k in range(1000000) %}{% endfor %}{% endfor %}",
                                       "{% set x %}{{ 'a' * 10000000 }}{% endset %}{{ x * 1000 }}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const keys[] = {DEFAULT, rows[i], NULL};
        chat_fixture f;
        must_open(&f, keys, NULL, "the model's template");
        chat_close(&f);
    }
}

/* ---- what ends an answer. 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (EOS) */

static void ends_are(const char *template, bool by_token_1, const char *stop) {
    const char *const keys[] = {DEFAULT, template, NULL};
    chat_fixture f;
    must_open(&f, keys, NULL, "the model's template");
    assert_true(nib_chat_ends_turn(f.chat, 2));
    assert_int_equal(nib_chat_ends_turn(f.chat, 1), by_token_1);
    assert_false(nib_chat_ends_turn(f.chat, 50));
    assert_false(nib_chat_ends_turn(f.chat, NIB_TOKEN_NONE));
    assert_false(nib_chat_ends_turn(f.chat, 1000000));
    nib_str found = nib_chat_stop(f.chat, 0);
    if (stop) {
        assert_int_equal(found.len, strlen(stop));
        assert_memory_equal(found.ptr, stop, found.len);
        assert_null(nib_chat_stop(f.chat, 1).ptr);
    } else {
        assert_null(found.ptr);
    }
    chat_close(&f);
}

#define TURNS(user, assistant)                                                                                         \
    "{% for m in messages %}{% if m.role == 'user' %}" user "{% else %}" assistant "{% endif %}{% endfor %}"

static void test_ends(void **state) {
    (void)state;
    ends_are(chat_simple, false, NULL);
    ends_are(TURNS("U: {{ m.content }}\n", "A: {{ m.content }}{{ eos_token }}\n"), false, NULL);
    ends_are(TURNS("<|im_start|>{{ m.content }}", "{{ m.content }}"), true, NULL);       /* the next turn's token */
    ends_are(TURNS("{{ m.content }}", "{{ m.content }}<|im_start|>\n"), true, NULL);     /* no EOG token */
    ends_are(TURNS("{{ m.content }}", "{{ m.content }}\n<|eot|> <x>\n"), false, "<|eot|>"); /* no token at all */
    ends_are(TURNS("\n\n### Question:\n{{ m.content }}", "\n\n### Answer:\n{{ m.content }}"), false, "\n### Question:");
    ends_are(TURNS("USER: {{ m.content }} ", "ASSISTANT: {{ m.content }} "), false, "USER:");
    ends_are(TURNS("{{ m.content }}", "{{ m.content }}"), false, NULL);
}

static void test_format(void **state) {
    (void)state;
    static const char *const keys[] = {DEFAULT, "{{ messages[0].content }}{{ tools }}", NULL};
    chat_fixture f;
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    must_open(&f, keys, NULL, "the model's template");
    assert_string_equal(nib_chat_format(f.chat), "generic");
    chat_close(&f);
    config.format = "harmony";
    must_open(&f, keys, &config, "the model's template");
    assert_string_equal(nib_chat_format(f.chat), "harmony");
    assert_true(nib_chat_is_mark(f.chat, (nib_str){"<|channel|>", 11}));
    assert_false(nib_chat_is_mark(f.chat, (nib_str){"<|im_start|>", 12}));
    assert_string_equal(nib_chat_stop(f.chat, 0).ptr, "<|call|>"); /* the vocabulary has no such token */
    chat_close(&f);
    nib_chat_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources), cmocka_unit_test(test_missing), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_odd),     cmocka_unit_test(test_ends),    cmocka_unit_test(test_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
