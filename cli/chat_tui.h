/* cli/chat_tui.h - a conversation on a terminal. */
#ifndef NIB_CLI_CHAT_TUI_H
#define NIB_CLI_CHAT_TUI_H

#include "chat.h"

/* Reads messages and commands until /exit, the end of input or a signal, and shows answers. Standard input and output are
 * a terminal. */
nib_status nib_cli_chat_tui(nib_cli_chat *c, nib_error *err);

#endif
