/* cli/cmd_help.c - nib help [COMMAND]: the help of a command, or of all. */
#include "help.h"
#include "options.h"

int nib_cli_cmd_help(const nib_cli_options *opt, const nib_cli_term *term) {
    const nib_str *operands = opt->operands.items;
    int command = opt->operands.n ? nib_cli_command_find(operands[0].ptr) : -1;
    if (opt->operands.n > 1) {
        nib_cli_error(term, "expected one command: nib help COMMAND");
        return NIB_CLI_USAGE;
    }
    if (opt->operands.n && command < 0) {
        nib_cli_error(term, "no command '%s' ('nib help' lists them)", operands[0].ptr);
        return NIB_CLI_USAGE;
    }
    nib_cli_out out;
    nib_cli_out_open(&out);
    if (opt->scdoc)
        nib_cli_help_scdoc(&out);
    else if (command >= 0)
        nib_cli_help_command(&out, term, command);
    else
        nib_cli_help_overview(&out, term);
    return nib_cli_out_close(&out, term, NIB_CLI_DONE);
}
