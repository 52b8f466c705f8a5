/* cli/metadata.h - values of GGUF keys as numbers, text and JSON. */
#ifndef NIB_CLI_METADATA_H
#define NIB_CLI_METADATA_H

#include "json.h"

/* A finite number; false for any other type. */
bool nib_cli_metadata_number(const nib_gguf_value *value, double *x);
/* Appends the value in one line: strings escaped and cut, arrays with their first elements. */
void nib_cli_metadata_text(nib_buf *out, const nib_gguf_value *value);
/* The whole value; null for arrays of arrays. */
json_t *nib_cli_metadata_json(const nib_gguf_value *value);

#endif
