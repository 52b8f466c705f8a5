/* cli/signals.h - signals: Ctrl-C and SIGTERM ask the work to end, a second one kills; a closed pipe is an error of
 * write; a model file that is truncated while mapped ends the program with a message. */
#ifndef NIB_CLI_SIGNALS_H
#define NIB_CLI_SIGNALS_H

#include <stdbool.h>

/* For every command: ignores SIGPIPE, explains SIGBUS. */
void nib_cli_signals_init(void);
/* From now on SIGINT, SIGTERM and SIGHUP only raise a flag that long work must look at; the second one acts as usual. */
void nib_cli_signals_catch(void);
/* For a conversation on a terminal: the same for SIGHUP and SIGQUIT, and a signal that kills or stops the program puts the terminal
 * back into the modes that it has now, as the end of the program does. */
void nib_cli_signals_terminal(int fd);
/* Puts the terminal back into these modes. */
void nib_cli_signals_restore(void);
/* Forgets the signal that came: the program goes on. */
void nib_cli_signals_forget(void);
/* What ended a wait. */
typedef enum nib_cli_wait {
    NIB_CLI_WAIT_INPUT,
    NIB_CLI_WAIT_TIMEOUT,
    NIB_CLI_WAIT_SIGNAL, /* came before the call or since */
    NIB_CLI_WAIT_WINDOW, /* its size changed */
    NIB_CLI_WAIT_CONTINUED,
} nib_cli_wait;
/* Waits for input, ms milliseconds at most; -1: for ever. Input includes the end of it. */
nib_cli_wait nib_cli_signals_wait(int fd, int ms);
/* The signal that came, or 0. */
int nib_cli_interrupted(void);
/* The same as a callback. */
bool nib_cli_abort(void *user);

/* *result = test(arg). False if that raised SIGILL, SIGSEGV or SIGBUS; the handlers are as before then. */
bool nib_cli_signals_survive(bool (*test)(const char *arg), const char *arg, bool *result);

#endif
