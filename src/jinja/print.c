/* jinja/print.c - values -> text, as Python's str() and repr() have it. What a value adds to its strings (quotes, brackets,
 * digits) is trusted as the value is. */
#include "jinja/chars.h"
#include "jinja/eval.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t nib_jinja_float_text(double x, char *text) {
    char digits[40];
    if (isnan(x) || isinf(x)) return (size_t)sprintf(text, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    int precision = fabs(x) < DBL_MIN ? 0 : 14; /* the fewest digits that read back the same: 15 are kept by a normal float */
    do snprintf(digits, sizeof digits, "%.*e", precision, x);
    while (strtod(digits, NULL) != x && ++precision < 17);
    for (size_t end = strcspn(digits, "e"); precision > 0 && digits[--end] == '0';) precision--;
    snprintf(digits, sizeof digits, "%.*e", precision, x);
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        int n_decimals = precision - exponent;
        return (size_t)snprintf(text, 32, "%.*f", n_decimals > 1 ? n_decimals : 1, x);
    }
    char mantissa[32];
    snprintf(mantissa, sizeof mantissa, "%.*s", (int)(strchr(digits, 'e') - digits), digits);
    return (size_t)snprintf(text, 32, "%se%c%02d", mantissa, exponent < 0 ? '-' : '+', abs(exponent));
}

/* ---- strings */

/* One character as repr shows it, when that differs; NULL: it stands for itself. */
static const char *escaped(uint32_t cp, int quote, char text[16]) {
    if (cp == '\\' || cp == (uint32_t)quote) snprintf(text, 16, "\\%c", (char)cp);
    else if (cp == '\n') return "\\n";
    else if (cp == '\r') return "\\r";
    else if (cp == '\t') return "\\t";
    else if (nib_jinja_is_printable(cp)) return NULL;
    else snprintf(text, 16, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    return text;
}

bool nib_jinja_put_rewritten(jinja *j, const jinja_value *s, jinja_escape_fn escape, int how) {
    size_t done = 0;
    if (!nib_jinja_work_on_chars(j, s->len)) return false;
    for (size_t i = 0, len; i < s->len; i += len) {
        uint32_t cp;
        char text[16];
        len = nib_jinja_char(s->as.ptr + i, s->len - i, &cp);
        const char *instead = escape(cp, how, text);
        if (!instead) continue;
        jinja_value before = jinja_part(*s, done, i);
        bool is_trusted = s->marks ? s->marks[i] : s->is_trusted;
        if (!nib_jinja_put_str(j, &before) || !nib_jinja_put(j, instead, strlen(instead), is_trusted)) return false;
        done = i + len;
    }
    jinja_value rest = jinja_part(*s, done, s->len);
    return nib_jinja_put_str(j, &rest);
}

static bool put_quoted(jinja *j, const jinja_value *s) {
    bool has_single = s->len && memchr(s->as.ptr, '\'', s->len), has_double = s->len && memchr(s->as.ptr, '"', s->len);
    const char *quote = has_single && !has_double ? "\"" : "'";
    return nib_jinja_put(j, quote, 1, s->is_trusted) && nib_jinja_put_rewritten(j, s, escaped, *quote) &&
           nib_jinja_put(j, quote, 1, s->is_trusted);
}

/* ---- containers */

static bool put_items(jinja *j, const jinja_value *items, uint32_t n, bool is_trusted) {
    for (uint32_t i = 0; i < n; i++)
        if ((i && !nib_jinja_put(j, ", ", 2, is_trusted)) || !nib_jinja_put_repr(j, &items[i])) return false;
    return true;
}

static bool put_list(jinja *j, const jinja_value *v) {
    static const char *const enclosing[][2] = {
#define FLAVOR(id, name, opening, closing) {opening, closing},
#include "jinja/flavors.def"
#undef FLAVOR
    };
    const jinja_list *list = v->as.list;
    const char *open = enclosing[list->flavor][0], *close = enclosing[list->flavor][1];
    if (!nib_jinja_put(j, open, strlen(open), v->is_trusted)) return false;
    if (list->flavor == JINJA_AS_RANGE) {
        if (!nib_jinja_put_format(j, v->is_trusted, "%lld, %lld", (long long)list->start, (long long)list->stop)) return false;
        if (list->step != 1 && !nib_jinja_put_format(j, v->is_trusted, ", %lld", (long long)list->step)) return false;
    } else if (list->flavor != JINJA_AS_GENERATOR) {
        if (!put_items(j, list->items, list->n, v->is_trusted)) return false;
        if (list->flavor == JINJA_AS_TUPLE && list->n == 1 && !nib_jinja_put(j, ",", 1, v->is_trusted)) return false;
    }
    return nib_jinja_put(j, close, strlen(close), v->is_trusted);
}

static bool put_dict(jinja *j, const jinja_value *v) {
    const jinja_dict *dict = v->as.dict;
    if (!nib_jinja_put(j, "{", 1, v->is_trusted)) return false;
    for (uint32_t i = 0; i < dict->n; i++) {
        if (i && !nib_jinja_put(j, ", ", 2, v->is_trusted)) return false;
        if (!nib_jinja_put_repr(j, &dict->pairs[i].key) || !nib_jinja_put(j, ": ", 2, v->is_trusted)) return false;
        if (!nib_jinja_put_repr(j, &dict->pairs[i].value)) return false;
    }
    return nib_jinja_put(j, "}", 1, v->is_trusted);
}

static bool put_namespace(jinja *j, const jinja_value *v) {
    return nib_jinja_put(j, "<Namespace ", 11, true) && put_dict(j, v) && nib_jinja_put(j, ">", 1, true);
}

static bool put_other(jinja *j, const jinja_value *v) {
    char text[40];
    switch (v->type) {
    case JINJA_UNDEFINED: return v->as.undefined->why != JINJA_UNSAFE || nib_jinja_fail_undefined(j, v);
    case JINJA_NONE: return nib_jinja_put(j, "None", 4, v->is_trusted);
    case JINJA_BOOL: return nib_jinja_put(j, v->as.b ? "True" : "False", v->as.b ? 4 : 5, v->is_trusted);
    case JINJA_INT: return nib_jinja_put_format(j, v->is_trusted, "%lld", (long long)v->as.i);
    case JINJA_FLOAT:
        return nib_jinja_work(j, JINJA_FLOAT_WORK) && nib_jinja_put(j, text, nib_jinja_float_text(v->as.f, text), v->is_trusted);
    case JINJA_LOOP:
        return nib_jinja_put_format(j, true, "<LoopContext %u/%u>", v->as.loop->at + 1, v->as.loop->n);
    case JINJA_MACRO:
        return nib_jinja_put(j, "<Macro ", 7, true) && put_quoted(j, &v->as.macro->node->value) && nib_jinja_put(j, ">", 1, true);
    default: return nib_jinja_put_format(j, true, "<%s>", nib_jinja_type_name(v));
    }
}

bool nib_jinja_put_repr(jinja *j, const jinja_value *v) {
    if (v->type == JINJA_UNDEFINED && v->as.undefined->why != JINJA_UNSAFE) return nib_jinja_put(j, "Undefined", 9, true);
    if (v->type == JINJA_STR && v->is_markup)
        return nib_jinja_put(j, "Markup(", 7, v->is_trusted) && put_quoted(j, v) && nib_jinja_put(j, ")", 1, v->is_trusted);
    if (v->type == JINJA_STR) return put_quoted(j, v);
    if (v->type != JINJA_LIST && v->type != JINJA_DICT && v->type != JINJA_NAMESPACE) return put_other(j, v);
    bool ok = nib_jinja_enter(j) && (v->type == JINJA_LIST ? put_list(j, v) : v->type == JINJA_DICT ? put_dict(j, v) : put_namespace(j, v));
    j->depth--;
    return ok;
}

bool nib_jinja_put_value(jinja *j, const jinja_value *v) {
    if (v->type == JINJA_STR) return nib_jinja_put_str(j, v);
    if (v->type == JINJA_UNDEFINED) return put_other(j, v);
    return nib_jinja_put_repr(j, v);
}

bool nib_jinja_to_str(jinja *j, const jinja_value *v, jinja_value *out) {
    *out = *v;
    if (v->type == JINJA_STR) return true;
    size_t mark = nib_jinja_mark(j);
    return nib_jinja_put_value(j, v) && nib_jinja_take(j, mark, out);
}
