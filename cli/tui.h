/* cli/tui.h - private to chat_tui.c, chat_commands.c, chat_complete.c and chat_params.c: a conversation on a terminal. */
#ifndef NIB_CLI_TUI_H
#define NIB_CLI_TUI_H

#include "chat.h"
#include "edit.h"

typedef struct nib_cli_tui {
    nib_cli_chat *c;
    const nib_cli_term *term;
    nib_cli_edit *edit;
    nib_cli_history history;
    nib_cli_out out;
    nib_buf attached;     /* files for the next message */
    nib_buf initial;      /* what the next line begins with */
    nib_cli_list values;  /* char *, of /set: options borrow them */
    bool replaces;        /* the next message takes the place of the last one */
    bool wants_answer;    /* a command changed the messages so that they are to be answered */
    bool leaves;
} nib_cli_tui;

/* A line about what was done, dimmed. Control characters become visible. */
void nib_cli_tui_note(nib_cli_tui *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- chat_commands.c */
enum {
#define CHAT_COMMAND(name, argument, completion, help) NIB_CLI_TUI_##name,
#include "chat_commands.def"
#undef CHAT_COMMAND
    NIB_CLI_TUI_N_COMMANDS
};

typedef struct nib_cli_tui_command {
    const char *name, *argument;
    enum { NIB_CLI_COMPLETE_NOTHING, NIB_CLI_COMPLETE_FILES, NIB_CLI_COMPLETE_PARAMS } completion;
    const char *help;
} nib_cli_tui_command;

const nib_cli_tui_command *nib_cli_tui_command_at(int command);
/* Whether a text is meant as a command: a slash and letters, and a space or nothing after them. */
bool nib_cli_tui_is_command(nib_str text);
/* Runs it. text ends in NUL. */
nib_status nib_cli_tui_run(nib_cli_tui *t, nib_str text, nib_error *err);
/* "~/file" as a path that can be opened; false when it is too long. */
bool nib_cli_tui_path(const char *typed, char *out, size_t size);

/* ---- chat_params.c */
nib_status nib_cli_tui_set(nib_cli_tui *t, const char *argument, nib_error *err);
void nib_cli_tui_params(nib_cli_tui *t);
/* What /set takes, by name: "top_p", "top-p", "--top-p", "n"; NULL: nothing. */
const nib_cli_option *nib_cli_tui_param(nib_str name);
/* Whether /set takes this option; its name in *name. */
bool nib_cli_tui_param_name(const nib_cli_option *option, nib_buf *name);

/* ---- chat_complete.c */
void nib_cli_tui_complete(void *tui, nib_str text, nib_cli_words *words);

#endif
