/* model/archs/gemma.c - Gemma 3: scaled embeddings, norms before and after each part, windows on five of six layers,
 * which rotate with a base of their own. Norm weights in the file already include the 1 that Gemma adds. */
#include "model/arch.h"

const nib_arch nib_arch_gemma3 = {
    .name = "gemma3",
    .rope = NIB_ROPE_HALVES,
    .act = NIB_ACT_GELU,
    .flags = NIB_ARCH_QK_NORM | NIB_ARCH_POST_NORM | NIB_ARCH_EMBED_SCALE,
    .window_period = 6,
    .n_layer_wide = 62, /* the 27B */
};
