/* jinja/dict.h - dicts: pairs in the order of insertion, found by hash. Keys are what Python can hash: not lists, not
 * dicts; 1, 1.0 and True are one key. */
#ifndef NIB_JINJA_DICT_H
#define NIB_JINJA_DICT_H

#include "base/mem.h"
#include "jinja/value.h"

/* NULL: no such key. */
const jinja_pair *nib_jinja_dict_find(const jinja_dict *dict, const jinja_value *key);
const jinja_value *nib_jinja_dict_get(const jinja_dict *dict, const char *name);
enum { JINJA_MAX_PROBES = 256 }; /* far more than chance makes of a million keys: they were chosen to collide */

/* Replaces the value or appends the pair. False when memory is out, the arena's limit or JINJA_MAX_PROBES is reached. */
bool nib_jinja_dict_set(nib_arena *arena, jinja_dict *dict, const jinja_value *key, const jinja_value *value);
bool nib_jinja_is_hashable(const jinja_value *v);
/* == of keys; tuples nested deeper than 32 are never equal. */
bool nib_jinja_key_equal(const jinja_value *a, const jinja_value *b, int depth);

#endif
