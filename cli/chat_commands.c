/* cli/chat_commands.c - "/name argument" in -> what it does to the conversation. Called by chat_tui.c. */
#include "answerer.h"
#include "base/status.h"
#include "base/utf8.h"
#include "clipboard.h"
#include "glyph.h"
#include "input.h"
#include "process.h"
#include "signals.h"
#include "tui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 1 << 20 /* bytes of a file for a message */ };

/* ---- messages */

static nib_status cmd_help(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    (void)err;
    for (int i = 0; i < NIB_CLI_TUI_N_COMMANDS; i++) {
        const nib_cli_tui_command *command = nib_cli_tui_command_at(i);
        nib_cli_out_printf(&t->out, "  /%s %s%*s%s\n", command->name, command->argument,
                           (int)(18 - strlen(command->name) - strlen(command->argument)), "", command->help);
    }
    nib_cli_out_puts(&t->out, "Keys: Tab completes, Alt-Enter or a backslash at the end of a line begins a new one, \"\"\" encloses many\n"
                              "lines, Ctrl-C stops an answer or clears the line, Ctrl-R searches what was typed before.\n");
    return NIB_OK;
}

static nib_status cmd_system(nib_cli_tui *t, const char *argument, nib_error *err) {
    nib_str now = nib_cli_chat_last(t->c, "system");
    if (!*argument && !now.ptr) {
        nib_cli_tui_note(t, "there is no system message");
    } else if (!*argument) {
        nib_cli_glyph_show(&t->out.buf, now);
        nib_cli_out_puts(&t->out, "\n");
    } else if (!strcmp(argument, "-")) {
        NIB_TRY(nib_cli_chat_set_system(t->c, (nib_str){0}, err));
        nib_cli_tui_note(t, "system message removed");
    } else {
        NIB_TRY(nib_cli_chat_set_system(t->c, (nib_str){argument, strlen(argument)}, err));
        nib_cli_tui_note(t, "system message set");
    }
    return NIB_OK;
}

static void note_messages(nib_cli_tui *t, const char *what) {
    size_t n = json_array_size(t->c->messages);
    nib_cli_tui_note(t, "%s; the conversation has %zu message%s", what, n, n == 1 ? "" : "s");
}

static nib_status cmd_clear(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    (void)err;
    nib_cli_chat_clear(t->c);
    t->attached.len = 0;
    note_messages(t, "cleared");
    return NIB_OK;
}

static nib_status cmd_undo(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    if (!nib_cli_chat_undo(t->c)) return nib_fail(err, NIB_E_ARG, "/undo: there is no message to take back");
    note_messages(t, "taken back");
    return NIB_OK;
}

static nib_status cmd_retry(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    if (!nib_cli_chat_retry(t->c)) return nib_fail(err, NIB_E_ARG, "/retry: there is no message to answer");
    t->wants_answer = true;
    return NIB_OK;
}

#define cmd_regen cmd_retry

/* With an editor the message is changed now; without one the next line begins with it, and replaces it when it is sent. */
static nib_status cmd_edit(nib_cli_tui *t, const char *argument, nib_error *err) {
    nib_str last = nib_cli_chat_last(t->c, "user");
    nib_buf text = {0};
    (void)argument;
    if (!last.ptr) return nib_fail(err, NIB_E_ARG, "/edit: there is no message to change");
    if (!nib_cli_editor()) {
        t->initial.len = 0;
        nib_buf_append(&t->initial, last.ptr, last.len);
        t->replaces = true;
        return NIB_OK;
    }
    nib_buf_append(&text, last.ptr, last.len);
    nib_cli_signals_restore();
    nib_status status = nib_cli_editor_run(&text, err);
    if (status == NIB_OK && !text.len) {
        nib_cli_tui_note(t, "the text is empty: nothing is changed");
    } else if (status == NIB_OK) {
        nib_cli_chat_undo(t->c);
        status = nib_cli_chat_add(t->c, "user", nib_cli_bytes(&text), err);
        t->wants_answer = status == NIB_OK;
    }
    nib_buf_free(&text);
    return status;
}

static nib_status cmd_copy(nib_cli_tui *t, const char *argument, nib_error *err) {
    nib_str last = nib_cli_chat_last(t->c, "assistant");
    const char *how;
    (void)argument;
    if (!last.len) return nib_fail(err, NIB_E_ARG, "/copy: there is no answer to copy");
    NIB_TRY(nib_cli_clipboard_copy(last, &how, err));
    nib_cli_tui_note(t, "%zu bytes copied by %s", last.len, how);
    return NIB_OK;
}

/* ---- files */

bool nib_cli_tui_path(const char *typed, char *out, size_t size) {
    const char *home = getenv("HOME");
    bool is_home = typed[0] == '~' && (typed[1] == '/' || !typed[1]) && home;
    int n = snprintf(out, size, "%s%s", is_home ? home : "", is_home ? typed + 1 : typed);
    return n >= 0 && (size_t)n < size;
}

static nib_status path_of(const char *argument, char *out, size_t size, nib_error *err) {
    if (!nib_cli_tui_path(argument, out, size)) return nib_fail(err, NIB_E_ARG, "%s: the path is too long", argument);
    return NIB_OK;
}

static nib_status check_is_text(const char *path, nib_str text, nib_error *err) {
    for (size_t i = 0, n; i < text.len; i += n) {
        uint32_t cp;
        n = nib_utf8_char(text.ptr + i, text.len - i, &cp);
        if (!n || !cp) return nib_fail(err, NIB_E_FORMAT, "%s is no text: byte %zu is %s", path, i, n ? "NUL" : "not UTF-8");
    }
    return NIB_OK;
}

static nib_status cmd_read(nib_cli_tui *t, const char *argument, nib_error *err) {
    char path[4096];
    struct stat st;
    nib_buf text = {0};
    NIB_TRY(path_of(argument, path, sizeof path, err));
    if (stat(path, &st) != 0) return nib_fail(err, NIB_E_IO, "cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return nib_fail(err, NIB_E_ARG, "%s is no file with text", path);
    if (st.st_size > MAX_FILE)
        return nib_fail(err, NIB_E_LIMIT, "%s has %lld bytes: /read takes up to %d", path, (long long)st.st_size, MAX_FILE);
    nib_status status = nib_cli_input_file(path, &text, err);
    if (status == NIB_OK) status = check_is_text(path, nib_cli_bytes(&text), err);
    if (status == NIB_OK && !text.len) status = nib_fail(err, NIB_E_ARG, "%s is empty", path);
    if (status == NIB_OK) {
        nib_buf_append(&t->attached, text.ptr, text.len);
        nib_buf_str(&t->attached, text.ptr[text.len - 1] == '\n' ? "\n" : "\n\n");
        nib_cli_tui_note(t, "%zu bytes of %s go before the next message", text.len, path);
    }
    nib_buf_free(&text);
    return status;
}

static nib_status cmd_save(nib_cli_tui *t, const char *argument, nib_error *err) {
    char path[4096];
    NIB_TRY(path_of(argument, path, sizeof path, err));
    NIB_TRY(nib_cli_chat_save(t->c, path, err));
    size_t n = json_array_size(t->c->messages);
    nib_cli_tui_note(t, "%zu message%s saved in %s", n, n == 1 ? "" : "s", path);
    return NIB_OK;
}

static nib_status cmd_load(nib_cli_tui *t, const char *argument, nib_error *err) {
    char path[4096];
    NIB_TRY(path_of(argument, path, sizeof path, err));
    if (!strcmp(path, "-")) return nib_fail(err, NIB_E_ARG, "/load takes a file");
    NIB_TRY(nib_cli_chat_load(t->c, path, err));
    note_messages(t, "loaded");
    return NIB_OK;
}

/* ---- the state of things */

static nib_status cmd_params(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    (void)err;
    nib_cli_tui_params(t);
    return NIB_OK;
}

static nib_status cmd_set(nib_cli_tui *t, const char *argument, nib_error *err) {
    return nib_cli_tui_set(t, argument, err);
}

static nib_status cmd_context(nib_cli_tui *t, const char *argument, nib_error *err) {
    const nib_cli_chat *c = t->c;
    uint32_t used, total;
    (void)argument;
    (void)err;
    c->who->context(c, &used, &total);
    nib_cli_out_printf(&t->out, "  %u ", used);
    if (total) nib_cli_out_printf(&t->out, "of %u tokens used (%.1f %%)", total, 100.0 * used / total);
    else nib_cli_out_puts(&t->out, "tokens used");
    nib_cli_out_printf(&t->out, ", %zu messages", json_array_size(c->messages));
    if (c->n_dropped) nib_cli_out_printf(&t->out, ", of which the model no longer sees %zu", c->n_dropped);
    nib_cli_out_puts(&t->out, "\n");
    if (c->last.finish_reason)
        nib_cli_out_printf(&t->out, "  the last prompt had %zu tokens: %zu reused, %zu computed\n", c->last.n_prompt,
                           c->last.n_cached, c->last.n_prompt - c->last.n_cached);
    return NIB_OK;
}

static nib_status cmd_tokens(nib_cli_tui *t, const char *argument, nib_error *err) {
    const nib_token_list *ids = &t->c->ids;
    (void)argument;
    if (t->c->remote) return nib_fail(err, NIB_E_ARG, "/tokens: the server does not tell them; /context has their number");
    for (size_t i = 0; i < ids->n; i++) nib_cli_out_printf(&t->out, "%s%d", i ? " " : "", ids->ids[i]);
    if (ids->n) nib_cli_out_puts(&t->out, "\n");
    nib_cli_tui_note(t, "%zu tokens", ids->n);
    return NIB_OK;
}

static nib_status cmd_exit(nib_cli_tui *t, const char *argument, nib_error *err) {
    (void)argument;
    (void)err;
    t->leaves = true;
    return NIB_OK;
}

#define cmd_quit cmd_exit

/* ---- the table */

static const struct {
    nib_cli_tui_command row;
    nib_status (*run)(nib_cli_tui *t, const char *argument, nib_error *err);
} commands[] = {
#define CHAT_COMMAND(name, argument, completion, help) {{#name, argument, NIB_CLI_COMPLETE_##completion, help}, cmd_##name},
#include "chat_commands.def"
#undef CHAT_COMMAND
};
_Static_assert(sizeof commands / sizeof commands[0] == NIB_CLI_TUI_N_COMMANDS, "chat_commands.def");

const nib_cli_tui_command *nib_cli_tui_command_at(int command) {
    return &commands[command].row;
}

/* Bytes of the name after the slash. */
static size_t name_length(nib_str text) {
    size_t n = 1;
    while (n < text.len && text.ptr[n] >= 'a' && text.ptr[n] <= 'z') n++;
    return n - 1;
}

bool nib_cli_tui_is_command(nib_str text) {
    if (!text.len || *text.ptr != '/') return false;
    size_t n = name_length(text);
    if (text.len == 1) return true; /* nobody means it as a message */
    return n && (n + 1 == text.len || text.ptr[n + 1] == ' ' || text.ptr[n + 1] == '\n');
}

static nib_status unknown(nib_str name, nib_error *err) {
    nib_str names[NIB_CLI_TUI_N_COMMANDS];
    for (int i = 0; i < NIB_CLI_TUI_N_COMMANDS; i++)
        names[i] = (nib_str){commands[i].row.name, strlen(commands[i].row.name)};
    nib_str nearest = names[nib_cli_nearest(name, names, NIB_CLI_TUI_N_COMMANDS)];
    return nib_fail(err, NIB_E_ARG, "unknown command /%.*s; the nearest is /%.*s (/help lists all; a message may begin with a space)",
                    NIB_STR_ARG(name), NIB_STR_ARG(nearest));
}

nib_status nib_cli_tui_run(nib_cli_tui *t, nib_str text, nib_error *err) {
    nib_str name = {text.ptr + 1, name_length(text)};
    const char *argument = name.ptr + name.len + strspn(name.ptr + name.len, " \n");
    for (int i = 0; i < NIB_CLI_TUI_N_COMMANDS; i++) {
        const nib_cli_tui_command *row = &commands[i].row;
        if (strlen(row->name) != name.len || memcmp(row->name, name.ptr, name.len)) continue;
        if (!*row->argument && *argument) return nib_fail(err, NIB_E_ARG, "/%s takes nothing after it", row->name);
        if (*row->argument && *row->argument != '[' && !*argument)
            return nib_fail(err, NIB_E_ARG, "/%s needs a %s", row->name, row->argument);
        return commands[i].run(t, argument, err);
    }
    return unknown(name, err);
}
