/* jinja/builtin.h - what templates can call: filters, tests, methods and functions, rows of the tables in builtin/. */
#ifndef NIB_JINJA_BUILTIN_H
#define NIB_JINJA_BUILTIN_H

#include "jinja/value.h"

struct jinja;

enum { JINJA_MAX_PARAMS = 6 };

/* v[0] is the input (the object of a method, MISSING for a function), then the parameters in the order of the row, MISSING
 * where they were not given. False after nib_jinja_fail. */
typedef bool (*jinja_builtin_fn)(struct jinja *j, const jinja_value *v, jinja_value *out);

typedef struct jinja_builtin {
    const char *name;
    const char *params; /* "width first blank"; "*": any: v[1] is then a tuple, v[2] a dict of the named ones */
    uint8_t n_required;
    bool is_unsafe; /* a method that changes its object: the sandbox refuses it */
    jinja_builtin_fn call;
} jinja_builtin;

/* NULL: nobody knows this name. */
const jinja_builtin *nib_jinja_find_filter(nib_str name);
const jinja_builtin *nib_jinja_find_test(nib_str name);
const jinja_builtin *nib_jinja_find_function(nib_str name);
const jinja_builtin *nib_jinja_find_method(const jinja_value *object, nib_str name);

/* The row of n rows with this name. */
const jinja_builtin *nib_jinja_find_row(const jinja_builtin *rows, size_t n, nib_str name);

#endif
