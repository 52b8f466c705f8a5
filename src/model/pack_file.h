/* model/pack_file.h - the file that keeps packed weights: opened, read, written beside its place and moved there.
 *
 * Only whole files ever stand at a path. One writer at a time: its half-made file ends in .part and is locked, so what a
 * process left there that was killed is found and used again. Called by model/pack_cache.c only. */
#ifndef NIB_MODEL_PACK_FILE_H
#define NIB_MODEL_PACK_FILE_H

#include "nib.h"

typedef struct nib_model_pack_file {
    int fd;           /* -1: not open */
    char *path, *part;
    bool is_writing;
} nib_model_pack_file;

/* Nothing is opened yet. */
nib_status nib_model_pack_file_init(nib_model_pack_file *file, const char *folder, uint64_t name, nib_error *err);
/* Closes; a file that was not finished is removed. */
void nib_model_pack_file_fini(nib_model_pack_file *file);

/* For reading; *n_bytes is its size. fd stays -1, without an error, where there is none. */
nib_status nib_model_pack_file_open(nib_model_pack_file *file, uint64_t *n_bytes, nib_error *err);
/* NIB_E_FORMAT where the file ends too early. Threads may read and write at once. */
nib_status nib_model_pack_file_read(const nib_model_pack_file *file, uint64_t at, void *dst, size_t n, nib_error *err);

/* For writing n_bytes; the folder is made when there is none. */
nib_status nib_model_pack_file_create(nib_model_pack_file *file, uint64_t n_bytes, nib_error *err);
nib_status nib_model_pack_file_write(const nib_model_pack_file *file, uint64_t at, const void *src, size_t n,
                                     nib_error *err);
/* Moves what was written into place. */
nib_status nib_model_pack_file_finish(nib_model_pack_file *file, nib_error *err);

#endif
