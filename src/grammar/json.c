/* grammar/json.c - JSON text -> tree, strictly as RFC 8259 has it, without recursion. */
#include "grammar/json.h"

#include "base/json_text.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    nib_json_cursor text;
    const char *start;
    nib_arena *arena;
} reader;

static void fail(reader *r, const char *what) {
    nib_json_fail(&r->text, what);
}

static bool skip(reader *r, char c) {
    return nib_json_skip(&r->text, c);
}

/* Behind the opening quote. */
static nib_str read_string(reader *r) {
    nib_str out = {"", 0};
    char *to = nib_arena_alloc(r->arena, nib_json_string_room(&r->text));
    if (!to) fail(r, "no memory");
    if (to && nib_json_string(&r->text, to, &out.len)) out.ptr = to;
    return out;
}

/* A value up to its end, or the opening of one with children. */
static void read_scalar(reader *r, nib_grammar_json *node) {
    nib_json_blanks(&r->text);
    node->offset = (uint64_t)(r->text.at - r->start);
    char c = r->text.at < r->text.end ? *r->text.at : 0;
    if (c == '{' || c == '[') {
        node->kind = c == '{' ? NIB_GRAMMAR_JSON_OBJECT : NIB_GRAMMAR_JSON_ARRAY;
        r->text.at++;
    } else if (c == '"') {
        r->text.at++;
        node->kind = NIB_GRAMMAR_JSON_STRING;
        node->text = read_string(r);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        node->kind = NIB_GRAMMAR_JSON_NUMBER;
        nib_json_number(&r->text, &node->text);
    } else if (nib_json_word(&r->text, "true")) {
        node->kind = NIB_GRAMMAR_JSON_TRUE;
    } else if (nib_json_word(&r->text, "false")) {
        node->kind = NIB_GRAMMAR_JSON_FALSE;
    } else if (!nib_json_word(&r->text, "null")) {
        fail(r, "a value was expected");
    }
}

static bool is_parent(const nib_grammar_json *node) {
    return node->kind == NIB_GRAMMAR_JSON_OBJECT || node->kind == NIB_GRAMMAR_JSON_ARRAY;
}

static int by_key(const void *a, const void *b) {
    const nib_str x = (*(nib_grammar_json *const *)a)->key, y = (*(nib_grammar_json *const *)b)->key;
    size_t n = x.len < y.len ? x.len : y.len;
    int c = n ? memcmp(x.ptr, y.ptr, n) : 0;
    return c ? c : x.len < y.len ? -1 : x.len > y.len;
}

/* No key of an object twice. */
static void check_keys(reader *r, const nib_grammar_json *node) {
    if (node->kind != NIB_GRAMMAR_JSON_OBJECT || node->n < 2) return;
    nib_grammar_json **list = nib_arena_alloc(r->arena, node->n * sizeof *list), *child = node->first;
    if (!list) fail(r, "no memory");
    if (!list) return;
    for (uint32_t i = 0; i < node->n; i++, child = child->next) list[i] = child;
    qsort(list, node->n, sizeof *list, by_key);
    for (uint32_t i = 1; i < node->n && !r->text.fault; i++)
        if (by_key(&list[i - 1], &list[i]) == 0) {
            r->text.at = r->start + list[i]->offset;
            fail(r, "a key stands twice in an object");
        }
}

static nib_grammar_json *new_child(reader *r, nib_grammar_json *parent, nib_grammar_json *before) {
    nib_grammar_json *node = nib_arena_alloc(r->arena, sizeof *node);
    if (!node) fail(r, "no memory");
    if (!node) return NULL;
    *node = (nib_grammar_json){.parent = parent};
    if (!parent) return node;
    node->index = parent->n++;
    if (before)
        before->next = node;
    else
        parent->first = node;
    if (parent->kind != NIB_GRAMMAR_JSON_OBJECT) return node;
    if (!skip(r, '"'))
        fail(r, "a key in quotes was expected");
    else
        node->key = read_string(r);
    if (!r->text.fault && !skip(r, ':')) fail(r, ": was expected");
    return node;
}

nib_grammar_json *nib_grammar_json_read(nib_str text, uint32_t max_depth, nib_arena *arena, nib_error *err) {
    reader r = {{text.ptr, text.ptr + text.len, NULL}, text.ptr, arena};
    nib_grammar_json *root = new_child(&r, NULL, NULL), *open = NULL, *node = root;
    uint32_t depth = 0;
    while (node && !r.text.fault) {
        read_scalar(&r, node);
        bool opens = is_parent(node) && !r.text.fault;
        if (opens && ++depth > max_depth) {
            nib_fail_at(err, NIB_E_LIMIT, node->offset, "JSON is nested deeper than %u (max_depth)", max_depth);
            return NULL;
        }
        nib_grammar_json *last = node;
        if (opens) open = node;
        bool is_fresh = opens;      /* nothing inside yet */
        while (open && !r.text.fault) { /* close what ends here, or go on to the next child */
            char close = open->kind == NIB_GRAMMAR_JSON_OBJECT ? '}' : ']';
            if (skip(&r, close)) {
                check_keys(&r, open);
                last = open;
                open = open->parent;
                depth--;
                is_fresh = false;
                continue;
            }
            if (!is_fresh && !skip(&r, ','))
                fail(&r, open->kind == NIB_GRAMMAR_JSON_OBJECT ? ", or } was expected" : ", or ] was expected");
            break;
        }
        node = open && !r.text.fault ? new_child(&r, open, is_fresh ? NULL : last) : NULL;
    }
    nib_json_blanks(&r.text);
    if (!r.text.fault && r.text.at < r.text.end) fail(&r, "something behind the value");
    if (!r.text.fault) return root;
    nib_fail_at(err, NIB_E_FORMAT, (uint64_t)(r.text.at - r.start), "not JSON: %s", r.text.fault);
    return NULL;
}

bool nib_grammar_json_is(nib_str text, const char *word) {
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

const nib_grammar_json *nib_grammar_json_get(const nib_grammar_json *object, const char *key) {
    if (object->kind != NIB_GRAMMAR_JSON_OBJECT) return NULL;
    for (const nib_grammar_json *c = object->first; c; c = c->next)
        if (nib_grammar_json_is(c->key, key)) return c;
    return NULL;
}

static bool same_text(nib_str a, nib_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static double number(const nib_grammar_json *node) {
    char text[64];
    size_t n = node->text.len < sizeof text ? node->text.len : sizeof text - 1;
    memcpy(text, node->text.ptr, n);
    text[n] = 0;
    return strtod(text, NULL);
}

/* Children of an object are looked up by key; depth is bounded by that of the text. */
bool nib_grammar_json_equal(const nib_grammar_json *a, const nib_grammar_json *b) {
    if (a->kind != b->kind || a->n != b->n) return false;
    if (a->kind == NIB_GRAMMAR_JSON_NUMBER)
        return a->text.len < 18 && b->text.len < 18 ? number(a) == number(b) : same_text(a->text, b->text);
    if (a->kind == NIB_GRAMMAR_JSON_STRING) return same_text(a->text, b->text);
    const nib_grammar_json *y = b->first;
    for (const nib_grammar_json *x = a->first; x; x = x->next, y = y ? y->next : NULL) {
        if (a->kind == NIB_GRAMMAR_JSON_OBJECT)
            for (y = b->first; y && !same_text(x->key, y->key);) y = y->next;
        if (!y || !nib_grammar_json_equal(x, y)) return false;
    }
    return true;
}

void nib_grammar_json_pointer(const nib_grammar_json *node, nib_buf *out) {
    size_t depth = 0;
    for (const nib_grammar_json *n = node; n->parent; n = n->parent) depth++;
    nib_buf_char(out, '#');
    for (; depth > 0; depth--) {
        const nib_grammar_json *n = node;
        for (size_t i = 1; i < depth; i++) n = n->parent;
        nib_buf_char(out, '/');
        if (n->parent->kind == NIB_GRAMMAR_JSON_ARRAY) nib_buf_printf(out, "%u", n->index);
        for (size_t i = 0; i < n->key.len; i++) {
            if (n->key.ptr[i] == '~')
                nib_buf_str(out, "~0");
            else if (n->key.ptr[i] == '/')
                nib_buf_str(out, "~1");
            else
                nib_buf_char(out, n->key.ptr[i]);
        }
    }
}
