/* decode/embed.h - pooling: hidden states in, in the order of their positions -> one vector for the sequence out.
 *
 * Sums are doubles, taken one position after the other, so that it does not show where a sequence was cut. */
#ifndef NIB_DECODE_EMBED_H
#define NIB_DECODE_EMBED_H

#include "nib.h"

typedef struct nib_decode_embed {
    nib_pooling pooling;
    uint32_t n_embd;
    size_t n_added;
    double *sum; /* n_embd */
} nib_decode_embed;

/* NIB_E_ARG: no such pooling. */
nib_status nib_decode_embed_init(nib_decode_embed *e, const nib_model *model, nib_pooling pooling, nib_error *err);
void nib_decode_embed_fini(nib_decode_embed *e);
/* From the beginning of the sequence again. */
void nib_decode_embed_reset(nib_decode_embed *e);
/* Is the hidden state of position pos of n one of those to add? */
bool nib_decode_embed_wants(const nib_decode_embed *e, size_t pos, size_t n);
void nib_decode_embed_add(nib_decode_embed *e, const float *row);
/* The vector of what was added, at least one row. */
nib_status nib_decode_embed_finish(const nib_decode_embed *e, float *out, nib_error *err);

#endif
