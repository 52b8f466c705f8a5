/* grammar/regex.c - regular expressions in ECMAScript's notation -> patterns.
 *
 * Text -> tree -> automaton with empty edges and the assertions ^ and $ -> automaton without. Bounded repetitions are
 * written out. Only what is regular: back-references, look-around, \b and flags are refused by name. \d, \w and . are
 * as in ECMAScript: ASCII digits, ASCII word characters, all but line ends. */
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "grammar/front.h"
#include "grammar/pattern.h"

#include <string.h>
#include <utf8proc.h>

typedef enum tree_kind { TREE_EMPTY, TREE_SET, TREE_THEN, TREE_OR, TREE_REPEAT, TREE_START, TREE_END } tree_kind;

typedef struct tree {
    tree_kind kind;
    uint32_t a, b;     /* children; SET: index of the set */
    uint32_t min, max; /* REPEAT */
} tree;

/* An automaton with empty edges: two per node are enough, and one that reads. */
typedef struct draft_node {
    uint32_t to[2]; /* by kind: EMPTY both; others the first */
    uint32_t set;
    tree_kind kind; /* EMPTY, SET, START, END */
} draft_node;

typedef struct parser {
    nib_grammar_build *b;
    nib_grammar_pattern *out; /* holds the sets */
    const char *start, *p, *end;
    uint64_t at; /* of start, in the grammar */
    tree *trees;
    size_t n_trees, trees_capacity;
    draft_node *nodes;
    size_t n_nodes, nodes_capacity;
    uint32_t depth;
} parser;

#define FAIL(p, place, ...)                                                                                            \
    nib_grammar_build_fail((p)->b, NIB_E_FORMAT, (p)->at + (uint64_t)((place) - (p)->start), __VA_ARGS__)
#define REFUSE(p, place, ...)                                                                                          \
    nib_grammar_build_fail((p)->b, NIB_E_UNSUPPORTED, (p)->at + (uint64_t)((place) - (p)->start), __VA_ARGS__)

static bool failed(const parser *p) {
    return p->b->status != NIB_OK;
}

static bool at(const parser *p, char c) {
    return p->p < p->end && *p->p == c;
}

static bool skip(parser *p, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(p->end - p->p) < n || memcmp(p->p, text, n) != 0) return false;
    p->p += n;
    return true;
}

static uint32_t add_tree(parser *p, tree t) {
    if (failed(p)) return 0;
    if (p->n_trees >= 4 * (size_t)NIB_GRAMMAR_MAX_PATTERN)
        nib_grammar_build_fail(p->b, NIB_E_LIMIT, p->at, "the pattern has more than %d parts",
                               4 * NIB_GRAMMAR_MAX_PATTERN);
    else if (!nib_grow(&p->trees, &p->trees_capacity, p->n_trees + 1, sizeof *p->trees))
        nib_grammar_build_fail(p->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a pattern");
    if (failed(p)) return 0;
    p->trees[p->n_trees] = t;
    return (uint32_t)p->n_trees++;
}

/* ---- sets */

static void add_word_chars(nib_grammar_charset *set) {
    nib_grammar_charset_add(set, 'a', 'z');
    nib_grammar_charset_add(set, 'A', 'Z');
    nib_grammar_charset_add(set, '0', '9');
    nib_grammar_charset_add(set, '_', '_');
}

static void add_spaces(nib_grammar_charset *set) {
    static const uint32_t ranges[][2] = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                         {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                         {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        nib_grammar_charset_add(set, ranges[i][0], ranges[i][1]);
}

/* \p{Lu}: a general category, or the first letter of several. */
static void add_category(parser *p, nib_grammar_charset *set) {
    const char *begin = p->p;
    const char *close = at(p, '{') ? memchr(p->p, '}', (size_t)(p->end - p->p)) : NULL;
    size_t n = close ? (size_t)(close - begin) - 1 : 0;
    if (n < 1 || n > 2) {
        REFUSE(p, begin, "\\p takes a general category of one or two letters, as in \\p{L} or \\p{Lu}");
        return;
    }
    uint32_t from = NIB_GRAMMAR_NO;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        bool has = c < 0x110000 && memcmp(utf8proc_category_string((utf8proc_int32_t)c), begin + 1, n) == 0;
        if (has && from == NIB_GRAMMAR_NO) from = c;
        if (has || from == NIB_GRAMMAR_NO) continue;
        nib_grammar_charset_add(set, from, c - 1);
        from = NIB_GRAMMAR_NO;
    }
    if (!set->n) FAIL(p, begin, "there is no general category %.*s", (int)n, begin + 1);
    p->p = close + 1;
}

static bool read_hex(parser *p, int n, uint32_t *c) {
    const char *begin = p->p;
    *c = 0;
    for (; p->p < p->end && p->p < begin + n; p->p++) {
        char x = *p->p;
        int digit = x >= '0' && x <= '9' ? x - '0' : (x | 32) >= 'a' && (x | 32) <= 'f' ? (x | 32) - 'a' + 10 : -1;
        if (digit < 0) break;
        *c = *c << 4 | (uint32_t)digit;
    }
    return p->p > begin;
}

/* Behind \u: HHHH, a pair of surrogates, or {H…}. */
static uint32_t read_unicode(parser *p) {
    const char *begin = p->p;
    uint32_t c = 0, low = 0;
    bool ok;
    if (skip(p, "{"))
        ok = read_hex(p, 6, &c) && skip(p, "}");
    else
        ok = read_hex(p, 4, &c) && p->p == begin + 4;
    if (ok && c >= 0xD800 && c < 0xDC00 && skip(p, "\\u") && read_hex(p, 4, &low) && low >= 0xDC00 && low < 0xE000)
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
    if (!ok || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) FAIL(p, begin, "\\u needs a character: \\uHHHH or \\u{H…}");
    return c;
}

/* One character as it stands. */
static uint32_t read_plain(parser *p) {
    uint32_t c = 0;
    size_t len = nib_utf8_char(p->p, (size_t)(p->end - p->p), &c);
    if (!len) FAIL(p, p->p, "bytes that are not UTF-8");
    p->p += len;
    return c;
}

/* Behind a backslash: a character in *c, or a class that is added to the set (true). */
static bool read_escape(parser *p, bool in_class, nib_grammar_charset *set, uint32_t *c) {
    static const char letters[] = "tnrvf", values[] = "\t\n\r\v\f";
    const char *begin = p->p - 1;
    char x = p->p < p->end ? *p->p++ : 0;
    const char *found = x ? strchr(letters, x) : NULL;
    nib_grammar_charset class = {0};
    *c = (unsigned char)x;
    switch (x) {
    case 'd':
    case 'D':
        nib_grammar_charset_add(&class, '0', '9');
        break;
    case 'w':
    case 'W':
        add_word_chars(&class);
        break;
    case 's':
    case 'S':
        add_spaces(&class);
        break;
    case 'p':
    case 'P':
        add_category(p, &class);
        break;
    case 'x':
        if (!read_hex(p, 2, c) || p->p != begin + 4) FAIL(p, begin, "\\x needs two hexadecimal digits");
        return false;
    case 'u':
        *c = read_unicode(p);
        return false;
    case 'c':
        if (p->p == p->end || (*p->p | 32) < 'a' || (*p->p | 32) > 'z')
            FAIL(p, begin, "\\c needs a letter");
        else
            *c = (uint32_t)*p->p++ & 31;
        return false;
    case 'b':
        if (!in_class) REFUSE(p, begin, "\\b, the edge of a word, is not supported");
        *c = 8;
        return false;
    case '0':
        if (p->p < p->end && *p->p >= '0' && *p->p <= '9') REFUSE(p, begin, "octal escapes are not supported");
        *c = 0;
        return false;
    default:
        if (found)
            *c = (unsigned char)values[found - letters];
        else if (x >= '1' && x <= '9')
            REFUSE(p, begin, "back-references are not supported: they are not regular");
        else if (!x || ((x | 32) >= 'a' && (x | 32) <= 'z'))
            REFUSE(p, begin, "the escape \\%c is not known", x ? x : '?');
        else if ((unsigned char)x >= 0x80) {
            p->p--;
            *c = read_plain(p);
        }
        return false;
    }
    nib_grammar_charset_sort(&class);
    if (x == 'D' || x == 'W' || x == 'S' || x == 'P') nib_grammar_charset_negate(&class);
    nib_grammar_charset_add_set(set, &class);
    nib_grammar_charset_free(&class);
    return true;
}

/* A character of a class; true: a class of its own, added already. */
static bool read_member(parser *p, nib_grammar_charset *set, uint32_t *c) {
    if (skip(p, "\\")) return read_escape(p, true, set, c);
    *c = read_plain(p);
    return false;
}

static uint32_t set_tree(parser *p, nib_grammar_charset *set) {
    return add_tree(p, (tree){.kind = TREE_SET, .a = nib_grammar_pattern_set(p->b, p->out, set)});
}

static uint32_t read_class(parser *p) {
    const char *begin = p->p - 1;
    nib_grammar_charset set = {0};
    bool is_negated = skip(p, "^");
    while (!failed(p) && p->p < p->end && *p->p != ']') {
        const char *from = p->p;
        uint32_t lo, hi;
        bool is_class = read_member(p, &set, &lo);
        hi = lo;
        if (p->end - p->p >= 2 && p->p[0] == '-' && p->p[1] != ']') {
            p->p++;
            is_class = read_member(p, &set, &hi) || is_class;
            if (is_class && !failed(p)) FAIL(p, from, "a range needs a character at both ends");
        }
        if (!failed(p) && !is_class && hi < lo) FAIL(p, from, "a range whose last character comes before its first");
        if (!is_class) nib_grammar_charset_add(&set, lo, hi);
    }
    if (!failed(p) && !skip(p, "]")) FAIL(p, begin, "the class that begins here has no closing ]");
    nib_grammar_charset_sort(&set);
    if (is_negated) nib_grammar_charset_negate(&set);
    return set_tree(p, &set);
}

/* ---- structure */

static uint32_t read_or(parser *p);

static uint32_t read_group(parser *p) {
    const char *begin = p->p - 1;
    if (skip(p, "?:")) {
    } else if (skip(p, "?<") || skip(p, "?P<")) {
        if (at(p, '=') || at(p, '!')) REFUSE(p, begin, "look-behind is not supported");
        while (p->p < p->end && *p->p != '>') p->p++;
        if (!skip(p, ">")) FAIL(p, begin, "the name of the group has no closing >");
    } else if (at(p, '?')) {
        bool looks = p->end - p->p > 1 && (p->p[1] == '=' || p->p[1] == '!');
        REFUSE(p, begin, looks ? "look-ahead is not supported" : "this kind of group is not supported");
    }
    if (++p->depth > p->b->limits->max_depth)
        nib_grammar_build_fail(p->b, NIB_E_LIMIT, p->at + (uint64_t)(begin - p->start),
                               "groups are nested deeper than %u (max_depth)", p->b->limits->max_depth);
    uint32_t t = failed(p) ? 0 : read_or(p);
    p->depth--;
    if (!failed(p) && !skip(p, ")")) FAIL(p, begin, "the group that begins here has no closing )");
    return t;
}

static uint32_t read_atom(parser *p) {
    nib_grammar_charset set = {0};
    uint32_t c;
    if (skip(p, "(")) return read_group(p);
    if (skip(p, "[")) return read_class(p);
    if (skip(p, "^")) return add_tree(p, (tree){.kind = TREE_START});
    if (skip(p, "$")) return add_tree(p, (tree){.kind = TREE_END});
    if (at(p, '*') || at(p, '+') || at(p, '?')) {
        FAIL(p, p->p, "'%c' has nothing to repeat", *p->p);
        return 0;
    }
    if (skip(p, ".")) {
        nib_grammar_charset_add(&set, '\n', '\n');
        nib_grammar_charset_add(&set, '\r', '\r');
        nib_grammar_charset_add(&set, 0x2028, 0x2029);
        nib_grammar_charset_sort(&set);
        nib_grammar_charset_negate(&set);
        return set_tree(p, &set);
    }
    bool is_class = skip(p, "\\") ? read_escape(p, false, &set, &c) : (c = read_plain(p), false);
    if (!is_class) nib_grammar_charset_add(&set, c, c);
    nib_grammar_charset_sort(&set);
    return set_tree(p, &set);
}

static bool read_number(parser *p, uint32_t *x) {
    const char *begin = p->p;
    uint64_t n = 0;
    while (p->p < p->end && *p->p >= '0' && *p->p <= '9' && n < UINT32_MAX) n = n * 10 + (uint64_t)(*p->p++ - '0');
    *x = n < NIB_GRAMMAR_NO ? (uint32_t)n : NIB_GRAMMAR_NO - 1;
    return p->p > begin;
}

/* {m} {m,} {m,n}; anything else that begins with a brace is that character. */
static bool read_bounds(parser *p, uint32_t *min, uint32_t *max) {
    const char *begin = p->p++;
    bool ok = read_number(p, min);
    *max = *min;
    if (ok && skip(p, ",") && !read_number(p, max)) *max = NIB_GRAMMAR_NO;
    ok = ok && skip(p, "}");
    if (!ok)
        p->p = begin;
    else if (*max < *min)
        FAIL(p, begin, "{%u,%u}: the greatest number is below the least", *min, *max);
    return ok;
}

static uint32_t read_repeat(parser *p) {
    uint32_t t = read_atom(p), n = 0;
    while (!failed(p)) {
        uint32_t min = 0, max = NIB_GRAMMAR_NO;
        const char *begin = p->p;
        if (skip(p, "+"))
            min = 1;
        else if (skip(p, "?"))
            max = 1;
        else if (!skip(p, "*") && (!at(p, '{') || !read_bounds(p, &min, &max)))
            break;
        skip(p, "?"); /* lazy or not: the language is the same */
        if (at(p, '+')) REFUSE(p, p->p, "possessive repetition is not supported");
        if (p->trees[t].kind == TREE_START || p->trees[t].kind == TREE_END)
            FAIL(p, begin, "^ and $ cannot be repeated");
        if (n++) FAIL(p, begin, "a repetition of a repetition needs a group");
        t = add_tree(p, (tree){.kind = TREE_REPEAT, .a = t, .min = min, .max = max});
    }
    return t;
}

static uint32_t read_then(parser *p) {
    uint32_t t = add_tree(p, (tree){.kind = TREE_EMPTY});
    bool is_first = true;
    while (!failed(p) && p->p < p->end && *p->p != '|' && *p->p != ')') {
        uint32_t next = read_repeat(p);
        t = is_first ? next : add_tree(p, (tree){.kind = TREE_THEN, .a = t, .b = next});
        is_first = false;
    }
    return t;
}

static uint32_t read_or(parser *p) {
    uint32_t t = read_then(p);
    while (!failed(p) && skip(p, "|")) {
        uint32_t other = read_then(p);
        t = add_tree(p, (tree){.kind = TREE_OR, .a = t, .b = other});
    }
    return t;
}

/* ---- tree -> automaton with empty edges */

static uint32_t add_node(parser *p, tree_kind kind, uint32_t set) {
    if (failed(p)) return 0;
    if (p->n_nodes >= 8 * (size_t)NIB_GRAMMAR_MAX_PATTERN)
        nib_grammar_build_fail(p->b, NIB_E_LIMIT, p->at,
                               "the pattern needs more than %d states; bounds of repetitions multiply",
                               8 * NIB_GRAMMAR_MAX_PATTERN);
    else if (!nib_grow(&p->nodes, &p->nodes_capacity, p->n_nodes + 1, sizeof *p->nodes))
        nib_grammar_build_fail(p->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a pattern");
    if (failed(p)) return 0;
    p->nodes[p->n_nodes] = (draft_node){{NIB_GRAMMAR_NO, NIB_GRAMMAR_NO}, set, kind};
    return (uint32_t)p->n_nodes++;
}

static uint32_t expand(parser *p, uint32_t t, uint32_t to);

/* x{min,max} before `to`: the optional turns from the last to the first, each may go to `to` instead. */
static uint32_t expand_repeat(parser *p, tree t, uint32_t to) {
    uint32_t start = to;
    if (t.max == NIB_GRAMMAR_NO) {
        start = add_node(p, TREE_EMPTY, 0);
        uint32_t body = expand(p, t.a, start);
        if (!failed(p)) p->nodes[start] = (draft_node){{to, body}, 0, TREE_EMPTY};
    }
    for (uint32_t i = t.min; t.max != NIB_GRAMMAR_NO && i < t.max && !failed(p); i++) {
        uint32_t body = expand(p, t.a, start);
        start = add_node(p, TREE_EMPTY, 0);
        if (!failed(p)) p->nodes[start] = (draft_node){{to, body}, 0, TREE_EMPTY};
    }
    for (uint32_t i = 0; i < t.min && !failed(p); i++) start = expand(p, t.a, start);
    return start;
}

/* A node from which either may be taken; b NO: a alone. */
static uint32_t either(parser *p, uint32_t a, uint32_t b) {
    if (b == NIB_GRAMMAR_NO || failed(p)) return a;
    uint32_t both = add_node(p, TREE_EMPTY, 0);
    if (!failed(p)) p->nodes[both] = (draft_node){{a, b}, 0, TREE_EMPTY};
    return both;
}

/* The node from which t leads to `to`. Long sequences and alternatives lean to the left, so depth is that of groups. */
static uint32_t expand(parser *p, uint32_t t, uint32_t to) {
    uint32_t others = NIB_GRAMMAR_NO, here = to;
    for (; !failed(p) && p->trees[t].kind == TREE_OR; t = p->trees[t].a)
        others = either(p, expand(p, p->trees[t].b, to), others);
    for (; !failed(p) && p->trees[t].kind == TREE_THEN; t = p->trees[t].a) here = expand(p, p->trees[t].b, here);
    if (failed(p)) return 0;
    tree last = p->trees[t];
    if (last.kind == TREE_OR) {
        here = expand(p, t, here);
    } else if (last.kind == TREE_REPEAT) {
        here = expand_repeat(p, last, here);
    } else if (last.kind != TREE_EMPTY) {
        uint32_t node = add_node(p, last.kind, last.kind == TREE_SET ? last.a : 0);
        if (!failed(p)) p->nodes[node].to[0] = here;
        here = node;
    }
    return either(p, here, others);
}

/* ---- without empty edges */

typedef struct flatten {
    parser *p;
    uint32_t *state_of;      /* by node: the state of what follows it; NO */
    uint32_t *order;         /* node of state i */
    uint32_t *stamp, *stack; /* of node * 2 + behind $ */
    uint32_t round, final;
    uint32_t anything, any; /* with is_search: the state where all goes, its set */
} flatten;

static uint32_t state_at(flatten *f, uint32_t node) {
    if (f->state_of[node] == NIB_GRAMMAR_NO) {
        uint32_t s = nib_grammar_pattern_state(f->p->b, f->p->out);
        if (failed(f->p)) return 0;
        f->state_of[node] = s;
        f->order[s] = node;
    }
    return f->state_of[node];
}

/* What can be read from a node, and whether the end is reached; ^ holds only at the start, and behind $ nothing is
 * read. */
static void close_state(flatten *f, uint32_t state, uint32_t node, bool is_start) {
    parser *p = f->p;
    size_t n = 0;
    f->round++;
    f->stack[n++] = node * 2;
    f->stamp[node * 2] = f->round;
    while (n && !failed(p)) {
        uint32_t at_end = f->stack[--n] & 1, i = f->stack[n] >> 1;
        const draft_node *d = &p->nodes[i];
        if (i == f->final) {
            p->out->ends[state] = 1;
            if (!at_end && f->anything != NIB_GRAMMAR_NO)
                nib_grammar_pattern_edge_add(p->b, p->out, (nib_grammar_pattern_edge){state, f->anything, f->any});
            continue;
        }
        if (d->kind == TREE_SET && !at_end) {
            uint32_t to = state_at(f, d->to[0]);
            nib_grammar_pattern_edge_add(p->b, p->out, (nib_grammar_pattern_edge){state, to, d->set});
        }
        if (d->kind == TREE_SET || (d->kind == TREE_START && !is_start)) continue;
        if (d->kind == TREE_END) at_end = 1;
        for (int k = 0; k < 2; k++) {
            uint32_t next = d->to[k] == NIB_GRAMMAR_NO ? NIB_GRAMMAR_NO : d->to[k] * 2 + at_end;
            if (next == NIB_GRAMMAR_NO || f->stamp[next] == f->round) continue;
            f->stamp[next] = f->round;
            f->stack[n++] = next;
        }
    }
}

static void flatten_nodes(flatten *f, uint32_t start, bool is_search) {
    parser *p = f->p;
    nib_grammar_build *b = p->b;
    uint32_t first = nib_grammar_pattern_state(b, p->out), prefix = NIB_GRAMMAR_NO;
    f->anything = NIB_GRAMMAR_NO;
    if (is_search) {
        nib_grammar_charset all = {0};
        nib_grammar_charset_add(&all, 0, 0x10FFFF);
        f->any = nib_grammar_pattern_set(b, p->out, &all);
        f->anything = nib_grammar_pattern_state(b, p->out);
        prefix = nib_grammar_pattern_state(b, p->out);
        if (failed(p)) return;
        p->out->ends[f->anything] = 1;
        nib_grammar_pattern_edge_add(b, p->out, (nib_grammar_pattern_edge){f->anything, f->anything, f->any});
        nib_grammar_pattern_edge_add(b, p->out, (nib_grammar_pattern_edge){first, prefix, f->any});
        nib_grammar_pattern_edge_add(b, p->out, (nib_grammar_pattern_edge){prefix, prefix, f->any});
        close_state(f, prefix, start, false);
    }
    close_state(f, first, start, true);
    for (uint32_t s = is_search ? 3 : 1; s < p->out->n_states && !failed(p); s++) close_state(f, s, f->order[s], false);
}

void nib_grammar_pattern_read(nib_grammar_build *b, nib_str text, uint64_t offset, bool is_search,
                              nib_grammar_pattern *out) {
    parser p = {.b = b, .out = out, .start = text.ptr, .p = text.ptr, .end = text.ptr + text.len, .at = offset};
    b->offset = offset;
    uint32_t root = read_or(&p);
    if (!failed(&p) && p.p < p.end) FAIL(&p, p.p, ") without (");
    flatten f = {.p = &p, .final = add_node(&p, TREE_EMPTY, 0)};
    uint32_t start = failed(&p) ? 0 : expand(&p, root, f.final);
    f.state_of = nib_alloc(p.n_nodes + 1, sizeof *f.state_of);
    f.order = nib_calloc(p.n_nodes + 4, sizeof *f.order);
    f.stamp = nib_calloc(p.n_nodes * 2 + 2, sizeof *f.stamp);
    f.stack = nib_calloc(p.n_nodes * 2 + 2, sizeof *f.stack);
    bool has_memory = f.state_of && f.order && f.stamp && f.stack;
    if (!has_memory) nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a pattern");
    if (has_memory && !failed(&p)) {
        memset(f.state_of, 0xFF, (p.n_nodes + 1) * sizeof *f.state_of);
        flatten_nodes(&f, start, is_search);
        nib_grammar_pattern_sort(b, out);
    }
    nib_free(f.state_of);
    nib_free(f.order);
    nib_free(f.stamp);
    nib_free(f.stack);
    nib_free(p.trees);
    nib_free(p.nodes);
}

uint32_t nib_grammar_from_regex(nib_grammar_build *b, const nib_grammar_source *source) {
    nib_grammar_pattern pattern = {0};
    uint32_t rule = 0;
    nib_grammar_pattern_read(b, source->text, 0, false, &pattern);
    if (b->status == NIB_OK)
        rule = nib_grammar_rule_of(b, (nib_str){"regex", 5}, nib_grammar_pattern_draw(b, &pattern, nib_grammar_charset_draw));
    nib_grammar_pattern_free(&pattern);
    return rule;
}
