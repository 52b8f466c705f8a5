/* sample/history.c - the ring buffer of the last tokens and how it grows. */
#include "sample/history.h"

#include "base/mem.h"
#include "base/status.h"

nib_status nib_sample_history_init(nib_sample_history *history, size_t window, nib_error *err) {
    *history = (nib_sample_history){.window = window};
    if (!window) return NIB_OK;
    size_t capacity = 1;
    while (capacity < window && capacity < NIB_SAMPLE_HISTORY_FIXED) capacity *= 2;
    history->ring = nib_alloc(capacity, sizeof *history->ring);
    if (!history->ring) return nib_fail_nomem(err, capacity * sizeof *history->ring, "the history of a sampler");
    history->capacity = capacity;
    return NIB_OK;
}

void nib_sample_history_fini(nib_sample_history *history) {
    nib_free(history->ring);
    *history = (nib_sample_history){0};
}

void nib_sample_history_reset(nib_sample_history *history) {
    history->n_total = 0;
}

nib_status nib_sample_history_reserve(nib_sample_history *history, nib_error *err) {
    if (history->capacity >= history->window || history->n_total < history->capacity) return NIB_OK;
    /* Full for the first time, so nothing has wrapped yet: slots keep their place in a larger ring. */
    if (!nib_grow(&history->ring, &history->capacity, history->capacity + 1, sizeof *history->ring))
        return nib_fail_nomem(err, (uint64_t)history->capacity * 2 * sizeof *history->ring, "the history of a sampler");
    return NIB_OK;
}

void nib_sample_history_push(nib_sample_history *history, nib_token id) {
    if (history->window) history->ring[history->n_total++ & (history->capacity - 1)] = id;
}
