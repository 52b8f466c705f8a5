/* cli/chat.c - options in -> who answers, and the messages of a conversation; and what can be done to these. */
#include "answerer.h"

#include "base/mem.h"
#include "base/status.h"
#include "input.h"

#include <string.h>

/* ---- opening */

static nib_status read_tools(nib_cli_chat *c, nib_error *err) {
    if (!c->opt.tools && c->opt.tool_choice) return nib_fail(err, NIB_E_ARG, "--tool-choice needs --tools");
    if (!c->opt.tools) return NIB_OK;
    NIB_TRY(nib_cli_json_file(c->opt.tools, &c->tools, err));
    if (!json_is_array(c->tools)) return nib_fail(err, NIB_E_ARG, "%s: expected a JSON array of tools", c->opt.tools);
    c->tools_text = nib_cli_json_dump(c->tools);
    return c->tools_text ? NIB_OK : nib_fail_nomem(err, 0, "tools");
}

static nib_status read_system(nib_cli_chat *c, nib_error *err) {
    const nib_cli_options *opt = &c->opt;
    nib_buf text = {0};
    if (opt->system && opt->system_file)
        return nib_fail(err, NIB_E_ARG, "--system and --system-file say the same: leave one out");
    if (opt->system) return nib_cli_chat_set_system(c, (nib_str){opt->system, strlen(opt->system)}, err);
    if (!opt->system_file) return NIB_OK;
    nib_status status = nib_cli_input_file(opt->system_file, &text, err);
    if (status == NIB_OK) status = nib_cli_chat_set_system(c, (nib_str){text.ptr ? text.ptr : "", text.len}, err);
    nib_buf_free(&text);
    return status;
}

/* Standard input can be read once. */
static nib_status check_streams(const nib_cli_options *opt, nib_error *err) {
    const char *files[] = {opt->messages_file, opt->tools, opt->system_file, opt->template_file, opt->operands.n ? "-" : opt->file};
    size_t n = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) n += files[i] && strcmp(files[i], "-") == 0;
    return n < 2 ? NIB_OK : nib_fail(err, NIB_E_ARG, "standard input is asked for %zu times: give files for the others", n);
}

nib_status nib_cli_chat_open(nib_cli_chat *c, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    *c = (nib_cli_chat){.opt = *opt, .messages = json_array()};
    c->s = (nib_cli_session){.opt = &c->opt, .term = term};
    c->who = opt->server ? &nib_cli_chat_remote : &nib_cli_chat_local;
    if (!opt->server) NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(check_streams(opt, err));
    NIB_TRY(nib_cli_json_option("--chat-template-kwargs", c->opt.template_kwargs, &c->kwargs, err));
    NIB_TRY(read_tools(c, err));
    NIB_TRY(nib_cli_constraint_read(&c->constraint, &c->opt, err));
    NIB_TRY(nib_cli_stops_make(&c->stops, opt, err));
    if (opt->messages_file) NIB_TRY(nib_cli_chat_load(c, opt->messages_file, err));
    NIB_TRY(c->who->open(c, err));
    const json_t *given = c->messages;
    if (opt->session_file) NIB_TRY(nib_cli_chat_session_load(c, opt->session_file, err));
    if (opt->messages_file && c->messages != given)
        return nib_fail(err, NIB_E_ARG, "--messages begins a conversation and %s has one: leave one out", opt->session_file);
    return read_system(c, err);
}

void nib_cli_chat_close(nib_cli_chat *c) {
    c->who->close(c);
    nib_cli_stops_free(&c->stops);
    json_decref(c->messages);
    nib_cli_constraint_free(&c->constraint);
    json_decref(c->tools);
    nib_free(c->tools_text);
    json_decref(c->kwargs);
    *c = (nib_cli_chat){0};
}

void nib_cli_chat_options_changed(nib_cli_chat *c) {
    nib_sampler_free(c->sampler);
    c->sampler = NULL;
}

/* ---- messages */

static bool has_role(const json_t *message, const char *role) {
    const char *text = json_string_value(json_object_get(message, "role"));
    return text && strcmp(text, role) == 0;
}

static json_t *new_message(const char *role, nib_str text) {
    json_t *message = json_object();
    nib_cli_json_set_str(message, "role", role);
    json_object_set_new(message, "content", nib_cli_json_str(text));
    return message;
}

nib_status nib_cli_chat_add(nib_cli_chat *c, const char *role, nib_str text, nib_error *err) {
    if (json_array_append_new(c->messages, new_message(role, text)) == 0) return NIB_OK;
    return nib_fail_nomem(err, text.len, "a message");
}

size_t nib_cli_chat_n_system(const nib_cli_chat *c) {
    size_t n = 0;
    while (has_role(json_array_get(c->messages, n), "system") || has_role(json_array_get(c->messages, n), "developer")) n++;
    return n;
}

nib_status nib_cli_chat_set_system(nib_cli_chat *c, nib_str text, nib_error *err) {
    for (size_t n = nib_cli_chat_n_system(c); n > 0; n--) json_array_remove(c->messages, 0);
    if (!text.ptr) return NIB_OK;
    if (json_array_insert_new(c->messages, 0, new_message("system", text)) == 0) return NIB_OK;
    return nib_fail_nomem(err, text.len, "a message");
}

/* The number of the last message of a role + 1; 0: there is none. */
static size_t last_of(const nib_cli_chat *c, const char *role) {
    size_t n = json_array_size(c->messages);
    while (n > 0 && !has_role(json_array_get(c->messages, n - 1), role)) n--;
    return n;
}

nib_str nib_cli_chat_last(const nib_cli_chat *c, const char *role) {
    size_t n = last_of(c, role);
    const json_t *content = n ? json_object_get(json_array_get(c->messages, n - 1), "content") : NULL;
    return (nib_str){json_string_value(content), json_string_length(content)};
}

/* Keeps the first n messages. */
static void cut(nib_cli_chat *c, size_t n) {
    for (size_t i = json_array_size(c->messages); i > n; i--) json_array_remove(c->messages, i - 1);
    if (n <= nib_cli_chat_n_system(c) + c->n_dropped) c->n_dropped = 0;
}

void nib_cli_chat_clear(nib_cli_chat *c) {
    cut(c, nib_cli_chat_n_system(c));
    c->last = (nib_cli_figures){0};
    c->who->forget(c);
}

bool nib_cli_chat_undo(nib_cli_chat *c) {
    size_t n = last_of(c, "user");
    if (n) cut(c, n - 1);
    return n > 0;
}

bool nib_cli_chat_retry(nib_cli_chat *c) {
    size_t n = last_of(c, "user");
    if (n) cut(c, n);
    return n > 0;
}
