/* decode/batch.h - tokens of any number of sequences that run together (nib_batch_* of nib.h). */
#ifndef NIB_DECODE_BATCH_H
#define NIB_DECODE_BATCH_H

#include "nib.h"

typedef struct nib_batch_entry {
    nib_token token;
    int32_t pos; /* or NIB_POS_NEXT */
    uint32_t seq;
    bool want_logits;
} nib_batch_entry;

struct nib_batch {
    uint32_t n, capacity;
    bool wants_hidden;
    nib_batch_entry entries[];
};

#endif
