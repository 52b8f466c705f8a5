/* tests/support/grammar.c - see grammar.h. */
#include "support/grammar.h"

#include "grammar/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nib_grammar_vocab *grammar_vocab(const char *const *words, size_t n) {
    nib_grammar_vocab *v;
    uint32_t n_tokens = GRAMMAR_BYTE_IDS + 256 + (uint32_t)n;
    if (nib_grammar_vocab_begin(&v, n_tokens, NULL) != NIB_OK) abort();
    for (uint32_t i = 0; i < n_tokens; i++) {
        char byte = (char)(i - GRAMMAR_BYTE_IDS), name[16];
        nib_str bytes = {&byte, i >= GRAMMAR_BYTE_IDS};
        snprintf(name, sizeof name, "<t%u>", i);
        if (i >= GRAMMAR_BYTE_IDS + 256)
            bytes = (nib_str){words[i - GRAMMAR_BYTE_IDS - 256], strlen(words[i - GRAMMAR_BYTE_IDS - 256])};
        if (!nib_grammar_vocab_add(v, bytes, (nib_str){name, strlen(name)}, i == 0)) abort();
    }
    if (nib_grammar_vocab_finish(v, NULL) != NIB_OK) abort();
    return v;
}

grammar_verdict grammar_match(nib_grammar *g, nib_str text, size_t *dead_at) {
    nib_matcher *m;
    size_t taken = 0;
    if (nib_matcher_new(&m, g, NULL) != NIB_OK) abort();
    bool fits = nib_matcher_feed(m, text, &taken, NULL) == NIB_OK;
    grammar_verdict verdict = !fits ? GRAMMAR_DEAD : nib_matcher_may_end(m) ? GRAMMAR_MATCH : GRAMMAR_INCOMPLETE;
    if (dead_at) *dead_at = taken;
    nib_matcher_free(m);
    return verdict;
}

grammar_verdict grammar_try(nib_syntax syntax, const char *text, const char *input, size_t *dead_at) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    config.syntax = syntax;
    if (nib_grammar_new(&g, text, strlen(text), NULL, &config, &err) != NIB_OK) {
        fprintf(stderr, "%s\n%s\n", text, err.message);
        abort();
    }
    grammar_verdict verdict = grammar_match(g, (nib_str){input, strlen(input)}, dead_at);
    nib_grammar_free(g);
    return verdict;
}
