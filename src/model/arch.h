/* model/arch.h - an architecture as a table row: the few choices in which published decoders differ.
 *
 * The rows stand in archs.def, one file a family in archs/. model/decoder turns a row, hyper-parameters and tensors into
 * a plan. How to add one: docs/ADDING.md. */
#ifndef NIB_MODEL_ARCH_H
#define NIB_MODEL_ARCH_H

#include "plan/plan.h"

enum { /* nib_arch.flags */
    NIB_ARCH_QK_NORM = 1,     /* RMS norm over each head of Q and K before rope */
    NIB_ARCH_POST_NORM = 2,   /* norms after attention and after the feed-forward part, before the residual sum */
    NIB_ARCH_EMBED_SCALE = 4, /* embeddings times sqrt(n_embd) */
};

typedef struct nib_arch {
    const char *name;          /* general.architecture */
    nib_plan_rope_kind rope;   /* which pairs of dimensions rotate together */
    nib_plan_act_fn act;       /* of the gate */
    unsigned flags;
    uint32_t window_period;    /* every such layer sees all positions, the others a sliding window; 0: no windows */
    uint32_t n_layer_wide;     /* models of so many layers scale scores by n_embd / n_head instead of the head size */
} nib_arch;

#define X(name) extern const nib_arch nib_arch_##name;
#include "model/archs.def"
#undef X

/* NULL when there is none of that name. */
const nib_arch *nib_arch_find(nib_str name);
/* All names, joined by ", ". */
const char *nib_arch_names(void);

#endif
