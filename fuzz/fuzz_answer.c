/* fuzz/fuzz_answer.c - any bytes as the tools of a request, in any format: an error with a message, or a grammar whose texts the
 * parser of the format reads as calls, without a warning.
 *
 * Input: a byte that chooses the format, one of flags, then the tools, JSON up to the first FF; those behind it choose the text. */
#include "nib.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT = 600 };

typedef struct found {
    size_t n_calls, n_warnings, n_content;
} found;

static void check(bool holds) {
    if (!holds) abort();
}

static bool collect(void *user, const nib_chat_event *e) {
    found *f = user;
    f->n_calls += e->kind == NIB_CHAT_TOOL_CALL;
    f->n_warnings += e->kind == NIB_CHAT_WARNING;
    f->n_content += e->kind == NIB_CHAT_CONTENT;
    return true;
}

/* The next byte: the wanted one, or the next one that fits; false: none does. */
static bool step(nib_matcher *m, uint8_t wanted, char *out) {
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)(wanted + i);
        if (nib_matcher_feed(m, (nib_str){&byte, 1}, NULL, NULL) != NIB_OK) continue;
        *out = byte;
        return true;
    }
    return false;
}

/* A text that the grammar permits, to its end; SIZE_MAX: it came to none. */
static size_t write_text(nib_grammar *g, const uint8_t *choices, size_t n, char *text) {
    nib_matcher *m;
    size_t len = 0;
    bool ends = false;
    check(nib_matcher_new(&m, g, NULL) == NIB_OK);
    for (; len < MAX_TEXT && !ends; len += !ends) {
        uint8_t wanted = n ? choices[len % n] : (uint8_t)"}\"]>)<"[len % 6];
        ends = nib_matcher_must_end(m) || (nib_matcher_may_end(m) && (wanted & 3) == 0);
        if (!ends && !step(m, wanted, &text[len])) break; /* max_items, or nothing but the end */
    }
    ends = nib_matcher_may_end(m);
    nib_matcher_free(m);
    return ends ? len : SIZE_MAX;
}

static void check_text(const nib_chat_grammar_config *c, nib_str text) {
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    nib_chat_parser *parser;
    found f = {0};
    config.format = c->format;
    config.starts_thinking = c->starts_thinking;
    config.tools = c->tools;
    config.tools_len = c->tools_len;
    config.event = collect;
    config.user = &f;
    check(nib_chat_parser_new(&parser, &config, NULL) == NIB_OK);
    check(nib_chat_parser_push(parser, text, NULL) == NIB_OK && nib_chat_parser_finish(parser, NULL) == NIB_OK);
    nib_chat_parser_free(parser);
    check(f.n_warnings == 0 && (!c->one_call || f.n_calls <= 1));
    check(!c->tool_choice || (f.n_calls && !f.n_content));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n_formats = 0;
    const char *const *names = nib_chat_format_names();
    while (names[n_formats]) n_formats++;
    if (size < 3) return 0;
    const uint8_t *tools = data + 2, *end = data + size, *mark = memchr(tools, 0xFF, size - 2);
    nib_chat_grammar_config c = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err = {0};
    char text[MAX_TEXT];
    c.format = names[data[0] % n_formats];
    c.tools = (const char *)tools;
    c.tools_len = (size_t)((mark ? mark : end) - tools);
    c.tool_choice = data[1] & 1 ? "required" : NULL;
    c.one_call = data[1] & 2;
    c.no_thinking = data[1] & 4;
    c.strict = true;
    c.grammar.key_order = data[1] & 8;
    c.grammar.space = (nib_json_space)(data[1] >> 4 & 1);
    c.grammar.max_states = 20000;
    c.grammar.max_edges = 100000;
    if (nib_chat_grammar_new(&g, &c, NULL, &err) != NIB_OK) {
        check(err.message[0] && !g);
        return 0;
    }
    if (!g) return 0;
    size_t len = write_text(g, mark ? mark + 1 : end, mark ? (size_t)(end - mark - 1) : 0, text);
    if (len != SIZE_MAX) check_text(&c, (nib_str){text, len});
    nib_grammar_free(g);
    return 0;
}
