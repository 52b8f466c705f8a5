/* fuzz/fuzz_gbnf.c - any bytes as a grammar of llama.cpp's notation and a text; see grammar.h. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return grammar_input(NIB_SYNTAX_GBNF, data, size);
}
