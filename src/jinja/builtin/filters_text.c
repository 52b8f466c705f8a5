/* jinja/builtin/filters_text.c - the filters that give strings. v[0] is the input, taken as str() has it. */
#include "jinja/builtin/internal.h"
#include "jinja/chars.h"
#include "jinja/json.h"
#include "jinja/markup.h"

#include <string.h>

#define MAPS_CASE(name, how)                                                                                           \
    bool nib_jinja_filter_##name(jinja *j, const jinja_value *v, jinja_value *out) {                                   \
        jinja_value s;                                                                                                 \
        return nib_jinja_to_str(j, &v[0], &s) && nib_jinja_map_case(j, &s, how, out);                                  \
    }
MAPS_CASE(lower, JINJA_LOWER)
MAPS_CASE(upper, JINJA_UPPER)
MAPS_CASE(capitalize, JINJA_CAPITALIZE)
MAPS_CASE(title, JINJA_TITLE_WORDS)
#undef MAPS_CASE

bool nib_jinja_filter_string(jinja *j, const jinja_value *v, jinja_value *out) {
    return nib_jinja_to_str(j, &v[0], out);
}

bool nib_jinja_filter_safe(jinja *j, const jinja_value *v, jinja_value *out) {
    if (!nib_jinja_to_str(j, &v[0], out)) return false;
    out->is_markup = true;
    return true;
}

static bool escape(jinja *j, const jinja_value *s, jinja_value *out) {
    size_t mark = nib_jinja_mark(j);
    if (!nib_jinja_put_escaped(j, s) || !nib_jinja_take(j, mark, out)) return false;
    out->is_markup = true;
    return true;
}

bool nib_jinja_filter_escape(jinja *j, const jinja_value *v, jinja_value *out) {
    return escape(j, &v[0], out);
}

bool nib_jinja_filter_forceescape(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s;
    if (!nib_jinja_to_str(j, &v[0], &s)) return false;
    s.is_markup = false;
    return escape(j, &s, out);
}

bool nib_jinja_filter_trim(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s;
    return nib_jinja_to_str(j, &v[0], &s) && nib_jinja_strip(j, &s, &v[1], JINJA_LEFT | JINJA_RIGHT, out);
}

bool nib_jinja_filter_center(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s, blank = jinja_str(" ", 1);
    int64_t width;
    return nib_jinja_to_str(j, &v[0], &s) && nib_jinja_want_int(j, &v[1], 80, &width) &&
           nib_jinja_pad(j, &s, width, &blank, JINJA_LEFT | JINJA_RIGHT, out);
}

bool nib_jinja_filter_replace(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s, old, new;
    int64_t count = -1;
    if (jinja_is_given(&v[3]) && v[3].type != JINJA_NONE && !nib_jinja_want_int(j, &v[3], -1, &count)) return false;
    return nib_jinja_to_str(j, &v[0], &s) && nib_jinja_to_str(j, &v[1], &old) && nib_jinja_to_str(j, &v[2], &new) &&
           nib_jinja_replace(j, &s, &old, &new, count, out);
}

bool nib_jinja_filter_indent(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s, indent, lines, blank = jinja_str(" ", 1), empty = jinja_str("", 0);
    int64_t width;
    if (!nib_jinja_want_str(j, &v[0], "", &s)) return false;
    if (v[1].type == JINJA_STR) indent = v[1];
    else if (!nib_jinja_want_int(j, &v[1], 4, &width) || !nib_jinja_pad(j, &empty, width, &blank, JINJA_LEFT, &indent)) return false;
    bool is_trusted = s.is_trusted && !s.marks, at_first = nib_jinja_is_true(&v[2]), at_blank = nib_jinja_is_true(&v[3]);
    if (!nib_jinja_split_lines(j, &s, false, &lines)) return false;
    /* A newline at the end begins one more line. */
    bool has_more = s.len == 0 || nib_jinja_is_line_end((unsigned char)s.as.ptr[s.len - 1]);
    if (has_more && !nib_jinja_list_add(j, &lines, &empty)) return false;
    size_t mark = nib_jinja_mark(j);
    for (uint32_t i = 0; i < lines.as.list->n; i++) {
        const jinja_value *line = &lines.as.list->items[i];
        if (i && !nib_jinja_put(j, "\n", 1, is_trusted)) return false;
        bool is_indented = i ? at_blank || line->len > 0 : at_first;
        if ((is_indented && !nib_jinja_put_str(j, &indent)) || !nib_jinja_put_str(j, line)) return false;
    }
    return nib_jinja_take(j, mark, out);
}

bool nib_jinja_filter_truncate(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s, end;
    int64_t length, leeway, n;
    if (!nib_jinja_want_int(j, &v[1], 255, &length) || !nib_jinja_want_str(j, &v[3], "...", &end) ||
        !nib_jinja_want_int(j, &v[4], 5, &leeway) || !nib_jinja_length(j, &v[0], &n))
        return false;
    int64_t kept = length - (int64_t)nib_jinja_count(end.as.ptr, end.len);
    if (kept < 0 || leeway < 0) return nib_jinja_fail(j, "AssertionError: truncate to less than the end needs");
    *out = v[0];
    if (leeway > INT64_MAX - length || n <= length + leeway) return true;
    if (!nib_jinja_want_str(j, &v[0], "", &s)) return false;
    jinja_value part = jinja_part(s, 0, nib_jinja_offset(s.as.ptr, s.len, (size_t)kept));
    uint32_t blank = part.len; /* the last one before the cut */
    while (blank > 0 && part.as.ptr[blank - 1] != ' ') blank--;
    if (blank > 0 && !nib_jinja_is_true(&v[2])) part = jinja_part(part, 0, blank - 1);
    size_t mark = nib_jinja_mark(j);
    return nib_jinja_put_str(j, &part) && nib_jinja_put_str(j, &end) && nib_jinja_take(j, mark, out);
}

bool nib_jinja_filter_wordcount(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s;
    int64_t n = 0;
    bool in_word = false;
    uint32_t cp;
    if (!nib_jinja_to_str(j, &v[0], &s) || !nib_jinja_work_on_chars(j, s.len)) return false;
    for (size_t i = 0, len; i < s.len; i += len) {
        len = nib_jinja_char(s.as.ptr + i, s.len - i, &cp);
        bool is_word = cp == '_' || nib_jinja_is_alpha(cp) || nib_jinja_is_decimal(cp);
        n += is_word && !in_word;
        in_word = is_word;
    }
    *out = jinja_int(n);
    return true;
}

bool nib_jinja_filter_join(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value separator = jinja_str("", 0), list, item, *items;
    uint32_t n;
    if (jinja_is_given(&v[1]) && !nib_jinja_to_str(j, &v[1], &separator)) return false;
    if (!jinja_is_given(&v[2]) || v[2].type == JINJA_NONE) return nib_jinja_join(j, &separator, &v[0], true, out);
    if (!nib_jinja_items(j, &v[0], &items, &n) || !nib_jinja_list_new(j, JINJA_AS_LIST, n, &list)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!nib_jinja_get_path(j, &items[i], &v[2], NULL, &item) || !nib_jinja_list_add(j, &list, &item)) return false;
    return nib_jinja_join(j, &separator, &list, true, out);
}

bool nib_jinja_filter_format(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s;
    if (v[1].as.list->n && v[2].as.dict->n)
        return nib_jinja_fail(j, "can't handle positional and keyword arguments at the same time");
    return nib_jinja_to_str(j, &v[0], &s) && nib_jinja_percent(j, &s, &v[1], v[2].as.dict->n ? v[2].as.dict : NULL, out);
}

bool nib_jinja_filter_urlencode(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s;
    if (v[0].type == JINJA_DICT || v[0].type == JINJA_LIST)
        return nib_jinja_fail(j, "urlencode of a %s is not supported", nib_jinja_type_name(&v[0]));
    if (!nib_jinja_to_str(j, &v[0], &s)) return false;
    size_t mark = nib_jinja_mark(j);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.as.ptr[i];
        bool is_trusted = s.marks ? s.marks[i] : s.is_trusted, is_safe = nib_jinja_is_word(c) || (c && strchr("-.~/", c));
        if (!nib_jinja_put_format(j, is_trusted, is_safe ? "%c" : "%%%02X", (unsigned char)c)) return false;
    }
    return nib_jinja_take(j, mark, out);
}

/* Drops <…> and comments, and makes one blank of several. */
bool nib_jinja_filter_striptags(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_value s, words, method[3] = {{0}};
    if (!nib_jinja_to_str(j, &v[0], &s)) return false;
    size_t mark = nib_jinja_mark(j), i = 0;
    while (i < s.len) {
        bool is_comment = s.len - i >= 4 && memcmp(s.as.ptr + i, "<!--", 4) == 0;
        jinja_value end = is_comment ? jinja_str("-->", 3) : jinja_str(">", 1), one = jinja_part(s, i, i + 1);
        size_t found = SIZE_MAX;
        if (s.as.ptr[i] == '<' && !nib_jinja_search(j, &s, i, &end, &found)) return false;
        if (found == SIZE_MAX && !nib_jinja_put_str(j, &one)) return false;
        i = found == SIZE_MAX ? i + 1 : found + end.len;
    }
    jinja_value blank = jinja_str(" ", 1);
    if (!nib_jinja_take(j, mark, &method[0])) return false;
    return nib_jinja_method_split(j, method, &words) && nib_jinja_join(j, &blank, &words, true, out);
}

bool nib_jinja_filter_xmlattr(jinja *j, const jinja_value *v, jinja_value *out) {
    size_t mark = nib_jinja_mark(j);
    bool has_blank = !jinja_is_given(&v[1]) || nib_jinja_is_true(&v[1]), is_first = true;
    if (v[0].type != JINJA_DICT) return nib_jinja_fail(j, "TypeError: xmlattr of a %s", nib_jinja_type_name(&v[0]));
    for (uint32_t i = 0; i < v[0].as.dict->n; i++) {
        const jinja_pair *pair = &v[0].as.dict->pairs[i];
        if (pair->value.type == JINJA_NONE || pair->value.type == JINJA_UNDEFINED) continue;
        if (pair->key.type != JINJA_STR) return nib_jinja_fail(j, "TypeError: an attribute's name must be a string");
        for (uint32_t k = 0; k < pair->key.len; k++)
            if (strchr(" \t\n\r\f\v>/=", pair->key.as.ptr[k])) return nib_jinja_fail(j, "ValueError: Invalid character in attribute name");
        if ((has_blank || !is_first) && !nib_jinja_put(j, " ", 1, true)) return false;
        if (!nib_jinja_put_escaped(j, &pair->key) || !nib_jinja_put(j, "=\"", 2, true) ||
            !nib_jinja_put_escaped(j, &pair->value) || !nib_jinja_put(j, "\"", 1, true))
            return false;
        is_first = false;
    }
    return nib_jinja_take(j, mark, out);
}

/* ---- tojson */

static bool want_separators(jinja *j, const jinja_value *v, jinja_json_style *style) {
    if (!jinja_is_given(v) || v->type == JINJA_NONE) return true;
    jinja_value *items;
    uint32_t n;
    if (v->type != JINJA_LIST || !nib_jinja_items(j, v, &items, &n) || n != 2 || items[0].type != JINJA_STR ||
        items[1].type != JINJA_STR)
        return nib_jinja_fail(j, "ValueError: separators must be two strings");
    style->item_separator = items[0];
    style->key_separator = items[1];
    return true;
}

bool nib_jinja_filter_tojson(jinja *j, const jinja_value *v, jinja_value *out) {
    jinja_json_style style = {.item_separator = jinja_str(", ", 2), .key_separator = jinja_str(": ", 2)};
    jinja_value indent, blank = jinja_str(" ", 1), empty = jinja_str("", 0);
    if (jinja_is_given(&v[2]) && v[2].type != JINJA_NONE) {
        int64_t width = 0;
        if (v[2].type == JINJA_STR) indent = v[2];
        else if (!nib_jinja_want_int(j, &v[2], 0, &width) || !nib_jinja_pad(j, &empty, width, &blank, JINJA_LEFT, &indent))
            return false;
        style.indent = (nib_str){indent.as.ptr, indent.len};
        style.item_separator = jinja_str(",", 1);
    }
    if (!want_separators(j, &v[3], &style)) return false;
    style.ensure_ascii = nib_jinja_is_true(&v[1]);
    style.sort_keys = nib_jinja_is_true(&v[4]);
    size_t mark = nib_jinja_mark(j);
    return nib_jinja_put_json(j, &v[0], &style) && nib_jinja_take(j, mark, out);
}
