/* cli/constraint.h - the grammar that options ask for: --grammar, --json-schema, --regex, --choice, --json-object; in a chat
 * also --tool-choice. */
#ifndef NIB_CLI_CONSTRAINT_H
#define NIB_CLI_CONSTRAINT_H

#include "base/buf.h"
#include "options.h"

typedef struct nib_cli_constraint { /* zero-initialise */
    const char *option; /* that asks for a grammar; NULL: none does */
    nib_buf text;       /* of it */
    nib_grammar_config config;
    nib_grammar_vocab *vocab;
    nib_grammar *grammar; /* NULL: anything goes */
    nib_matcher *matcher; /* of a text or an answer */
    bool is_made, starts_thinking, no_thinking; /* of the grammar of answers */
} nib_cli_constraint;

/* Reads the options; needs no model. NIB_E_ARG when they ask for more than one grammar. Free *c in any case. */
nib_status nib_cli_constraint_read(nib_cli_constraint *c, const nib_cli_options *opt, nib_error *err);
/* A matcher of the whole text, if a grammar is asked for. */
nib_status nib_cli_constraint_text(nib_cli_constraint *c, const nib_tokenizer *tok, nib_error *err);
/* What --tool-choice says, for a grammar of answers with these tools, JSON or NULL. *config borrows from the arguments. */
void nib_cli_constraint_choice(const nib_cli_constraint *c, const nib_cli_options *opt, nib_str tools,
                               nib_chat_grammar_config *config);
/* A matcher of the next answer of a chat, if anything is asked for. */
nib_status nib_cli_constraint_answer(nib_cli_constraint *c, const nib_chat *chat, const nib_chat_grammar_config *config,
                                     nib_error *err);
void nib_cli_constraint_free(nib_cli_constraint *c);

#endif
