/* cli/isa.h - the instruction set level that a run uses when none is asked for. */
#ifndef NIB_CLI_ISA_H
#define NIB_CLI_ISA_H

#include "term.h"

/* The best level that passes its test, with a line on standard error if a better one is claimed and does not. */
const char *nib_cli_isa_best(const nib_cli_term *term);

#endif
