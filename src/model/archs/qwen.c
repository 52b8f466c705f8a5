/* model/archs/qwen.c - Qwen2 and 2.5 (biases on Q, K and V, which the decoder takes where the file has them) and Qwen3
 * (norms on the heads of Q and K instead). */
#include "model/arch.h"

const nib_arch nib_arch_qwen2 = {
    .name = "qwen2",
    .rope = NIB_ROPE_HALVES,
    .act = NIB_ACT_SILU,
};

const nib_arch nib_arch_qwen3 = {
    .name = "qwen3",
    .rope = NIB_ROPE_HALVES,
    .act = NIB_ACT_SILU,
    .flags = NIB_ARCH_QK_NORM,
};
