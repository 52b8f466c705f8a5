/* chat/shape/value.c - schemas of tools -> what stands for their arguments: an object in some notation, or a value for each
 * parameter between markers.
 *
 * Where parameters have no types the parser takes text for JSON when it is such (param.c). So a value is either JSON without a
 * string, or a text that is no such JSON; both end at the first closing marker, which neither holds. */
#include "base/status.h"
#include "chat/shape/shape.h"

#include <string.h>

enum { MAX_TREE = 4 };

/* What stands for one value. */
typedef struct place {
    nib_chat_shape *d;
    nib_grammar_schema *s;
    nib_str closing;  /* the marker that ends it */
    unsigned types;   /* nib_chat_schema_types of its schema; 0: it does not say */
    char kind;        /* NIB_CHAT_IS_TEXT, NIB_CHAT_IS_JSON; 0 */
    bool has_lines;   /* a newline at either end belongs to the format */
    uint32_t from, to; /* nodes */
} place;

/* ---- text */

/* The closing marker as a regular expression. */
static void put_expression(nib_str text, nib_buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("\\^$.|?*+()[]{}/-", text.ptr[i])) nib_buf_char(out, '\\');
        nib_buf_char(out, text.ptr[i]);
    }
}

static void meet_not(nib_grammar_build *b, nib_grammar_pattern *p, nib_str expression, bool is_search) {
    nib_grammar_pattern bad = {0};
    nib_grammar_pattern_read(b, expression, 0, is_search, &bad);
    nib_grammar_pattern_negate(b, &bad);
    nib_grammar_pattern_meet(b, p, &bad);
    nib_grammar_pattern_free(&bad);
}

/* What the parser takes for JSON or Python of these types, and a little more. */
static void put_others(unsigned types, nib_buf *out) {
    nib_buf_str(out, "[ \\t\\r\\n]*(?:");
    if (types & NIB_CHAT_NULL) nib_buf_str(out, "null|None|");
    if (types & NIB_CHAT_BOOLEAN) nib_buf_str(out, "true|false|True|False|");
    if (types & NIB_CHAT_NUMBER) nib_buf_str(out, "-?[0-9][0-9.eE+-]*|");
    if (types & NIB_CHAT_ARRAY) nib_buf_str(out, "[\\[(][\\s\\S]*|");
    if (types & NIB_CHAT_OBJECT) nib_buf_str(out, "\\{[\\s\\S]*|");
    nib_buf_str(out, "\\u{0})[ \\t\\r\\n]*");
}

/* Drops from p what would be read as something else than the text itself. */
static void keep_readable(const place *at, nib_grammar_pattern *p) {
    nib_buf expression = {0};
    unsigned others = at->types ? at->types & ~(unsigned)NIB_CHAT_STRING : ~(unsigned)NIB_CHAT_STRING;
    put_expression(at->closing, &expression);
    meet_not(at->d->b, p, (nib_str){expression.ptr, expression.len}, true);
    expression.len = 0;
    if (at->kind != NIB_CHAT_IS_TEXT && others) {
        put_others(others, &expression);
        meet_not(at->d->b, p, (nib_str){expression.ptr, expression.len}, false);
    }
    if (expression.failed) nib_grammar_build_fail(at->d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a pattern");
    nib_buf_free(&expression);
}

static uint32_t newline(const place *at, uint32_t from) {
    uint32_t to = nib_grammar_node(at->d->b);
    nib_grammar_bytes(at->d->b, from, to, '\n', '\n');
    return to;
}

static void join(const place *at, uint32_t from, uint32_t to, const nib_grammar_pattern *p) {
    if (nib_chat_shape_failed(at->d)) return;
    nib_grammar_piece piece = nib_grammar_pattern_draw(at->d->b, p, nib_grammar_charset_draw);
    nib_grammar_empty(at->d->b, from, piece.start);
    nib_grammar_empty(at->d->b, piece.end, to);
}

/* Texts of a pattern, which is used up; where a newline at either end is dropped those are written twice, or not at all. */
static void draw_texts(const place *at, nib_grammar_pattern *p) {
    static const char plain[] = "(?:[^\\n](?:[\\s\\S]*[^\\n])?)?";
    nib_grammar_build *b = at->d->b;
    keep_readable(at, p);
    if (at->has_lines) {
        uint32_t inside = newline(at, at->from), behind = nib_grammar_node(b);
        nib_grammar_pattern bare = {0};
        join(at, inside, behind, p);
        nib_grammar_bytes(b, behind, at->to, '\n', '\n');
        nib_grammar_pattern_read(b, (nib_str){plain, sizeof plain - 1}, 0, false, &bare);
        nib_grammar_pattern_meet(b, p, &bare);
        nib_grammar_pattern_free(&bare);
    }
    join(at, at->from, at->to, p);
    nib_grammar_pattern_free(p);
}

/* One text, if it can be written. */
static void draw_one_text(const place *at, nib_str text) {
    nib_grammar_pattern p = {0};
    nib_buf expression = {0};
    put_expression(text, &expression);
    nib_grammar_pattern_read(at->d->b, (nib_str){expression.ptr ? expression.ptr : "", expression.len}, 0, false, &p);
    nib_buf_free(&expression);
    if (!nib_chat_shape_failed(at->d)) draw_texts(at, &p);
    else nib_grammar_pattern_free(&p);
}

/* The rule of all texts for such a place; NIB_GRAMMAR_NO: there are too many of these rules. */
static uint32_t any_text(const place *at) {
    nib_chat_shape *d = at->d;
    nib_grammar_pattern p = {0};
    for (size_t i = 0; i < d->n_texts; i++) {
        const nib_chat_shape_text *t = &d->texts[i];
        bool is_same = t->closing.len == at->closing.len && memcmp(t->closing.ptr, at->closing.ptr, t->closing.len) == 0;
        if (is_same && t->types == at->types && t->kind == at->kind && t->has_lines == at->has_lines) return t->rule;
    }
    if (d->n_texts == NIB_CHAT_MAX_TEXTS) return NIB_GRAMMAR_NO;
    uint32_t rule = nib_grammar_rule_new(d->b, (nib_str){"text", 4});
    if (nib_chat_shape_failed(d)) return NIB_GRAMMAR_NO;
    place inside = *at;
    inside.from = d->b->rules[rule].rule.start;
    inside.to = d->b->rules[rule].end;
    nib_grammar_pattern_except(d->b, NULL, 0, &p);
    draw_texts(&inside, &p);
    d->texts[d->n_texts++] = (nib_chat_shape_text){at->closing, at->types, at->kind, at->has_lines, rule};
    return rule;
}

static void draw_strings(const place *at, const nib_grammar_conj *conj) {
    nib_grammar_pattern p = {0};
    if (at->kind == NIB_CHAT_IS_JSON) return;
    if (nib_grammar_schema_text(at->s, conj, &p)) {
        draw_texts(at, &p);
        return;
    }
    uint32_t rule = any_text(at);
    if (rule != NIB_GRAMMAR_NO) {
        nib_grammar_call(at->d->b, at->from, at->to, rule);
    } else {
        nib_grammar_pattern_except(at->d->b, NULL, 0, &p);
        draw_texts(at, &p);
    }
}

/* ---- values */

static void join_rule(const place *at, uint32_t rule) {
    nib_grammar_build *b = at->d->b;
    if (nib_chat_shape_failed(at->d)) return;
    nib_grammar_call(b, at->from, at->to, rule);
    if (!at->has_lines) return;
    uint32_t inside = newline(at, at->from), behind = nib_grammar_node(b);
    nib_grammar_call(b, inside, behind, rule);
    nib_grammar_bytes(b, behind, at->to, '\n', '\n');
}

/* A value of enum or const. */
static void draw_value(void *user, const nib_grammar_json *v) {
    const place *at = user;
    bool is_string = v->kind == NIB_GRAMMAR_JSON_STRING;
    if (is_string && at->kind != NIB_CHAT_IS_JSON) draw_one_text(at, v->text);
    if (is_string || at->kind == NIB_CHAT_IS_TEXT) return;
    uint32_t rule = nib_grammar_rule_of(at->d->b, (nib_str){"a value", 7}, nib_grammar_schema_value(at->s, v));
    join_rule(at, rule);
}

static void draw_conj(const place *at, nib_grammar_conj *conj);

static void draw_branch(void *user, nib_grammar_conj *branch) {
    const place *at = user;
    nib_grammar_conj_close(at->s, branch);
    draw_conj(at, branch);
    nib_grammar_conj_free(branch);
}

/* A closed conjunction, by its branches, its values or its types. */
static void draw_conj(const place *at, nib_grammar_conj *conj) {
    nib_grammar_schema *s = at->s;
    place copy = *at;
    if (nib_chat_shape_failed(at->d) || conj->is_never || nib_grammar_schema_each_branch(s, conj, draw_branch, &copy)) return;
    if (nib_grammar_schema_each_value(s, conj, draw_value, &copy)) return;
    unsigned types = nib_grammar_conj_types(s, conj);
    if (types & NIB_GRAMMAR_T_STRING) draw_strings(at, conj);
    if (!(types & ~(unsigned)NIB_GRAMMAR_T_STRING) || at->kind == NIB_CHAT_IS_TEXT) return;
    nib_grammar_conj other = nib_grammar_conj_copy(s, conj);
    nib_grammar_conj_add(s, &other, at->d->no_string, 0);
    join_rule(at, nib_grammar_schema_rule_for(s, &other));
}

/* ---- whole arguments */

/* What the schema of a tool says of its arguments, closed. */
static nib_grammar_conj parameters(const nib_chat_shape *d, nib_grammar_schema *s) {
    nib_grammar_conj conj = {0};
    nib_grammar_conj_add(s, &conj, s->root, 0);
    nib_grammar_conj_add(s, &conj, d->object, 0);
    nib_grammar_conj_close(s, &conj);
    nib_grammar_schema_definitions(s, s->root);
    return conj;
}

uint32_t nib_chat_shape_arguments(nib_chat_shape *d, size_t tool, nib_grammar_writing writing) {
    nib_chat_shape_tool *t = &d->tools[tool];
    if (t->arguments[writing] == NIB_GRAMMAR_NO) {
        nib_grammar_conj conj = parameters(d, &t->by[writing]);
        t->arguments[writing] = nib_grammar_schema_rule_for(&t->by[writing], &conj);
    }
    return t->arguments[writing];
}

/* ---- members one by one */

typedef struct members {
    nib_chat_shape *d;
    nib_grammar_schema *s;
    const nib_chat_schema *types; /* of all of them */
    const char *ip;               /* the body of the group, or NULL */
    nib_str closing;
    unsigned depth; /* of a tree */
} members;

static bool is_key(nib_str key) {
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] < ' ' || strchr("<>\"", key.ptr[i])) return false;
    return key.len && key.len <= 1024 && *key.ptr != ' ' && key.ptr[key.len - 1] != ' ';
}

static void check_key(const members *m, nib_str key) {
    if (!is_key(key))
        nib_grammar_fail_at(m->d->b, NIB_E_UNSUPPORTED, m->s->root, "the format cannot write a parameter of the name \"%.*s\"",
                            NIB_STR_ARG(key));
}

/* The body of a group: markers, KEY, VALUE. Groups inside say what the value is. */
static uint32_t draw_body(const members *m, const char *ip, uint32_t from, nib_str key, const nib_grammar_conj *value, char kind) {
    nib_chat_shape *d = m->d;
    uint32_t at = from;
    while (*ip && *ip != NIB_CHAT_END_MANY && !nib_chat_shape_failed(d)) {
        size_t n = nib_chat_shape_literal_len(ip);
        if (n) {
            at = nib_chat_shape_marker(d, at, (nib_str){ip, n});
            ip += n;
        } else if (*ip == NIB_CHAT_OPT) { /* with what is inside, or without */
            uint32_t end = draw_body(m, ip + 1, at, key, value, kind);
            uint32_t other = draw_body(m, nib_chat_shape_skip_group(ip), at, key, value, kind);
            nib_grammar_empty(d->b, other, end);
            return end;
        } else if (*ip == NIB_CHAT_VALUE || *ip == NIB_CHAT_LINES) {
            nib_str closing = {ip + 1, nib_chat_shape_literal_len(ip + 1)};
            unsigned types = nib_chat_schema_types(nib_chat_schema_property(m->types, key));
            place p = {d, m->s, closing, types, kind, *ip == NIB_CHAT_LINES, at, nib_grammar_node(d->b)};
            nib_grammar_conj copy = nib_grammar_conj_copy(m->s, value);
            nib_grammar_conj_close(m->s, &copy);
            draw_conj(&p, &copy);
            nib_grammar_conj_free(&copy);
            at = p.to;
            ip++;
        } else {
            if (*ip == NIB_CHAT_KEY) {
                nib_grammar_piece text = nib_grammar_text(d->b, key);
                nib_grammar_empty(d->b, at, text.start);
                at = text.end;
            }
            if (*ip == NIB_CHAT_W) at = nib_chat_shape_blanks(d, at);
            if (*ip == NIB_CHAT_IS_TEXT || *ip == NIB_CHAT_IS_JSON) kind = *ip;
            ip++;
        }
    }
    return at;
}

static nib_grammar_piece draw_param(void *user, nib_str key, nib_grammar_conj *value) {
    const members *m = user;
    uint32_t from = nib_grammar_node(m->d->b);
    check_key(m, key);
    return (nib_grammar_piece){from, draw_body(m, m->ip, from, key, value, 0)};
}

static uint32_t members_of(members *m, size_t tool, const char *between, nib_grammar_member_fn draw) {
    nib_grammar_conj conj = parameters(m->d, m->s);
    m->types = nib_chat_tools_find(&m->d->types, m->d->tools[tool].name);
    uint32_t rule = nib_grammar_schema_members(m->s, &conj, between, draw, m);
    nib_grammar_conj_free(&conj);
    return rule;
}

/* Formats tell the same group in several rules. */
static bool is_same_body(const char *a, const char *b) {
    while (*a == *b && *a && *a != NIB_CHAT_END_MANY) a++, b++;
    return *a == *b;
}

uint32_t nib_chat_shape_params(nib_chat_shape *d, size_t tool, const char *ip) {
    nib_chat_shape_tool *t = &d->tools[tool];
    members m = {.d = d, .s = &t->by[NIB_GRAMMAR_IN_TAGS], .ip = ip};
    for (size_t i = 0; i < t->n_bodies; i++)
        if (is_same_body(t->bodies[i].ip, ip)) return t->bodies[i].rule;
    uint32_t rule = members_of(&m, tool, "", draw_param);
    if (t->n_bodies < NIB_CHAT_MAX_BODIES) t->bodies[t->n_bodies++] = (nib_chat_shape_body){ip, rule};
    return rule;
}

/* ---- key=value */

static nib_grammar_piece draw_keyword(void *user, nib_str key, nib_grammar_conj *value) {
    const members *m = user;
    nib_grammar_build *b = m->d->b;
    bool is_word = key.len > 0;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
        is_word = is_word && (is_letter || (i && c >= '0' && c <= '9'));
    }
    if (!is_word)
        nib_grammar_fail_at(m->d->b, NIB_E_UNSUPPORTED, m->s->root, "the format cannot write a parameter of the name \"%.*s\"",
                            NIB_STR_ARG(key));
    nib_grammar_piece piece = {nib_grammar_node(b), nib_grammar_node(b)}, text = nib_grammar_text(b, key);
    uint32_t from = nib_grammar_node(b), equal = nib_grammar_node(b);
    nib_grammar_empty(b, piece.start, text.start); /* a blank may follow the comma */
    nib_grammar_bytes(b, piece.start, text.start, ' ', ' ');
    nib_grammar_empty(b, text.end, equal);
    nib_grammar_bytes(b, equal, from, '=', '=');
    nib_grammar_conj copy = nib_grammar_conj_copy(m->s, value);
    nib_grammar_call(b, from, piece.end, nib_grammar_schema_rule_for(m->s, &copy));
    return piece;
}

uint32_t nib_chat_shape_keywords(nib_chat_shape *d, size_t tool) {
    members m = {.d = d, .s = &d->tools[tool].by[NIB_GRAMMAR_IN_PYTHON]};
    return members_of(&m, tool, ",", draw_keyword);
}

/* ---- a tree of tags */

static nib_grammar_piece draw_leaf(void *user, nib_str key, nib_grammar_conj *value);

/* Elements of a list, each of one schema. */
static void draw_items(members *m, const place *p, const nib_grammar_conj *conj) {
    nib_grammar_build *b = m->d->b;
    nib_grammar_conj item = {0};
    uint32_t min, max;
    if (nib_grammar_schema_items(m->s, conj, &item, &min, &max) && !nib_chat_shape_failed(m->d)) {
        if (min == 0) nib_grammar_empty(b, p->from, p->to);
        nib_grammar_piece one = draw_leaf(m, (nib_str){NULL, 0}, &item);
        nib_grammar_piece all = nib_grammar_repeat(b, one, min > 1 ? min : 1, max);
        if (max) nib_grammar_empty(b, p->from, all.start);
        if (max) nib_grammar_empty(b, all.end, p->to);
    } else {
        nib_grammar_conj copy = nib_grammar_conj_copy(m->s, conj);
        draw_conj(p, &copy);
        nib_grammar_conj_free(&copy);
    }
    nib_grammar_conj_free(&item);
}

/* The value between two tags: elements of an object or of a list, or text; deep inside, and where nothing is said of the
 * members, these are JSON. */
static void draw_inside(const members *m, const place *p, nib_grammar_conj *conj, const nib_chat_schema *types) {
    members inner = {.d = m->d, .s = m->s, .types = types, .closing = m->closing, .depth = m->depth + 1};
    size_t i = 0;
    bool is_object = p->types == NIB_CHAT_OBJECT && nib_grammar_conj_next(conj, &i, "properties");
    if (m->depth < MAX_TREE && is_object)
        nib_grammar_call(m->d->b, p->from, p->to, nib_grammar_schema_members(m->s, conj, "", draw_leaf, &inner));
    else if (m->depth < MAX_TREE && p->types == NIB_CHAT_ARRAY)
        draw_items(&inner, p, conj);
    else
        draw_conj(p, conj);
}

/* An element, and blanks behind it. A key that is NULL: an item of a list. */
static nib_grammar_piece draw_leaf(void *user, nib_str key, nib_grammar_conj *value) {
    members *m = user;
    nib_chat_shape *d = m->d;
    nib_buf open = {0}, close = {0};
    nib_str name = key.ptr ? key : (nib_str){"item", 4};
    const nib_chat_schema *types = key.ptr ? nib_chat_schema_property(m->types, key) : nib_chat_schema_items(m->types);
    bool is_tag = nib_grammar_json_is(key, "invoke") || (m->depth && nib_grammar_json_is(key, "item"));
    check_key(m, is_tag ? (nib_str){"<", 1} : name);
    nib_buf_printf(&open, "%.*s<%.*s>", NIB_STR_ARG(m->closing), NIB_STR_ARG(name));
    nib_buf_printf(&close, "%.*s</%.*s>", NIB_STR_ARG(m->closing), NIB_STR_ARG(name));
    nib_grammar_piece piece = {nib_grammar_node(d->b), nib_grammar_node(d->b)};
    uint32_t at = nib_chat_shape_marker(d, piece.start, (nib_str){open.ptr, open.len}), to = nib_grammar_node(d->b);
    place p = {d, m->s, m->closing, nib_chat_schema_types(types), 0, false, at, to};
    nib_grammar_conj copy = nib_grammar_conj_copy(m->s, value);
    nib_grammar_conj_close(m->s, &copy);
    draw_inside(m, &p, &copy, types);
    nib_grammar_conj_free(&copy);
    at = nib_chat_shape_blanks(d, nib_chat_shape_marker(d, to, (nib_str){close.ptr, close.len}));
    nib_grammar_empty(d->b, at, piece.end);
    nib_buf_free(&open);
    nib_buf_free(&close);
    return piece;
}

uint32_t nib_chat_shape_tree(nib_chat_shape *d, size_t tool) {
    static const char token[] = "]<]minimax[>[";
    members m = {.d = d, .s = &d->tools[tool].by[NIB_GRAMMAR_IN_JSON], .closing = {token, sizeof token - 1}};
    return members_of(&m, tool, "", draw_leaf);
}
