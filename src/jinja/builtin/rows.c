/* jinja/builtin/rows.c - finds rows by name. */
#include "jinja/builtin.h"

#include <string.h>

const jinja_builtin *nib_jinja_find_row(const jinja_builtin *rows, size_t n, nib_str name) {
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == name.len && memcmp(rows[i].name, name.ptr, name.len) == 0) return &rows[i];
    return NULL;
}
