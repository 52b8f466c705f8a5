/* chat/shape/rule.c - the pattern of a rule -> nodes, element by element. Groups that may be left out are drawn both ways, each
 * with all that follows, since what follows may depend on them: which NAME is the tool's. */
#include "base/status.h"
#include "chat/shape/shape.h"

#include <string.h>

enum { MAX_BLANKS = 16, MAX_ID = 64, MAX_SKIP = 32, MAX_DIGITS = 4 };

/* Where a way through a pattern is. */
typedef struct way {
    const char *ip;
    uint32_t at;
    size_t tool;           /* that was named since the last call; NIB_CHAT_NO: none */
    bool has_calls, called; /* the rule reads calls; one was read */
    bool closing;           /* what follows only closes a call */
    bool named;             /* a name ends here, so no other characters of names follow */
    char effect;           /* NIB_CHAT_THINK, NIB_CHAT_TEXT; 0 */
    uint32_t again, behind; /* inside of MANY: nodes of the next turn, and behind it */
} way;

static void draw(nib_chat_shape *d, way w);

/* ---- small pieces */

size_t nib_chat_shape_literal_len(const char *pattern) {
    size_t n = 0;
    while (pattern[n] && !NIB_CHAT_IS_ELEMENT(pattern[n])) n++;
    return n;
}

const char *nib_chat_shape_skip_group(const char *open) {
    const char *p = open + 1;
    for (int depth = 1; *p && depth; p++) {
        if (*p == NIB_CHAT_OPT || *p == NIB_CHAT_MANY) depth++;
        else if (*p == NIB_CHAT_END_OPT || *p == NIB_CHAT_END_MANY) depth--;
    }
    return p;
}

/* The longest control token that the text begins with; -1: none. */
static nib_token find_mark(const nib_chat_shape *d, nib_str text) {
    nib_token found = -1;
    for (size_t k = 0; k < d->n_marks; k++) {
        nib_str name = d->b->vocab->names[d->marks[k]];
        if (name.len > text.len || memcmp(name.ptr, text.ptr, name.len) != 0) continue;
        if (found < 0 || name.len > d->b->vocab->names[found].len) found = d->marks[k];
    }
    return found;
}

uint32_t nib_chat_shape_marker(nib_chat_shape *d, uint32_t from, nib_str text) {
    nib_grammar_build *b = d->b;
    while (text.len && b->status == NIB_OK) {
        uint32_t next = nib_grammar_node(b);
        nib_token mark = find_mark(d, text);
        size_t n = mark < 0 ? 1 : b->vocab->names[mark].len;
        if (mark >= 0)
            nib_grammar_draw(b, from, (nib_grammar_edge){.to = next, .arg = (uint32_t)mark, .kind = NIB_GRAMMAR_TOKEN});
        else
            nib_grammar_bytes(b, from, next, (uint8_t)*text.ptr, (uint8_t)*text.ptr);
        text.ptr += n;
        text.len -= n;
        from = next;
    }
    return from;
}

static uint32_t text(nib_chat_shape *d, uint32_t from, nib_str s) {
    nib_grammar_piece piece = nib_grammar_text(d->b, s);
    nib_grammar_empty(d->b, from, piece.start);
    return piece.end;
}

static uint32_t call(nib_chat_shape *d, uint32_t from, uint32_t rule) {
    uint32_t to = nib_grammar_node(d->b);
    nib_grammar_call(d->b, from, to, rule);
    return to;
}

/* min … max characters of a class, as in a regular expression. */
static uint32_t run(nib_chat_shape *d, uint32_t from, const char *class, uint32_t min, uint32_t max) {
    nib_grammar_pattern p = {0};
    nib_grammar_piece piece = {from, from};
    nib_grammar_pattern_read(d->b, (nib_str){class, strlen(class)}, 0, false, &p);
    if (!nib_chat_shape_failed(d)) piece = nib_grammar_repeat(d->b, nib_grammar_pattern_draw(d->b, &p, nib_grammar_charset_draw), min, max);
    nib_grammar_pattern_free(&p);
    nib_grammar_empty(d->b, from, piece.start);
    return piece.end;
}

uint32_t nib_chat_shape_blanks(nib_chat_shape *d, uint32_t from) {
    if (d->blanks == NIB_GRAMMAR_NO) {
        d->blanks = nib_grammar_rule_new(d->b, (nib_str){"blanks", 6});
        if (nib_chat_shape_failed(d)) return from;
        nib_grammar_empty(d->b, run(d, d->b->rules[d->blanks].rule.start, "[ \\t\\r\\n]", 0, MAX_BLANKS), d->b->rules[d->blanks].end);
    }
    return call(d, from, d->blanks);
}

/* ---- calls as JSON */

/* "key" : */
static uint32_t key(nib_chat_shape *d, nib_grammar_schema *s, uint32_t from, const char *name) {
    nib_grammar_piece piece = nib_grammar_schema_literal(s, (nib_str){name, strlen(name)});
    uint32_t to = nib_grammar_node(d->b);
    nib_grammar_empty(d->b, from, piece.start);
    nib_grammar_schema_sign(s, piece.end, to, ':');
    return to;
}

static uint32_t sign(nib_chat_shape *d, nib_grammar_schema *s, uint32_t from, char c) {
    uint32_t to = nib_grammar_node(d->b);
    nib_grammar_schema_sign(s, from, to, c);
    return to;
}

static uint32_t piece_from(nib_chat_shape *d, uint32_t from, nib_grammar_piece piece) {
    nib_grammar_empty(d->b, from, piece.start);
    return piece.end;
}

/* One of two keys. */
static uint32_t either(nib_chat_shape *d, nib_grammar_schema *s, uint32_t from, const char *const names[2]) {
    uint32_t to = key(d, s, from, names[0]);
    if (names[1]) nib_grammar_empty(d->b, key(d, s, from, names[1]), to);
    return to;
}

/* "id": "…", a member that may be left out: before (behind_comma) or behind the others. */
static uint32_t id_member(nib_chat_shape *d, nib_grammar_schema *s, uint32_t from, bool is_first) {
    static const char *const ids[2] = {"id", "tool_call_id"};
    uint32_t to = nib_grammar_node(d->b), at = is_first ? from : sign(d, s, from, ',');
    at = text(d, either(d, s, at, ids), (nib_str){"\"", 1});
    at = text(d, run(d, at, "[A-Za-z0-9_-]", 1, MAX_ID), (nib_str){"\"", 1});
    nib_grammar_empty(d->b, is_first ? sign(d, s, at, ',') : at, to);
    nib_grammar_empty(d->b, from, to);
    return to;
}

static uint32_t literal(nib_grammar_schema *s, nib_chat_shape *d, uint32_t from, nib_str value) {
    return piece_from(d, from, nib_grammar_schema_literal(s, value));
}

/* {"name": …, "arguments": …} with the words that models use for them, in both orders. What stands before the name is
 * drawn once: ways to read the same text cost time. */
static void draw_members(nib_chat_shape *d, nib_grammar_schema *s, uint32_t open, uint32_t last, bool is_bare) {
    static const char *const names[2] = {"name", "tool_name"}, *const arguments[2] = {"arguments", "parameters"};
    static const char *const bare_names[2] = {"name", NULL};
    nib_grammar_build *b = d->b;
    uint32_t swapped = either(d, s, open, arguments);
    if (!is_bare) open = id_member(d, s, open, true);
    uint32_t type = sign(d, s, literal(s, d, key(d, s, open, "type"), (nib_str){"function", 8}), ',');
    nib_grammar_empty(b, open, type);
    uint32_t name = either(d, s, type, is_bare ? bare_names : names);
    for (size_t i = 0; i < d->n_tools && !nib_chat_shape_failed(d); i++) {
        const nib_chat_shape_tool *t = &d->tools[i];
        uint32_t args = nib_chat_shape_arguments(d, i, NIB_GRAMMAR_IN_JSON), at = literal(s, d, name, t->name);
        if (!t->parameters && !is_bare) nib_grammar_empty(b, at, last);
        at = call(d, either(d, s, sign(d, s, at, ','), arguments), args);
        nib_grammar_empty(b, is_bare ? at : id_member(d, s, at, false), last);
        at = either(d, s, sign(d, s, call(d, swapped, args), ','), bare_names);
        nib_grammar_empty(b, literal(s, d, at, t->name), last);
    }
}

/* NAME: arguments */
static void draw_pairs(nib_chat_shape *d, nib_grammar_schema *s, uint32_t open, uint32_t last) {
    for (size_t i = 0; i < d->n_tools && !nib_chat_shape_failed(d); i++) {
        uint32_t args = nib_chat_shape_arguments(d, i, NIB_GRAMMAR_IN_JSON);
        uint32_t at = sign(d, s, literal(s, d, open, d->tools[i].name), ':');
        nib_grammar_empty(d->b, call(d, at, args), last);
    }
}

static bool is_word(nib_str name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || ((c < '0' || c > '9') && c != '.' && c != '-'))) return false;
    }
    return true;
}

/* name(key=value, …) */
static void draw_python(nib_chat_shape *d, size_t tool, uint32_t rule) {
    if (!is_word(d->tools[tool].name))
        nib_grammar_fail_at(d->b, NIB_E_UNSUPPORTED, d->tools[tool].node, "the name of the tool is no word, as this format has them");
    uint32_t args = nib_chat_shape_keywords(d, tool);
    if (nib_chat_shape_failed(d)) return;
    uint32_t at = text(d, text(d, d->b->rules[rule].rule.start, d->tools[tool].name), (nib_str){"(", 1});
    nib_grammar_empty(d->b, text(d, call(d, at, args), (nib_str){")", 1}), d->b->rules[rule].end);
}

/* A rule of one call of any tool, by the element that reads it. */
static uint32_t one_call(nib_chat_shape *d, char element) {
    nib_grammar_build *b = d->b;
    nib_grammar_schema *s = &d->tools[0].by[NIB_GRAMMAR_IN_JSON]; /* for what does not depend on the tool */
    uint32_t any = nib_grammar_rule_new(b, (nib_str){"a call", 6});
    if (element == NIB_CHAT_PYTHON) {
        for (size_t i = 0; i < d->n_tools && !nib_chat_shape_failed(d); i++) draw_python(d, i, any);
        return any;
    }
    if (nib_chat_shape_failed(d)) return any;
    uint32_t open = nib_grammar_node(b), last = nib_grammar_node(b);
    nib_grammar_piece close = nib_grammar_text(b, (nib_str){"}", 1});
    nib_grammar_schema_space(s, text(d, b->rules[any].rule.start, (nib_str){"{", 1}), open);
    if (element == NIB_CHAT_PAIRS) draw_pairs(d, s, open, last);
    else draw_members(d, s, open, last, element == NIB_CHAT_BARE);
    nib_grammar_schema_space(s, last, close.start);
    nib_grammar_empty(b, close.end, b->rules[any].end);
    return any;
}

/* A list of calls in brackets; with CALLS and PAIRS also one call without. */
static uint32_t draw_calls(nib_chat_shape *d, uint32_t from, char element) {
    nib_grammar_build *b = d->b;
    uint32_t rule = one_call(d, element), to = nib_grammar_node(b);
    if (element != NIB_CHAT_PYTHON) nib_grammar_call(b, from, to, rule);
    if (element == NIB_CHAT_BARE) return to;
    uint32_t first = nib_chat_shape_blanks(d, text(d, from, (nib_str){"[", 1})), last = call(d, first, rule);
    if (!d->config->one_call) {
        uint32_t next = nib_chat_shape_blanks(d, text(d, nib_chat_shape_blanks(d, last), (nib_str){",", 1}));
        nib_grammar_empty(b, next, first);
    }
    nib_grammar_empty(b, text(d, nib_chat_shape_blanks(d, last), (nib_str){"]", 1}), to);
    return to;
}

/* ---- names */

/* Whether the element follows before the next call. */
static bool comes(const char *ip, char element) {
    for (; *ip && *ip != NIB_CHAT_CALL; ip++)
        if (*ip == element) return true;
    return false;
}

/* Before the name of the tool, in some formats, stands what kind of tool it is; where no call follows, who is spoken to. */
static void draw_name(nib_chat_shape *d, way w) {
    way next = w;
    next.ip = w.ip + 1;
    if (!strchr(w.ip, NIB_CHAT_CALL)) {
        next.at = text(d, w.at, (nib_str){"user", 4});
        for (size_t i = 0; i < d->n_tools; i++) nib_grammar_empty(d->b, text(d, w.at, d->tools[i].name), next.at);
        draw(d, next);
        return;
    }
    if (w.tool != NIB_CHAT_NO) return; /* it was told already */
    if (comes(next.ip, NIB_CHAT_NAME)) {
        next.at = text(d, w.at, (nib_str){"function", 8});
        draw(d, next);
    }
    for (size_t i = 0; i < d->n_tools && !nib_chat_shape_failed(d); i++) {
        next.tool = i;
        next.named = true;
        next.at = text(d, w.at, d->tools[i].name);
        draw(d, next);
    }
}

/* functions.NAME:INDEX */
static void draw_funcid(nib_chat_shape *d, way w) {
    uint32_t prefixed = text(d, w.at, (nib_str){"functions.", 10});
    nib_grammar_empty(d->b, w.at, prefixed);
    for (size_t i = 0; i < d->n_tools && !nib_chat_shape_failed(d); i++) {
        way next = w;
        next.tool = i;
        next.ip++;
        next.at = run(d, text(d, text(d, prefixed, d->tools[i].name), (nib_str){":", 1}), "[0-9]", 1, MAX_DIGITS);
        draw(d, next);
    }
}

/* ---- the pattern */

/* The end of a way through: what it did to the parser says where the answer goes on. */
static void land(nib_chat_shape *d, const way *w) {
    if (w->effect == NIB_CHAT_THINK) {
        if (!d->config->no_thinking) nib_grammar_empty(d->b, w->at, d->thinking);
    } else if (w->called) {
        nib_grammar_empty(d->b, w->at, d->called);
    } else if (w->effect || !w->has_calls) {
        nib_grammar_empty(d->b, w->at, d->fresh);
    }
}

/* Calls, any number of them, but one at least. */
static void draw_many(nib_chat_shape *d, way *w) {
    way inside = *w;
    bool is_first = !w->called;
    uint32_t behind = nib_grammar_node(d->b);
    inside.ip++;
    inside.closing = false;
    inside.again = nib_grammar_node(d->b);
    inside.behind = behind;
    if (is_first || !d->config->one_call) {
        nib_grammar_empty(d->b, w->at, inside.again);
        inside.at = inside.again;
        draw(d, inside);
    }
    if (!is_first) nib_grammar_empty(d->b, w->at, behind);
    w->called = w->closing = true;
    w->at = behind;
}

static uint32_t skip(nib_chat_shape *d, const way *w) {
    uint32_t to = run(d, w->named ? text(d, w->at, (nib_str){" ", 1}) : w->at, "[A-Za-z0-9 _.-]", 0, MAX_SKIP);
    if (w->named) nib_grammar_empty(d->b, w->at, to);
    return to;
}

/* False: the way ends here. */
static bool draw_payload(nib_chat_shape *d, way *w) {
    bool needs_tool = *w->ip == NIB_CHAT_ARGS || *w->ip == NIB_CHAT_GEMMA || *w->ip == NIB_CHAT_TREE;
    if (!d->n_tools || (needs_tool && w->tool == NIB_CHAT_NO)) return false;
    switch (*w->ip) {
    case NIB_CHAT_ARGS: w->at = call(d, w->at, nib_chat_shape_arguments(d, w->tool, NIB_GRAMMAR_IN_JSON)); break;
    case NIB_CHAT_GEMMA: w->at = call(d, w->at, nib_chat_shape_arguments(d, w->tool, NIB_GRAMMAR_IN_GEMMA)); break;
    case NIB_CHAT_TREE: w->at = call(d, w->at, nib_chat_shape_tree(d, w->tool)); break;
    case NIB_CHAT_CODE: return false; /* whether it is what the tool's schema wants, nobody knows */
    default: w->at = draw_calls(d, w->at, *w->ip);
    }
    return !nib_chat_shape_failed(d);
}

/* One element, or the literal; false: the way ends here, or was drawn to its end. */
static bool step(nib_chat_shape *d, way *w) {
    size_t n = nib_chat_shape_literal_len(w->ip);
    way inside = *w;
    if (n) {
        w->at = nib_chat_shape_marker(d, w->at, (nib_str){w->ip, n});
        w->ip += n;
        w->named = false;
        if (w->closing) nib_grammar_empty(d->b, w->at, d->end);
        return true;
    }
    switch (*w->ip) {
    case NIB_CHAT_W: w->at = nib_chat_shape_blanks(d, w->at); break;
    case NIB_CHAT_NAME: draw_name(d, *w); return false;
    case NIB_CHAT_FUNCID: draw_funcid(d, *w); return false;
    case NIB_CHAT_ID: w->at = run(d, w->at, "[A-Za-z0-9_-]", 1, MAX_ID); break;
    case NIB_CHAT_SKIP: w->at = skip(d, w); break;
    case NIB_CHAT_CALL: /* the parser forgives closing markers that are missing at the end */
        nib_grammar_empty(d->b, w->at, d->end);
        w->called = w->closing = true;
        w->tool = NIB_CHAT_NO;
        break;
    case NIB_CHAT_THINK:
    case NIB_CHAT_TEXT: w->effect = *w->ip; break;
    case NIB_CHAT_OPT:
        inside.ip++;
        draw(d, inside);
        w->ip = nib_chat_shape_skip_group(w->ip);
        return true;
    case NIB_CHAT_MANY:
        if (!d->n_tools) return false;
        if (memchr(w->ip, NIB_CHAT_CALL, (size_t)(nib_chat_shape_skip_group(w->ip) - w->ip))) draw_many(d, w);
        else if (w->tool == NIB_CHAT_NO) return false;
        else w->at = call(d, w->at, nib_chat_shape_params(d, w->tool, w->ip + 1));
        w->ip = nib_chat_shape_skip_group(w->ip);
        return true;
    case NIB_CHAT_END_MANY:
        nib_grammar_empty(d->b, w->at, w->behind);
        if (!d->config->one_call) nib_grammar_empty(d->b, w->at, w->again);
        return false;
    case NIB_CHAT_END_OPT:
    case NIB_CHAT_IS_TEXT:
    case NIB_CHAT_IS_JSON: break;
    default:
        if (!draw_payload(d, w)) return false;
    }
    w->ip++;
    return true;
}

static void draw(nib_chat_shape *d, way w) {
    while (*w.ip && *w.ip != NIB_CHAT_STOP && !nib_chat_shape_failed(d))
        if (!step(d, &w)) return;
    if (!nib_chat_shape_failed(d)) land(d, &w);
}

void nib_chat_shape_draw_rule(nib_chat_shape *d, size_t i) {
    const char *pattern = d->format->rules[i].pattern;
    draw(d, (way){.ip = pattern + nib_chat_shape_literal_len(pattern), .at = d->opened[i], .tool = NIB_CHAT_NO,
                  .has_calls = strchr(pattern, NIB_CHAT_CALL) != NULL});
}
