/* tests/test_chat_builtin.c - built-in chat templates: what each prints, that the tokens of a conversation come from the template
 * alone, and that no message is lost. tests/builtin_oracle.py compares them with llama.cpp. */
#include "nib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MESSAGE(role, content) "{\"role\":\"" role "\",\"content\":\"" content "\"}"

static const char conversation[] =
    "{\"add_generation_prompt\":true,\"messages\":[" MESSAGE("system", "Be brief.") "," MESSAGE("user", "Hi") ","
    MESSAGE("assistant", " Yes? ") "," MESSAGE("user", "More\\n") "]}";
static const char brief[] = "{\"messages\":[" MESSAGE("user", "Hi") "," MESSAGE("assistant", "Yes?") "]}";

typedef struct row {
    const char *name, *conversation, *brief;
} row;

static const row rows[] = {
#define ROW(name, conversation, brief) {name, conversation, brief},
#include "support/builtin.def"
#undef ROW
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static nib_status render(const char *name, const char *data, nib_rendered *out, nib_error *err) {
    nib_str text = nib_chat_builtin_find(name);
    nib_template_config config = NIB_TEMPLATE_CONFIG_INIT;
    nib_template *tmpl;
    config.now = 1721952000; /* 2024-07-26 */
    config.trusted = "eos_token messages.role";
    if (!text.ptr) fail_msg("no template %s", name);
    if (nib_template_new(&tmpl, text.ptr, text.len, err) != NIB_OK) fail_msg("%s: %s", name, err->message);
    nib_status status = nib_template_render(tmpl, data, strlen(data), &config, out, err);
    nib_template_free(tmpl);
    return status;
}

static void prints(const char *name, const char *data, const char *wanted) {
    nib_rendered out;
    nib_error err;
    if (render(name, data, &out, &err) != NIB_OK) {
        if (wanted) fail_msg("%s: %s", name, err.message);
        return;
    }
    if (!wanted || strcmp(out.text, wanted) != 0) fail_msg("%s: \"%s\", expected \"%s\"", name, out.text, wanted ? wanted : "an error");
    nib_rendered_free(&out);
}

static void test_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        prints(rows[i].name, conversation, rows[i].conversation);
        prints(rows[i].name, brief, rows[i].brief);
    }
    prints("zephyr", "{\"eos_token\":\"</s>\",\"messages\":[" MESSAGE("user", "Hi") "]}", "<|user|>\nHi</s>\n");
    prints("bailing2", "{\"enable_thinking\":true,\"messages\":[" MESSAGE("user", "Hi") "]}",
           "<role>SYSTEM</role>detailed thinking on<|role_end|><role>HUMAN</role>Hi<|role_end|>");
    prints("exaone4", "{\"enable_thinking\":true,\"add_generation_prompt\":true,\"messages\":[" MESSAGE("user", "Hi") "]}",
           "[|user|]\nHi[|endofturn|]\n[|assistant|]\n<think>\n");
}

static void test_names(void **state) {
    (void)state;
    const char *const *names = nib_chat_builtin_names();
    for (size_t i = 0; i < N_ROWS; i++) assert_string_equal(names[i], rows[i].name);
    assert_null(names[N_ROWS]);
    assert_null(nib_chat_builtin_find("llama").ptr);
}

/* All bytes of the contents are untrusted and all others trusted, so that no control token is in two parts. */
static void test_spans(void **state) {
    (void)state;
    nib_rendered out;
    nib_error err;
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *p;
        assert_int_equal(render(rows[i].name, brief, &out, &err), NIB_OK);
        p = out.text;
        for (size_t k = 0; k < out.n_spans; p += out.spans[k++].len) {
            bool is_content = (out.spans[k].len == 2 && !memcmp(p, "Hi", 2)) || (out.spans[k].len == 4 && !memcmp(p, "Yes?", 4)) ||
                              (out.spans[k].len == 6 && !memcmp(p, "HiYes?", 6));
            if (out.spans[k].is_trusted == is_content) fail_msg("%s: %.*s", rows[i].name, (int)out.spans[k].len, p);
        }
        nib_rendered_free(&out);
    }
}

/* The text of each message is printed, or the template refuses. */
static void test_nothing_is_lost(void **state) {
    (void)state;
    static const char *const roles[] = {"system", "user", "assistant", "tool", "developer"};
    enum { N_ROLES = sizeof roles / sizeof *roles };
    nib_rendered out;
    nib_error err;
    char data[300];
    for (size_t i = 0; i < N_ROWS * N_ROLES * N_ROLES; i++) {
        const char *name = rows[i / (N_ROLES * N_ROLES)].name;
        snprintf(data, sizeof data, "{\"messages\":[" MESSAGE("%s", "first") "," MESSAGE("%s", "second") "]}", roles[i / N_ROLES % N_ROLES],
                 roles[i % N_ROLES]);
        if (render(name, data, &out, &err) == NIB_OK) {
            if (!strstr(out.text, "first") || !strstr(out.text, "second")) fail_msg("%s: %s became %s", name, data, out.text);
            nib_rendered_free(&out);
        } else if (err.code != NIB_E_FORMAT || !(strstr(err.message, "no place for") || strstr(err.message, "without a question"))) {
            fail_msg("%s: %s", name, err.message);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
