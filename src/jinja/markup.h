/* jinja/markup.h - text for HTML: strings that are marked as escaped already, and those that get escaped beside them. */
#ifndef NIB_JINJA_MARKUP_H
#define NIB_JINJA_MARKUP_H

#include "jinja/eval.h"

/* str(v) with & < > ' " escaped, unless it is markup, to the end of the text. */
bool nib_jinja_put_escaped(jinja *j, const jinja_value *v);
/* a + b where one of them is markup: the other is escaped. */
bool nib_jinja_concat_markup(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out);

#endif
