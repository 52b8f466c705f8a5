/* gguf/write.h - builds GGUF files: keys and tensors in, bytes out. Knows nothing of what it writes, so that tests can
 * make odd files with it.
 *
 *     nib_gguf_writer w = {0};
 *     nib_gguf_write_str(&w, "general.architecture", "llama");
 *     nib_gguf_write_tensor(&w, &tensor, data);
 *     nib_gguf_write_file(&w, stream, &err);
 *     nib_gguf_write_free(&w);
 *
 * Memory that runs out on the way is remembered and reported by the function that gives the bytes. */
#ifndef NIB_GGUF_WRITE_H
#define NIB_GGUF_WRITE_H

#include "base/buf.h"
#include "nib.h"

#include <stdio.h>

typedef struct nib_gguf_writer { /* zero-initialise; version and alignment may be set before the first call */
    uint32_t version;   /* 0: 3 */
    uint32_t alignment; /* 0: 32, and no key general.alignment */
    nib_buf keys, tensors; /* records */
    size_t n_keys, n_tensors;
    struct nib_gguf_write_data {
        const void *bytes; /* borrowed */
        size_t n_bytes;
    } *data; /* of each tensor */
    size_t capacity, data_bytes; /* data_bytes: of all tensors, padded */
    bool failed;
} nib_gguf_writer;

void nib_gguf_write_free(nib_gguf_writer *w);

/* Keys in the order of the calls. The number is stored in `type`, cut to its width. */
void nib_gguf_write_uint(nib_gguf_writer *w, const char *key, nib_gguf_type type, uint64_t value);
void nib_gguf_write_float(nib_gguf_writer *w, const char *key, nib_gguf_type type, double value);
void nib_gguf_write_str(nib_gguf_writer *w, const char *key, const char *value);
/* n elements of `elem` as they shall stand in the file (len bytes). */
void nib_gguf_write_array(nib_gguf_writer *w, const char *key, nib_gguf_type elem, uint64_t n, nib_str raw);
void nib_gguf_write_strings(nib_gguf_writer *w, const char *key, const nib_str *strings, size_t n);
/* Any value as it shall stand in the file after its key: for copies of keys, and for malformed ones. */
void nib_gguf_write_raw(nib_gguf_writer *w, nib_str key, nib_gguf_type type, nib_str raw);

/* Uses name, type, n_dims, dims and n_bytes. data (n_bytes) is borrowed until the bytes are given; NULL when the caller
 * writes the data behind the header itself, each tensor padded to the alignment. */
void nib_gguf_write_tensor(nib_gguf_writer *w, const nib_gguf_tensor *tensor, const void *data);

/* Appends the header up to the first byte of data. */
nib_status nib_gguf_write_header(const nib_gguf_writer *w, nib_buf *out, nib_error *err);
/* Appends the whole file / writes it to a stream. Tensors without data are zeros. */
nib_status nib_gguf_write_bytes(const nib_gguf_writer *w, nib_buf *out, nib_error *err);
nib_status nib_gguf_write_file(const nib_gguf_writer *w, FILE *stream, nib_error *err);

#endif
