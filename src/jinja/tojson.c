/* jinja/tojson.c - values -> JSON text, as Python's json.dumps has it with Hugging Face's settings: nothing is escaped for
 * HTML, and characters beyond ASCII stay. */
#include "jinja/chars.h"
#include "jinja/eval.h"
#include "jinja/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    jinja *j;
    const jinja_json_style *style;
    uint32_t level;
} writer;

static bool put_any(writer *w, const jinja_value *v);

/* One character as JSON shows it, when that differs. */
static const char *escaped(uint32_t cp, int ensure_ascii, char text[16]) {
    static const char letters[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
    const char *letter = cp && cp < 0x80 ? strchr(letters, (char)cp) : NULL;
    if (letter) snprintf(text, 16, "\\%c", names[letter - letters]);
    else if (cp < 0x20 || (ensure_ascii && cp >= 0x7F && cp < 0x10000 && cp != 0x7F)) snprintf(text, 16, "\\u%04x", (unsigned)cp);
    else if (ensure_ascii && cp >= 0x10000)
        snprintf(text, 16, "\\u%04x\\u%04x", 0xD7C0u + (unsigned)(cp >> 10), 0xDC00u + (unsigned)(cp & 0x3FF));
    else return NULL;
    return text;
}

static bool put_string(writer *w, const jinja_value *s) {
    return nib_jinja_put(w->j, "\"", 1, s->is_trusted) && nib_jinja_put_rewritten(w->j, s, escaped, w->style->ensure_ascii) &&
           nib_jinja_put(w->j, "\"", 1, s->is_trusted);
}

static bool put_float(writer *w, const jinja_value *v) {
    char text[40];
    size_t n = nib_jinja_float_text(v->as.f, text);
    if (!nib_jinja_work(w->j, JINJA_FLOAT_WORK)) return false;
    if (isnan(v->as.f)) return nib_jinja_put(w->j, "NaN", 3, v->is_trusted);
    if (isinf(v->as.f)) return nib_jinja_put_format(w->j, v->is_trusted, v->as.f > 0 ? "Infinity" : "-Infinity");
    return nib_jinja_put(w->j, text, n, v->is_trusted);
}

static bool put_line(writer *w, bool is_trusted) {
    if (!w->style->indent.ptr) return true;
    if (!nib_jinja_put(w->j, "\n", 1, is_trusted)) return false;
    for (uint32_t i = 0; i < w->level; i++)
        if (!nib_jinja_put(w->j, w->style->indent.ptr, w->style->indent.len, is_trusted)) return false;
    return true;
}

/* What stands before item i. */
static bool put_between(writer *w, uint32_t i, bool is_trusted) {
    jinja_value separator = w->style->item_separator;
    return (i == 0 || nib_jinja_put(w->j, separator.as.ptr, separator.len, is_trusted)) && put_line(w, is_trusted);
}

static bool put_list(writer *w, const jinja_value *v) {
    const jinja_list *list = v->as.list;
    if (list->flavor > JINJA_AS_TUPLE)
        return nib_jinja_fail(w->j, "TypeError: Object of type %s is not JSON serializable", nib_jinja_type_name(v));
    if (list->n == 0) return nib_jinja_put(w->j, "[]", 2, v->is_trusted);
    w->level++;
    if (!nib_jinja_put(w->j, "[", 1, v->is_trusted)) return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (!put_between(w, i, v->is_trusted) || !put_any(w, &list->items[i])) return false;
    w->level--;
    return put_line(w, v->is_trusted) && nib_jinja_put(w->j, "]", 1, v->is_trusted);
}

/* Keys that are no strings are written as such. */
static bool put_key(writer *w, const jinja_value *key) {
    if (key->type == JINJA_STR) return put_string(w, key);
    if (key->type != JINJA_NONE && !jinja_is_number(key))
        return nib_jinja_fail(w->j, "TypeError: keys must be str, int, float, bool or None, not %s", nib_jinja_type_name(key));
    return nib_jinja_put(w->j, "\"", 1, true) && put_any(w, key) && nib_jinja_put(w->j, "\"", 1, true);
}

static int by_key(const void *a, const void *b) {
    const jinja_value *x = &(*(const jinja_pair *const *)a)->key, *y = &(*(const jinja_pair *const *)b)->key;
    uint32_t n = x->len < y->len ? x->len : y->len;
    int order = n ? memcmp(x->as.ptr, y->as.ptr, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static bool sort_pairs(jinja *j, const jinja_dict *dict, const jinja_pair ***out) {
    *out = nib_jinja_alloc(j, dict->n * sizeof **out);
    for (uint32_t i = 0; *out && i < dict->n; i++) {
        (*out)[i] = &dict->pairs[i];
        if (dict->pairs[i].key.type != JINJA_STR) return nib_jinja_fail(j, "TypeError: only strings are sorted as keys of JSON");
    }
    if (*out) qsort(*out, dict->n, sizeof **out, by_key);
    return *out != NULL;
}

static bool put_dict(writer *w, const jinja_value *v) {
    const jinja_dict *dict = v->as.dict;
    const jinja_value *separator = &w->style->key_separator;
    const jinja_pair **sorted = NULL;
    if (dict->n == 0) return nib_jinja_put(w->j, "{}", 2, v->is_trusted);
    if (w->style->sort_keys && !sort_pairs(w->j, dict, &sorted)) return false;
    w->level++;
    if (!nib_jinja_put(w->j, "{", 1, v->is_trusted)) return false;
    for (uint32_t i = 0; i < dict->n; i++) {
        const jinja_pair *pair = sorted ? sorted[i] : &dict->pairs[i];
        if (!put_between(w, i, v->is_trusted) || !put_key(w, &pair->key)) return false;
        if (!nib_jinja_put(w->j, separator->as.ptr, separator->len, v->is_trusted) || !put_any(w, &pair->value)) return false;
    }
    w->level--;
    return put_line(w, v->is_trusted) && nib_jinja_put(w->j, "}", 1, v->is_trusted);
}

static bool put_kind(writer *w, const jinja_value *v) {
    switch (v->type) {
    case JINJA_NONE: return nib_jinja_put(w->j, "null", 4, v->is_trusted);
    case JINJA_BOOL: return nib_jinja_put(w->j, v->as.b ? "true" : "false", v->as.b ? 4 : 5, v->is_trusted);
    case JINJA_INT: return nib_jinja_put_value(w->j, v);
    case JINJA_FLOAT: return put_float(w, v);
    case JINJA_STR: return put_string(w, v);
    case JINJA_LIST: return put_list(w, v);
    case JINJA_DICT: return put_dict(w, v);
    default: return nib_jinja_fail(w->j, "TypeError: Object of type %s is not JSON serializable", nib_jinja_type_name(v));
    }
}

static bool put_any(writer *w, const jinja_value *v) {
    bool ok = nib_jinja_enter(w->j) && put_kind(w, v);
    w->j->depth--;
    return ok;
}

bool nib_jinja_put_json(jinja *j, const jinja_value *v, const jinja_json_style *style) {
    writer w = {j, style, 0};
    return put_any(&w, v);
}
