/* chat/output/tree.c - arguments as MiniMax M3 writes them -> JSON: nested tags, before each of which a token stands
 * that is not text, so that any text may stand between. */
#include "chat/output/json.h"
#include "chat/output/literal.h"

#include <string.h>

#define TOKEN "]<]minimax[>["
enum { TOKEN_LEN = sizeof TOKEN - 1 };

typedef struct reader {
    const char *p, *end;
    uint32_t depth;
    nib_buf *out;
} reader;

static const char *find_token(const char *p, const char *end) {
    while (end - p >= TOKEN_LEN) {
        const char *at = memchr(p, *TOKEN, (size_t)(end - p) - TOKEN_LEN + 1);
        if (!at) break;
        if (memcmp(at, TOKEN, TOKEN_LEN) == 0) return at;
        p = at + 1;
    }
    return NULL;
}

/* The tag that begins at p; *next stands behind it. False: there is none. */
static bool read_tag(const char *p, const char *end, nib_str *name, bool *closes, const char **next) {
    if (end - p < TOKEN_LEN + 2 || memcmp(p, TOKEN "<", TOKEN_LEN + 1) != 0) return false;
    p += TOKEN_LEN + 1;
    *closes = *p == '/';
    if (*closes) p++;
    const char *close = memchr(p, '>', (size_t)(end - p));
    if (!close || close == p) return false;
    *name = (nib_str){p, (size_t)(close - p)};
    *next = close + 1;
    return true;
}

static bool is_same(nib_str a, nib_str b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static bool read_content(reader *r, nib_str tag, const nib_chat_schema *schema);

/* Elements up to a closing tag or the end: members of an object, or items. */
static bool read_elements(reader *r, const nib_chat_schema *schema) {
    static const nib_str item = {"item", 4};
    nib_str name;
    bool closes, is_list = false;
    const char *next;
    for (uint32_t n = 0;; n++) {
        while (r->p < r->end && nib_chat_is_blank(*r->p)) r->p++;
        bool is_over = !read_tag(r->p, r->end, &name, &closes, &next) || closes;
        if (n == 0) is_list = !is_over && r->depth > 0 && is_same(name, item);
        if (n == 0) nib_buf_char(r->out, is_list ? '[' : '{');
        if (is_over) return nib_buf_char(r->out, is_list ? ']' : '}');
        if (is_list != (r->depth > 0 && is_same(name, item))) return false;
        r->p = next;
        if (n > 0) nib_buf_char(r->out, ',');
        if (!is_list && (!nib_chat_json_put(r->out, name) || !nib_buf_char(r->out, ':'))) return false;
        if (!read_content(r, name, is_list ? nib_chat_schema_items(schema) : nib_chat_schema_property(schema, name)))
            return false;
    }
}

/* What stands between the tags: text, or elements. */
static bool read_content(reader *r, nib_str tag, const nib_chat_schema *schema) {
    nib_str name, text = {r->p, 0};
    bool closes;
    const char *next, *token = find_token(r->p, r->end);
    if (!token || ++r->depth == NIB_CHAT_JSON_DEPTH) return false;
    text.len = (size_t)(token - text.ptr);
    if (!read_tag(token, r->end, &name, &closes, &next)) return false;
    if (!closes) {
        if (nib_chat_trim(text).len || !read_elements(r, schema)) return false;
    } else {
        unsigned types = nib_chat_schema_types(schema);
        bool is_empty = text.len == 0 && types && !(types & NIB_CHAT_STRING);
        if (is_empty) nib_buf_str(r->out, types & NIB_CHAT_ARRAY ? "[]" : types & NIB_CHAT_OBJECT ? "{}" : "null");
        else nib_chat_param_put(text, schema, r->out);
        r->p = token;
    }
    r->depth--;
    if (!read_tag(r->p, r->end, &name, &closes, &next) || !closes || !is_same(name, tag)) return false;
    r->p = next;
    return true;
}

bool nib_chat_tree_object(nib_str text, const nib_chat_schema *schema, nib_buf *out) {
    reader r = {text.ptr, text.ptr + text.len, 0, out};
    return read_elements(&r, schema) && r.p == r.end && !out->failed;
}
