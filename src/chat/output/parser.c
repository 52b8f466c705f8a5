/* chat/output/parser.c - nib_chat_parser: bytes of an answer in, events out. Between markers it searches for the next
 * one, by the first bytes that the rules of the place have; at a marker the rule is matched (match.c), and holds or
 * leaves text.
 *
 * The window begins with the first byte that has not come out. In a search, only blanks stand between it and `at`: they
 * belong to a marker, if one follows, and to the text otherwise. Every decision is made from the bytes alone; where the
 * window ends before one can be made, it waits. */
#include "base/mem.h"
#include "base/status.h"
#include "chat/format.h"
#include "chat/output/calls.h"
#include "nib.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BLANKS = 256 };

/* Where the search stands; a set of rules for each. */
typedef enum place { FRESH, CONTENT, FRESH_THINKING, THINKING, N_PLACES } place;

struct nib_chat_parser {
    nib_chat_event_fn event;
    void *user;
    bool parse_tools, parse_reasoning, stream_calls;
    nib_chat_tools tools;

    const char *patterns[NIB_CHAT_MAX_RULES];
    size_t opening_len[NIB_CHAT_MAX_RULES];
    unsigned where[NIB_CHAT_MAX_RULES];
    uint16_t first[N_PLACES][256]; /* bit i: an opening of rule i begins with this byte */
    uint16_t any[N_PLACES];
    uint16_t without_opening; /* rules that are tried without one */

    place place;
    bool at_start;      /* nothing came out yet, no marker either */
    bool behind_marker; /* blanks that follow are dropped */
    bool is_matching;
    bool is_finished;
    nib_status failed;
    size_t blank_to; /* the window holds nothing but blanks up to here */
    size_t at;       /* the search: next byte to look at; offsets count from the beginning of the answer */
    int rule;        /* that is matched */
    size_t rule_at;  /* where it begins */
    nib_chat_match match;
    nib_chat_calls calls;
    uint32_t n_calls;
    bool is_open;     /* arguments of a call are being given: the window begins with the next of them */
    nib_buf name, id; /* of a call that begins */

    nib_chat_window w; /* of the call that runs */
    nib_buf held;      /* what is left of the window between calls */
    size_t held_from;
    nib_error *err;
};
_Static_assert(NIB_CHAT_MAX_RULES <= 16, "a bit for each rule");

/* ---- rules */

static size_t opening_len(const char *pattern) {
    size_t n = 0;
    while (pattern[n] && !NIB_CHAT_IS_ELEMENT(pattern[n])) n++;
    return n;
}

static bool has(const char *pattern, char element) {
    return strchr(pattern, element) != NULL;
}

static bool applies(unsigned where, place p, bool at_start) {
    static const unsigned masks[N_PLACES] = {
        [FRESH] = NIB_CHAT_AT_FRESH | NIB_CHAT_IN_TEXT,
        [CONTENT] = NIB_CHAT_IN_TEXT,
        [FRESH_THINKING] = NIB_CHAT_AT_FRESH_THINKING | NIB_CHAT_IN_THINKING,
        [THINKING] = NIB_CHAT_IN_THINKING,
    };
    return where & masks[p] || (p == FRESH && at_start && where & NIB_CHAT_AT_START);
}

static void add_rule(nib_chat_parser *parser, size_t i, const nib_chat_rule *rule) {
    const char *pattern = rule->pattern;
    uint16_t bit = (uint16_t)(1u << i);
    bool only_calls = has(pattern, NIB_CHAT_CALL) && !has(pattern, NIB_CHAT_THINK) && !has(pattern, NIB_CHAT_TEXT);
    if (only_calls && !parser->parse_tools) return;
    parser->patterns[i] = pattern;
    parser->opening_len[i] = opening_len(pattern);
    parser->where[i] = rule->where;
    if (!parser->opening_len[i]) parser->without_opening |= bit;
    for (place p = 0; p < N_PLACES; p++) {
        if (!applies(rule->where, p, true)) continue;
        parser->any[p] |= bit;
        if (parser->opening_len[i]) parser->first[p][(unsigned char)*pattern] |= bit;
    }
}

/* ---- out */

static char byte_at(const nib_chat_parser *p, size_t at) {
    return p->w.ptr[at - p->w.from];
}

static bool is_fresh(const nib_chat_parser *p) {
    return p->place == FRESH || p->place == FRESH_THINKING;
}

static bool is_thinking(const nib_chat_parser *p) {
    return p->place == FRESH_THINKING || p->place == THINKING;
}

static nib_status emit(nib_chat_parser *p, const nib_chat_event *event) {
    if (p->event(p->user, event)) return NIB_OK;
    return nib_fail(p->err, NIB_E_CANCELLED, "the receiver of the answer stopped it");
}

/* Where the blanks at the end of [from, to) begin. */
static size_t trimmed(const nib_chat_parser *p, size_t from, size_t to) {
    while (to > from && nib_chat_is_blank(byte_at(p, to - 1))) to--;
    return to;
}

static void drop(nib_chat_parser *p, size_t to) {
    p->w.ptr += to - p->w.from;
    p->w.from = to;
}

/* Where the blanks at the end of the window up to `to` begin, of which some are kept. Those known from before are not
 * looked at again. */
static size_t end_of_text(const nib_chat_parser *p, size_t to) {
    size_t known = p->blank_to > p->w.from ? p->blank_to : p->w.from, end = to;
    while (end > known && nib_chat_is_blank(byte_at(p, end - 1))) end--;
    if (end == known) end = p->w.from;
    return to - end > MAX_BLANKS ? to - MAX_BLANKS : end;
}

/* The window up to `to` is text. Blanks at its end are kept back unless all is to come out. */
static nib_status put_text(nib_chat_parser *p, size_t to, bool all) {
    while (p->behind_marker && p->w.from < to && nib_chat_is_blank(*p->w.ptr)) drop(p, p->w.from + 1);
    size_t end = all ? to : end_of_text(p, to);
    nib_str text = {p->w.ptr, end - p->w.from};
    drop(p, end);
    p->blank_to = to;
    if (!text.len) return NIB_OK;
    p->behind_marker = p->at_start = false;
    nib_chat_event event = {.kind = is_thinking(p) && p->parse_reasoning ? NIB_CHAT_REASONING : NIB_CHAT_CONTENT,
                            .text = text};
    return emit(p, &event);
}

static nib_status warn(nib_chat_parser *p, const char *text) {
    char line[400];
    snprintf(line, sizeof line, "%s", text);
    nib_clean_line(line);
    nib_chat_event event = {.kind = NIB_CHAT_WARNING, .text = {line, strlen(line)}};
    return emit(p, &event);
}

static nib_status check_name(nib_chat_parser *p, nib_str name) {
    char line[400];
    if (!p->tools.list || nib_chat_tools_has(&p->tools, name)) return NIB_OK;
    snprintf(line, sizeof line, "tool call %" PRIu32 " is of '%.*s', which is not among the tools", p->n_calls, NIB_STR_ARG(name));
    return warn(p, line);
}

static nib_status put_call(nib_chat_parser *p, const nib_chat_call *call) {
    char id[24];
    nib_chat_event event = {NIB_CHAT_TOOL_CALL, call->arguments, p->n_calls, call->name, call->id};
    if (!call->id.len) event.id = (nib_str){id, (size_t)snprintf(id, sizeof id, "call_%" PRIu32, p->n_calls)};
    NIB_TRY(check_name(p, call->name));
    p->n_calls++;
    if (!p->stream_calls) return emit(p, &event);
    event.kind = NIB_CHAT_CALL_BEGIN;
    event.text = (nib_str){"", 0};
    NIB_TRY(emit(p, &event));
    NIB_TRY(emit(p, &(nib_chat_event){.kind = NIB_CHAT_CALL_ARGUMENTS, .text = call->arguments, .index = event.index}));
    return emit(p, &(nib_chat_event){.kind = NIB_CHAT_CALL_END, .index = event.index});
}

/* ---- calls whose arguments are given as they come */

/* The strings of a JSON call that has come up to its arguments. */
static bool read_head(nib_chat_parser *p) {
    const nib_chat_match *m = &p->match;
    const nib_chat_range name = m->track.name, id = m->track.id;
    p->name.len = p->id.len = 0;
    if (m->ip && *m->ip != NIB_CHAT_ARGS)
        return nib_chat_json_decode(nib_chat_text_of(&p->w, name), &p->name) &&
               (!id.to || nib_chat_json_decode(nib_chat_text_of(&p->w, id), &p->id));
    nib_str own = nib_chat_text_of(&p->w, m->got.name), own_id = nib_chat_text_of(&p->w, m->got.id);
    return nib_buf_append(&p->name, own.ptr, own.len) && nib_buf_append(&p->id, own_id.ptr, own_id.len);
}

static nib_status begin_call(nib_chat_parser *p) {
    nib_chat_match *m = &p->match;
    if (!read_head(p) || (!p->id.len && !nib_buf_printf(&p->id, "call_%" PRIu32, p->n_calls)))
        return nib_fail_nomem(p->err, p->name.len, "a tool call");
    nib_str name = {p->name.ptr, p->name.len};
    if (*m->ip == NIB_CHAT_BARE && p->tools.list && !nib_chat_tools_has(&p->tools, name)) {
        nib_chat_match_decline(m);
        return NIB_OK;
    }
    NIB_TRY(check_name(p, name));
    nib_chat_match_commit(m);
    drop(p, m->arguments.from);
    p->is_open = true;
    p->at_start = false;
    return emit(p, &(nib_chat_event){NIB_CHAT_CALL_BEGIN, {"", 0}, p->n_calls++, name, {p->id.ptr, p->id.len}});
}

/* What has come of the arguments. */
static nib_status put_arguments(nib_chat_parser *p) {
    const nib_chat_match *m = &p->match;
    size_t to = m->arguments.to ? m->arguments.to : m->pos;
    if (!p->is_open || to <= p->w.from) return NIB_OK;
    nib_chat_event event = {.kind = NIB_CHAT_CALL_ARGUMENTS, .text = {p->w.ptr, to - p->w.from}, .index = p->n_calls - 1};
    drop(p, to);
    return emit(p, &event);
}

static nib_status end_call(nib_chat_parser *p) {
    if (!p->is_open) return NIB_OK;
    p->is_open = false;
    return emit(p, &(nib_chat_event){.kind = NIB_CHAT_CALL_END, .index = p->n_calls - 1});
}

/* ---- a rule holds, or does not */

/* Text or a call has come: other rules apply now. */
static void leave_fresh(nib_chat_parser *p) {
    p->at_start = false;
    if (is_fresh(p)) p->place = is_thinking(p) ? THINKING : CONTENT;
}

static void go_on(nib_chat_parser *p, size_t at) {
    p->is_matching = false;
    p->at = at;
}

/* What was matched stays text, up to `to`. */
static nib_status keep_as_text(nib_chat_parser *p, size_t to) {
    NIB_TRY(put_text(p, to, false));
    leave_fresh(p);
    go_on(p, to);
    return NIB_OK;
}

static nib_status end_match(nib_chat_parser *p) {
    const nib_chat_match *m = &p->match;
    bool has_called = m->accepted > m->start, is_mark = m->effect == NIB_CHAT_THINK || is_thinking(p);
    if (!has_called && !m->effect && has(p->patterns[p->rule], NIB_CHAT_CALL)) return keep_as_text(p, m->pos);
    if (!has_called && is_mark && !p->parse_reasoning) NIB_TRY(put_text(p, m->pos, true));
    drop(p, m->pos);
    p->behind_marker = has_called || !is_mark || p->parse_reasoning;
    p->at_start = false;
    p->place = m->effect == NIB_CHAT_THINK ? FRESH_THINKING : FRESH;
    go_on(p, m->pos);
    return NIB_OK;
}

/* A warning is due only where something beyond the opening looked like a call. */
static bool looks_like_call(const nib_chat_parser *p) {
    const nib_chat_match *m = &p->match;
    size_t from = m->accepted > m->start ? m->accepted : m->start + p->opening_len[p->rule];
    if (m->is_committed) return true;
    if (!p->parse_tools || !p->opening_len[p->rule] || !has(p->patterns[p->rule], NIB_CHAT_CALL)) return false;
    return trimmed(p, from, m->furthest) > from;
}

static nib_status fail_match(nib_chat_parser *p, nib_chat_match_result result, const char *why, bool is_end) {
    const nib_chat_match *m = &p->match;
    bool ends = m->ran_out || (is_end && m->furthest == p->w.to);
    char line[400];
    if (looks_like_call(p)) {
        if (result == NIB_CHAT_MATCH_LIMIT && m->is_committed) why = "it is too long";
        if (m->is_committed && ends)
            snprintf(line, sizeof line, "a tool call broke off at byte %zu of the answer, which ends there", p->w.to);
        else if (m->is_committed)
            snprintf(line, sizeof line, "a tool call broke off at byte %zu of the answer: %s; what follows is text", m->furthest,
                     *why ? why : "unexpected text");
        else if (result == NIB_CHAT_MATCH_LIMIT)
            snprintf(line, sizeof line,
                     "a tool call of more than %zu bytes, from byte %zu of the answer on, stays text", m->limit,
                     p->rule_at);
        else if (ends)
            snprintf(line, sizeof line, "the answer ends inside the tool call that began at byte %zu, which stays text",
                     p->rule_at);
        else
            snprintf(line, sizeof line,
                     "no tool call, though it began like one at byte %zu of the answer: %s at byte %zu; it stays "
                     "text",
                     p->rule_at, *why ? why : "unexpected text", m->furthest);
        NIB_TRY(warn(p, line));
    }
    NIB_TRY(end_call(p));
    if (m->is_committed && ends) drop(p, p->w.to); /* brackets and a marker, up to where they were cut */
    return keep_as_text(p, m->is_committed && ends ? p->w.to : m->furthest);
}

/* Gives out the calls that the captures are; *is_call: they are such. */
static nib_status put_calls(nib_chat_parser *p, bool *is_call, const char **why) {
    nib_status status = p->parse_tools ? nib_chat_calls_read(&p->calls, &p->match, &p->w, why) : NIB_E_FORMAT;
    *is_call = status == NIB_OK;
    if (status == NIB_E_NOMEM) return nib_fail_nomem(p->err, 0, "a tool call");
    if (status != NIB_OK) return NIB_OK;
    for (size_t i = 0; i < p->calls.n && status == NIB_OK; i++) status = put_call(p, &p->calls.list[i]);
    nib_chat_calls_clear(&p->calls);
    return status;
}

/* One JSON call is complete. */
static nib_status take_one(nib_chat_parser *p, const char **why) {
    nib_chat_match *m = &p->match;
    bool is_call = p->is_open;
    if (is_call) {
        NIB_TRY(end_call(p));
    } else {
        m->got.payload = m->track.call;
        m->got.payload_kind = (uint8_t)*m->ip;
        NIB_TRY(put_calls(p, &is_call, why));
    }
    if (is_call) nib_chat_match_commit(m);
    else nib_chat_match_refuse(m);
    if (is_call) drop(p, m->track.call.to);
    return NIB_OK;
}

/* Whether the calls of the captures were given out already, as they came. */
static bool was_streamed(const nib_chat_parser *p) {
    char kind = (char)p->match.got.payload_kind;
    return p->match.streams && (kind == NIB_CHAT_ARGS || kind == NIB_CHAT_CALLS || kind == NIB_CHAT_BARE);
}

/* The captures are a call, or several. */
static nib_status take_calls(nib_chat_parser *p, const char **why) {
    nib_chat_match *m = &p->match;
    nib_status status = NIB_OK;
    bool is_call = true;
    if (!was_streamed(p)) {
        NIB_TRY(put_calls(p, &is_call, why));
    } else if (m->got.payload_kind == NIB_CHAT_ARGS) {
        NIB_TRY(end_call(p));
    } else if (!m->track.n_calls) {
        is_call = false;
        *why = "an empty list of calls";
    }
    if (!is_call) {
        nib_chat_match_refuse(m);
        return NIB_OK;
    }
    nib_chat_match_accept(m);
    drop(p, m->pos);
    p->rule_at = p->match.pos;
    p->behind_marker = true;
    p->place = FRESH;
    return status;
}

/* *waits: the bytes do not decide yet. */
static nib_status run_match(nib_chat_parser *p, bool is_end, bool *waits) {
    const char *why = "";
    for (;;) {
        nib_chat_match_result result = nib_chat_match_run(&p->match, &p->w, is_end);
        NIB_TRY(put_arguments(p));
        switch (result) {
        case NIB_CHAT_MATCH_MORE: *waits = true; return NIB_OK;
        case NIB_CHAT_MATCH_CALL: NIB_TRY(take_calls(p, &why)); break;
        case NIB_CHAT_MATCH_ARGS: NIB_TRY(begin_call(p)); break;
        case NIB_CHAT_MATCH_ONE: NIB_TRY(take_one(p, &why)); break;
        case NIB_CHAT_MATCH_END: return end_match(p);
        case NIB_CHAT_MATCH_NOMEM: return nib_fail_nomem(p->err, 0, "parameters of a tool call");
        default: return fail_match(p, result, why, is_end);
        }
    }
}

/* ---- the search */

static void begin_match(nib_chat_parser *p, int rule, size_t at) {
    p->rule = rule;
    p->rule_at = at;
    p->is_matching = true;
    nib_chat_match_begin(&p->match, p->patterns[rule] + p->opening_len[rule], at, at + p->opening_len[rule]);
}

/* The rule that opens at `at`, of those in the set; -1: none, -2: the window ends before that is clear. */
static int find_opening(const nib_chat_parser *p, unsigned set, size_t at, bool is_end) {
    size_t n = p->w.to - at;
    for (int i = 0; set; i++, set >>= 1) {
        if (!(set & 1) || !applies(p->where[i], p->place, p->at_start)) continue;
        size_t len = p->opening_len[i];
        if (memcmp(p->w.ptr + (at - p->w.from), p->patterns[i], len < n ? len : n) != 0) continue;
        if (len <= n) return i;
        if (!is_end) return -2;
    }
    return -1;
}

/* Where content or reasoning would begin: a marker, or the first text. */
static nib_status search_fresh(nib_chat_parser *p, bool is_end, bool *waits) {
    while (p->at < p->w.to && nib_chat_is_blank(byte_at(p, p->at))) p->at++;
    *waits = p->at == p->w.to;
    if (*waits) return put_text(p, p->w.to, is_end);
    int rule = find_opening(p, p->first[p->place][(unsigned char)byte_at(p, p->at)], p->at, is_end);
    if (rule == -1) rule = find_opening(p, p->without_opening & p->any[p->place], p->at, is_end);
    *waits = rule == -2;
    if (rule >= 0) begin_match(p, rule, p->at);
    else if (rule == -1) leave_fresh(p);
    return NIB_OK;
}

static nib_status search(nib_chat_parser *p, bool is_end, bool *waits) {
    const uint16_t *first = p->first[p->place];
    const unsigned char *base = (const unsigned char *)p->w.ptr, *end = base + (p->w.to - p->w.from);
    const unsigned char *ptr = base + (p->at - p->w.from);
    int rule = -1;
    for (; p->any[p->place]; ptr++) {
        while (ptr < end && !first[*ptr]) ptr++;
        if (ptr == end) break;
        rule = find_opening(p, first[*ptr], p->w.from + (size_t)(ptr - base), is_end);
        if (rule != -1) break;
    }
    if (!p->any[p->place]) ptr = end;
    p->at = p->w.from + (size_t)(ptr - base);
    *waits = rule < 0;
    bool is_all = rule == -1 && (is_end || !p->any[p->place]);
    NIB_TRY(put_text(p, p->at, is_all));
    if (rule >= 0) begin_match(p, rule, p->at);
    return NIB_OK;
}

static nib_status run(nib_chat_parser *p, bool is_end) {
    bool waits = false;
    while (!waits) {
        if (p->is_matching) NIB_TRY(run_match(p, is_end, &waits));
        else if (is_fresh(p)) NIB_TRY(search_fresh(p, is_end, &waits));
        else NIB_TRY(search(p, is_end, &waits));
    }
    return NIB_OK;
}

/* ---- the window */

/* Keeps what is left of the window. It lies in `held` already, or in the caller's bytes. */
static bool hold(nib_chat_parser *p, bool is_own) {
    size_t n = p->w.to - p->w.from;
    if (is_own && p->w.ptr != p->held.ptr) memmove(p->held.ptr, p->w.ptr, n);
    p->held.len = is_own ? n : 0;
    p->held_from = p->w.from;
    return is_own || nib_buf_append(&p->held, p->w.ptr, n);
}

static nib_status feed(nib_chat_parser *p, nib_str bytes, bool is_end) {
    bool is_own = p->held.len > 0;
    if (is_own && !nib_buf_append(&p->held, bytes.ptr, bytes.len))
        return nib_fail_nomem(p->err, bytes.len, "an answer");
    nib_str all = is_own ? (nib_str){p->held.ptr, p->held.len} : bytes;
    p->w = (nib_chat_window){all.ptr, p->held_from, p->held_from + all.len};
    NIB_TRY(run(p, is_end));
    return hold(p, is_own) ? NIB_OK : nib_fail_nomem(p->err, bytes.len, "an answer");
}

static nib_status feed_once(nib_chat_parser *p, nib_str bytes, bool is_end, nib_error *err) {
    nib_error local;
    if (p->failed != NIB_OK) return nib_fail(err, p->failed, "the answer failed before");
    if (p->is_finished) return nib_fail(err, NIB_E_ARG, "the answer is finished already");
    p->err = err ? err : &local;
    p->failed = feed(p, bytes, is_end);
    p->err = NULL;
    return p->failed;
}

nib_status nib_chat_parser_push(nib_chat_parser *p, nib_str bytes, nib_error *err) {
    return feed_once(p, bytes, false, err);
}

nib_status nib_chat_parser_finish(nib_chat_parser *p, nib_error *err) {
    NIB_TRY(feed_once(p, (nib_str){"", 0}, true, err));
    p->is_finished = true;
    return NIB_OK;
}

uint32_t nib_chat_parser_n_calls(const nib_chat_parser *p) {
    return p->n_calls;
}

/* ---- life */

static nib_status init(nib_chat_parser *p, const nib_chat_parser_config *config, nib_error *err) {
    const nib_chat_format_row *format;
    NIB_TRY(nib_chat_format_choose(&format, config->format, err));
    if (!config->event) return nib_fail(err, NIB_E_ARG, "no function that receives the events");
    p->event = config->event;
    p->user = config->user;
    p->parse_tools = config->parse_tools;
    p->parse_reasoning = config->parse_reasoning;
    p->stream_calls = config->stream_calls;
    if (config->tools) NIB_TRY(nib_chat_tools_init(&p->tools, (nib_str){config->tools, config->tools_len}, err));
    p->calls.tools = &p->tools;
    p->match.limit = config->max_call_bytes;
    p->match.streams = p->stream_calls && p->parse_tools;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++) add_rule(p, i, &format->rules[i]);
    p->place = config->starts_thinking ? FRESH_THINKING : FRESH;
    p->behind_marker = config->starts_thinking;
    p->at_start = true;
    return NIB_OK;
}

nib_status nib_chat_parser_new(nib_chat_parser **out, const nib_chat_parser_config *config, nib_error *err) {
    nib_chat_parser_config c = NIB_CHAT_PARSER_CONFIG_INIT;
    *out = NULL;
    if (config) {
        if (config->size < sizeof config->size)
            return nib_fail(err, NIB_E_ARG, "nib_chat_parser_config.size is %zu; use NIB_CHAT_PARSER_CONFIG_INIT",
                            config->size);
        memcpy(&c, config, config->size < sizeof c ? config->size : sizeof c);
    }
    nib_chat_parser *p = nib_calloc(1, sizeof *p);
    if (!p) return nib_fail_nomem(err, sizeof *p, "a parser of answers");
    nib_status status = init(p, &c, err);
    if (status == NIB_OK) *out = p;
    else nib_chat_parser_free(p);
    return status;
}

void nib_chat_parser_free(nib_chat_parser *p) {
    if (!p) return;
    nib_chat_tools_fini(&p->tools);
    nib_chat_match_free(&p->match);
    nib_chat_calls_free(&p->calls);
    nib_buf_free(&p->held);
    nib_buf_free(&p->name);
    nib_buf_free(&p->id);
    nib_free(p);
}
