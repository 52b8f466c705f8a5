/* cli/constraint.h - the grammar that options ask for: --grammar, --json-schema, --regex, --choice, --json-object. */
#ifndef NIB_CLI_CONSTRAINT_H
#define NIB_CLI_CONSTRAINT_H

#include "options.h"

typedef struct nib_cli_constraint { /* zero-initialise */
    nib_grammar_vocab *vocab;
    nib_grammar *grammar; /* NULL: nothing was asked for */
    nib_matcher *matcher;
} nib_cli_constraint;

/* NIB_E_ARG when options ask for more than one grammar. Free *c in any case. */
nib_status nib_cli_constraint_new(nib_cli_constraint *c, const nib_cli_options *opt, const nib_tokenizer *tok,
                                  nib_error *err);
void nib_cli_constraint_free(nib_cli_constraint *c);

#endif
