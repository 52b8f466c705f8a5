/* cli/signals.h - signals: Ctrl-C and SIGTERM ask the work to end, a second one kills; a closed pipe is an error of
 * write; a model file that is truncated while mapped ends the program with a message. */
#ifndef NIB_CLI_SIGNALS_H
#define NIB_CLI_SIGNALS_H

#include <stdbool.h>

/* For every command: ignores SIGPIPE, explains SIGBUS. */
void nib_cli_signals_init(void);
/* From now on SIGINT and SIGTERM only raise a flag that long work must look at; the second one acts as usual. */
void nib_cli_signals_catch(void);
/* The signal that came, or 0. */
int nib_cli_interrupted(void);
/* The same as a callback. */
bool nib_cli_abort(void *user);

/* *result = test(arg). False if that raised SIGILL, SIGSEGV or SIGBUS; the handlers are as before then. */
bool nib_cli_signals_survive(bool (*test)(const char *arg), const char *arg, bool *result);

#endif
