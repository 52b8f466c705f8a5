/* gguf/value.h - metadata values: sizes of their types, bytes to numbers. Public part: nib.h. */
#ifndef NIB_GGUF_VALUE_H
#define NIB_GGUF_VALUE_H

#include "nib.h"

#define NIB_GGUF_N_TYPES 13

/* Bytes of one value of a type; 0 for strings, arrays and numbers that are no type. */
size_t nib_gguf_value_size(uint32_t type);

/* The number or bool at p, of a type whose size is not 0, into value->type and value->as. */
void nib_gguf_value_load(nib_gguf_value *value, nib_gguf_type type, const void *p);

/* A whole number >= 0 of any integer type; false for anything else. */
bool nib_gguf_value_u64(const nib_gguf_value *value, uint64_t *out);

/* Little-endian integers at any address; the compiler makes one load of each. */
static inline uint32_t nib_gguf_value_le32(const void *p) {
    const uint8_t *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t nib_gguf_value_le64(const void *p) {
    return nib_gguf_value_le32(p) | (uint64_t)nib_gguf_value_le32((const uint8_t *)p + 4) << 32;
}

#endif
