/* grammar/gbnf.c - llama.cpp's notation for grammars -> rules.
 *
 *     name ::= sequence | sequence      a sequence of the following, each with * + ? {m} {m,} {m,n} behind it if need
 * be: "text"  [a-z]  [^a-z]  .  name  (…)  <[id]>  <name-of-token>  !<[id]>       # comment
 *
 * Groups are kept on a stack of their own, so nesting costs no stack of the machine. */
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "grammar/charset.h"
#include "grammar/front.h"
#include "grammar/vocab.h"

#include <string.h>

enum { MAX_MIN_TURNS = 2000 }; /* as llama.cpp has it: more turns than this cannot be demanded, only allowed */

typedef struct group {
    uint32_t start, end; /* of the alternatives */
    uint32_t at;         /* where the sequence has come to */
    size_t offset;
} group;

typedef struct named {
    nib_str name;
    uint32_t rule;
    size_t offset; /* of the first use */
    bool is_defined;
} named;

typedef struct parser {
    nib_grammar_build *b;
    const char *start, *p, *end;
    group *groups;
    size_t n_groups, groups_capacity;
    named *names;
    size_t n_names, names_capacity;
    uint32_t *table; /* hash of names; index + 1 */
    size_t n_table;
} parser;

static bool failed(const parser *p) {
    return p->b->status != NIB_OK;
}

#define FAIL(p, at, ...) nib_grammar_build_fail((p)->b, NIB_E_FORMAT, (uint64_t)((at) - (p)->start), __VA_ARGS__)

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool at(const parser *p, char c) {
    return p->p < p->end && *p->p == c;
}

static void skip_blanks(parser *p, bool newlines) {
    for (; p->p < p->end; p->p++) {
        if (*p->p == '#') {
            while (p->p < p->end && *p->p != '\n' && *p->p != '\r') p->p++;
            if (p->p == p->end) return;
        }
        bool is_newline = *p->p == '\n' || *p->p == '\r';
        if (*p->p != ' ' && *p->p != '\t' && !(is_newline && newlines)) return;
    }
}

/* Whether the next line goes on with an alternative. */
static bool goes_on(parser *p) {
    const char *back = p->p;
    skip_blanks(p, true);
    if (at(p, '|')) return true;
    p->p = back;
    return false;
}

/* ---- names */

static size_t name_slot(const parser *p, nib_str name) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < name.len; i++) h = (h ^ (unsigned char)name.ptr[i]) * 1099511628211u;
    size_t slot = h & (p->n_table - 1);
    for (; p->table[slot]; slot = (slot + 1) & (p->n_table - 1)) {
        const named *n = &p->names[p->table[slot] - 1];
        if (n->name.len == name.len && memcmp(n->name.ptr, name.ptr, name.len) == 0) break;
    }
    return slot;
}

static bool grow_names(parser *p) {
    size_t n = p->n_table ? p->n_table * 2 : 64;
    uint32_t *table = nib_calloc(n, sizeof *table);
    if (!table) return false;
    nib_free(p->table);
    p->table = table;
    p->n_table = n;
    for (size_t i = 0; i < p->n_names; i++) p->table[name_slot(p, p->names[i].name)] = (uint32_t)i + 1;
    return true;
}

/* The entry of a name, new if need be. NULL: failed. */
static named *find_name(parser *p, nib_str name) {
    bool ok = p->n_names * 2 < p->n_table || grow_names(p);
    if (!ok || !nib_grow(&p->names, &p->names_capacity, p->n_names + 1, sizeof *p->names)) {
        nib_grammar_build_fail(p->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu names", p->n_names);
        return NULL;
    }
    size_t slot = name_slot(p, name);
    if (p->table[slot]) return &p->names[p->table[slot] - 1];
    p->b->offset = (uint64_t)(name.ptr - p->start);
    uint32_t rule = nib_grammar_rule_new(p->b, name);
    if (failed(p)) return NULL;
    p->names[p->n_names] = (named){name, rule, (size_t)(name.ptr - p->start), false};
    p->table[slot] = (uint32_t)++p->n_names;
    return &p->names[p->n_names - 1];
}

static nib_str read_name(parser *p) {
    nib_str name = {p->p, 0};
    while (p->p < p->end && is_word(*p->p)) p->p++;
    name.len = (size_t)(p->p - name.ptr);
    if (!name.len) FAIL(p, p->p, "the name of a rule was expected");
    return name;
}

/* ---- characters */

static uint32_t read_hex(parser *p, int n) {
    uint32_t x = 0;
    for (int i = 0; i < n; i++, p->p++) {
        char c = p->p < p->end ? *p->p : 0;
        uint32_t digit = c >= '0' && c <= '9'                 ? (uint32_t)(c - '0')
                         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a' + 10)
                                                              : 16;
        if (digit == 16) {
            FAIL(p, p->p, "%d hexadecimal digits were expected", n);
            return 0;
        }
        x = x << 4 | digit;
    }
    return x;
}

/* A character of a text or class, escaped or not. */
static uint32_t read_char(parser *p) {
    static const char letters[] = "trn\\\"[]-^/'", values[] = "\t\r\n\\\"[]-^/'";
    const char *begin = p->p;
    uint32_t c = 0;
    if (*p->p != '\\') {
        size_t len = nib_utf8_char(p->p, (size_t)(p->end - p->p), &c);
        if (!len) FAIL(p, begin, "bytes that are not UTF-8");
        p->p += len;
        return c;
    }
    char letter = ++p->p < p->end ? *p->p++ : 0;
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (found) return (uint32_t)values[found - letters];
    if (letter == 'x')
        c = read_hex(p, 2);
    else if (letter == 'u')
        c = read_hex(p, 4);
    else if (letter == 'U')
        c = read_hex(p, 8);
    else
        FAIL(p, begin, "unknown escape; there are \\t \\r \\n \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH");
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) FAIL(p, begin, "U+%X is no character", (unsigned)c);
    return c;
}

static nib_grammar_piece read_text(parser *p) {
    const char *begin = p->p++;
    nib_grammar_piece piece = {nib_grammar_node(p->b), 0};
    piece.end = piece.start;
    while (!failed(p) && p->p < p->end && *p->p != '"') {
        char bytes[4];
        size_t n = nib_utf8_put(read_char(p), bytes);
        nib_grammar_piece more = nib_grammar_text(p->b, (nib_str){bytes, n});
        nib_grammar_empty(p->b, piece.end, more.start);
        piece.end = more.end;
    }
    if (!failed(p) && p->p == p->end) FAIL(p, begin, "the text that begins here has no closing quote");
    p->p++;
    return piece;
}

static nib_grammar_piece draw_set(parser *p, nib_grammar_charset *set) {
    nib_grammar_piece piece = {nib_grammar_node(p->b), nib_grammar_node(p->b)};
    nib_grammar_charset_draw(p->b, piece.start, piece.end, set);
    nib_grammar_charset_free(set);
    return piece;
}

static nib_grammar_piece read_class(parser *p) {
    const char *begin = p->p++;
    nib_grammar_charset set = {0};
    bool is_negated = at(p, '^');
    p->p += is_negated;
    while (!failed(p) && p->p < p->end && *p->p != ']') {
        const char *from = p->p;
        uint32_t lo = read_char(p), hi = lo;
        if (p->end - p->p >= 2 && p->p[0] == '-' && p->p[1] != ']') {
            p->p++;
            hi = read_char(p);
        }
        if (!failed(p) && hi < lo) FAIL(p, from, "a range whose last character comes before its first");
        nib_grammar_charset_add(&set, lo, hi);
    }
    if (!failed(p) && p->p == p->end) FAIL(p, begin, "the class that begins here has no closing ]");
    p->p++;
    nib_grammar_charset_sort(&set);
    if (is_negated) nib_grammar_charset_negate(&set);
    if (!failed(p) && !set.n && !set.failed) FAIL(p, begin, "an empty class matches nothing");
    return draw_set(p, &set);
}

static nib_grammar_piece read_any(parser *p) {
    nib_grammar_charset set = {0};
    p->p++;
    nib_grammar_charset_add(&set, 0, 0x10FFFF);
    nib_grammar_charset_sort(&set);
    return draw_set(p, &set);
}

/* ---- tokens */

static uint32_t read_number(parser *p, const char *what) {
    const char *begin = p->p;
    uint64_t x = 0;
    while (p->p < p->end && *p->p >= '0' && *p->p <= '9' && x <= UINT32_MAX) x = x * 10 + (uint64_t)(*p->p++ - '0');
    if (p->p == begin)
        FAIL(p, begin, "%s was expected", what);
    else if (x >= INT32_MAX)
        FAIL(p, begin, "%s is too large", what);
    return failed(p) ? 0 : (uint32_t)x;
}

static uint32_t token_by_name(parser *p, nib_str name) {
    const nib_grammar_vocab *v = p->b->vocab;
    for (uint32_t i = 0; v && i < v->n_tokens; i++)
        if (v->names[i].len == name.len && memcmp(v->names[i].ptr, name.ptr, name.len) == 0) return i;
    FAIL(p, name.ptr, v ? "the model has no token %.*s" : "the token %.*s needs a vocabulary", NIB_STR_ARG(name));
    return 0;
}

/* <[id]> or <name>, whose name includes the angle brackets; ! before it: any other token. */
static nib_grammar_piece read_token(parser *p) {
    const char *begin = p->p;
    bool is_negated = at(p, '!');
    nib_grammar_piece piece = {nib_grammar_node(p->b), nib_grammar_node(p->b)};
    uint32_t id = 0;
    p->p += is_negated;
    if (!at(p, '<')) {
        FAIL(p, p->p, "! stands before a token only: !<[id]>");
    } else if (p->end - p->p > 1 && p->p[1] == '[') {
        p->p += 2;
        id = read_number(p, "the id of a token");
        if (!failed(p) && (p->end - p->p < 2 || p->p[0] != ']' || p->p[1] != '>')) FAIL(p, p->p, "]> was expected");
        p->p += 2;
    } else {
        const char *close = memchr(p->p, '>', (size_t)(p->end - p->p));
        if (!close)
            FAIL(p, p->p, "the token that begins here has no closing >");
        else
            id = token_by_name(p, (nib_str){p->p, (size_t)(close + 1 - p->p)});
        if (close) p->p = close + 1;
    }
    const nib_grammar_vocab *v = p->b->vocab;
    if (!failed(p) && v && id >= v->n_tokens) FAIL(p, begin, "token %u, and the model has %u", id, v->n_tokens);
    if (!failed(p) && v && !(v->all[id / 32] >> id % 32 & 1))
        FAIL(p, begin, "token %u ends the text: it is allowed where the grammar ends, and nowhere else", id);
    nib_grammar_draw(p->b, piece.start,
                     (nib_grammar_edge){.to = piece.end, .arg = id, .kind = NIB_GRAMMAR_TOKEN, .lo = is_negated});
    return piece;
}

/* ---- structure */

static void open_group(parser *p) {
    nib_grammar_build *b = p->b;
    if (p->n_groups > b->limits->max_depth)
        nib_grammar_build_fail(b, NIB_E_LIMIT, (uint64_t)(p->p - p->start),
                               "groups are nested deeper than %u (max_depth)", b->limits->max_depth);
    else if (!nib_grow(&p->groups, &p->groups_capacity, p->n_groups + 1, sizeof *p->groups))
        nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %zu groups", p->n_groups);
    if (failed(p)) return;
    group *g = &p->groups[p->n_groups++];
    *g = (group){nib_grammar_node(b), nib_grammar_node(b), 0, (size_t)(p->p - p->start)};
    g->at = nib_grammar_node(b);
    nib_grammar_empty(b, g->start, g->at);
}

static nib_grammar_piece close_group(parser *p) {
    group g = p->groups[--p->n_groups];
    nib_grammar_empty(p->b, g.at, g.end);
    return (nib_grammar_piece){g.start, g.end};
}

static void read_bounds(parser *p, uint32_t *min, uint32_t *max) {
    const char *begin = p->p++;
    skip_blanks(p, true);
    *max = *min = read_number(p, "the least number of turns");
    skip_blanks(p, true);
    if (!failed(p) && at(p, ',')) {
        p->p++;
        skip_blanks(p, true);
        *max = at(p, '}') ? NIB_GRAMMAR_NO : read_number(p, "the greatest number of turns");
        skip_blanks(p, true);
    }
    if (!failed(p) && !at(p, '}')) FAIL(p, p->p, "} was expected");
    if (!failed(p) && *max < *min)
        FAIL(p, begin, "{%u,%u}: the greatest number of turns is below the least", *min, *max);
    if (!failed(p) && *min > MAX_MIN_TURNS)
        nib_grammar_build_fail(p->b, NIB_E_LIMIT, (uint64_t)(begin - p->start),
                               "{%u}: more than %d turns cannot be demanded, only allowed", *min, MAX_MIN_TURNS);
    p->p++;
}

/* Signs of repetition behind a piece, which then joins the sequence. */
static void add_piece(parser *p, nib_grammar_piece piece, bool newlines) {
    while (!failed(p)) {
        uint32_t min = 1, max = 1;
        skip_blanks(p, newlines);
        if (at(p, '*'))
            min = 0, max = NIB_GRAMMAR_NO, p->p++;
        else if (at(p, '+'))
            max = NIB_GRAMMAR_NO, p->p++;
        else if (at(p, '?'))
            min = 0, p->p++;
        else if (at(p, '{'))
            read_bounds(p, &min, &max);
        else
            break;
        if (!failed(p)) piece = nib_grammar_repeat(p->b, piece, min, max);
    }
    if (failed(p)) return;
    group *g = &p->groups[p->n_groups - 1];
    nib_grammar_empty(p->b, g->at, piece.start);
    g->at = piece.end;
}

static void read_item(parser *p, bool newlines) {
    char c = *p->p;
    if (c == '"')
        add_piece(p, read_text(p), newlines);
    else if (c == '[')
        add_piece(p, read_class(p), newlines);
    else if (c == '.')
        add_piece(p, read_any(p), newlines);
    else if (c == '<' || c == '!')
        add_piece(p, read_token(p), newlines);
    else if (is_word(c)) {
        named *n = find_name(p, read_name(p));
        if (n) add_piece(p, nib_grammar_calls(p->b, n->rule), newlines);
    } else {
        FAIL(p, p->p, "'%c' is not the start of anything", c >= 0x20 && c < 0x7F ? c : '?');
    }
}

/* What stands behind ::=, up to the end of the line outside of groups. */
static nib_grammar_piece read_alternatives(parser *p) {
    open_group(p);
    while (!failed(p)) {
        bool is_outermost = p->n_groups == 1;
        skip_blanks(p, !is_outermost);
        if (at(p, '|') || (is_outermost && (p->p == p->end || *p->p == '\n' || *p->p == '\r') && goes_on(p))) {
            group *g = &p->groups[p->n_groups - 1];
            p->p++;
            nib_grammar_empty(p->b, g->at, g->end);
            g->at = nib_grammar_node(p->b);
            nib_grammar_empty(p->b, g->start, g->at);
            skip_blanks(p, true);
        } else if (p->p == p->end || *p->p == '\n' || *p->p == '\r') {
            if (!is_outermost)
                FAIL(p, p->start + p->groups[p->n_groups - 1].offset, "the group that begins here has no closing )");
            break;
        } else if (at(p, '(')) {
            open_group(p);
            p->p++;
            skip_blanks(p, true);
        } else if (at(p, ')')) {
            if (is_outermost) FAIL(p, p->p, ") without (");
            if (failed(p)) break;
            p->p++;
            nib_grammar_piece piece = close_group(p);
            add_piece(p, piece, p->n_groups > 1);
        } else {
            read_item(p, !is_outermost);
        }
    }
    return failed(p) ? (nib_grammar_piece){0, 0} : close_group(p);
}

static void read_rule(parser *p) {
    const char *begin = p->p;
    nib_str name = read_name(p);
    if (failed(p)) return;
    named *n = find_name(p, name);
    if (!n) return;
    if (n->is_defined) FAIL(p, begin, "rule %.*s is defined twice", NIB_STR_ARG(name));
    n->is_defined = true;
    uint32_t rule = n->rule;
    skip_blanks(p, false);
    if (!failed(p) && (p->end - p->p < 3 || memcmp(p->p, "::=", 3) != 0)) FAIL(p, p->p, "::= was expected");
    if (failed(p)) return;
    p->p += 3;
    skip_blanks(p, true);
    p->b->offset = (uint64_t)(begin - p->start);
    p->b->rules[rule].offset = p->b->offset;
    nib_grammar_piece piece = read_alternatives(p);
    if (failed(p)) return;
    nib_grammar_empty(p->b, p->b->rules[rule].rule.start, piece.start);
    nib_grammar_empty(p->b, piece.end, p->b->rules[rule].end);
}

uint32_t nib_grammar_from_gbnf(nib_grammar_build *b, const nib_grammar_source *source) {
    parser p = {.b = b, .start = source->text.ptr, .p = source->text.ptr, .end = source->text.ptr + source->text.len};
    uint32_t root = NIB_GRAMMAR_NO;
    for (skip_blanks(&p, true); !failed(&p) && p.p < p.end; skip_blanks(&p, true)) read_rule(&p);
    for (size_t i = 0; i < p.n_names && !failed(&p); i++) {
        const named *n = &p.names[i];
        if (!n->is_defined) FAIL(&p, p.start + n->offset, "rule %.*s is not defined", NIB_STR_ARG(n->name));
        if (n->name.len == 4 && memcmp(n->name.ptr, "root", 4) == 0) root = n->rule;
    }
    if (root == NIB_GRAMMAR_NO) FAIL(&p, p.start, "the grammar has no rule called root");
    nib_free(p.groups);
    nib_free(p.names);
    nib_free(p.table);
    return failed(&p) ? 0 : root;
}
