/* chat/output/gemma.c - arguments as Gemma 4 writes them -> JSON: keys without quotes, strings between <|"|>. */
#include "chat/output/json.h"
#include "chat/output/literal.h"

#include <string.h>

#define QUOTE "<|\"|>"
enum { QUOTE_LEN = sizeof QUOTE - 1 };

typedef struct reader {
    const char *p, *end;
    uint32_t depth;
    nib_buf *out;
} reader;

static bool read_value(reader *r);

static bool skip_char(reader *r, char c) {
    while (r->p < r->end && nib_chat_is_blank(*r->p)) r->p++;
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static const char *find_quote(const char *p, const char *end) {
    while (end - p >= QUOTE_LEN && memcmp(p, QUOTE, QUOTE_LEN) != 0) p++;
    return end - p >= QUOTE_LEN ? p : NULL;
}

static bool is_quote(const reader *r) {
    return r->end - r->p >= QUOTE_LEN && memcmp(r->p, QUOTE, QUOTE_LEN) == 0;
}

static bool read_string(reader *r) {
    const char *text = r->p + QUOTE_LEN, *close = find_quote(text, r->end);
    if (!close) return false;
    r->p = close + QUOTE_LEN;
    return nib_chat_json_put(r->out, (nib_str){text, (size_t)(close - text)});
}

/* What stands up to one of the characters. */
static nib_str read_plain(reader *r, const char *ends) {
    nib_str text = {r->p, 0};
    while (r->p < r->end && (!*r->p || !strchr(ends, *r->p))) r->p++;
    text.len = (size_t)(r->p - text.ptr);
    return nib_chat_trim(text);
}

static bool read_key(reader *r) {
    while (r->p < r->end && nib_chat_is_blank(*r->p)) r->p++;
    if (is_quote(r)) return read_string(r);
    nib_str key = read_plain(r, ":,{}[]");
    return key.len && nib_chat_json_put(r->out, key);
}

/* Numbers and words of JSON; anything else is taken for a string without its marks. */
static bool read_bare(reader *r) {
    nib_str text = read_plain(r, ",{}[]");
    if (!text.len) return false;
    return nib_chat_json_is_valid(text) ? nib_buf_append(r->out, text.ptr, text.len) : nib_chat_json_put(r->out, text);
}

/* Behind the opening bracket. */
static bool read_members(reader *r, char close) {
    for (bool is_first = true; !skip_char(r, close); is_first = false) {
        if (!is_first && (!skip_char(r, ',') || !nib_buf_char(r->out, ','))) return false;
        if (close == '}' && (!read_key(r) || !skip_char(r, ':') || !nib_buf_char(r->out, ':'))) return false;
        if (!read_value(r)) return false;
    }
    return nib_buf_char(r->out, close);
}

static bool read_value(reader *r) {
    while (r->p < r->end && nib_chat_is_blank(*r->p)) r->p++;
    if (r->p == r->end || r->depth == NIB_CHAT_JSON_DEPTH) return false;
    if (is_quote(r)) return read_string(r);
    if (*r->p != '{' && *r->p != '[') return read_bare(r);
    char open = *r->p++;
    nib_buf_char(r->out, open);
    r->depth++;
    bool ok = read_members(r, open == '{' ? '}' : ']');
    r->depth--;
    return ok;
}

bool nib_chat_gemma_object(nib_str text, nib_buf *out) {
    reader r = {text.ptr, text.ptr + text.len, 0, out};
    return text.len && *text.ptr == '{' && read_value(&r) && r.p == r.end && !out->failed;
}
