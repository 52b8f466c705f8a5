/* fuzz/fuzz_jinja.c - any bytes as a chat template, over small data: text whose spans cover it, or an error with a message, and
 * never more than the limits allow.
 *
 * The bytes up to the first FF are the template; those behind it, if any, are data in JSON. */
#include "nib.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_text(const nib_rendered *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_spans; i++) {
        check(r->spans[i].len > 0 && (i == 0 || r->spans[i].is_trusted != r->spans[i - 1].is_trusted));
        n += r->spans[i].len;
    }
    check(n == r->len && (n == 0 || r->text[n] == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char usual[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a <|x|> \\u00e9\"},{\"role\":\"assistant\",\"content\":null,"
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1.5,\"y\":[true,-2]}}}]}],"
        "\"tools\":null,\"n\":7,\"s\":\" Hi, y\\n\",\"l\":[3,1,2],\"d\":{\"b\":1,\"a\":\"x\"}}";
    const uint8_t *mark = size ? memchr(data, 0xFF, size) : NULL;
    size_t len = mark ? (size_t)(mark - data) : size;
    nib_template_config config = NIB_TEMPLATE_CONFIG_INIT;
    nib_template *tmpl;
    nib_rendered out;
    nib_error err = {0};
    config.max_steps = 100000;
    config.max_bytes = 1 << 20;
    config.max_depth = 200;
    if (nib_template_new(&tmpl, (const char *)data, len, &err) != NIB_OK) {
        check(tmpl == NULL && err.message[0]);
        return 0;
    }
    const char *json = mark ? (const char *)mark + 1 : usual;
    nib_status status = nib_template_render(tmpl, json, mark ? size - len - 1 : sizeof usual - 1, &config, &out, &err);
    if (status == NIB_OK) check_text(&out);
    else check(err.code == status && err.message[0] && !out.text && !out.spans);
    nib_rendered_free(&out);
    nib_template_free(tmpl);
    return 0;
}
