/* cli/cmd_render.c - nib render: a chat template and its data, JSON -> the prompt, with what of it is trusted; one, or one for
 * each line. The template is a file, that of a model, or a built-in one. */
#include "base/status.h"
#include "clock.h"
#include "input.h"
#include "json.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

typedef struct render_state {
    nib_cli_session s; /* with -m only */
    const nib_cli_options *opt;
    nib_cli_out out;
    nib_buf source, input;
    const char *name; /* of the source, for messages */
    nib_template *tmpl;
    nib_template_config config;
    bool has_failed; /* some line */
} render_state;

/* Template texts of a model: the default one, and named ones. */
static nib_status read_model_template(render_state *r, const nib_cli_term *term, nib_error *err) {
    char key[200] = "tokenizer.chat_template";
    const char *name = r->opt->template_name;
    NIB_TRY(nib_cli_session_open(&r->s, r->opt, term, err));
    if (name) snprintf(key, sizeof key, "tokenizer.chat_template.%.150s", name);
    const nib_gguf_value *value = nib_gguf_find(r->s.file, key);
    if (!value || value->type != NIB_GGUF_STRING)
        return nib_fail(err, NIB_E_ARG, "%s has no template %s: give --template FILE", r->opt->model, key);
    r->name = name ? name : "template";
    return nib_buf_append(&r->source, value->as.str.ptr, value->as.str.len) ? NIB_OK : nib_fail_nomem(err, 0, "a template");
}

static nib_status read_builtin_template(render_state *r, nib_error *err) {
    r->name = r->opt->chat_template;
    nib_str text = nib_chat_builtin_find(r->name);
    if (!text.ptr) return nib_fail(err, NIB_E_ARG, "no built-in template %s; --list-templates prints their names", r->name);
    return nib_buf_append(&r->source, text.ptr, text.len) ? NIB_OK : nib_fail_nomem(err, text.len, "a template");
}

static nib_status read_template(render_state *r, const nib_cli_term *term, nib_error *err) {
    const nib_cli_options *opt = r->opt;
    if (!!opt->template_file + !!opt->chat_template + !!opt->model != 1)
        return nib_fail(err, NIB_E_ARG, "give one of --template FILE, --chat-template NAME and -m MODEL, whose template is taken");
    if (opt->model) return read_model_template(r, term, err);
    if (opt->chat_template) return read_builtin_template(r, err);
    r->name = opt->template_file;
    return nib_cli_input_file(opt->template_file, &r->source, err);
}

/* Where in the template the error is; 0: elsewhere. */
static uint32_t place(const render_state *r, const nib_error *err, uint32_t *column) {
    uint32_t line = 0;
    bool is_inside = err->offset != NIB_NO_OFFSET && (err->code == NIB_E_FORMAT || err->code == NIB_E_LIMIT);
    *column = 0;
    if (is_inside) nib_template_place(r->source.ptr, r->source.len, err->offset, &line, column);
    return line;
}

static nib_status open_template(render_state *r, const nib_cli_term *term, nib_error *err) {
    r->config = (nib_template_config)NIB_TEMPLATE_CONFIG_INIT;
    NIB_TRY(nib_cli_clock(r->opt->date, &r->config.now, err));
    NIB_TRY(read_template(r, term, err));
    return nib_template_new(&r->tmpl, r->source.ptr, r->source.len, err);
}

/* ---- the data */

static void set_default(json_t *data, const char *key, json_t *value) {
    if (!json_object_get(data, key)) json_object_set_new(data, key, value);
    else json_decref(value);
}

/* What every template may ask for, as Hugging Face gives it. */
static void set_defaults(const render_state *r, json_t *data) {
    static const char *const tokens[][2] = {{"bos_token", "bos"}, {"eos_token", "eos"}};
    set_default(data, "tools", json_null());
    set_default(data, "documents", json_null());
    set_default(data, "add_generation_prompt", json_false());
    for (size_t i = 0; r->s.tok && i < 2; i++) {
        nib_token id = nib_tokenizer_special(r->s.tok, tokens[i][1]);
        if (id != NIB_TOKEN_NONE) set_default(data, tokens[i][0], nib_cli_json_str(nib_tokenizer_text(r->s.tok, id)));
    }
}

static nib_status render(render_state *r, json_t *data, nib_rendered *out, nib_error *err) {
    set_defaults(r, data);
    char *text = json_dumps(data, JSON_COMPACT);
    if (!text) return nib_fail_nomem(err, 0, "the data");
    nib_status status = nib_template_render(r->tmpl, text, strlen(text), &r->config, out, err);
    free(text);
    return status;
}

/* ---- answers */

static json_t *spans_of(const nib_rendered *rendered) {
    json_t *spans = json_array();
    const char *p = rendered->text;
    for (size_t i = 0; i < rendered->n_spans; p += rendered->spans[i++].len) {
        json_t *span = json_object();
        json_object_set_new(span, "text", nib_cli_json_str((nib_str){p, rendered->spans[i].len}));
        json_object_set_new(span, "trusted", json_boolean(rendered->spans[i].is_trusted));
        json_array_append_new(spans, span);
    }
    return spans;
}

/* {"messages", …} -> {"text"} or {"error": {"message", "line", "column"}} */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    render_state *r = user;
    nib_rendered rendered = {0};
    uint32_t column;
    nib_status status = render(r, request, &rendered, err);
    if (status != NIB_OK) {
        json_t *error = json_object();
        uint32_t line = place(r, err, &column);
        nib_cli_json_set_str(error, "message", err->message);
        json_object_set_new(error, "line", line ? json_integer(line) : json_null());
        json_object_set_new(error, "column", line ? json_integer(column) : json_null());
        json_object_set_new(reply, "error", error);
        r->has_failed = true;
        return NIB_OK;
    }
    json_object_set_new(reply, "text", nib_cli_json_str((nib_str){rendered.text, rendered.len}));
    if (r->opt->spans) json_object_set_new(reply, "spans", spans_of(&rendered));
    nib_rendered_free(&rendered);
    return NIB_OK;
}

/* One answer: the text as it is, or each span as a line. */
static nib_status render_once(render_state *r, nib_error *err) {
    nib_rendered rendered;
    json_error_t why;
    NIB_TRY(nib_cli_input_read(r->opt, &r->input, err));
    json_t *data = json_loadb(r->input.ptr, r->input.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!data || !json_is_object(data)) {
        json_decref(data);
        return nib_fail(err, NIB_E_ARG, "the data must be a JSON object%s%s", data ? "" : ": ", data ? "" : why.text);
    }
    nib_status status = render(r, data, &rendered, err);
    json_decref(data);
    if (status != NIB_OK) return status;
    const char *p = rendered.text;
    for (size_t i = 0; i < rendered.n_spans && r->opt->spans; p += rendered.spans[i++].len) {
        json_t *text = nib_cli_json_str((nib_str){p, rendered.spans[i].len});
        nib_cli_out_puts(&r->out, rendered.spans[i].is_trusted ? "trusted   " : "untrusted ");
        nib_cli_json_write(&r->out, text);
    }
    if (!r->opt->spans) nib_cli_out_write(&r->out, (nib_str){rendered.text, rendered.len});
    nib_rendered_free(&rendered);
    return NIB_OK;
}

static void list_templates(nib_cli_out *out) {
    for (const char *const *name = nib_chat_builtin_names(); *name; name++) {
        nib_cli_out_puts(out, *name);
        nib_cli_out_puts(out, "\n");
    }
}

int nib_cli_cmd_render(const nib_cli_options *opt, const nib_cli_term *term) {
    render_state r = {.opt = opt};
    nib_error err;
    uint32_t line, column;
    int code = NIB_CLI_DONE;
    nib_cli_out_open(&r.out);
    if (opt->list_templates) {
        list_templates(&r.out);
        return nib_cli_out_close(&r.out, term, NIB_CLI_DONE);
    }
    nib_status status = opt->jsonl ? nib_cli_input_none(opt, &err) : NIB_OK;
    if (status == NIB_OK) status = open_template(&r, term, &err);
    if (status == NIB_OK && !opt->jsonl) status = render_once(&r, &err);
    if (status != NIB_OK) {
        if (r.source.ptr && (line = place(&r, &err, &column)) > 0) nib_error_prefix(&err, "%s:%u:%u", r.name, line, column);
        code = nib_cli_fail(term, &err);
    } else if (opt->jsonl) {
        code = nib_cli_jsonl(&r.out, term, answer, &r);
        if (code == NIB_CLI_DONE && r.has_failed) code = NIB_CLI_FAILED;
    }
    nib_template_free(r.tmpl);
    nib_buf_free(&r.source);
    nib_buf_free(&r.input);
    nib_cli_session_close(&r.s);
    return nib_cli_out_close(&r.out, term, code);
}
