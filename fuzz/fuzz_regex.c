/* fuzz/fuzz_regex.c - any bytes as a regular expression and a text; see grammar.h. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return grammar_input(NIB_SYNTAX_REGEX, data, size);
}
