/* grammar/schema_write.c - strings and keys of a schema -> pieces, in the notation that is asked for. */
#include "base/utf8.h"
#include "grammar/schema.h"

#include <string.h>

#define MARK "<|\"|>" /* Gemma's quote */

static nib_grammar_piece quoted(nib_grammar_schema *s, nib_grammar_piece inside) {
    nib_str quote = {"\"", 1};
    if (s->writing == NIB_GRAMMAR_IN_GEMMA) quote = (nib_str){MARK, sizeof MARK - 1};
    nib_grammar_piece open = nib_grammar_text(s->b, quote), close = nib_grammar_text(s->b, quote);
    return nib_grammar_then(s->b, nib_grammar_then(s->b, open, inside), close);
}

/* p without the texts that have a part which the expression tells. */
static void forbid(nib_grammar_build *b, nib_grammar_pattern *p, const char *expression) {
    nib_grammar_pattern bad = {0};
    nib_grammar_pattern_read(b, (nib_str){expression, strlen(expression)}, 0, true, &bad);
    nib_grammar_pattern_negate(b, &bad);
    nib_grammar_pattern_meet(b, p, &bad);
    nib_grammar_pattern_free(&bad);
}

static void forbid_ends(nib_grammar_schema *s, nib_grammar_pattern *p) {
    if (s->writing == NIB_GRAMMAR_IN_TAGS) forbid(s->b, p, "</");
    if (s->writing == NIB_GRAMMAR_IN_GEMMA) forbid(s->b, p, "<\\|\"\\|>");
}

/* Python knows no pairs of surrogates, and keeps the backslash of \/. */
static void draw_python(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set) {
    nib_grammar_charset low = {0}, high = {0}, part = {0};
    nib_grammar_charset_add(&low, 0, 0xFFFF);
    nib_grammar_charset_add(&high, 0x10000, 0x10FFFF);
    nib_grammar_charset_meet(set, &low, &part);
    nib_grammar_charset_draw_json(b, from, to, &part, false);
    nib_grammar_charset_free(&part);
    nib_grammar_charset_meet(set, &high, &part);
    nib_grammar_charset_draw(b, from, to, &part);
    nib_grammar_charset_free(&part);
    nib_grammar_charset_free(&low);
    nib_grammar_charset_free(&high);
}

/* Sets that hold everything, or nearly, are written in every way that JSON has. */
static void draw_json(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set) {
    nib_grammar_charset_draw_json(b, from, to, set, set->n && set->ranges[0].lo == 0);
}

/* The same between single quotes. */
static void draw_single(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set) {
    nib_grammar_charset others = {0}, part = {0};
    nib_grammar_charset_add(&others, '\'', '\'');
    nib_grammar_charset_negate(&others);
    nib_grammar_charset_meet(set, &others, &part);
    draw_python(b, from, to, &part);
    if (nib_grammar_charset_has(set, '"')) nib_grammar_bytes(b, from, to, '"', '"');
    if (nib_grammar_charset_has(set, '\'')) {
        nib_grammar_piece escape = nib_grammar_text(b, (nib_str){"\\'", 2});
        nib_grammar_empty(b, from, escape.start);
        nib_grammar_empty(b, escape.end, to);
    }
    nib_grammar_charset_free(&part);
    nib_grammar_charset_free(&others);
}

static nib_grammar_draw_set_fn drawing(const nib_grammar_schema *s) {
    if (s->writing == NIB_GRAMMAR_IN_PYTHON) return draw_python;
    return s->writing == NIB_GRAMMAR_IN_GEMMA ? nib_grammar_charset_draw : draw_json;
}

nib_grammar_piece nib_grammar_schema_strings(nib_grammar_schema *s, nib_grammar_pattern *p) {
    nib_grammar_piece piece = {0, 0};
    forbid_ends(s, p);
    if (!nib_grammar_schema_failed(s)) piece = quoted(s, nib_grammar_pattern_draw(s->b, p, drawing(s)));
    if (s->writing == NIB_GRAMMAR_IN_PYTHON && !nib_grammar_schema_failed(s)) {
        nib_grammar_piece open = nib_grammar_text(s->b, (nib_str){"'", 1}), close = nib_grammar_text(s->b, (nib_str){"'", 1});
        nib_grammar_piece inside = nib_grammar_pattern_draw(s->b, p, draw_single);
        nib_grammar_empty(s->b, piece.start, open.start);
        nib_grammar_empty(s->b, open.end, inside.start);
        nib_grammar_empty(s->b, inside.end, close.start);
        nib_grammar_empty(s->b, close.end, piece.end);
    }
    nib_grammar_pattern_free(p);
    return piece;
}

/* ---- strings about which nothing is said */

static nib_grammar_piece chars(nib_grammar_schema *s, uint32_t lo, uint32_t hi) {
    nib_grammar_piece piece = {nib_grammar_node(s->b), nib_grammar_node(s->b)};
    nib_grammar_charset set = {0};
    nib_grammar_charset_add(&set, lo, hi);
    drawing(s)(s->b, piece.start, piece.end, &set);
    nib_grammar_charset_free(&set);
    return piece;
}

/* Characters without a plain "</": behind a plain '<' there is no plain '/'. */
static nib_grammar_piece chars_in_tags(nib_grammar_schema *s) {
    static const uint32_t cuts[][2] = {{' ', '!'}, {'#', '.'}, {'0', ';'}, {'=', '['}, {']', 0x10FFFF}};
    nib_grammar_build *b = s->b;
    uint32_t any = nib_grammar_node(b), behind = nib_grammar_node(b), end = nib_grammar_node(b), backslash = nib_grammar_node(b);
    nib_grammar_charset set = {0};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) nib_grammar_charset_add(&set, cuts[i][0], cuts[i][1]);
    nib_grammar_charset_draw(b, any, any, &set);
    nib_grammar_charset_draw(b, behind, any, &set);
    nib_grammar_charset_free(&set);
    nib_grammar_bytes(b, any, any, '/', '/');
    nib_grammar_bytes(b, any, behind, '<', '<');
    nib_grammar_bytes(b, behind, behind, '<', '<');
    for (const char *c = "\"\\/bfnrt"; *c; c++) nib_grammar_bytes(b, backslash, any, (uint8_t)*c, (uint8_t)*c);
    nib_grammar_piece escape = {nib_grammar_node(b), nib_grammar_node(b)};
    nib_grammar_charset_add(&set, 0, 0x1F); /* the others need none */
    nib_grammar_charset_draw_json(b, escape.start, escape.end, &set, false);
    nib_grammar_charset_free(&set);
    nib_grammar_empty(b, any, escape.start);
    nib_grammar_empty(b, behind, escape.start);
    nib_grammar_empty(b, escape.end, any);
    nib_grammar_bytes(b, any, backslash, '\\', '\\');
    nib_grammar_bytes(b, behind, backslash, '\\', '\\');
    nib_grammar_empty(b, any, end);
    nib_grammar_empty(b, behind, end);
    return (nib_grammar_piece){any, end};
}

static nib_grammar_piece any_chars(nib_grammar_schema *s) {
    nib_grammar_pattern p = {0};
    if (s->writing == NIB_GRAMMAR_IN_TAGS) return chars_in_tags(s);
    if (s->writing != NIB_GRAMMAR_IN_GEMMA) return nib_grammar_repeat(s->b, chars(s, 0, 0x10FFFF), 0, NIB_GRAMMAR_NO);
    nib_grammar_pattern_except(s->b, NULL, 0, &p);
    forbid_ends(s, &p);
    nib_grammar_piece piece = {0, 0};
    if (!nib_grammar_schema_failed(s)) piece = nib_grammar_pattern_draw(s->b, &p, nib_grammar_charset_draw);
    nib_grammar_pattern_free(&p);
    return piece;
}

static nib_grammar_piece all_strings(nib_grammar_schema *s) {
    nib_grammar_pattern p = {0};
    if (s->writing != NIB_GRAMMAR_IN_PYTHON) return quoted(s, any_chars(s));
    nib_grammar_pattern_except(s->b, NULL, 0, &p);
    return nib_grammar_schema_strings(s, &p);
}

nib_grammar_piece nib_grammar_schema_any_string(nib_grammar_schema *s) {
    if (s->any_string == NIB_GRAMMAR_NO) s->any_string = nib_grammar_rule_of(s->b, (nib_str){"string", 6}, all_strings(s));
    return nib_grammar_calls(s->b, s->any_string);
}

nib_grammar_piece nib_grammar_schema_counted_string(nib_grammar_schema *s, uint32_t min, uint32_t max) {
    nib_grammar_pattern p = {0};
    if (s->writing == NIB_GRAMMAR_IN_JSON)
        return quoted(s, nib_grammar_repeat(s->b, chars(s, 0, 0x10FFFF), min, max));
    nib_grammar_pattern_except(s->b, NULL, 0, &p);
    nib_grammar_pattern_cut(s->b, &p, min, max);
    return nib_grammar_schema_strings(s, &p);
}

/* ---- one string, and keys */

/* A character between the quotes; before: the one in front of it. */
static void draw_char(nib_grammar_schema *s, uint32_t from, uint32_t to, uint32_t c, uint32_t before) {
    nib_grammar_charset one = {0};
    nib_grammar_charset_add(&one, c, c);
    if (s->writing == NIB_GRAMMAR_IN_TAGS && c == '/' && before == '<') {
        nib_grammar_piece escape = nib_grammar_text(s->b, (nib_str){"\\/", 2});
        nib_grammar_empty(s->b, from, escape.start);
        nib_grammar_empty(s->b, escape.end, to);
    } else if (s->writing == NIB_GRAMMAR_IN_JSON || s->writing == NIB_GRAMMAR_IN_TAGS) {
        nib_grammar_charset_draw_json(s->b, from, to, &one, false);
    } else {
        drawing(s)(s->b, from, to, &one);
    }
    nib_grammar_charset_free(&one);
}

nib_grammar_piece nib_grammar_schema_literal(nib_grammar_schema *s, nib_str text) {
    nib_grammar_build *b = s->b;
    nib_grammar_piece piece = nib_grammar_nothing(b);
    uint32_t before = 0;
    for (size_t i = 0, len; i < text.len && b->status == NIB_OK; i += len) {
        uint32_t c = 0, next = nib_grammar_node(b);
        len = nib_utf8_char(text.ptr + i, text.len - i, &c);
        draw_char(s, piece.end, next, c, before);
        piece.end = next;
        before = c;
        if (!len) break;
    }
    return quoted(s, piece);
}

/* Of keys without quotes. */
#define BARE "[^:,{}\\[\\]<>\"\\s]+"

nib_grammar_piece nib_grammar_schema_key(nib_grammar_schema *s, nib_str text) {
    bool is_bare = s->writing == NIB_GRAMMAR_IN_GEMMA && text.len;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= ' ' || strchr(":,{}[]<>\"", text.ptr[i])) is_bare = false;
    return is_bare ? nib_grammar_text(s->b, text) : nib_grammar_schema_literal(s, text);
}

nib_grammar_piece nib_grammar_schema_keys(nib_grammar_schema *s, nib_grammar_pattern *p) {
    nib_grammar_pattern bare = {0};
    nib_grammar_piece piece = {0, 0};
    if (s->writing != NIB_GRAMMAR_IN_GEMMA) return nib_grammar_schema_strings(s, p);
    nib_grammar_pattern_read(s->b, (nib_str){BARE, sizeof BARE - 1}, 0, false, &bare);
    nib_grammar_pattern_meet(s->b, p, &bare);
    if (!nib_grammar_schema_failed(s)) piece = nib_grammar_pattern_draw(s->b, p, nib_grammar_charset_draw);
    nib_grammar_pattern_free(&bare);
    nib_grammar_pattern_free(p);
    return piece;
}
