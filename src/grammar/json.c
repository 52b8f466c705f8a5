/* grammar/json.c - JSON text -> tree, strictly as RFC 8259 has it, without recursion. */
#include "grammar/json.h"

#include "base/status.h"
#include "base/utf8.h"
#include "grammar/charset.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *start, *p, *end;
    nib_arena *arena;
    nib_error *err;
    bool failed;
} reader;

static void fail(reader *r, const char *what) {
    if (!r->failed) nib_fail_at(r->err, NIB_E_FORMAT, (uint64_t)(r->p - r->start), "not JSON: %s", what);
    r->failed = true;
}

static void skip_blanks(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

static bool skip(reader *r, char c) {
    skip_blanks(r);
    if (r->p >= r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool skip_word(reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) return false;
    r->p += n;
    return true;
}

static uint32_t read_hex(reader *r) {
    uint32_t x = 0;
    for (int i = 0; i < 4; i++) {
        char c = r->p < r->end ? *r->p : 0;
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) fail(r, "four hexadecimal digits were expected");
        if (digit < 0) return 0;
        x = x << 4 | (uint32_t)digit;
        r->p++;
    }
    return x;
}

static char *read_escape(reader *r, char *to) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *found = r->p < r->end && *r->p ? strchr(letters, *r->p) : NULL;
    if (found) {
        *to = values[found - letters];
        r->p++;
        return to + 1;
    }
    if (r->p >= r->end || *r->p != 'u') {
        fail(r, "an unknown escape");
        return to;
    }
    r->p++;
    uint32_t c = read_hex(r);
    if (c >= 0xD800 && c < 0xDC00 && skip_word(r, "\\u")) {
        uint32_t low = read_hex(r);
        c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00)) : c;
    }
    if (c >= 0xD800 && c < 0xE000) fail(r, "half of a surrogate pair");
    return to + nib_grammar_put_char(c, to);
}

/* Behind the opening quote. */
static nib_str read_string(reader *r) {
    const char *q = r->p;
    nib_str out = {"", 0};
    while (q < r->end && *q != '"') q += *q == '\\' && q + 1 < r->end ? 2 : 1;
    char *to = nib_arena_alloc(r->arena, (size_t)(q - r->p) + 4);
    if (!to) fail(r, "no memory");
    if (!to) return out;
    out.ptr = to;
    while (!r->failed) {
        uint32_t c;
        size_t len = r->p < r->end ? nib_utf8_char(r->p, (size_t)(r->end - r->p), &c) : 0;
        if (r->p >= r->end)
            fail(r, "a string without its closing quote");
        else if (!len)
            fail(r, "bytes that are not UTF-8");
        else if (c < 0x20)
            fail(r, "a control character in a string");
        if (r->failed || c == '"') break;
        if (c == '\\') {
            r->p++;
            to = read_escape(r, to);
            continue;
        }
        memcpy(to, r->p, len);
        to += len;
        r->p += len;
    }
    r->p++;
    out.len = (size_t)(to - out.ptr);
    return out;
}

static size_t skip_digits(reader *r) {
    const char *begin = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
    return (size_t)(r->p - begin);
}

static nib_str read_number(reader *r) {
    nib_str out = {r->p, 0};
    if (*r->p == '-') r->p++;
    const char *first = r->p;
    size_t n = skip_digits(r);
    bool ok = n == 1 || (n > 1 && *first != '0');
    if (ok && r->p < r->end && *r->p == '.') r->p++, ok = skip_digits(r) > 0;
    if (ok && r->p < r->end && (*r->p | 32) == 'e') {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-')) r->p++;
        ok = skip_digits(r) > 0;
    }
    if (!ok) fail(r, "a malformed number");
    out.len = (size_t)(r->p - out.ptr);
    return out;
}

/* A value up to its end, or the opening of one with children. */
static void read_scalar(reader *r, nib_grammar_json *node) {
    skip_blanks(r);
    node->offset = (uint64_t)(r->p - r->start);
    char c = r->p < r->end ? *r->p : 0;
    if (c == '{' || c == '[') {
        node->kind = c == '{' ? NIB_GRAMMAR_JSON_OBJECT : NIB_GRAMMAR_JSON_ARRAY;
        r->p++;
    } else if (c == '"') {
        r->p++;
        node->kind = NIB_GRAMMAR_JSON_STRING;
        node->text = read_string(r);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        node->kind = NIB_GRAMMAR_JSON_NUMBER;
        node->text = read_number(r);
    } else if (skip_word(r, "true")) {
        node->kind = NIB_GRAMMAR_JSON_TRUE;
    } else if (skip_word(r, "false")) {
        node->kind = NIB_GRAMMAR_JSON_FALSE;
    } else if (!skip_word(r, "null")) {
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
    for (uint32_t i = 1; i < node->n && !r->failed; i++)
        if (by_key(&list[i - 1], &list[i]) == 0) {
            r->p = r->start + list[i]->offset;
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
    if (!r->failed && !skip(r, ':')) fail(r, ": was expected");
    return node;
}

nib_grammar_json *nib_grammar_json_read(nib_str text, uint32_t max_depth, nib_arena *arena, nib_error *err) {
    reader r = {text.ptr, text.ptr, text.ptr + text.len, arena, err, false};
    nib_grammar_json *root = new_child(&r, NULL, NULL), *open = NULL, *node = root;
    uint32_t depth = 0;
    while (node && !r.failed) {
        read_scalar(&r, node);
        bool opens = is_parent(node) && !r.failed;
        if (opens && ++depth > max_depth) {
            nib_fail_at(err, NIB_E_LIMIT, node->offset, "JSON is nested deeper than %u (max_depth)", max_depth);
            return NULL;
        }
        nib_grammar_json *last = node;
        if (opens) open = node;
        bool is_fresh = opens;      /* nothing inside yet */
        while (open && !r.failed) { /* close what ends here, or go on to the next child */
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
        node = open && !r.failed ? new_child(&r, open, is_fresh ? NULL : last) : NULL;
    }
    skip_blanks(&r);
    if (!r.failed && r.p < r.end) fail(&r, "something behind the value");
    return r.failed ? NULL : root;
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
