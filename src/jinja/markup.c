/* jinja/markup.c - escaping for HTML. Chat templates use `|safe` as a matter of habit; what follows from it is here. */
#include "jinja/markup.h"

#include <string.h>

static bool put_string(jinja *j, const jinja_value *s) {
    static const char special[] = "&<>'\"";
    static const char *const instead[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < s->len; i++) {
        const char *which = s->as.ptr[i] ? strchr(special, s->as.ptr[i]) : NULL;
        jinja_value byte = jinja_part(*s, i, i + 1);
        bool is_trusted = s->marks ? s->marks[i] : s->is_trusted;
        bool ok = which ? nib_jinja_put(j, instead[which - special], strlen(instead[which - special]), is_trusted)
                        : nib_jinja_put_str(j, &byte);
        if (!ok) return false;
    }
    return true;
}

bool nib_jinja_put_escaped(jinja *j, const jinja_value *v) {
    jinja_value s;
    if (!nib_jinja_to_str(j, v, &s)) return false;
    return s.is_markup ? nib_jinja_put_str(j, &s) : put_string(j, &s);
}

bool nib_jinja_concat_markup(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    size_t mark = nib_jinja_mark(j);
    if (!nib_jinja_put_escaped(j, a) || !nib_jinja_put_escaped(j, b) || !nib_jinja_take(j, mark, out)) return false;
    out->is_markup = true;
    return true;
}
