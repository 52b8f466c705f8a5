/* gguf/identity.h - tells one model from another, and from what the same files held before, without reading all of it. */
#ifndef NIB_GGUF_IDENTITY_H
#define NIB_GGUF_IDENTITY_H

#include "nib.h"

/* Hashes over all parts, of the host's byte order. */
typedef struct nib_gguf_identity {
    uint64_t content; /* sizes, headers, and samples spread over the data */
    uint64_t times;   /* of the last modification, in nanoseconds */
} nib_gguf_identity;

nib_status nib_gguf_identify(const nib_gguf *file, nib_gguf_identity *out, nib_error *err);

#endif
