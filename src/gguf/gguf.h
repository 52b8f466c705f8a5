/* gguf/gguf.h - the GGUF header parser: bytes in, keys and tensors out, or an error with its byte offset. No I/O.
 *
 * The document borrows the bytes: names, strings and arrays point into them. Everything that is in a document has been
 * checked: value types, lengths, counts, alignment, shapes, and that the data of every tensor lies inside the file.
 * Called by gguf/file.c, the fuzzer and tests. */
#ifndef NIB_GGUF_GGUF_H
#define NIB_GGUF_GGUF_H

#include "base/mem.h"
#include "gguf/index.h"
#include "nib.h"

#define NIB_GGUF_HEADER_BYTES 24 /* magic, version, two counts */
#define NIB_GGUF_MAX_DEPTH 4     /* arrays in arrays */
#define NIB_GGUF_MAX_NAME 65535  /* bytes in a key or the name of a tensor */
#define NIB_GGUF_MAX_ALIGNMENT (1u << 20)
#define NIB_GGUF_DEFAULT_ALIGNMENT 32u

typedef struct nib_gguf_input {
    const void *bytes;
    size_t len;          /* bytes at hand, from the start of the file */
    uint64_t file_bytes; /* size of the whole file */
    uint32_t file;       /* nib_gguf_tensor.file of its tensors */
} nib_gguf_input;

typedef struct nib_gguf_limits {
    uint64_t max_bytes; /* of the header */
    uint32_t max_keys, max_tensors;
} nib_gguf_limits;

typedef struct nib_gguf_key {
    nib_str name;
    nib_gguf_value value;
} nib_gguf_key;

typedef struct nib_gguf_doc {
    uint32_t version, alignment;
    uint64_t header_bytes; /* up to the end of the last tensor record, before padding */
    nib_gguf_key *keys;    /* in the order of the file */
    size_t n_keys;
    nib_gguf_tensor *tensors;
    size_t n_tensors;
    nib_gguf_index key_index, tensor_index;
    nib_arena texts; /* names of unknown types */
} nib_gguf_doc;

/* Parses the header. When the bytes at hand end before the header does, *want is the number of bytes from the start of
 * the file that are needed at least (never more than the file or the limit has); the result is NIB_OK and the document
 * empty. Else *want is 0. On error the document is empty. */
nib_status nib_gguf_parse(nib_gguf_doc *doc, const nib_gguf_input *input, const nib_gguf_limits *limits, uint64_t *want,
                          nib_error *err);
void nib_gguf_doc_free(nib_gguf_doc *doc);

/* The value of a key; NULL when absent. */
const nib_gguf_value *nib_gguf_doc_find(const nib_gguf_doc *doc, const char *name);

#endif
