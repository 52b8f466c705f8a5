/* jinja/builtin/internal.h - private to builtin/: the functions of its tables, and what several of them use. */
#ifndef NIB_JINJA_BUILTIN_INTERNAL_H
#define NIB_JINJA_BUILTIN_INTERNAL_H

#include "jinja/eval.h"

#define FILTER(name, params, n_required, function)                                                                     \
    bool nib_jinja_filter_##function(jinja *j, const jinja_value *v, jinja_value *out);
#define METHOD(type, name, params, n_required, function)                                                               \
    bool nib_jinja_method_##function(jinja *j, const jinja_value *v, jinja_value *out);
#define UNSAFE(type, name)
#include "jinja/builtin/filters.def"
#include "jinja/builtin/methods.def"
#undef FILTER
#undef METHOD
#undef UNSAFE

/* ---- parameters: MISSING gives the fallback */
bool nib_jinja_want_int(jinja *j, const jinja_value *v, int64_t fallback, int64_t *out);
bool nib_jinja_want_str(jinja *j, const jinja_value *v, const char *fallback, jinja_value *out);

/* ---- strings (strings.c) */
enum { JINJA_LOWER, JINJA_UPPER, JINJA_SWAP, JINJA_CAPITALIZE, JINJA_TITLE, JINJA_TITLE_WORDS };
bool nib_jinja_map_case(jinja *j, const jinja_value *s, int how, jinja_value *out);
enum { JINJA_LEFT = 1, JINJA_RIGHT = 2 };
/* chars: NONE or MISSING: blanks */
bool nib_jinja_strip(jinja *j, const jinja_value *s, const jinja_value *chars, int sides, jinja_value *out);
/* count < 0: all */
bool nib_jinja_replace(jinja *j, const jinja_value *s, const jinja_value *old, const jinja_value *new, int64_t count,
                       jinja_value *out);
/* Fills up to width with `fill` on the sides given; both: as str.center does. */
bool nib_jinja_pad(jinja *j, const jinja_value *s, int64_t width, const jinja_value *fill, int sides, jinja_value *out);
bool nib_jinja_split_lines(jinja *j, const jinja_value *s, bool keep_ends, jinja_value *out);
/* str(separator).join: items must be strings unless is_lenient */
bool nib_jinja_join(jinja *j, const jinja_value *separator, const jinja_value *iterable, bool is_lenient, jinja_value *out);
/* str.format with {0}, {name}, {:>8.2f} … */
bool nib_jinja_brace_format(jinja *j, const jinja_value *format, const jinja_value *args, const jinja_dict *named,
                            jinja_value *out);

/* ---- lists (filters_list.c) */
/* "a.b.0" or a number, item by item; MISSING: the value itself. fallback, unless NULL, takes the place of undefined parts. */
bool nib_jinja_get_path(jinja *j, const jinja_value *v, const jinja_value *path, const jinja_value *fallback, jinja_value *out);

#endif
