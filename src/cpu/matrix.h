/* cpu/matrix.h - a weight matrix in its packed form; cpu/product.h multiplies with it.
 *
 * Packed form R16 (cpu/pack.h): 16 rows interleaved in chunks of 4 columns, so that one 64-byte line holds 4 columns of
 * 16 rows (one AVX-512 register, two AVX2 halves, four NEON registers, one row of an AMX tile). Rows beyond the last
 * and columns beyond n_cols are padded with zeros. A *group* is 16 rows; threads and chunks are made of whole groups. */
#ifndef NIB_CPU_MATRIX_H
#define NIB_CPU_MATRIX_H

#include "cpu/pack.h"

typedef struct nib_cpu_matrix {
    const nib_quant_type *type;
    const nib_cpu_pack_form *form;
    uint32_t n_rows, n_cols;
    uint32_t n_groups;  /* n_rows / 16, rounded up */
    size_t group_bytes; /* a multiple of 64 */
    unsigned act_form;  /* the one NIB_ACT_ form that the product reads */
    uint8_t *data;      /* n_groups * group_bytes, 64-byte aligned; owned by the caller */
} nib_cpu_matrix;

/* Fills everything but data; nib_cpu_matrix_bytes is what to allocate. n_cols must be a multiple of the block size. */
nib_status nib_cpu_matrix_init(nib_cpu_matrix *m, const nib_quant_type *type, uint32_t n_rows, uint32_t n_cols,
                               nib_error *err);
size_t nib_cpu_matrix_bytes(const nib_cpu_matrix *m);
/* Packs groups g0 … g1-1 from `rows`, the GGUF bytes that begin at row 16 * g0 and hold the rows of these groups (as
 * many as exist). Threads may pack different groups at once. */
void nib_cpu_matrix_pack(const nib_cpu_matrix *m, uint32_t g0, uint32_t g1, const void *rows);
/* One row as floats, bit-equal to the type's dequantize: for embeddings read from a packed (tied) matrix. */
void nib_cpu_matrix_row(const nib_cpu_matrix *m, uint32_t row, float *out);

/* Rows of group g that exist. */
static inline uint32_t nib_cpu_matrix_rows_of(const nib_cpu_matrix *m, uint32_t g) {
    uint32_t rest = m->n_rows - g * NIB_GROUP_ROWS;
    return rest < NIB_GROUP_ROWS ? rest : NIB_GROUP_ROWS;
}

#endif
