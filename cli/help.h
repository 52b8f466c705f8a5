/* cli/help.h - help made from the tables of commands and options. */
#ifndef NIB_CLI_HELP_H
#define NIB_CLI_HELP_H

#include "term.h"

/* What the commands are. */
void nib_cli_help_overview(nib_cli_out *out, const nib_cli_term *term);
/* All options of one command, in groups, 80 columns wide. */
void nib_cli_help_command(nib_cli_out *out, const nib_cli_term *term, int command);
/* The sections COMMANDS and OPTIONS of the manual page, in scdoc's format. */
void nib_cli_help_scdoc(nib_cli_out *out);

#endif
