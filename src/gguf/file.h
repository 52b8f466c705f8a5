/* gguf/file.h - private to gguf/: one file of a model on disk, its header parsed.
 *
 * path -> part. In read mode the header is read with pread in growing pieces; in map mode the whole file is mapped. */
#ifndef NIB_GGUF_FILE_H
#define NIB_GGUF_FILE_H

#include "gguf/gguf.h"
#include "gguf/identity.h"

typedef struct nib_gguf_file { /* zero-initialise */
    char *path;
    int fd;              /* -1: not open; valid when path is set */
    bool is_mapped;
    uint64_t n_bytes;    /* when it was opened */
    uint8_t *bytes;      /* the header, or the whole file when mapped */
    nib_gguf_doc doc;
} nib_gguf_file;

/* Opens and parses. Messages begin with the path. On failure there is nothing to close. */
nib_status nib_gguf_file_open(nib_gguf_file *file, const char *path, uint32_t number, const nib_gguf_config *config,
                              nib_error *err);
void nib_gguf_file_close(nib_gguf_file *file);

/* Copies n bytes at `offset`, which the parser found inside the file. NIB_E_CHANGED when the file is shorter now. */
nib_status nib_gguf_file_read(const nib_gguf_file *file, uint64_t offset, uint64_t n, void *dst, nib_error *err);
/* Goes on with the hashes of *identity: for a model of many files, one after another. */
nib_status nib_gguf_file_identify(const nib_gguf_file *file, nib_gguf_identity *identity, nib_error *err);

#endif
