/* model/decoder.h - the standard decoder: hyper-parameters and tensors of a file in, plan out. */
#ifndef NIB_MODEL_DECODER_H
#define NIB_MODEL_DECODER_H

#include "model/arch.h"
#include "model/hparams.h"

typedef struct nib_model_source {
    const nib_gguf *file;
    const nib_arch *arch;
    nib_model_hparams hp;
    /* Faults of tensors, when not NULL: building goes on after one, for nib_model_check. */
    void (*report)(void *user, const nib_error *fault);
    void *user;
} nib_model_source;

/* Reads architecture and hyper-parameters. */
nib_status nib_model_source_open(nib_model_source *src, const nib_gguf *file, nib_error *err);
/* Emits the plan; every tensor is found, its type and shape checked. Tensors that the architecture does not have are an
 * error too: a model computed without some of its weights is wrong in silence. On error *plan is freed. */
nib_status nib_model_decoder_build(nib_plan *plan, const nib_model_source *src, nib_error *err);

#endif
