/* grammar/json.h - JSON text as a tree that keeps the order of keys, the text of numbers and the place of everything.
 */
#ifndef NIB_GRAMMAR_JSON_H
#define NIB_GRAMMAR_JSON_H

#include "base/buf.h"
#include "base/mem.h"

typedef enum nib_grammar_json_kind {
    NIB_GRAMMAR_JSON_NULL,
    NIB_GRAMMAR_JSON_FALSE,
    NIB_GRAMMAR_JSON_TRUE,
    NIB_GRAMMAR_JSON_NUMBER,
    NIB_GRAMMAR_JSON_STRING,
    NIB_GRAMMAR_JSON_ARRAY,
    NIB_GRAMMAR_JSON_OBJECT,
} nib_grammar_json_kind;

typedef struct nib_grammar_json {
    nib_grammar_json_kind kind;
    nib_str key;  /* in an object */
    nib_str text; /* of a string, without escapes; of a number, as it stands */
    struct nib_grammar_json *first, *next, *parent;
    uint32_t n, index; /* children; place among those of the parent */
    uint64_t offset;
} nib_grammar_json;

/* Everything lives in the arena. NULL: err says why, with the offset. */
nib_grammar_json *nib_grammar_json_read(nib_str text, uint32_t max_depth, nib_arena *arena, nib_error *err);
const nib_grammar_json *nib_grammar_json_get(const nib_grammar_json *object,
                                             const char *key); /* NULL: none, or no object */
bool nib_grammar_json_is(nib_str text, const char *word);
bool nib_grammar_json_equal(const nib_grammar_json *a, const nib_grammar_json *b); /* numbers by value */
/* Appends "#/a/b", as RFC 6901 has it. */
void nib_grammar_json_pointer(const nib_grammar_json *node, nib_buf *out);

#endif
