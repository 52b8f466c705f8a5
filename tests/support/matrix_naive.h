/* tests/support/matrix_naive.h - random blocks of every type, and products worked out from the blocks of a file.
 *
 * Written from the descriptions of the formats and the numerics contract alone: shares no code with src/cpu. */
#ifndef NIB_TESTS_SUPPORT_MATRIX_NAIVE_H
#define NIB_TESTS_SUPPORT_MATRIX_NAIVE_H

#include "quant/type.h"

uint32_t naive_rnd(void);
float naive_rnd_float(float max); /* within +-max */
void naive_put16(uint8_t *p, uint16_t v);

/* Where the float16 fields of a block are; -1: none. */
typedef struct naive_fields {
    int d, m;
} naive_fields;
extern const naive_fields naive_fields_of[NIB_QUANT_COUNT];

/* One block of random codes; `kind` 1: all bits zero, 2: all bits one. Scales are always sane numbers. */
void naive_rnd_block(const nib_quant_type *type, uint8_t *b, unsigned kind);

/* One row of a matrix times one row of activations. */
float naive_product(const nib_quant_type *type, const uint8_t *row, const float *x, uint32_t n_cols);

#endif
