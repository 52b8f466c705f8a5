/* fuzz/grammar.h - grammars for the fuzzers: options, a text and an answer in -> an error with a message, or a matcher
 * whose masks say of every token what its bytes say one by one. */
#ifndef NIB_FUZZ_GRAMMAR_H
#define NIB_FUZZ_GRAMMAR_H

#include "grammar/vocab.h"
#include "nib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(bool holds) {
    if (!holds) abort();
}

static inline nib_str grammar_str(const char *text) {
    return (nib_str){text, strlen(text)};
}

/* The bytes, the end, and words of more than one byte: of every group of characters, of JSON, and cut characters. */
static const char *const grammar_words[] = {"",     "ab",       "abcde",     "name",       " ab",
                                            " The", "AB",       "x1",        "12",         "0123",
                                            "a-b",  "a.b@c",    "\",",       "\":",        "{\"",
                                            "a\"",  "\"}",      "[[",        "null",       "\xC3\xA9",
                                            "\xC3", "\xE2\x82", "\xAC",      "a\xC3\xA9",  "\xF0\x9F\x98\x80",
                                            "\\n",  "\\u",      "\n  ",      "  ",         "-1",
                                            "1e5",  "\xED\xA0", "x\xF4\x90", "aaaaaaaaaa", "bb\",\"",
                                            "\x7F", "\t\t",     "a\n\n",     "<a",         "aaaaaaaaaaaaaaaaaaaaaaaaaaaa 1"};
/* And words with a common beginning, which masks may take as a whole: "ab" and two of these. */
static const char *const grammar_ends[] = {"a", "b", "1", "X", " ", "\n", "-", "\xC3\xA9", "\""};
enum {
    GRAMMAR_N_WORDS = sizeof grammar_words / sizeof *grammar_words,
    GRAMMAR_N_ENDS = sizeof grammar_ends / sizeof *grammar_ends,
    GRAMMAR_N_TOKENS = 256 + GRAMMAR_N_WORDS + GRAMMAR_N_ENDS * GRAMMAR_N_ENDS,
};

static inline nib_str grammar_token(int id, char text[16]) {
    int end = id - 256 - GRAMMAR_N_WORDS;
    if (id < 256) {
        text[0] = (char)id;
        return (nib_str){text, 1};
    }
    if (end < 0) return grammar_str(grammar_words[id - 256]);
    snprintf(text, 16, "ab%s%s", grammar_ends[end / GRAMMAR_N_ENDS], grammar_ends[end % GRAMMAR_N_ENDS]);
    return grammar_str(text);
}

/* Made once. */
static inline const nib_grammar_vocab *grammar_vocab(void) {
    static nib_grammar_vocab *v;
    if (v) return v;
    check(nib_grammar_vocab_begin(&v, GRAMMAR_N_TOKENS, NULL) == NIB_OK);
    for (int i = 0; i < GRAMMAR_N_TOKENS; i++) {
        char text[16];
        nib_str bytes = grammar_token(i, text);
        check(nib_grammar_vocab_add(v, bytes, bytes, i == 256));
    }
    check(nib_grammar_vocab_finish(v, NULL) == NIB_OK);
    return v;
}

/* Whether the mask says of the bytes what the matcher does. */
static inline void grammar_same(nib_matcher *m, nib_str bytes, bool is_set) {
    nib_status status = nib_matcher_feed(m, bytes, NULL, NULL);
    check(status == NIB_E_LIMIT || is_set == (status == NIB_OK));
    if (status == NIB_OK) check(nib_matcher_rollback(m, 1, NULL) == NIB_OK);
}

/* Follows the answer as far as it fits. Tokens that a grammar names make masks wider than bytes. */
static inline void grammar_follow(nib_grammar *g, const uint8_t *text, size_t len, bool names_tokens) {
    nib_matcher *m;
    nib_error err;
    uint32_t mask[GRAMMAR_N_TOKENS / 32 + 1];
    check(nib_matcher_new(&m, g, &err) == NIB_OK);
    for (size_t i = 0; i < len && i < 64; i++) {
        if (nib_matcher_mask(m, mask, GRAMMAR_N_TOKENS, &err) != NIB_OK) break;
        check((mask[256 / 32] & 1) == nib_matcher_may_end(m));
        for (int id = 257 + (int)(i % 8); id < GRAMMAR_N_TOKENS && !names_tokens; id += 8) { /* all, in eight steps */
            char word[16];
            grammar_same(m, grammar_token(id, word), mask[id / 32] >> id % 32 & 1);
        }
        nib_str byte = {(const char *)text + i, 1};
        if (!names_tokens) grammar_same(m, byte, mask[text[i] / 32] >> text[i] % 32 & 1);
        nib_status status =
            i % 3 ? nib_matcher_feed(m, byte, NULL, &err) : nib_matcher_accept(m, (nib_token)text[i], &err);
        if (status != NIB_OK) break;
        (void)nib_matcher_forced(m);
        (void)nib_matcher_expected(m);
    }
    nib_matcher_free(m);
}

static inline void grammar_try(const nib_grammar_config *config, nib_str grammar, nib_str answer) {
    nib_grammar *g;
    nib_error err = {0};
    const nib_grammar_vocab *v = grammar_vocab();
    nib_status status = nib_grammar_new(&g, grammar.ptr, grammar.len, v, config, &err);
    if (status == NIB_OK)
        grammar_follow(g, (const uint8_t *)answer.ptr, answer.len, memchr(grammar.ptr, '<', grammar.len) != NULL);
    else
        check(!g && err.code == status && err.message[0]);
    nib_grammar_free(g);
}

/* Limits that keep an input quick. */
static inline nib_grammar_config grammar_config(nib_syntax syntax, unsigned options) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    config.syntax = syntax;
    config.space = (nib_json_space)(options % 3);
    config.key_order = options / 3 % 2;
    config.keep_rules = options / 6 % 2;
    config.max_states = 5000;
    config.max_edges = 50000;
    config.max_items = 2000;
    config.max_ms = 500;
    config.max_cache_bytes = options >= 128 ? 1000 : 1 << 22;
    return config;
}

/* An input: a byte of options, a grammar, FF, an answer. Without FF the grammar is tried as its own answer. */
static inline int grammar_input(nib_syntax syntax, const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const char *text = (const char *)data + 1, *mark = memchr(text, 0xFF, size - 1);
    nib_str grammar = {text, mark ? (size_t)(mark - text) : size - 1};
    nib_str answer = mark ? (nib_str){mark + 1, size - 2 - grammar.len} : grammar;
    nib_grammar_config config = grammar_config(syntax, data[0]);
    grammar_try(&config, grammar, answer);
    return 0;
}

#endif
