/* quant/type.h - the table of tensor types: size of a block, exact scalar dequantisation.
 *
 * A row of a tensor is n_cols / block_size blocks, packed. All formats are little-endian. */
#ifndef NIB_QUANT_TYPE_H
#define NIB_QUANT_TYPE_H

#include "nib.h"

typedef enum nib_quant_id {
#define X(name, gguf, block, bytes) NIB_QUANT_##name,
#include "quant/types.def"
#undef X
    NIB_QUANT_COUNT
} nib_quant_id;

typedef struct nib_quant_type {
    nib_quant_id id;
    uint32_t gguf_id;     /* number in the file format */
    const char *name;     /* "Q4_K" */
    uint32_t block_size;  /* weights in a block */
    uint32_t block_bytes; /* bytes of a block */
    /* n weights (a multiple of block_size) from blocks to floats: bit-equal to the reference formula of the type. */
    void (*dequantize)(const void *blocks, float *out, size_t n);
    /* False when a scale (or weight) of the n weights is NaN or infinite. */
    bool (*is_finite)(const void *blocks, size_t n);
} nib_quant_type;

/* NULL when nib does not compute with it. */
const nib_quant_type *nib_quant_type_by_gguf(uint32_t gguf_id);
const nib_quant_type *nib_quant_type_by_name(const char *name);
const nib_quant_type *nib_quant_type_at(nib_quant_id id);
/* Name of any type number that the format knows or knew, "IQ2_XXS" too; NULL for others. Block sizes of known types
 * that nib cannot compute with are given too, so that a file that holds them can be inspected. */
const char *nib_quant_gguf_name(uint32_t gguf_id, uint32_t *block_size, uint32_t *block_bytes);

#endif
