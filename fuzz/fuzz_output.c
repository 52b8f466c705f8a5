/* fuzz/fuzz_output.c - any bytes as an answer in any format: the events do not depend on how it is cut, arguments are
 * valid JSON objects, text comes out in order and nothing but markers, calls and blanks is left out.
 *
 * Input: a byte that chooses the format and whether arguments are streamed, one of flags, one that seeds the cuts, then the answer. */
#include "base/buf.h"
#include "chat/format.h"
#include "chat/output/json.h"
#include "chat/pattern.h"
#include "nib.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools[] = "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"},\"n\":{"
                            "\"type\":[\"number\",\"null\"]},"
                            "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},\"o\":{\"type\":\"object\","
                            "\"properties\":{\"b\":{\"type\":\"boolean\"}}}}}}]";

typedef struct transcript {
    nib_buf text; /* kinds, texts, calls, one after the other; pieces of one text joined */
    int kind;
    nib_str answer; /* when it is read as a whole, */
    size_t at;      /* text came out up to here, */
    bool has_call;  /* and a call since then */
    bool is_behind; /* finish: texts are no longer parts of `answer` */
    nib_buf rest, arguments; /* arguments: of the call that is open */
    bool is_open, is_broken;
    bool rest_has_call;
    const nib_chat_format_row *format;
} transcript;

static void check(bool holds) {
    if (!holds) abort();
}

/* What a rule may take out of the text without a call: something that begins with its opening. */
static bool is_marker(const nib_chat_format_row *format, nib_str text) {
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++) {
        const char *pattern = format->rules[i].pattern;
        bool only_calls =
            strchr(pattern, NIB_CHAT_CALL) && !strchr(pattern, NIB_CHAT_THINK) && !strchr(pattern, NIB_CHAT_TEXT);
        size_t len = 0;
        while (pattern[len] && !NIB_CHAT_IS_ELEMENT(pattern[len])) len++;
        if (!only_calls && len <= text.len && memcmp(pattern, text.ptr, len) == 0) return true;
    }
    return false;
}

static void check_gap(const transcript *t, size_t to) {
    check(to >= t->at && to <= t->answer.len);
    nib_str gap = nib_chat_trim((nib_str){t->answer.ptr + t->at, to - t->at});
    check(t->has_call || !gap.len || is_marker(t->format, gap));
}

static void place_text(transcript *t, nib_str text) {
    if (t->is_behind) {
        nib_buf_append(&t->rest, text.ptr, text.len);
        return;
    }
    size_t from = (size_t)(text.ptr - t->answer.ptr);
    check(text.ptr >= t->answer.ptr && text.len <= t->answer.len - from);
    check_gap(t, from);
    t->at = from + text.len;
    t->has_call = false;
}

/* Pieces of arguments make a JSON object, unless a warning came in between. */
static void collect_streamed(transcript *t, const nib_chat_event *e) {
    check(t->is_open == (e->kind != NIB_CHAT_CALL_BEGIN));
    t->has_call = true;
    t->rest_has_call |= t->is_behind;
    if (e->kind == NIB_CHAT_CALL_BEGIN) {
        check(e->name.len && e->id.len);
        nib_buf_printf(&t->text, "\x01%u %.*s %.*s ", (unsigned)e->index, (int)e->name.len, e->name.ptr, (int)e->id.len, e->id.ptr);
        t->arguments.len = 0;
        t->is_open = true;
        t->is_broken = false;
    } else if (e->kind == NIB_CHAT_CALL_ARGUMENTS) {
        check(e->text.len);
        nib_buf_append(&t->arguments, e->text.ptr, e->text.len);
    } else {
        nib_str all = {t->arguments.ptr, t->arguments.len};
        check(t->is_broken || (all.len && *all.ptr == '{' && nib_chat_json_is_valid(all)));
        nib_buf_append(&t->text, all.ptr, all.len);
        t->is_open = false;
    }
    t->kind = -1;
}

static bool collect(void *user, const nib_chat_event *e) {
    transcript *t = user;
    if (e->kind >= NIB_CHAT_CALL_BEGIN) return collect_streamed(t, e), true;
    t->is_broken = t->is_open;
    check(e->kind == NIB_CHAT_WARNING || !t->is_open);
    bool is_text = e->kind == NIB_CHAT_CONTENT || e->kind == NIB_CHAT_REASONING;
    check(!is_text || e->text.len);
    if (!is_text || t->kind != (int)e->kind) nib_buf_printf(&t->text, "\x01%d:", (int)e->kind);
    t->kind = is_text ? (int)e->kind : -1;
    nib_buf_append(&t->text, e->text.ptr, e->text.len);
    if (is_text && t->answer.ptr) place_text(t, e->text);
    if (e->kind != NIB_CHAT_TOOL_CALL) return true;
    check(e->name.len && e->id.len && *e->text.ptr == '{' && nib_chat_json_is_valid(e->text));
    nib_buf_printf(&t->text, " %u %.*s %.*s", (unsigned)e->index, (int)e->name.len, e->name.ptr, (int)e->id.len,
                   e->id.ptr);
    t->has_call = true;
    t->rest_has_call |= t->is_behind;
    return true;
}

/* What came out at the end is what was left, in order, and all of it when there is no marker in it. */
static void check_rest(const transcript *t) {
    nib_str left = {t->answer.ptr + t->at, t->answer.len - t->at},
            out = nib_chat_trim((nib_str){t->rest.ptr ? t->rest.ptr : "", t->rest.len});
    bool may_lack = t->has_call || t->rest_has_call;
    for (size_t i = 0; i < left.len && !may_lack; i++)
        may_lack = is_marker(t->format, (nib_str){left.ptr + i, left.len - i});
    if (!may_lack) {
        left = nib_chat_trim(left);
        check(left.len == out.len && (!out.len || memcmp(left.ptr, out.ptr, out.len) == 0));
        return;
    }
    size_t k = 0;
    for (size_t i = 0; i < left.len && k < out.len; i++) k += left.ptr[i] == out.ptr[k];
    check(k == out.len);
}

static size_t next_cut(uint32_t *seed) {
    if (*seed == 0) return 1;
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % (*seed >> 30 ? 5 : 60);
}

static void run(nib_chat_parser_config *config, nib_str answer, transcript *t, uint32_t *seed) {
    nib_chat_parser *parser;
    config->event = collect;
    config->user = t;
    t->kind = -1;
    check(nib_chat_parser_new(&parser, config, NULL) == NIB_OK);
    for (size_t at = 0, n; at < answer.len; at += n) {
        n = seed ? next_cut(seed) : answer.len;
        if (n > answer.len - at) n = answer.len - at;
        check(nib_chat_parser_push(parser, (nib_str){answer.ptr + at, n}, NULL) == NIB_OK);
    }
    t->is_behind = true;
    check(nib_chat_parser_finish(parser, NULL) == NIB_OK && !t->is_open);
    nib_chat_parser_free(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n_formats = 0;
    const char *const *names = nib_chat_format_names();
    while (names[n_formats]) n_formats++;
    if (size < 3) return 0;
    nib_str answer = {(const char *)data + 3, size - 3};
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    config.format = names[data[0] % n_formats];
    config.stream_calls = data[0] / n_formats % 2;
    config.starts_thinking = data[1] & 1;
    config.parse_tools = !(data[1] & 2) || data[1] & 4;
    config.parse_reasoning = !(data[1] & 8) || data[1] & 16;
    config.tools = data[1] & 32 ? tools : NULL;
    config.tools_len = sizeof tools - 1;
    if (data[1] & 64) config.max_call_bytes = data[1] & 128 ? 20 : 200;
    uint32_t seed = data[2];
    transcript whole = {.answer = answer, .format = nib_chat_format_find(config.format)}, cut = {.kind = -1};
    run(&config, answer, &whole, NULL);
    check_rest(&whole);
    run(&config, answer, &cut, &seed);
    check(whole.text.len == cut.text.len && (!cut.text.len || memcmp(whole.text.ptr, cut.text.ptr, cut.text.len) == 0));
    nib_buf_free(&whole.text);
    nib_buf_free(&whole.rest);
    nib_buf_free(&whole.arguments);
    nib_buf_free(&cut.arguments);
    nib_buf_free(&cut.text);
    return 0;
}
