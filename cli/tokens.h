/* cli/tokens.h - a token for people: "  7042 -> ' Paris'". */
#ifndef NIB_CLI_TOKENS_H
#define NIB_CLI_TOKENS_H

#include "base/buf.h"

/* Appends the id and its bytes between quotes, without a newline; control characters are escaped. */
void nib_cli_token_line(nib_buf *line, const nib_tokenizer *tok, nib_token id);
/* Appends the bytes of one token, special ones as their text, between quotes and escaped. */
void nib_cli_token_quoted(nib_buf *out, const nib_tokenizer *tok, nib_token id);
/* Appends bytes as they may be shown in one line: \n for a newline, \xHH for control characters. */
void nib_cli_escaped(nib_buf *out, nib_str text);

#endif
