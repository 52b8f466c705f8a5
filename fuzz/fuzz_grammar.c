/* fuzz/fuzz_grammar.c - any bytes as a grammar and a text: an error with a message, or a matcher that says the same
 * whether it is asked by bytes or by masks.
 *
 * The first byte chooses the notation; the bytes up to the first FF are the grammar, those behind it the text. */
#include "grammar/vocab.h"
#include "nib.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

enum { N_TOKENS = 256 + 8 };

static nib_grammar_vocab *make_vocab(void) {
    static const char *const words[] = {"", "ab", "\",", "\":", "12", "{\"", "a\"", "\xC3\xA9"};
    nib_grammar_vocab *v;
    check(nib_grammar_vocab_begin(&v, N_TOKENS, NULL) == NIB_OK);
    for (int i = 0; i < N_TOKENS; i++) {
        char byte = (char)i;
        nib_str bytes = i < 256 ? (nib_str){&byte, 1} : (nib_str){words[i - 256], strlen(words[i - 256])};
        check(nib_grammar_vocab_add(v, bytes, bytes, i == 256));
    }
    check(nib_grammar_vocab_finish(v, NULL) == NIB_OK);
    return v;
}

/* Follows the text as far as it fits; at each byte the mask must agree with what the matcher takes. */
static void follow(nib_grammar *g, const uint8_t *text, size_t len) {
    nib_matcher *m;
    nib_error err;
    uint32_t mask[N_TOKENS / 32 + 1];
    check(nib_matcher_new(&m, g, &err) == NIB_OK);
    for (size_t i = 0; i < len && i < 64; i++) {
        if (nib_matcher_mask(m, mask, N_TOKENS, &err) != NIB_OK) break;
        bool is_set = mask[text[i] / 32] >> text[i] % 32 & 1;
        check((mask[256 / 32] & 1) == nib_matcher_may_end(m));
        nib_status status = nib_matcher_feed(m, (nib_str){(const char *)text + i, 1}, NULL, &err);
        check(status == NIB_E_LIMIT || is_set == (status == NIB_OK));
        if (status == NIB_OK && i % 3 == 0) {
            check(nib_matcher_rollback(m, 1, &err) == NIB_OK);
            check(nib_matcher_accept(m, text[i], &err) == NIB_OK);
        }
        if (status != NIB_OK) break;
        (void)nib_matcher_forced(m);
        (void)nib_matcher_expected(m);
    }
    nib_matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const uint8_t *text = data + 1, *mark = size > 1 ? memchr(text, 0xFF, size - 1) : NULL;
    size_t len = mark ? (size_t)(mark - text) : size - 1;
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err = {0};
    config.syntax = (nib_syntax)(data[0] % 5);
    config.space = (nib_json_space)(data[0] / 5 % 3);
    config.key_order = data[0] / 15 % 2;
    config.keep_rules = data[0] / 30 % 2;
    config.max_states = 5000;
    config.max_edges = 50000;
    config.max_items = 2000;
    config.max_ms = 500;
    config.max_cache_bytes = data[0] >= 128 ? 1000 : 1 << 22;
    nib_grammar_vocab *v = make_vocab();
    nib_status status = nib_grammar_new(&g, (const char *)text, len, v, &config, &err);
    if (status == NIB_OK)
        follow(g, mark ? mark + 1 : text, mark ? size - len - 2 : len);
    else
        check(!g && err.code == status && err.message[0]);
    nib_grammar_free(g);
    nib_grammar_vocab_free(v);
    return 0;
}
