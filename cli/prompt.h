/* cli/prompt.h - the prompt of run and trace: text and ids. */
#ifndef NIB_CLI_PROMPT_H
#define NIB_CLI_PROMPT_H

#include "session.h"

/* The ids of a text; special tokens in it are parsed. A model cannot continue nothing: an empty text becomes BOS, or
 * the token that ends texts, with a note; NIB_E_ARG when there is neither. */
nib_status nib_cli_prompt_ids(const nib_cli_session *s, nib_str text, nib_token_list *ids, nib_error *err);

#endif
