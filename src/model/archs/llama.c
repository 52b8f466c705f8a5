/* model/archs/llama.c - Llama 1 to 3, Mistral, SmolLM2 and all that follow them: the plain pre-norm decoder.
 * Converters permute Q and K so that rope rotates neighbouring dimensions. */
#include "model/arch.h"

const nib_arch nib_arch_llama = {
    .name = "llama",
    .rope = NIB_ROPE_PAIRS,
    .act = NIB_ACT_SILU,
};
