/* decode/batch.c - tokens of any number of sequences that run together. */
#include "decode/batch.h"

#include "base/mem.h"
#include "base/status.h"

nib_status nib_batch_new(nib_batch **out, uint32_t capacity, nib_error *err) {
    *out = NULL;
    if (capacity == 0 || capacity > 1u << 24)
        return nib_fail(err, NIB_E_ARG, "a batch of %u tokens: expected 1 to %u", capacity, 1u << 24);
    nib_batch *batch = nib_alloc(1, sizeof *batch + capacity * sizeof *batch->entries);
    if (!batch) return nib_fail_nomem(err, capacity * sizeof *batch->entries, "a batch");
    batch->n = 0;
    batch->wants_hidden = false;
    batch->capacity = capacity;
    *out = batch;
    return NIB_OK;
}

void nib_batch_free(nib_batch *batch) {
    nib_free(batch);
}

void nib_batch_clear(nib_batch *batch) {
    batch->n = 0;
    batch->wants_hidden = false;
}

void nib_batch_want_hidden(nib_batch *batch) {
    batch->wants_hidden = true;
}

uint32_t nib_batch_n(const nib_batch *batch) {
    return batch->n;
}

nib_status nib_batch_add(nib_batch *batch, nib_token token, int32_t pos, uint32_t seq, bool want_logits,
                         nib_error *err) {
    if (batch->n == batch->capacity)
        return nib_fail(err, NIB_E_LIMIT, "the batch is full: it holds %u tokens", batch->capacity);
    batch->entries[batch->n++] = (nib_batch_entry){token, pos, seq, want_logits};
    return NIB_OK;
}
