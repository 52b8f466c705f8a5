/* fuzz/fuzz_schema.c - any bytes as a JSON schema and a text; see grammar.h. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return grammar_input(NIB_SYNTAX_JSON_SCHEMA, data, size);
}
