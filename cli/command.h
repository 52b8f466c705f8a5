/* cli/command.h - the table of commands: names, functions, summaries (rows in commands.def). */
#ifndef NIB_CLI_COMMAND_H
#define NIB_CLI_COMMAND_H

#include "term.h"

struct nib_cli_options;

enum {
#define COMMAND(id, name, operand, summary) NIB_CLI_##id,
#include "commands.def"
#undef COMMAND
    NIB_CLI_N_COMMANDS
};

/* Exit statuses; a signal that ended the work gives 128 + its number. */
enum { NIB_CLI_DONE = 0, NIB_CLI_FAILED = 1, NIB_CLI_USAGE = 2 };

typedef struct nib_cli_command {
    const char *name;
    const char *operand; /* what may stand without a flag, for the help; "" nothing, "[-]" only a dash */
    const char *summary;
    int (*run)(const struct nib_cli_options *opt, const nib_cli_term *term); /* returns the exit status */
} nib_cli_command;

const nib_cli_command *nib_cli_command_at(int command);
int nib_cli_command_find(const char *name); /* NIB_CLI_RUN …, or -1 */

/* The index of the name that is the fewest edits away from word; n > 0. */
size_t nib_cli_nearest(nib_str word, const nib_str *names, size_t n);

#endif
