/* cpu/product.h - a packed matrix times activations: the loops around the kernels of a level.
 *
 * Every output is one sequential accumulation along the columns, whatever the number of tokens, threads or the level
 * (docs/ARCHITECTURE.md, numerics). Called by cpu/op_matmul. */
#ifndef NIB_CPU_PRODUCT_H
#define NIB_CPU_PRODUCT_H

#include "cpu/act.h"
#include "cpu/matrix.h"

typedef struct nib_cpu_product {
    const nib_cpu_isa *isa;
    const nib_cpu_matrix *m;
    const nib_cpu_act *act;
    float *out; /* out[t * ldo + r - 16 * first_group] = sum over k of w[r][k] * act[t][k] */
    size_t ldo;
    uint32_t first_group;
    void *scratch; /* nib_cpu_product_scratch bytes, 64-byte aligned, for the calling thread alone */
} nib_cpu_product;

/* Scratch of a product with up to n_tok tokens; may be 0. */
size_t nib_cpu_product_scratch(const nib_cpu_isa *isa, const nib_cpu_matrix *m, uint32_t n_tok);

/* The rows of groups g0 … g1-1, for all tokens of act. Writes only rows that exist. Threads take disjoint groups. */
void nib_cpu_product_run(const nib_cpu_product *p, uint32_t g0, uint32_t g1);

#endif
