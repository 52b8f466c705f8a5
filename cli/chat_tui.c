/* cli/chat_tui.c - a conversation on a terminal: lines in -> commands (chat_commands.c) and messages, answers out (view.c).
 * Called by cmd_chat.c. */
#include "chat_tui.h"

#include "answerer.h"
#include "base/mem.h"
#include "base/status.h"
#include "glyph.h"
#include "signals.h"
#include "tui.h"
#include "view.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static void dim(nib_cli_tui *t, bool on) {
    if (t->term->out_color) nib_cli_out_puts(&t->out, on ? "\033[2m" : "\033[0m");
}

void nib_cli_tui_note(nib_cli_tui *t, const char *format, ...) {
    nib_buf text = {0};
    va_list args;
    va_start(args, format);
    nib_buf_vprintf(&text, format, args);
    va_end(args);
    dim(t, true);
    nib_cli_glyph_show(&t->out.buf, nib_cli_bytes(&text));
    dim(t, false);
    nib_cli_out_puts(&t->out, "\n");
    nib_buf_free(&text);
}

static void show_error(nib_cli_tui *t, const nib_error *err) {
    nib_cli_out_flush(&t->out);
    nib_cli_fail(t->term, err);
}

/* ---- answers */

static void show_stats(nib_cli_tui *t) {
    const nib_cli_figures *g = &t->c->last;
    size_t n_decoded = g->n_generated > 1 ? g->n_generated - 1 : 0;
    uint32_t used, total;
    bool is_cut = g->finish_reason && strcmp(g->finish_reason, "stop") && strcmp(g->finish_reason, "tool_calls");
    nib_buf text = {0};
    if (!g->finish_reason || (nib_cli_given(&t->c->opt, offsetof(nib_cli_options, stats)) && !t->c->opt.stats)) return;
    t->c->who->context(t->c, &used, &total);
    if (g->n_generated) nib_buf_printf(&text, "TTFT %.0f ms, ", g->ttft_ms);
    if (n_decoded && g->decode_ms > 0) nib_buf_printf(&text, "%.1f tok/s, ", 1e3 * (double)n_decoded / g->decode_ms);
    nib_buf_printf(&text, "%zu tokens, context %u", g->n_generated, used);
    if (total) nib_buf_printf(&text, " of %u", total);
    nib_buf_printf(&text, ", %zu reused%s%s", g->n_cached, is_cut ? ", " : "", is_cut ? g->finish_reason : "");
    nib_cli_tui_note(t, "[%s]", nib_buf_cstr(&text));
    nib_buf_free(&text);
}

static bool is_answered(const nib_cli_chat *c) {
    const json_t *last = json_array_get(c->messages, json_array_size(c->messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    return !role || strcmp(role, "user");
}

/* A message that got no answer is taken back, to be changed and sent again. */
static void take_back(nib_cli_tui *t) {
    nib_str last = nib_cli_chat_last(t->c, "user");
    t->initial.len = 0;
    nib_buf_append(&t->initial, last.ptr, last.len);
    nib_cli_chat_undo(t->c);
}

/* False: there was no answer. */
static bool answer(nib_cli_tui *t) {
    nib_cli_chat *c = t->c;
    nib_cli_view view;
    nib_error err;
    nib_cli_out_flush(&t->out);
    nib_cli_view_begin(&view, t->term, &c->opt, &c->last.n_reasoning);
    nib_status status = nib_cli_chat_answer(c, nib_cli_view_event, &view, &err);
    nib_cli_view_end(&view);
    if (nib_cli_interrupted() == SIGINT) nib_cli_signals_forget();
    if (status != NIB_OK && status != NIB_E_CANCELLED) show_error(t, &err);
    if (status == NIB_OK) show_stats(t);
    return is_answered(c);
}

/* ---- lines */

static void send_message(nib_cli_tui *t, nib_str text) {
    nib_error err;
    size_t n_attached = t->attached.len;
    if (t->replaces) nib_cli_chat_undo(t->c);
    nib_buf_append(&t->attached, text.ptr, text.len);
    nib_status status = t->attached.failed ? nib_fail_nomem(&err, text.len, "a message")
                                           : nib_cli_chat_add(t->c, "user", nib_cli_bytes(&t->attached), &err);
    t->attached.len = 0;
    if (status != NIB_OK) {
        show_error(t, &err);
    } else if (!answer(t)) { /* what was typed comes back to the line, files stay in front of it */
        take_back(t);
        t->attached.len = n_attached;
        t->initial.len = 0;
        nib_buf_append(&t->initial, text.ptr, text.len);
        if (n_attached) nib_cli_tui_note(t, "%zu bytes of files still go before the next message; /clear forgets them", n_attached);
    }
}

static void remember(nib_cli_tui *t, nib_str text) {
    nib_error err;
    if (nib_cli_edit_remember(t->edit, text, &err) != NIB_OK) nib_cli_warning(t->term, "the history is not kept: %s", err.message);
}

static void take_line(nib_cli_tui *t, nib_buf *line) {
    nib_error err;
    while (line->len && strchr(" \n\t", line->ptr[line->len - 1])) line->len--;
    const char *text = nib_buf_cstr(line);
    nib_str all = nib_cli_bytes(line);
    if (!text || !line->len) return;
    remember(t, all);
    if (!nib_cli_tui_is_command(all)) {
        send_message(t, all);
        t->replaces = false;
        return;
    }
    t->replaces = false;
    if (nib_cli_tui_run(t, all, &err) != NIB_OK) show_error(t, &err);
    if (nib_cli_interrupted() == SIGINT) nib_cli_signals_forget(); /* it stopped the command */
    if (t->wants_answer && !answer(t)) take_back(t);
    t->wants_answer = false;
}

static void greet(nib_cli_tui *t) {
    nib_buf who = {0};
    size_t n = json_array_size(t->c->messages) - nib_cli_chat_n_system(t->c);
    t->c->who->introduce(t->c, &who);
    nib_cli_tui_note(t, "%.*s. /help lists commands.", (int)who.len, who.ptr);
    nib_buf_free(&who);
    if (n) nib_cli_tui_note(t, "The conversation goes on after %zu messages.", n);
}

static void talk(nib_cli_tui *t) {
    nib_buf line = {0};
    while (!t->leaves && !nib_cli_interrupted()) {
        const char *initial = t->initial.len ? nib_buf_cstr(&t->initial) : NULL;
        nib_cli_out_flush(&t->out);
        nib_cli_edit_result result = nib_cli_edit_read(t->edit, initial, &line);
        t->initial.len = 0;
        if (result == NIB_CLI_EDIT_TEXT) {
            take_line(t, &line);
        } else if (result == NIB_CLI_EDIT_CLEARED) {
            t->replaces = false;
            if (!line.len) nib_cli_tui_note(t, "Ctrl-D or /exit leaves");
        } else {
            t->leaves = true;
        }
    }
    nib_cli_out_flush(&t->out);
    nib_buf_free(&line);
}

static void free_values(nib_cli_list *values) {
    for (size_t i = 0; i < values->n; i++) nib_free(((char **)values->items)[i]);
    nib_cli_list_free(values);
}

nib_status nib_cli_chat_tui(nib_cli_chat *c, nib_error *err) {
    nib_cli_tui t = {.c = c, .term = c->s.term};
    nib_cli_edit_config config = {.prompt = "> ", .color = t.term->out_color, .complete = nib_cli_tui_complete, .user = &t};
    nib_error history_err;
    nib_cli_signals_terminal(STDIN_FILENO);
    if (nib_cli_history_open(&t.history, &history_err) != NIB_OK)
        nib_cli_warning(t.term, "the history is not kept: %s", history_err.message);
    nib_status status = nib_cli_edit_new(&t.edit, &config, &t.history, err);
    if (status == NIB_OK) {
        greet(&t);
        talk(&t);
    }
    nib_cli_edit_free(t.edit);
    nib_cli_history_free(&t.history);
    nib_buf_free(&t.out.buf);
    nib_buf_free(&t.attached);
    nib_buf_free(&t.initial);
    free_values(&t.values);
    return status;
}
