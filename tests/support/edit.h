/* tests/support/edit.h - a tiny model with a few keys and tensors changed, as an open file: for tests of what is refused.
 *
 *     edit *e = edit_new(&(tiny_model)TINY_MODEL_INIT);
 *     edit_drop(e, "blk.1.attn_k.weight");
 *     nib_gguf *file = edit_open(e);
 *
 * Failures end the running test. */
#ifndef NIB_TESTS_SUPPORT_EDIT_H
#define NIB_TESTS_SUPPORT_EDIT_H

#include "nib.h"
#include "support/tiny.h"

typedef struct edit edit;

edit *edit_new(const tiny_model *m);
/* Leaves out the key or tensor of that name. */
void edit_drop(edit *e, const char *name);
/* These add a key or take the place of the one there is. */
void edit_number(edit *e, const char *key, nib_gguf_type type, double value); /* any type of number, or BOOL */
void edit_text(edit *e, const char *key, const char *text);
void edit_array(edit *e, const char *key, nib_gguf_type elem, const uint32_t *values, size_t n); /* of 1 or 4 bytes */
void edit_strings(edit *e, const char *key, size_t n); /* n times "x" */
/* A tensor of zeros, of two dimensions or, when d1 is 0, of one; type: number in the file format. */
void edit_tensor(edit *e, const char *name, uint32_t type, uint64_t d0, uint64_t d1);
/* Overwrites bytes of a tensor's data. */
void edit_data(edit *e, const char *tensor, size_t at, const void *bytes, size_t n);

/* Opens the result and frees e. */
nib_gguf *edit_open(edit *e);

#endif
