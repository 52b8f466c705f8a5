/* model/hparams.h - the hyper-parameters of a decoder: read from metadata, every type and range checked by one table
 * (hparams.def), then against each other. Errors name the key, what was found and what was expected. */
#ifndef NIB_MODEL_HPARAMS_H
#define NIB_MODEL_HPARAMS_H

#include "nib.h"

typedef enum nib_rope_scaling { NIB_ROPE_SCALE_NONE, NIB_ROPE_SCALE_LINEAR, NIB_ROPE_SCALE_YARN } nib_rope_scaling;

typedef struct nib_model_hparams {
#define X(field, key, low, high, def) uint32_t field;
#define F(field, key, low, high, def) float field;
#define U(key, value, text)
#include "model/hparams.def"
#undef X
#undef F
#undef U
    nib_rope_scaling scaling;
    uint32_t n_vocab;
} nib_model_hparams;

/* arch: the value of general.architecture, the prefix of the keys. */
nib_status nib_model_hparams_read(nib_model_hparams *out, const nib_gguf *file, const char *arch, nib_error *err);

#endif
