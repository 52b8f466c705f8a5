/* jinja/json.c - the reader of the data that templates are rendered with: JSON text in, values in an arena out. Its own,
 * because the values must be ordered, marked as untrusted and counted against the memory of the render. */
#include "jinja/json.h"

#include "base/json_text.h"
#include "base/status.h"
#include "jinja/chars.h"
#include "jinja/dict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    nib_json_cursor text;
    const char *start;
    uint32_t depth, max_depth;
    nib_arena *arena;
    nib_error *err;
} reader;

static bool read_value(reader *r, jinja_value *out);

static bool fail(reader *r, const char *what) {
    nib_fail(r->err, NIB_E_ARG, "the data is not JSON: %s at byte %zu", what, (size_t)(r->text.at - r->start));
    return false;
}

static bool fail_memory(reader *r) {
    nib_fail(r->err, NIB_E_LIMIT, "the data needs more than %zu bytes of memory", r->arena->limit);
    return false;
}

static bool skip_char(reader *r, char c) {
    return nib_json_skip(&r->text, c);
}

/* ---- strings */

static bool read_string(reader *r, jinja_value *out) {
    size_t len;
    r->text.at++;
    char *text = nib_arena_alloc(r->arena, nib_json_string_room(&r->text));
    if (!text) return fail_memory(r);
    if (!nib_json_string(&r->text, text, &len)) return fail(r, r->text.fault);
    *out = jinja_str(text, len);
    return true;
}

/* ---- numbers */

static bool read_number(reader *r, jinja_value *out) {
    char text[400];
    const char *begin = r->text.at;
    nib_str number;
    if (!nib_json_number(&r->text, &number) || number.len >= sizeof text) {
        r->text.at = begin;
        return fail(r, "a malformed number");
    }
    memcpy(text, number.ptr, number.len);
    text[number.len] = 0;
    errno = 0;
    if (strpbrk(text, ".eE")) *out = jinja_float(strtod(text, NULL));
    else *out = jinja_int(strtoll(text, NULL, 10));
    if (out->type != JINJA_INT || errno != ERANGE) return true;
    r->text.at = begin;
    return fail(r, "an integer beyond 64 bits");
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
    r->text.at++;
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
    r->text.at++;
    if (!skip_char(r, '}')) {
        do {
            nib_json_blanks(&r->text);
            if (r->text.at >= r->text.end || *r->text.at != '"') return fail(r, "a key expected");
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
    if (nib_json_word(&r->text, "true")) *out = jinja_bool(true);
    else if (nib_json_word(&r->text, "false")) *out = jinja_bool(false);
    else if (nib_json_word(&r->text, "null")) *out = jinja_none();
    else return fail(r, "a value expected");
    return true;
}

static bool read_value(reader *r, jinja_value *out) {
    nib_json_blanks(&r->text);
    if (r->text.at >= r->text.end) return fail(r, "a value expected");
    if (++r->depth > r->max_depth) return fail(r, "nested too deep");
    bool ok;
    switch (*r->text.at) {
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
    reader r = {{text.ptr, text.ptr + text.len, NULL}, text.ptr, 0, max_depth, arena, err ? err : &local};
    if (text.len > UINT32_MAX) return nib_fail(err, NIB_E_ARG, "%zu bytes of data; at most 4 GiB", text.len);
    if (!read_value(&r, out)) return r.err->code;
    nib_json_blanks(&r.text);
    return r.text.at == r.text.end || fail(&r, "something behind the value") ? NIB_OK : r.err->code;
}
