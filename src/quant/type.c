/* quant/type.c - the table of tensor types, made from types.def: ids and names in, rows out. */
#include "quant/type.h"

#include "quant/internal.h"

#include <string.h>

static const nib_quant_type types[] = {
#define X(name, gguf, block, bytes)                                                                                    \
    {NIB_QUANT_##name, gguf, #name, block, bytes, nib_quant_dequantize_##name, nib_quant_is_finite_##name},
#include "quant/types.def"
#undef X
};
_Static_assert(sizeof types / sizeof types[0] == NIB_QUANT_COUNT, "one row for every id");

static const struct {
    uint32_t gguf_id;
    const char *name;
    uint32_t block_size, block_bytes;
} known[] = {
#define X(name, gguf, block, bytes) {gguf, #name, block, bytes},
#include "quant/types.def"
#include "quant/known.def"
#undef X
};

/* A number that stands twice in the lists is an enumerator declared twice, which does not compile. */
enum {
#define X(name, gguf, block, bytes) NUMBER_##gguf,
#include "quant/types.def"
#include "quant/known.def"
#undef X
};

const nib_quant_type *nib_quant_type_by_gguf(uint32_t gguf_id) {
    for (size_t i = 0; i < NIB_QUANT_COUNT; i++)
        if (types[i].gguf_id == gguf_id) return &types[i];
    return NULL;
}

const nib_quant_type *nib_quant_type_by_name(const char *name) {
    for (size_t i = 0; name && i < NIB_QUANT_COUNT; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

const nib_quant_type *nib_quant_type_at(nib_quant_id id) {
    return (unsigned)id < NIB_QUANT_COUNT ? &types[id] : NULL;
}

const char *nib_quant_gguf_name(uint32_t gguf_id, uint32_t *block_size, uint32_t *block_bytes) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].gguf_id != gguf_id) continue;
        if (block_size) *block_size = known[i].block_size;
        if (block_bytes) *block_bytes = known[i].block_bytes;
        return known[i].name;
    }
    return NULL;
}

const char *const *nib_type_names(void) {
    static const char *const names[] = {
#define X(name, gguf, block, bytes) #name,
#include "quant/types.def"
#undef X
        NULL,
    };
    return names;
}
