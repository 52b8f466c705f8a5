/* jinja/builtin/strings.c - what filters and methods do with strings; every byte keeps its mark on the way. */
#include "jinja/chars.h"
#include "jinja/builtin/internal.h"

#include <string.h>
#include <utf8proc.h>

bool nib_jinja_want_int(jinja *j, const jinja_value *v, int64_t fallback, int64_t *out) {
    *out = fallback;
    if (!jinja_is_given(v)) return true;
    if (v->type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, v);
    if (!jinja_is_integer(v)) return nib_jinja_fail(j, "TypeError: an integer expected, found '%s'", nib_jinja_type_name(v));
    *out = jinja_as_int(v);
    return true;
}

bool nib_jinja_want_str(jinja *j, const jinja_value *v, const char *fallback, jinja_value *out) {
    *out = jinja_str(fallback, strlen(fallback));
    if (!jinja_is_given(v)) return true;
    if (v->type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, v);
    if (v->type != JINJA_STR) return nib_jinja_fail(j, "TypeError: a string expected, found '%s'", nib_jinja_type_name(v));
    *out = *v;
    return true;
}

/* ---- case */

/* The character in another case. Only ß becomes longer. */
static size_t in_case(uint32_t cp, bool is_upper, char text[4]) {
    if (cp < 0x80) {
        bool is_letter = is_upper ? cp >= 'a' && cp <= 'z' : cp >= 'A' && cp <= 'Z';
        text[0] = (char)(is_letter ? cp ^ 0x20 : cp);
        return 1;
    }
    if (is_upper && cp == 0xDF) {
        memcpy(text, "SS", 2);
        return 2;
    }
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    return nib_jinja_encode((uint32_t)(is_upper ? utf8proc_toupper(c) : utf8proc_tolower(c)), text);
}

bool nib_jinja_map_case(jinja *j, const jinja_value *v, int how, jinja_value *out) {
    jinja_value s = *v;
    size_t mark = nib_jinja_mark(j);
    bool begins = true; /* a word, at this character */
    for (size_t i = 0, len; i < s.len; i += len) {
        uint32_t cp;
        char text[4];
        len = nib_jinja_char(s.as.ptr + i, s.len - i, &cp);
        bool is_upper = how == JINJA_UPPER || (how == JINJA_SWAP && nib_jinja_is_lower(cp)) ||
                        (how >= JINJA_CAPITALIZE && begins);
        bool is_trusted = s.marks ? s.marks[i] : s.is_trusted;
        if (!nib_jinja_put(j, text, in_case(cp, is_upper, text), is_trusted)) return false;
        if (how == JINJA_TITLE) begins = !nib_jinja_is_lower(cp) && !nib_jinja_is_upper(cp);
        else if (how == JINJA_TITLE_WORDS) begins = nib_jinja_is_space(cp) || (cp && cp < 0x80 && strchr("-({[<", (char)cp));
        else begins = false;
    }
    bool is_markup = s.is_markup;
    if (!nib_jinja_take(j, mark, out)) return false;
    out->is_markup = is_markup;
    return true;
}

/* ---- cutting and joining */

static bool strips(const jinja_value *chars, const char *c, size_t len) {
    uint32_t cp;
    if (chars->type != JINJA_STR) return nib_jinja_space(c, len) == len;
    for (size_t i = 0, n; i < chars->len; i += n) {
        n = nib_jinja_char(chars->as.ptr + i, chars->len - i, &cp);
        if (n == len && memcmp(chars->as.ptr + i, c, n) == 0) return true;
    }
    return false;
}

bool nib_jinja_strip(jinja *j, const jinja_value *s, const jinja_value *chars, int sides, jinja_value *out) {
    size_t from = 0, to = s->len;
    uint32_t cp;
    if (chars->type != JINJA_STR && chars->type != JINJA_NONE && jinja_is_given(chars))
        return nib_jinja_fail(j, "TypeError: strip arg must be None or str");
    size_t work = chars->type == JINJA_STR ? chars->len : 0; /* of one character */
    for (size_t n; (sides & JINJA_LEFT) && from < to; from += n) {
        if (!nib_jinja_work_on_chars(j, work)) return false;
        n = nib_jinja_char(s->as.ptr + from, to - from, &cp);
        if (!strips(chars, s->as.ptr + from, n)) break;
    }
    for (size_t at; (sides & JINJA_RIGHT) && to > from; to = at) {
        if (!nib_jinja_work_on_chars(j, work)) return false;
        at = from + nib_jinja_char_before(s->as.ptr + from, to - from);
        if (!strips(chars, s->as.ptr + at, to - at)) break;
    }
    *out = jinja_part(*s, from, to);
    return true;
}

bool nib_jinja_replace(jinja *j, const jinja_value *string, const jinja_value *old, const jinja_value *new, int64_t count,
                       jinja_value *out) {
    jinja_value s = *string;
    size_t mark = nib_jinja_mark(j), at = 0;
    uint32_t cp;
    while (count != 0) {
        size_t found;
        if (!nib_jinja_search(j, &s, at, old, &found)) return false;
        if (found == SIZE_MAX) break;
        jinja_value before = jinja_part(s, at, found);
        if (!nib_jinja_put_str(j, &before) || !nib_jinja_put_str(j, new)) return false;
        at = found + old->len;
        count--;
        if (old->len > 0) continue;
        if (at == s.len) break; /* nothing was replaced at the very end, too */
        size_t n = nib_jinja_char(s.as.ptr + at, s.len - at, &cp);
        jinja_value one = jinja_part(s, at, at + n);
        if (!nib_jinja_put_str(j, &one)) return false;
        at += n;
    }
    jinja_value rest = jinja_part(s, at, s.len);
    bool is_markup = s.is_markup;
    if (!nib_jinja_put_str(j, &rest) || !nib_jinja_take(j, mark, out)) return false;
    out->is_markup = is_markup;
    return true;
}

bool nib_jinja_pad(jinja *j, const jinja_value *string, int64_t width, const jinja_value *fill, int sides, jinja_value *out) {
    jinja_value s = *string;
    int64_t missing = width - (int64_t)nib_jinja_count(s.as.ptr, s.len);
    int64_t left = sides == JINJA_LEFT ? missing : sides == JINJA_RIGHT ? 0 : missing / 2 + (missing & width & 1);
    *out = s;
    if (nib_jinja_count(fill->as.ptr, fill->len) != 1)
        return nib_jinja_fail(j, "TypeError: The fill character must be exactly one character long");
    if (missing <= 0) return true;
    size_t mark = nib_jinja_mark(j);
    for (int64_t i = 0; i <= missing; i++)
        if ((i == left && !nib_jinja_put_str(j, &s)) || (i < missing && !nib_jinja_put_str(j, fill))) return false;
    return nib_jinja_take(j, mark, out);
}

bool nib_jinja_split_lines(jinja *j, const jinja_value *string, bool keep_ends, jinja_value *out) {
    jinja_value s = *string;
    uint32_t cp;
    if (!nib_jinja_work_on_chars(j, s.len) || !nib_jinja_list_new(j, JINJA_AS_LIST, 0, out)) return false;
    for (size_t from = 0, to = 0; to < s.len; from = to) {
        size_t n = 0;
        for (; to < s.len; to += n) {
            n = nib_jinja_char(s.as.ptr + to, s.len - to, &cp);
            if (nib_jinja_is_line_end(cp)) break;
        }
        size_t end = to;
        if (to < s.len) to += n;
        if (end < s.len && s.as.ptr[end] == '\r' && to < s.len && s.as.ptr[to] == '\n') to++;
        jinja_value line = jinja_part(s, from, keep_ends ? to : end);
        if (!nib_jinja_list_add(j, out, &line)) return false;
    }
    return true;
}

bool nib_jinja_join(jinja *j, const jinja_value *separator, const jinja_value *iterable, bool is_lenient, jinja_value *out) {
    jinja_value between = *separator, *items;
    uint32_t n;
    if (!nib_jinja_items(j, iterable, &items, &n)) return false;
    size_t mark = nib_jinja_mark(j);
    for (uint32_t i = 0; i < n; i++) {
        if (i && !nib_jinja_put_str(j, &between)) return false;
        if (!is_lenient && items[i].type != JINJA_STR)
            return nib_jinja_fail(j, "TypeError: sequence item %u: expected str instance, %s found", i, nib_jinja_type_name(&items[i]));
        if (!nib_jinja_put_value(j, &items[i])) return false;
    }
    return nib_jinja_take(j, mark, out);
}
