/* cli/cmd_chat.c - nib chat: a conversation on a terminal (chat_tui.c), or one answer: question in -> answer out.
 * For a script stdout carries the answer and nothing else: text, and calls of tools as a JSON array; with --json one object. */
#include "answerer.h"
#include "base/status.h"
#include "chat_tui.h"
#include "input.h"
#include "signals.h"
#include "view.h"

#include <string.h>
#include <unistd.h>

typedef struct chat_state {
    nib_cli_chat chat;
    nib_cli_out out;
    bool ends_line; /* what was written last */
} chat_state;

static void put(chat_state *st, nib_str text) {
    if (!text.len) return;
    nib_cli_out_write(&st->out, text);
    st->ends_line = text.ptr[text.len - 1] == '\n';
    if (st->out.is_live) nib_cli_out_flush(&st->out);
}

static bool on_event(void *user, const nib_chat_event *event) {
    chat_state *st = user;
    if (event->kind == NIB_CHAT_WARNING) nib_cli_warning(st->chat.s.term, "%.*s", NIB_STR_ARG(event->text));
    if (event->kind == NIB_CHAT_CONTENT && !st->chat.opt.json) put(st, event->text);
    return !st->out.error;
}

/* ---- one answer */

/* The question, if any was given; *asks: there is something to answer. */
static nib_status read_question(chat_state *st, const nib_cli_options *opt, bool *asks, nib_error *err) {
    bool is_given = opt->prompt || opt->file || opt->operands.n;
    nib_buf text = {0};
    *asks = opt->messages_file != NULL;
    if (*asks && !is_given) return NIB_OK;
    nib_status status = nib_cli_input_read(opt, &text, err);
    size_t n = text.len;
    if (!opt->prompt) /* the newline at the end of a file or of echo's output is not the question's */
        while (n && (text.ptr[n - 1] == '\n' || text.ptr[n - 1] == '\r')) n--;
    bool is_text = opt->prompt || n > 0;
    if (status == NIB_OK && is_text) status = nib_cli_chat_add(&st->chat, "user", (nib_str){text.ptr ? text.ptr : "", n}, err);
    if (status == NIB_OK && !is_text && !*asks && (opt->json || opt->file))
        status = nib_fail(err, NIB_E_ARG, "there is no question: %s is empty", opt->file ? opt->file : "standard input");
    *asks |= is_text;
    nib_buf_free(&text);
    return status;
}

static nib_status check_question(const nib_cli_chat *c, nib_error *err) {
    size_t n = json_array_size(c->messages);
    const char *role = n ? json_string_value(json_object_get(json_array_get(c->messages, n - 1), "role")) : NULL;
    if (!n) return nib_fail(err, NIB_E_ARG, "%s has no messages", c->opt.messages_file);
    if (role && strcmp(role, "assistant") == 0)
        return nib_fail(err, NIB_E_ARG, "the last message of %s is the assistant's: add a question with -p", c->opt.messages_file);
    return NIB_OK;
}

static json_t *usage_json(const nib_cli_chat *c) {
    json_t *usage = json_object(), *prompt = json_object(), *completion = json_object();
    nib_cli_json_set_int(usage, "prompt_tokens", (int64_t)c->last.n_prompt);
    nib_cli_json_set_int(usage, "completion_tokens", (int64_t)c->last.n_generated);
    nib_cli_json_set_int(usage, "total_tokens", (int64_t)(c->last.n_prompt + c->last.n_generated));
    nib_cli_json_set_int(prompt, "cached_tokens", (int64_t)c->last.n_cached);
    nib_cli_json_set_int(completion, "reasoning_tokens", (int64_t)c->last.n_reasoning);
    json_object_set_new(usage, "prompt_tokens_details", prompt);
    json_object_set_new(usage, "completion_tokens_details", completion);
    return usage;
}

static void write_json(chat_state *st) {
    const nib_cli_chat *c = &st->chat;
    json_t *o = json_object(), *last = json_array_get(c->messages, json_array_size(c->messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (role && strcmp(role, "assistant") == 0) json_object_set(o, "message", last);
    else json_object_set_new(o, "message", json_pack("{s:s,s:s}", "role", "assistant", "content", ""));
    nib_cli_json_set_str(o, "finish_reason", c->last.finish_reason);
    json_object_set_new(o, "usage", usage_json(c));
    c->who->describe(c, o);
    nib_cli_json_write(&st->out, o);
}

static void write_calls(chat_state *st) {
    const nib_cli_chat *c = &st->chat;
    json_t *calls = json_object_get(json_array_get(c->messages, json_array_size(c->messages) - 1), "tool_calls");
    if (!st->ends_line) nib_cli_out_puts(&st->out, "\n");
    if (calls) nib_cli_json_write(&st->out, json_incref(calls));
}

/* A terminal would obey what the model writes: the view shows it instead. */
static nib_status answer_to_person(chat_state *st, nib_error *err) {
    nib_cli_view view;
    nib_cli_view_begin(&view, st->chat.s.term, &st->chat.opt, &st->chat.last.n_reasoning);
    nib_status status = nib_cli_chat_answer(&st->chat, nib_cli_view_event, &view, err);
    nib_cli_view_end(&view);
    return status;
}

static nib_status answer_once(chat_state *st, const nib_cli_options *opt, nib_error *err) {
    bool asks;
    NIB_TRY(read_question(st, opt, &asks, err));
    if (!asks) return NIB_OK;
    if (opt->messages_file) NIB_TRY(check_question(&st->chat, err));
    if (st->chat.s.term->out_is_terminal && !opt->json) return answer_to_person(st, err);
    nib_status status = nib_cli_chat_answer(&st->chat, on_event, st, err);
    if (status == NIB_OK && opt->json) write_json(st);
    if (status == NIB_OK && !opt->json) write_calls(st);
    return status;
}

/* ---- the command */

static nib_status chat(chat_state *st, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    bool is_given = opt->prompt || opt->file || opt->operands.n || opt->messages_file || opt->json;
    bool is_talk = !is_given && isatty(STDIN_FILENO) && term->out_is_terminal;
    NIB_TRY(nib_cli_chat_open(&st->chat, opt, term, err));
    nib_status status = is_talk ? nib_cli_chat_tui(&st->chat, err) : answer_once(st, opt, err);
    bool is_worth = status == NIB_OK ? json_array_size(st->chat.messages) > 0 : st->chat.last.finish_reason != NULL;
    if (!opt->session_file || !is_worth) return status;
    nib_status saved = nib_cli_chat_session_save(&st->chat, opt->session_file, status == NIB_OK ? err : NULL);
    return status == NIB_OK ? saved : status;
}

int nib_cli_cmd_chat(const nib_cli_options *opt, const nib_cli_term *term) {
    chat_state st = {.ends_line = true};
    nib_error err;
    nib_cli_out_open(&st.out);
    nib_status code = chat(&st, opt, term, &err);
    nib_cli_out_flush(&st.out);
    int status = code == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (nib_cli_interrupted()) status = 128 + nib_cli_interrupted();
    if (code == NIB_OK && st.chat.last.finish_reason && !st.out.error) {
        if (opt->stats) st.chat.who->print_stats(&st.chat);
        nib_cli_print_hash(&st.chat.s);
    }
    nib_cli_chat_close(&st.chat);
    return nib_cli_out_close(&st.out, term, status);
}
