/* model/load.h - reads weights from the file and packs them, on all threads at once. */
#ifndef NIB_MODEL_LOAD_H
#define NIB_MODEL_LOAD_H

#include "model/model.h"

/* Fills weights and memory of a model whose plan and isa are set. On error what was made stays for nib_model_close. */
nib_status nib_model_load(nib_model *model, const nib_model_config *config, nib_error *err);
/* Reads all weights of a plan and looks for NaN and infinity; the first fault of each tensor is reported. */
nib_status nib_model_scan(const nib_gguf *file, const nib_plan *plan,
                          void (*report)(void *user, const nib_error *fault), void *user);

#endif
