/* chat/output/python.c - Python's literals and calls -> JSON, as models write them: one pass, nested at most 64 deep.
 */
#include "base/utf8.h"
#include "chat/output/json.h"
#include "chat/output/literal.h"

#include <string.h>

enum { MAX_DEPTH = NIB_CHAT_JSON_DEPTH - 1 };

static bool read_value(nib_chat_python *r, nib_buf *out);

static void skip_blanks(nib_chat_python *r) {
    while (r->p < r->end && nib_chat_is_blank(*r->p)) r->p++;
}

bool nib_chat_python_char(nib_chat_python *r, char c) {
    skip_blanks(r);
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
}

/* A word, dots and dashes inside it if they may be. */
static nib_str read_word(nib_chat_python *r, const char *also) {
    skip_blanks(r);
    nib_str word = {r->p, 0};
    if (r->p == r->end || !is_letter(*r->p)) return word;
    while (r->p < r->end && (is_word_char(*r->p) || (*r->p && strchr(also, *r->p)))) r->p++;
    word.len = (size_t)(r->p - word.ptr);
    return word;
}

static bool is_word(nib_str word, const char *text) {
    return word.len == strlen(text) && memcmp(word.ptr, text, word.len) == 0;
}

/* ---- strings */

static bool read_hex(nib_chat_python *r, int n_digits, uint32_t *cp) {
    *cp = 0;
    for (int i = 0; i < n_digits; i++, r->p++) {
        const char *digits = "0123456789abcdef", *at = NULL;
        if (r->p < r->end && *r->p) at = strchr(digits, *r->p >= 'A' && *r->p <= 'F' ? *r->p | 0x20 : *r->p);
        if (!at) return false;
        *cp = *cp << 4 | (uint32_t)(at - digits);
    }
    return *cp <= 0x10FFFF && (*cp < 0xD800 || *cp > 0xDFFF);
}

/* Behind a backslash; one that stands for nothing is kept, as Python does. */
static bool read_escape(nib_chat_python *r, nib_buf *text) {
    static const char letters[] = "\\'\"nrtbfav0", values[] = "\\'\"\n\r\t\b\f\a\v";
    if (r->p == r->end) return false;
    char c = *r->p++;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) return nib_buf_append(text, values + (letter - letters), 1);
    if (c == '\n') return true;
    if (c != 'x' && c != 'u' && c != 'U') return nib_buf_char(text, '\\') && nib_buf_char(text, c);
    uint32_t cp;
    if (!read_hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, &cp)) return false;
    return nib_chat_json_put_char(text, cp);
}

static bool read_string(nib_chat_python *r, nib_buf *out) {
    nib_buf text = {0};
    char quote = *r->p++;
    bool is_closed = false;
    while (r->p < r->end && !is_closed) {
        char c = *r->p++;
        if (c == quote) is_closed = true;
        else if (c != '\\') nib_buf_char(&text, c);
        else if (!read_escape(r, &text)) break;
    }
    if (is_closed) nib_chat_json_put(out, (nib_str){text.ptr ? text.ptr : "", text.len});
    out->failed |= text.failed;
    nib_buf_free(&text);
    return is_closed;
}

/* ---- the rest */

static bool read_number(nib_chat_python *r, nib_buf *out) {
    nib_str number = {r->p, 0};
    while (r->p < r->end && (is_word_char(*r->p) || *r->p == '.' || *r->p == '-' || *r->p == '+')) r->p++;
    number.len = (size_t)(r->p - number.ptr);
    return number.len && nib_chat_json_is_valid(number) && nib_buf_append(out, number.ptr, number.len);
}

static bool read_literal(nib_chat_python *r, nib_buf *out) {
    static const char *const words[][2] = {{"None", "null"}, {"True", "true"}, {"False", "false"},
                                           {"null", "null"}, {"true", "true"}, {"false", "false"}};
    nib_str word = read_word(r, "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(word, words[i][0])) return nib_buf_str(out, words[i][1]);
    return false;
}

/* Behind the opening bracket. */
static bool read_items(nib_chat_python *r, char close, nib_buf *out) {
    nib_buf_char(out, '[');
    for (bool is_first = true; !nib_chat_python_char(r, close); is_first = false) {
        if (!is_first && !nib_chat_python_char(r, ',')) return false;
        if (!is_first && nib_chat_python_char(r, close)) break;
        if (!is_first) nib_buf_char(out, ',');
        if (!read_value(r, out)) return false;
    }
    return nib_buf_char(out, ']');
}

static bool read_dict(nib_chat_python *r, nib_buf *out) {
    nib_buf_char(out, '{');
    for (bool is_first = true; !nib_chat_python_char(r, '}'); is_first = false) {
        if (!is_first && !nib_chat_python_char(r, ',')) return false;
        if (!is_first && nib_chat_python_char(r, '}')) break;
        if (!is_first) nib_buf_char(out, ',');
        skip_blanks(r);
        if (r->p == r->end || (*r->p != '"' && *r->p != '\'')) return false;
        if (!read_string(r, out) || !nib_chat_python_char(r, ':') || !nib_buf_char(out, ':') || !read_value(r, out))
            return false;
    }
    return nib_buf_char(out, '}');
}

static bool read_value(nib_chat_python *r, nib_buf *out) {
    skip_blanks(r);
    if (r->p == r->end || r->depth == MAX_DEPTH) return false;
    r->depth++;
    bool ok;
    switch (*r->p) {
    case '"':
    case '\'': ok = read_string(r, out); break;
    case '[': r->p++, ok = read_items(r, ']', out); break;
    case '(': r->p++, ok = read_items(r, ')', out); break;
    case '{': r->p++, ok = read_dict(r, out); break;
    default: ok = is_letter(*r->p) ? read_literal(r, out) : read_number(r, out);
    }
    r->depth--;
    return ok;
}

bool nib_chat_python_value(nib_str text, nib_buf *out) {
    nib_chat_python r = {text.ptr, text.ptr + text.len, 0};
    bool ok = read_value(&r, out);
    skip_blanks(&r);
    return ok && r.p == r.end && !out->failed;
}

bool nib_chat_python_call(nib_chat_python *r, nib_str *name, nib_buf *out) {
    *name = read_word(r, ".-");
    if (!name->len || !nib_chat_python_char(r, '(')) return false;
    nib_buf_char(out, '{');
    for (bool is_first = true; !nib_chat_python_char(r, ')'); is_first = false) {
        if (!is_first && !nib_chat_python_char(r, ',')) return false;
        if (!is_first && nib_chat_python_char(r, ')')) break;
        if (!is_first) nib_buf_char(out, ',');
        nib_str key = read_word(r, "");
        if (!key.len || !nib_chat_python_char(r, '=') || !nib_chat_json_put(out, key)) return false;
        if (!nib_buf_char(out, ':') || !read_value(r, out)) return false;
    }
    return nib_buf_char(out, '}') && !out->failed;
}
