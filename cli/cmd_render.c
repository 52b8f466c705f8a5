/* cli/cmd_render.c - nib render: messages as JSON -> the prompt, with what of it is trusted; one, or one for each line. With a
 * model the data is a request as nib chat makes them, for the model's template or another one; without, it is what the
 * template of a file, or a built-in one, gets as it is. */
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
    const nib_cli_term *term;
    nib_cli_out out;
    nib_buf source, input;
    const char *name; /* of the source, for messages */
    nib_chat *chat;   /* with -m */
    nib_template *tmpl; /* without */
    int64_t now;
    bool has_failed; /* some line */
} render_state;

/* ---- opening */

static nib_status find_builtin(const char *name, nib_str *text, nib_error *err) {
    *text = nib_chat_builtin_find(name);
    if (text->ptr) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "no built-in template %s; --list-templates prints their names", name);
}

static nib_status open_chat(render_state *r, nib_error *err) {
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    nib_str ignored;
    config.builtin = r->opt->chat_template;
    config.variant = r->opt->template_name;
    if (config.builtin) NIB_TRY(find_builtin(config.builtin, &ignored, err));
    if (r->opt->template_file) {
        NIB_TRY(nib_cli_input_file(r->opt->template_file, &r->source, err));
        config.text = r->source.ptr ? r->source.ptr : "";
        config.text_len = r->source.len;
    }
    NIB_TRY(nib_cli_session_open(&r->s, r->opt, r->term, err));
    return nib_chat_new(&r->chat, r->s.file, r->s.tok, &config, err);
}

static nib_status open_template(render_state *r, nib_error *err) {
    nib_str text;
    r->name = r->opt->template_file;
    if (r->name) {
        NIB_TRY(nib_cli_input_file(r->name, &r->source, err));
    } else {
        r->name = r->opt->chat_template;
        NIB_TRY(find_builtin(r->name, &text, err));
        if (!nib_buf_append(&r->source, text.ptr, text.len)) return nib_fail_nomem(err, text.len, "a template");
    }
    return nib_template_new(&r->tmpl, r->source.ptr, r->source.len, err);
}

static nib_status open_any(render_state *r, nib_error *err) {
    const nib_cli_options *opt = r->opt;
    if (opt->template_file && opt->chat_template)
        return nib_fail(err, NIB_E_ARG, "--template FILE and --chat-template NAME say the same: leave one out");
    if (!opt->template_file && !opt->chat_template && !opt->model)
        return nib_fail(err, NIB_E_ARG, "give --template FILE, --chat-template NAME or -m MODEL, whose template is taken");
    if (!opt->model && opt->ids_only) return nib_fail(err, NIB_E_ARG, "--ids needs the vocabulary of a model: give -m MODEL");
    NIB_TRY(nib_cli_clock(opt->date, &r->now, err));
    return opt->model ? open_chat(r, err) : open_template(r, err);
}

/* Where in the template the error is; 0: elsewhere. Errors of a chat begin with the name of the template and the place. */
static uint32_t place(const render_state *r, const nib_error *err, uint32_t *column) {
    uint32_t line = 0;
    bool is_inside = err->offset != NIB_NO_OFFSET && (err->code == NIB_E_FORMAT || err->code == NIB_E_LIMIT);
    *column = 0;
    if (!is_inside) return 0;
    if (r->tmpl || !r->opt->model) nib_template_place(r->source.ptr, r->source.len, err->offset, &line, column);
    else if (sscanf(err->message, "%*[^:]:%u:%u", &line, column) != 2) line = *column = 0;
    return line;
}

/* ---- the data */

static void set_default(json_t *data, const char *key, json_t *value) {
    if (!json_object_get(data, key)) json_object_set_new(data, key, value);
    else json_decref(value);
}

/* What every template may ask for, as Hugging Face gives it. */
static void set_defaults(json_t *data) {
    set_default(data, "tools", json_null());
    set_default(data, "documents", json_null());
    set_default(data, "add_generation_prompt", json_false());
}

static nib_status render_text(const render_state *r, const char *text, nib_chat_prompt *out, nib_error *err) {
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    nib_template_config raw = NIB_TEMPLATE_CONFIG_INIT;
    config.now = raw.now = r->now;
    config.trust_all = r->opt->permissive;
    if (r->chat) return nib_chat_render(r->chat, text, strlen(text), &config, out, err);
    *out = (nib_chat_prompt){0};
    NIB_TRY(nib_template_render(r->tmpl, text, strlen(text), &raw, &out->rendered, err));
    if (r->opt->permissive && out->rendered.n_spans) {
        out->rendered.spans[0] = (nib_span){out->rendered.len, true};
        out->rendered.n_spans = 1;
    }
    return NIB_OK;
}

static nib_status render(const render_state *r, json_t *data, nib_chat_prompt *out, nib_error *err) {
    if (!r->chat) set_defaults(data);
    char *text = nib_cli_json_dump(data);
    if (!text) return nib_fail_nomem(err, 0, "the data");
    nib_status status = render_text(r, text, out, err);
    free(text);
    return status;
}

static nib_status tokenize(const render_state *r, const nib_chat_prompt *prompt, nib_token_list *ids, nib_error *err) {
    return nib_tokenize_spans(r->s.tok, &prompt->rendered, NIB_ADD_SPECIAL, ids, err);
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

static json_t *error_of(const render_state *r, const nib_error *err) {
    json_t *error = json_object();
    uint32_t column, line = place(r, err, &column);
    nib_cli_json_set_str(error, "message", err->message);
    json_object_set_new(error, "line", line ? json_integer(line) : json_null());
    json_object_set_new(error, "column", line ? json_integer(column) : json_null());
    return error;
}

static nib_status add_members(const render_state *r, const nib_chat_prompt *prompt, json_t *reply, nib_error *err) {
    const nib_rendered *rendered = &prompt->rendered;
    json_object_set_new(reply, "text", nib_cli_json_str((nib_str){rendered->text, rendered->len}));
    if (r->opt->spans) json_object_set_new(reply, "spans", spans_of(rendered));
    if (prompt->starts_thinking) json_object_set_new(reply, "starts_thinking", json_true());
    if (prompt->notes[0]) json_object_set_new(reply, "notes", json_array());
    for (size_t i = 0; prompt->notes[i]; i++) json_array_append_new(json_object_get(reply, "notes"), json_string(prompt->notes[i]));
    if (!r->opt->ids_only) return NIB_OK;
    nib_token_list ids = {0};
    nib_status status = tokenize(r, prompt, &ids, err);
    if (status == NIB_OK) json_object_set_new(reply, "ids", nib_cli_json_ids(ids.ids, ids.n));
    nib_token_list_free(&ids);
    return status;
}

/* {"messages", …} -> {"text", …} or {"error": {"message", "line", "column"}} */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    render_state *r = user;
    nib_chat_prompt prompt = {0};
    nib_status status = render(r, request, &prompt, err);
    if (status != NIB_OK) {
        json_object_set_new(reply, "error", error_of(r, err));
        r->has_failed = true;
        return NIB_OK;
    }
    status = add_members(r, &prompt, reply, err);
    nib_chat_prompt_free(&prompt);
    return status;
}

/* The text as it is, each span as a line, or the list of its tokens. */
static nib_status print(render_state *r, const nib_chat_prompt *prompt, nib_error *err) {
    const nib_rendered *rendered = &prompt->rendered;
    const char *p = rendered->text;
    nib_token_list ids = {0};
    for (size_t i = 0; prompt->notes[i]; i++) nib_cli_note(r->term, "%s", prompt->notes[i]);
    if (r->opt->ids_only) {
        NIB_TRY(tokenize(r, prompt, &ids, err));
        nib_cli_json_write(&r->out, nib_cli_json_ids(ids.ids, ids.n));
        nib_token_list_free(&ids);
        return NIB_OK;
    }
    for (size_t i = 0; i < rendered->n_spans && r->opt->spans; p += rendered->spans[i++].len) {
        json_t *text = nib_cli_json_str((nib_str){p, rendered->spans[i].len});
        nib_cli_out_puts(&r->out, rendered->spans[i].is_trusted ? "trusted   " : "untrusted ");
        nib_cli_json_write(&r->out, text);
    }
    if (!r->opt->spans) nib_cli_out_write(&r->out, (nib_str){rendered->text, rendered->len});
    return NIB_OK;
}

static nib_status render_once(render_state *r, nib_error *err) {
    nib_chat_prompt prompt = {0};
    json_error_t why;
    NIB_TRY(nib_cli_input_read(r->opt, &r->input, err));
    json_t *data = json_loadb(r->input.ptr, r->input.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!data || !json_is_object(data)) {
        json_decref(data);
        return nib_fail(err, NIB_E_ARG, "the data must be a JSON object%s%s", data ? "" : ": ", data ? "" : why.text);
    }
    nib_status status = render(r, data, &prompt, err);
    json_decref(data);
    if (status == NIB_OK) status = print(r, &prompt, err);
    nib_chat_prompt_free(&prompt);
    return status;
}

static void list_templates(nib_cli_out *out) {
    for (const char *const *name = nib_chat_builtin_names(); *name; name++) {
        nib_cli_out_puts(out, *name);
        nib_cli_out_puts(out, "\n");
    }
}

int nib_cli_cmd_render(const nib_cli_options *opt, const nib_cli_term *term) {
    render_state r = {.opt = opt, .term = term};
    nib_error err;
    uint32_t line, column;
    int code = NIB_CLI_DONE;
    nib_cli_out_open(&r.out);
    if (opt->list_templates) {
        list_templates(&r.out);
        return nib_cli_out_close(&r.out, term, NIB_CLI_DONE);
    }
    nib_status status = opt->jsonl ? nib_cli_input_none(opt, &err) : NIB_OK;
    if (status == NIB_OK) status = open_any(&r, &err);
    if (status == NIB_OK && !opt->jsonl) status = render_once(&r, &err);
    if (status != NIB_OK) {
        if (!opt->model && r.source.ptr && (line = place(&r, &err, &column)) > 0) nib_error_prefix(&err, "%s:%u:%u", r.name, line, column);
        code = nib_cli_fail(term, &err);
    } else if (opt->jsonl) {
        code = nib_cli_jsonl(&r.out, term, answer, &r);
        if (code == NIB_CLI_DONE && r.has_failed) code = NIB_CLI_FAILED;
    }
    nib_chat_free(r.chat);
    nib_template_free(r.tmpl);
    nib_buf_free(&r.source);
    nib_buf_free(&r.input);
    nib_cli_session_close(&r.s);
    return nib_cli_out_close(&r.out, term, code);
}
