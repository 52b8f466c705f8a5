/* jinja/json.h - JSON text -> values, and the style that values are written in. */
#ifndef NIB_JINJA_JSON_H
#define NIB_JINJA_JSON_H

#include "base/mem.h"
#include "jinja/value.h"

/* Nothing of the result is trusted. Integers beyond 64 bits, depth beyond max_depth, bytes that are not UTF-8 and lone
 * surrogates are errors, which say at what byte. The result points into the arena only. */
nib_status nib_jinja_json_read(nib_str text, uint32_t max_depth, nib_arena *arena, jinja_value *out, nib_error *err);

/* As Python's json.dumps has it. */
typedef struct jinja_json_style {
    nib_str indent; /* for each level; ptr NULL: all in one line */
    jinja_value item_separator, key_separator;
    bool sort_keys, ensure_ascii;
} jinja_json_style;

#endif
