/* model/pack_cache.h - keeps the packed weights of a model in a file, so that the next load neither reads nor packs the
 * tensors. Called by model/load.c. */
#ifndef NIB_MODEL_PACK_CACHE_H
#define NIB_MODEL_PACK_CACHE_H

#include "base/team.h"
#include "gguf/identity.h"
#include "model/model.h"
#include "model/pack_file.h"

/* What the head of a file must be. Hashes and numbers are of the host's byte order. */
typedef struct nib_model_pack_head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t n_bytes; /* of the packed weights */
    uint64_t weights; /* hash of the list of weights and their places */
    nib_gguf_identity model;
} nib_model_pack_head;

typedef struct nib_model_pack_cache_job { /* zero-initialise */
    nib_model *model;
    const nib_model_config *config;
    nib_team *team;
    nib_model_pack_file file;
    nib_model_pack_head head;
    uint64_t *sums; /* of the head, then of each piece */
    size_t n_pieces;
    uint64_t data_at;
    nib_error refused; /* why the file that was there was not taken; NIB_OK: there was none */
    bool is_wanted;    /* by the config; false when it cannot be */
    bool is_read;      /* the weights are in place */
} nib_model_pack_cache_job;

/* Looks for the packed form of a model that is laid out but empty. The only errors are those of progress; all others mean
 * that the weights must be loaded, and are kept for model->pack_cache. */
nib_status nib_model_pack_cache_read(nib_model_pack_cache_job *job, nib_model *model, const nib_model_config *config,
                                     nib_team *team, nib_error *err);
/* Writes it, if it is wanted; `done` bytes of work lie before. As above. */
nib_status nib_model_pack_cache_write(nib_model_pack_cache_job *job, uint64_t done, nib_error *err);
void nib_model_pack_cache_free(nib_model_pack_cache_job *job);

#endif
