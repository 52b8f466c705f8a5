/* jinja/json.c - the reader of the data that templates are rendered with: JSON text in, values in an arena out. Its own,
 * because the values must be ordered, marked as untrusted and counted against the memory of the render. */
#include "jinja/json.h"

#include "base/status.h"
#include "jinja/chars.h"
#include "jinja/dict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *start, *p, *end;
    uint32_t depth, max_depth;
    nib_arena *arena;
    nib_error *err;
} reader;

static bool read_value(reader *r, jinja_value *out);

static bool fail(reader *r, const char *what) {
    nib_fail(r->err, NIB_E_ARG, "the data is not JSON: %s at byte %zu", what, (size_t)(r->p - r->start));
    return false;
}

static bool fail_memory(reader *r) {
    nib_fail(r->err, NIB_E_LIMIT, "the data needs more than %zu bytes of memory", r->arena->limit);
    return false;
}

static void skip_blanks(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

static bool skip_char(reader *r, char c) {
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

/* ---- strings */

static bool read_hex(reader *r, uint32_t *x) {
    *x = 0;
    for (int i = 0; i < 4; i++) {
        int digit = r->p < r->end && (unsigned char)*r->p < 0x80 ? nib_jinja_digit(*r->p) : -1;
        if (digit < 0 || digit > 15) return fail(r, "four hexadecimal digits expected");
        *x = *x << 4 | (uint32_t)digit;
        r->p++;
    }
    return true;
}

/* Behind a backslash. */
static bool read_escape(reader *r, char **to) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t cp, low;
    if (r->p >= r->end) return fail(r, "the end");
    const char *letter = *r->p ? strchr(letters, *r->p) : NULL;
    if (letter) {
        *(*to)++ = values[letter - letters];
        r->p++;
        return true;
    }
    if (*r->p++ != 'u') return fail(r, "an unknown escape");
    if (!read_hex(r, &cp)) return false;
    if (cp >= 0xD800 && cp < 0xE000) {
        if (cp >= 0xDC00 || !skip_word(r, "\\u")) return fail(r, "half of a surrogate pair");
        if (!read_hex(r, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return fail(r, "half of a surrogate pair");
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
    }
    *to += nib_jinja_encode(cp, *to);
    return true;
}

static bool read_string(reader *r, jinja_value *out) {
    const char *close = ++r->p;
    while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= r->end) return fail(r, "a string without an end");
    char *text = nib_arena_alloc(r->arena, (size_t)(close - r->p)), *to = text;
    if (!text) return fail_memory(r);
    while (r->p < close) {
        uint32_t cp;
        size_t n = nib_utf8_char(r->p, (size_t)(close - r->p), &cp);
        if (n == 0) return fail(r, "a byte that is not UTF-8");
        if (cp < 0x20) return fail(r, "a control character in a string");
        if (cp == '\\') {
            r->p++;
            if (!read_escape(r, &to)) return false;
            continue;
        }
        memcpy(to, r->p, n);
        to += n;
        r->p += n;
    }
    r->p++;
    *out = jinja_str(text, (size_t)(to - text));
    return true;
}

/* ---- numbers */

static bool read_number(reader *r, jinja_value *out) {
    char text[400];
    size_t n = 0;
    bool is_float = false;
    const char *p = r->p;
    for (; p < r->end && strchr("+-0123456789.eE", *p) && *p && n < sizeof text - 1; p++) {
        is_float |= *p == '.' || *p == 'e' || *p == 'E';
        text[n++] = *p;
    }
    text[n] = 0;
    const char *digits = text + (text[0] == '-');
    char *end, last = n ? text[n - 1] : 0;
    bool is_bad = !nib_jinja_is_digit(*digits) || (digits[0] == '0' && nib_jinja_is_digit(digits[1])) || strstr(text, ".e") ||
                  strstr(text, ".E") || !nib_jinja_is_digit(last);
    errno = 0;
    if (is_float) *out = jinja_float(strtod(text, &end));
    else *out = jinja_int(strtoll(text, &end, 10));
    if (is_bad || *end || n == sizeof text - 1) return fail(r, "a malformed number");
    if (!is_float && errno == ERANGE) return fail(r, "an integer beyond 64 bits");
    r->p = p;
    return true;
}

/* ---- containers */

static bool push(reader *r, jinja_list *list, const jinja_value *item) {
    if (list->n == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        jinja_value *items = nib_arena_alloc(r->arena, capacity * sizeof *items);
        if (!items) return fail_memory(r);
        if (list->n) memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = *item;
    return true;
}

static bool read_list(reader *r, jinja_value *out) {
    jinja_list *list = nib_arena_alloc(r->arena, sizeof *list);
    jinja_value item;
    if (!list) return fail_memory(r);
    *list = (jinja_list){0};
    r->p++;
    if (!skip_char(r, ']')) {
        do
            if (!read_value(r, &item) || !push(r, list, &item)) return false;
        while (skip_char(r, ','));
        if (!skip_char(r, ']')) return fail(r, "',' or ']' expected");
    }
    *out = (jinja_value){.type = JINJA_LIST, .as.list = list};
    return true;
}

static bool read_dict(reader *r, jinja_value *out) {
    jinja_dict *dict = nib_arena_alloc(r->arena, sizeof *dict);
    jinja_value key, value;
    if (!dict) return fail_memory(r);
    *dict = (jinja_dict){0};
    r->p++;
    if (!skip_char(r, '}')) {
        do {
            skip_blanks(r);
            if (r->p >= r->end || *r->p != '"') return fail(r, "a key expected");
            if (!read_string(r, &key)) return false;
            key.is_trusted = false;
            if (!skip_char(r, ':')) return fail(r, "':' expected");
            if (!read_value(r, &value)) return false;
            if (!nib_jinja_dict_set(r->arena, dict, &key, &value))
                return dict->n_probes < JINJA_MAX_PROBES ? fail_memory(r) : fail(r, "too many keys with one hash");
        } while (skip_char(r, ','));
        if (!skip_char(r, '}')) return fail(r, "',' or '}' expected");
    }
    *out = (jinja_value){.type = JINJA_DICT, .as.dict = dict};
    return true;
}

static bool read_word(reader *r, jinja_value *out) {
    if (skip_word(r, "true")) *out = jinja_bool(true);
    else if (skip_word(r, "false")) *out = jinja_bool(false);
    else if (skip_word(r, "null")) *out = jinja_none();
    else return fail(r, "a value expected");
    return true;
}

static bool read_value(reader *r, jinja_value *out) {
    skip_blanks(r);
    if (r->p >= r->end) return fail(r, "a value expected");
    if (++r->depth > r->max_depth) return fail(r, "nested too deep");
    bool ok;
    switch (*r->p) {
    case '"': ok = read_string(r, out); break;
    case '[': ok = read_list(r, out); break;
    case '{': ok = read_dict(r, out); break;
    case 't':
    case 'f':
    case 'n': ok = read_word(r, out); break;
    default: ok = read_number(r, out);
    }
    r->depth--;
    out->is_trusted = false;
    return ok;
}

nib_status nib_jinja_json_read(nib_str text, uint32_t max_depth, nib_arena *arena, jinja_value *out, nib_error *err) {
    nib_error local;
    reader r = {text.ptr, text.ptr, text.ptr + text.len, 0, max_depth, arena, err ? err : &local};
    if (text.len > UINT32_MAX) return nib_fail(err, NIB_E_ARG, "%zu bytes of data; at most 4 GiB", text.len);
    if (!read_value(&r, out)) return r.err->code;
    skip_blanks(&r);
    return r.p == r.end || fail(&r, "something behind the value") ? NIB_OK : r.err->code;
}
