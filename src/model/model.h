/* model/model.h - a loaded model: plan and packed weights (nib_model_* of nib.h). */
#ifndef NIB_MODEL_MODEL_H
#define NIB_MODEL_MODEL_H

#include "cpu/cpu.h"
#include "model/decoder.h"

struct nib_model {
    nib_model_source source;
    nib_plan plan;
    const nib_cpu_isa *isa;
    nib_cpu_weight *weights; /* by plan weight */
    unsigned char *memory;   /* of all packed weights and vectors */
    size_t n_bytes;
    uint64_t n_params;
    nib_error pack_cache; /* what became of it; no message: none was asked for */
};

/* Tells what the model computes: its file, and what was overridden. Reads samples of the file. */
nib_status nib_model_fingerprint(const nib_model *model, uint64_t *out, nib_error *err);

#endif
