/* chat/shape/answer.c - nib_chat_grammar_new: what is asked of an answer -> a grammar of it. The places of the parser
 * (output/parser.c), each a node, and what may stand there. */
#include "base/status.h"
#include "chat/format.h"
#include "chat/shape/shape.h"
#include "grammar/cache.h"

#include <string.h>

/* ---- rules */

static bool has(const char *pattern, char element) {
    return strchr(pattern, element) != NULL;
}

static bool reads_calls_only(const char *pattern) {
    return has(pattern, NIB_CHAT_CALL) && !has(pattern, NIB_CHAT_THINK) && !has(pattern, NIB_CHAT_TEXT);
}

/* Whether the opening of a rule is what ends a turn: where there is no token for it, generation ends with its text. */
static bool is_stop(const nib_chat_shape *d, size_t rule) {
    const char *pattern = d->format->rules[rule].pattern;
    size_t n = nib_chat_shape_literal_len(pattern);
    for (size_t i = 0; i < NIB_CHAT_MAX_STOPS && d->format->stops[i]; i++)
        if (strlen(d->format->stops[i]) == n && memcmp(d->format->stops[i], pattern, n) == 0) return true;
    return false;
}

/* Bits of the rules that the parser looks for at some place. */
static unsigned rules_at(const nib_chat_shape *d, unsigned where) {
    unsigned set = 0;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && d->format->rules[i].pattern; i++) {
        const nib_chat_rule *rule = &d->format->rules[i];
        if (rule->where & where && (d->has_calls || !reads_calls_only(rule->pattern))) set |= 1u << i;
    }
    return set;
}

/* The openings of the rules, and rules without one. */
static void draw_openings(nib_chat_shape *d, uint32_t from, unsigned set) {
    for (size_t i = 0; set; i++, set >>= 1) {
        if (!(set & 1)) continue;
        const char *pattern = d->format->rules[i].pattern;
        nib_str opening = {pattern, nib_chat_shape_literal_len(pattern)};
        nib_grammar_empty(d->b, nib_chat_shape_marker(d, from, opening), d->opened[i]);
    }
}

static unsigned without_opening(const nib_chat_shape *d, unsigned set) {
    unsigned out = 0;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && d->format->rules[i].pattern; i++)
        if (set >> i & 1 && !nib_chat_shape_literal_len(d->format->rules[i].pattern)) out |= 1u << i;
    return out;
}

/* ---- places */

static void may_end(nib_chat_shape *d, uint32_t node) {
    nib_grammar_empty(d->b, node, d->end);
}

static void stays(nib_chat_shape *d, uint32_t node) {
    (void)d;
    (void)node;
}

/* The end of the answer, before which a marker that closes messages may stand. */
static void draw_end(nib_chat_shape *d, uint32_t node) {
    unsigned inner = rules_at(d, NIB_CHAT_IN_TEXT);
    may_end(d, node);
    for (size_t i = 0; inner; i++, inner >>= 1) {
        const char *pattern = d->format->rules[i].pattern;
        if (!(inner & 1) || has(pattern, NIB_CHAT_CALL) || has(pattern, NIB_CHAT_THINK) || has(pattern, NIB_CHAT_SKIP)) continue;
        may_end(d, nib_chat_shape_marker(d, node, (nib_str){pattern, nib_chat_shape_literal_len(pattern)}));
    }
}

/* Rules that close reasoning: where there is none the parser drops their markers, and nobody needs them. */
static unsigned closers(const nib_chat_shape *d) {
    unsigned set = 0;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && d->format->rules[i].pattern; i++)
        if (d->format->rules[i].where & NIB_CHAT_IN_THINKING && !(d->format->rules[i].where & NIB_CHAT_IN_TEXT)) set |= 1u << i;
    return set;
}

/* Where content would begin. */
static void draw_fresh(nib_chat_shape *d, uint32_t node, bool is_start) {
    unsigned inner = rules_at(d, NIB_CHAT_IN_TEXT);
    unsigned all = inner | rules_at(d, NIB_CHAT_AT_FRESH | (is_start ? NIB_CHAT_AT_START : 0));
    uint32_t behind = nib_chat_shape_blanks(d, node);
    if (d->is_free) {
        nib_chat_shape_scan(d, node, inner, all, may_end);
        draw_openings(d, behind, without_opening(d, all));
        return;
    }
    draw_openings(d, behind, all & ~closers(d));
    if (d->must_call || nib_chat_shape_failed(d)) return;
    uint32_t said = nib_grammar_node(d->b);
    nib_grammar_call(d->b, is_start ? node : behind, said, d->content); /* blanks at the start would be content */
    draw_end(d, said);
}

static void draw_thinking(nib_chat_shape *d) {
    unsigned inner = rules_at(d, NIB_CHAT_IN_THINKING), outer = rules_at(d, NIB_CHAT_AT_FRESH_THINKING);
    nib_chat_shape_scan(d, d->thinking, inner, inner | outer, d->is_free ? may_end : stays);
}

/* Behind a call: the end, or more calls; text only where it was free before. */
static void draw_called(nib_chat_shape *d) {
    unsigned all = rules_at(d, NIB_CHAT_IN_TEXT | NIB_CHAT_AT_FRESH), calls = 0;
    draw_end(d, d->called);
    if (d->config->one_call) return;
    if (d->is_free) nib_grammar_empty(d->b, d->called, d->fresh);
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && d->format->rules[i].pattern; i++)
        if (all >> i & 1 && has(d->format->rules[i].pattern, NIB_CHAT_CALL)) calls |= 1u << i;
    draw_openings(d, nib_chat_shape_blanks(d, d->called), calls);
}

/* ---- the whole */

/* Control tokens that are markers, or parts of one. Those that end a text do so wherever they stand. */
static void find_marks(nib_chat_shape *d) {
    const nib_grammar_vocab *v = d->b->vocab;
    for (uint32_t id = 0; v && id < v->n_tokens && !nib_chat_shape_failed(d); id++) {
        bool is_end = !(v->all[id / 32] >> id % 32 & 1);
        if (v->bytes[id].len || is_end || !nib_chat_format_is_mark(d->format, v->names[id])) continue;
        if (nib_grow(&d->marks, &d->marks_capacity, d->n_marks + 1, sizeof *d->marks)) d->marks[d->n_marks++] = (nib_token)id;
        else nib_grammar_build_fail(d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for markers");
    }
}

static uint32_t draw_answer(nib_chat_shape *d) {
    nib_grammar_build *b = d->b;
    const nib_chat_grammar_config *c = d->config;
    nib_grammar_source source = {{c->content, c->content_len}, &c->grammar};
    uint32_t root = nib_grammar_rule_new(b, (nib_str){"answer", 6}), start = nib_grammar_node(b);
    d->content = d->blanks = NIB_GRAMMAR_NO;
    d->fresh = nib_grammar_node(b);
    d->thinking = nib_grammar_node(b);
    d->called = nib_grammar_node(b);
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES; i++) d->opened[i] = nib_grammar_node(b);
    find_marks(d);
    if (d->has_calls) nib_chat_shape_read_tools(d);
    if (c->content && !d->must_call && !nib_chat_shape_failed(d)) d->content = nib_grammar_front(b, &source);
    if (nib_chat_shape_failed(d)) return 0;
    d->end = b->rules[root].end;
    nib_grammar_empty(b, b->rules[root].rule.start, c->starts_thinking ? d->thinking : start);
    draw_fresh(d, start, true);
    draw_fresh(d, d->fresh, false);
    draw_thinking(d);
    draw_called(d);
    unsigned all = rules_at(d, ~0u);
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && !nib_chat_shape_failed(d); i++) {
        if (!(all >> i & 1)) continue;
        if (!is_stop(d, i)) nib_chat_shape_draw_rule(d, i);
        else if (d->is_free) may_end(d, d->opened[i]);
    }
    nib_chat_shape_fill(d);
    return root;
}

static uint32_t draw(nib_grammar_build *b, void *user) {
    nib_chat_shape *d = user;
    d->b = b;
    uint32_t root = draw_answer(d);
    nib_chat_shape_free_tools(d);
    nib_free(d->marks);
    return root;
}

static bool is(const char *word, const char *other) {
    return word && strcmp(word, other) == 0;
}

/* What the request wants of the answer: d->is_free, has_calls, must_call. */
static nib_status read_choice(nib_chat_shape *d, nib_error *err) {
    const nib_chat_grammar_config *c = d->config;
    bool is_none = is(c->tool_choice, "none"), is_auto = !c->tool_choice || is(c->tool_choice, "auto");
    d->must_call = is(c->tool_choice, "required");
    if (!is_none && !is_auto && !d->must_call)
        return nib_fail(err, NIB_E_ARG, "tool_choice is \"%.40s\", expected none, auto or required", c->tool_choice);
    if (d->must_call && !c->tools) return nib_fail(err, NIB_E_ARG, "tool_choice is \"required\", but there are no tools");
    if (c->tool_name && !d->must_call) return nib_fail(err, NIB_E_ARG, "a tool is named, but not required");
    if (c->content && c->content_len > c->grammar.max_text_bytes)
        return nib_fail(err, NIB_E_LIMIT, "a grammar of %zu bytes, at most %u are allowed (max_text_bytes)", c->content_len,
                        c->grammar.max_text_bytes);
    if (c->tools && c->tools_len > c->grammar.max_text_bytes)
        return nib_fail(err, NIB_E_LIMIT, "tools of %zu bytes, at most %u are allowed (max_text_bytes)", c->tools_len,
                        c->grammar.max_text_bytes);
    d->has_calls = c->tools && !is_none;
    d->is_free = !c->content && !d->must_call;
    if (d->must_call && strcmp(nib_chat_format_name(d->format), "none") == 0)
        return nib_fail(err, NIB_E_UNSUPPORTED, "the format none has no calls");
    return NIB_OK;
}

/* *is_any: nothing is asked for. */
static nib_status begin(nib_chat_shape *d, const nib_chat_grammar_config *config, bool *is_any, nib_error *err) {
    *d = (nib_chat_shape){.config = config};
    if (config->size != sizeof *config)
        return nib_fail(err, NIB_E_ARG, "a nib_chat_grammar_config that was not made by NIB_CHAT_GRAMMAR_CONFIG_INIT");
    NIB_TRY(nib_chat_format_choose(&d->format, config->format, err));
    NIB_TRY(read_choice(d, err));
    *is_any = d->is_free && (!d->has_calls || !config->strict);
    return NIB_OK;
}

nib_status nib_chat_grammar_new(nib_grammar **out, const nib_chat_grammar_config *config, const nib_grammar_vocab *vocab,
                                nib_error *err) {
    nib_chat_shape d;
    bool is_any = false;
    *out = NULL;
    NIB_TRY(begin(&d, config, &is_any, err));
    return is_any ? NIB_OK : nib_grammar_compile(out, &config->grammar, vocab, draw, &d, err);
}

/* ---- through a cache */

typedef struct request {
    const nib_chat_grammar_config *config;
    const nib_grammar_vocab *vocab;
} request;

static nib_status make(nib_grammar **out, const void *user, nib_error *err) {
    const request *r = user;
    return nib_chat_grammar_new(out, r->config, r->vocab, err);
}

nib_status nib_grammar_cache_chat(nib_grammar_cache *cache, nib_grammar **out, const nib_chat_grammar_config *config,
                                  const nib_grammar_vocab *vocab, nib_error *err) {
    request r = {config, vocab};
    nib_chat_shape d;
    nib_buf key = {0};
    bool is_any = false;
    *out = NULL;
    NIB_TRY(begin(&d, config, &is_any, err));
    if (is_any) return NIB_OK;
    const char *tool = config->tool_name;
    uint64_t flags[] = {config->starts_thinking, config->no_thinking, config->one_call, config->strict, d.has_calls, d.must_call};
    nib_grammar_key_config(&key, &config->grammar, vocab);
    nib_buf_append(&key, flags, sizeof flags);
    nib_grammar_key_text(&key, nib_chat_format_name(d.format), strlen(nib_chat_format_name(d.format)));
    nib_grammar_key_text(&key, d.has_calls ? config->tools : NULL, config->tools_len);
    nib_grammar_key_text(&key, tool, tool ? strlen(tool) : 0);
    nib_grammar_key_text(&key, config->content, config->content_len);
    return nib_grammar_cache_take(cache, &key, make, &r, out, err);
}
