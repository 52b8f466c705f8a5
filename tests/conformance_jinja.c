/* tests/conformance_jinja.c - the chat templates against what Python's jinja2 makes of them.
 *
 * usage: conformance_jinja [FOLDER]      the folder is $NIB_CONFORMANCE_DATA/chat-templates when none is given
 * X.jinja is a template, X.renders.jsonl are cases, one JSON object a line: "context" and "expected" text, or "error", where
 * nib must refuse too, with the same message when the template raised it. The clock stands at 2024-07-26 12:34:56. Also no
 * text of a message may be trusted: a marker put into every string of the messages must come out untrusted. Exit 0: all
 * equal, 1: not, 77: no folder. */
#include "base/buf.h"
#include "base/status.h"
#include "nib.h"
#include "support/conformance.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHOWN = 5, NOW = 1721997296 };
#define RAISED "raise_exception: "
#define MARKER "<|im_end|>"

static unsigned g_files, g_rows, g_bad, g_refused, g_injected;

static bool read_file(const char *path, nib_buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) nib_buf_append(out, block, n);
    fclose(f);
    return nib_buf_cstr(out) != NULL;
}

static nib_status render(const nib_template *tmpl, json_t *context, nib_rendered *out, nib_error *err) {
    nib_template_config config = NIB_TEMPLATE_CONFIG_INIT;
    config.now = NOW;
    char *text = json_dumps(context, 0);
    nib_status status = nib_template_render(tmpl, text, strlen(text), &config, out, err);
    free(text);
    return status;
}

static bool is_as_expected(json_t *row, nib_status status, const nib_rendered *found, const nib_error *err) {
    json_t *expected = json_object_get(row, "expected");
    const char *error = json_string_value(json_object_get(row, "error"));
    if (expected)
        return status == NIB_OK && found->len == json_string_length(expected) &&
               memcmp(found->text ? found->text : "", json_string_value(expected), found->len) == 0;
    if (status == NIB_OK) return false;
    g_refused++;
    if (strncmp(error, RAISED, strlen(RAISED)) != 0) return true;
    char message[sizeof err->message];
    snprintf(message, sizeof message, "%s", error + strlen(RAISED));
    nib_clean_line(message);
    return strcmp(message, err->message) == 0;
}

/* Puts the marker behind every string but those that templates compare with words of theirs. */
static json_t *with_marker(json_t *value, const char *key) {
    static const char *const kept[] = {"role", "type"};
    json_t *out, *item;
    const char *name;
    size_t i;
    for (i = 0; key && i < sizeof kept / sizeof *kept; i++)
        if (strcmp(key, kept[i]) == 0) return json_incref(value);
    if (json_is_string(value)) return json_sprintf("%s" MARKER, json_string_value(value));
    if (json_is_array(value)) {
        out = json_array();
        json_array_foreach(value, i, item) json_array_append_new(out, with_marker(item, NULL));
        return out;
    }
    if (!json_is_object(value)) return json_incref(value);
    out = json_object();
    json_object_foreach(value, name, item) json_object_set_new(out, name, with_marker(item, name));
    return out;
}

/* Every byte of a marker that came from a message is untrusted: one more trusted marker than without them is a fault. */
static unsigned count_trusted(const nib_rendered *r) {
    unsigned n = 0;
    const char *p = r->text;
    for (size_t i = 0; i < r->n_spans; p += r->spans[i++].len) {
        const char *end = p + r->spans[i].len;
        for (const char *at = p; r->spans[i].is_trusted && end - at >= (ptrdiff_t)strlen(MARKER); at++)
            n += memcmp(at, MARKER, strlen(MARKER)) == 0;
    }
    return n;
}

static bool is_safe(const nib_template *tmpl, json_t *context, const nib_rendered *plain) {
    nib_rendered marked;
    json_t *changed = json_copy(context);
    json_object_set_new(changed, "messages", with_marker(json_object_get(context, "messages"), NULL));
    bool ok = true;
    if (render(tmpl, changed, &marked, NULL) == NIB_OK) {
        ok = count_trusted(&marked) == count_trusted(plain);
        g_injected++;
        nib_rendered_free(&marked);
    }
    json_decref(changed);
    return ok;
}

static void run_row(const char *name, const nib_template *tmpl, json_t *row, unsigned *n_bad) {
    nib_rendered found;
    nib_error err = {0};
    json_t *context = json_object_get(row, "context");
    nib_status status = render(tmpl, context, &found, &err);
    bool is_equal = is_as_expected(row, status, &found, &err), safe = status != NIB_OK || is_safe(tmpl, context, &found);
    g_rows++;
    if ((!is_equal || !safe) && ++*n_bad <= MAX_SHOWN) {
        json_t *expected = json_object_get(row, "expected");
        printf("%s, %s:%s\n  found:  %s\n  wanted: %s\n", name, json_string_value(json_object_get(row, "name")),
               is_equal ? " text of a message is trusted" : "", status == NIB_OK ? found.text : err.message,
               json_string_value(expected ? expected : json_object_get(row, "error")));
    }
    nib_rendered_free(&found);
}

static void run_template(const char *folder, const char *file_name) {
    char path[4096], name[256];
    nib_buf source = {0}, cases = {0};
    nib_template *tmpl = NULL;
    nib_error err;
    unsigned n_bad = 0;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file_name) - strlen(".jinja")), file_name);
    snprintf(path, sizeof path, "%s/%s", folder, file_name);
    bool ok = read_file(path, &source);
    snprintf(path, sizeof path, "%s/%s.renders.jsonl", folder, name);
    ok = ok && read_file(path, &cases);
    if (!ok || nib_template_new(&tmpl, source.ptr, source.len, &err) != NIB_OK) {
        printf("%s: %s at byte %llu\n", name, ok ? err.message : "no cases", ok ? (unsigned long long)err.offset : 0);
        n_bad++;
    }
    for (char *line = cases.ptr, *end; tmpl && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) break;
        *end = 0;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        if (row) run_row(name, tmpl, row, &n_bad);
        else n_bad++;
        json_decref(row);
    }
    g_files++;
    g_bad += n_bad;
    nib_template_free(tmpl);
    nib_buf_free(&source);
    nib_buf_free(&cases);
}

int main(int argc, char **argv) {
    int n = conformance_each(argc, argv, "chat-templates", ".jinja", run_template);
    if (n < 0) return 77;
    printf("%u templates, %u renders (%u refused as jinja2 does, %u with marked messages), %u differ\n", g_files, g_rows,
           g_refused, g_injected, g_bad);
    return n > 0 && g_rows > 0 && g_bad == 0 ? 0 : 1;
}
