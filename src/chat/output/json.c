/* chat/output/json.c - a pushdown automaton over the bytes of JSON: state and a bit for each container, so that it can
 * stop at any byte and go on with the next. */
#include "chat/output/json.h"

#include "base/utf8.h"

#include <string.h>

enum {
    IN_VALUE, /* one must come */
    IN_FIRST_KEY,
    IN_KEY,
    IN_COLON,
    IN_FIRST_ITEM,
    IN_NEXT,
    IN_STRING,
    IN_ESCAPE,
    IN_HEX,
    IN_PAIR, /* the second half of a pair must come */
    IN_WORD,
    IN_MINUS,
    IN_ZERO,
    IN_INT,
    IN_POINT,
    IN_FRACTION,
    IN_E,
    IN_E_SIGN,
    IN_EXPONENT,
    IN_NOTHING, /* the value is complete */
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_in_object(const nib_chat_json *j) {
    return j->objects >> (j->depth - 1) & 1;
}

static void end_value(nib_chat_json *j) {
    j->state = j->depth ? IN_NEXT : IN_NOTHING;
}

static bool open(nib_chat_json *j, bool is_object) {
    if (j->depth == NIB_CHAT_JSON_DEPTH) return false;
    uint64_t bit = UINT64_C(1) << j->depth++;
    j->objects = is_object ? j->objects | bit : j->objects & ~bit;
    j->state = is_object ? IN_FIRST_KEY : IN_FIRST_ITEM;
    return true;
}

static bool close(nib_chat_json *j, char c) {
    if (j->depth == 0 || c != (is_in_object(j) ? '}' : ']')) return false;
    j->depth--;
    end_value(j);
    return true;
}

static bool begin_string(nib_chat_json *j, bool is_key) {
    j->is_key = is_key;
    j->wants_low = false;
    j->state = IN_STRING;
    return true;
}

static bool begin_word(nib_chat_json *j, const char *rest) {
    j->word = rest;
    j->state = IN_WORD;
    return true;
}

static bool begin_value(nib_chat_json *j, char c) {
    switch (c) {
    case '{': return open(j, true);
    case '[': return open(j, false);
    case '"': return begin_string(j, false);
    case 't': return begin_word(j, "rue");
    case 'f': return begin_word(j, "alse");
    case 'n': return begin_word(j, "ull");
    case '-': j->state = IN_MINUS; return true;
    case '0': j->state = IN_ZERO; return true;
    default: j->state = IN_INT; return is_digit(c);
    }
}

/* ---- strings */

/* The first byte of a character, or one that must follow. */
static bool step_utf8(nib_chat_json *j, unsigned char c) {
    if (j->n_more) {
        if (c < j->low || c > j->high) return false;
        j->low = 0x80, j->high = 0xBF;
        j->n_more--;
        return true;
    }
    if (c < 0xC2 || c > 0xF4) return false;
    j->n_more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    j->low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    j->high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    return true;
}

static bool step_string(nib_chat_json *j, char c) {
    if (j->n_more || (unsigned char)c >= 0x80) return step_utf8(j, (unsigned char)c);
    if ((unsigned char)c < 0x20) return false;
    if (c == '\\') j->state = IN_ESCAPE;
    if (c != '"') return true;
    if (j->is_key) j->state = IN_COLON;
    else end_value(j);
    return true;
}

static bool step_escape(nib_chat_json *j, char c) {
    j->state = c == 'u' ? IN_HEX : IN_STRING;
    j->n_hex = 0;
    j->code = 0;
    return c && strchr("\"\\/bfnrtu", c) && (!j->wants_low || c == 'u');
}

static bool step_hex(nib_chat_json *j, char c) {
    const char *at = c ? strchr("0123456789abcdefABCDEF", c) : NULL;
    if (!at) return false;
    int digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
    j->code = (uint16_t)(j->code << 4 | digit);
    if (++j->n_hex < 4) return true;
    bool is_low = j->code >= 0xDC00 && j->code < 0xE000, is_high = j->code >= 0xD800 && j->code < 0xDC00;
    if (is_low != j->wants_low) return false;
    j->wants_low = is_high;
    j->state = is_high ? IN_PAIR : IN_STRING;
    return true;
}

/* ---- numbers */

/* What an exponent, a point or another digit makes of the number; false: it ends before c. */
static bool step_number(nib_chat_json *j, char c) {
    bool has_point = j->state == IN_FRACTION, has_e = j->state == IN_EXPONENT;
    if (is_digit(c) && j->state != IN_ZERO) return true;
    if (c == '.' && !has_point && !has_e) j->state = IN_POINT;
    else if ((c == 'e' || c == 'E') && !has_e) j->state = IN_E;
    else return false;
    return true;
}

static bool must_digit(nib_chat_json *j, char c, uint8_t next) {
    j->state = next;
    return is_digit(c);
}

/* ---- */

static bool step_between(nib_chat_json *j, char c) {
    if (nib_chat_is_blank(c)) return true;
    switch (j->state) {
    case IN_FIRST_KEY: return c == '}' ? close(j, c) : c == '"' && begin_string(j, true);
    case IN_KEY: return c == '"' && begin_string(j, true);
    case IN_COLON: j->state = IN_VALUE; return c == ':';
    case IN_FIRST_ITEM: return c == ']' ? close(j, c) : begin_value(j, c);
    case IN_NEXT:
        if (c != ',') return close(j, c);
        j->state = is_in_object(j) ? IN_KEY : IN_VALUE;
        return true;
    default: return begin_value(j, c);
    }
}

static bool step(nib_chat_json *j, char c) {
    switch (j->state) {
    case IN_STRING: return step_string(j, c);
    case IN_ESCAPE: return step_escape(j, c);
    case IN_HEX: return step_hex(j, c);
    case IN_PAIR: j->state = IN_ESCAPE; return c == '\\';
    case IN_WORD:
        if (*j->word != c) return false;
        if (!*++j->word) end_value(j);
        return true;
    case IN_MINUS:
        if (c == '0') j->state = IN_ZERO;
        else return must_digit(j, c, IN_INT);
        return true;
    case IN_POINT: return must_digit(j, c, IN_FRACTION);
    case IN_E:
        if (c == '+' || c == '-') j->state = IN_E_SIGN;
        else return must_digit(j, c, IN_EXPONENT);
        return true;
    case IN_E_SIGN: return must_digit(j, c, IN_EXPONENT);
    default: return step_between(j, c);
    }
}

static bool is_number_end(const nib_chat_json *j) {
    return j->state == IN_ZERO || j->state == IN_INT || j->state == IN_FRACTION || j->state == IN_EXPONENT;
}

/* Bytes of a string that need no second look. */
static size_t plain(const char *p, size_t n) {
    size_t i = 0;
    while (i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x80 && p[i] != '"' && p[i] != '\\') i++;
    return i;
}

nib_chat_json_result nib_chat_json_read(nib_chat_json *j, const char *p, size_t n, size_t *used) {
    size_t i = 0;
    while (i < n) {
        if (j->state == IN_STRING && !j->n_more) i += plain(p + i, n - i);
        if (i == n) break;
        if (is_number_end(j)) {
            if (step_number(j, p[i])) {
                i++;
                continue;
            }
            end_value(j);
        }
        bool was_done = j->state == IN_NOTHING;
        if (!was_done && !step(j, p[i])) {
            *used = i;
            return NIB_CHAT_JSON_BAD;
        }
        i += !was_done;
        if (j->state == IN_NOTHING) {
            *used = i;
            return NIB_CHAT_JSON_DONE;
        }
    }
    *used = n;
    return NIB_CHAT_JSON_MORE;
}

bool nib_chat_json_is_valid(nib_str text) {
    nib_chat_json j = {0};
    size_t used;
    text = nib_chat_trim(text);
    nib_chat_json_result result = nib_chat_json_read(&j, text.ptr, text.len, &used);
    return used == text.len &&
           (result == NIB_CHAT_JSON_DONE || (result == NIB_CHAT_JSON_MORE && j.depth == 0 && is_number_end(&j)));
}

/* ---- members */

static void skip_blanks(nib_chat_json_iter *iter) {
    while (iter->p < iter->end && (nib_chat_is_blank(*iter->p) || *iter->p == ',' || *iter->p == ':')) iter->p++;
}

static nib_str take(nib_chat_json_iter *iter) {
    nib_chat_json j = {0};
    size_t used;
    skip_blanks(iter);
    nib_str value = {iter->p, 0};
    nib_chat_json_read(&j, iter->p, (size_t)(iter->end - iter->p), &used);
    value.len = used;
    iter->p += used;
    return value;
}

nib_chat_json_iter nib_chat_json_begin(nib_str container) {
    return (nib_chat_json_iter){container.ptr + 1, container.ptr + container.len - 1};
}

bool nib_chat_json_next(nib_chat_json_iter *iter, nib_str *key, nib_str *value) {
    bool is_object = *iter->end == '}';
    skip_blanks(iter);
    if (iter->p >= iter->end) return false;
    *key = is_object ? take(iter) : (nib_str){iter->p, 0};
    *value = take(iter);
    return true;
}

static uint32_t hex4(const char *p) {
    uint32_t x = 0;
    for (int i = 0; i < 4; i++) x = x << 4 | (uint32_t)(is_digit(p[i]) ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return x;
}

bool nib_chat_json_put_char(nib_buf *out, uint32_t cp) {
    char c[4];
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6) c[i] = (char)(0x80 | (cp & 0x3F));
    c[0] = (char)(n == 1 ? cp : cp | (n == 2 ? 0xC0u : n == 3 ? 0xE0u : 0xF0u));
    return nib_buf_append(out, c, n);
}

bool nib_chat_json_decode(nib_str string, nib_buf *out) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *p = string.ptr + 1, *end = string.ptr + string.len - 1;
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        if (!nib_buf_append(out, p, (size_t)((escape ? escape : end) - p))) return false;
        if (!escape) break;
        p = escape + 2;
        if (escape[1] != 'u') {
            if (!nib_buf_char(out, values[strchr(letters, escape[1]) - letters])) return false;
            continue;
        }
        uint32_t cp = hex4(p);
        p += 4;
        if (cp >= 0xD800 && cp < 0xDC00) {
            cp = 0x10000 + ((cp - 0xD800) << 10) + (hex4(p + 2) - 0xDC00);
            p += 6;
        }
        if (!nib_chat_json_put_char(out, cp)) return false;
    }
    return true;
}

/* ---- out */

bool nib_chat_json_put(nib_buf *out, nib_str text) {
    static const char letters[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
    nib_buf_char(out, '"');
    for (size_t i = 0, n; i < text.len; i += n) {
        uint32_t cp;
        n = plain(text.ptr + i, text.len - i);
        if (n && !nib_buf_append(out, text.ptr + i, n)) return false;
        if (n) continue;
        n = nib_utf8_char(text.ptr + i, text.len - i, &cp);
        const char *letter = n == 1 && cp ? strchr(letters, (int)cp) : NULL;
        if (letter) nib_buf_printf(out, "\\%c", names[letter - letters]);
        else if (n == 0) n = 1, nib_buf_str(out, "\xEF\xBF\xBD");
        else if (cp < 0x20) nib_buf_printf(out, "\\u%04x", (unsigned)cp);
        else nib_buf_append(out, text.ptr + i, n);
    }
    return nib_buf_char(out, '"');
}

nib_str nib_chat_trim(nib_str text) {
    while (text.len && nib_chat_is_blank(*text.ptr)) text.ptr++, text.len--;
    while (text.len && nib_chat_is_blank(text.ptr[text.len - 1])) text.len--;
    return text;
}
