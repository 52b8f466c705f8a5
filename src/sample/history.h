/* sample/history.h - the last tokens of the sequence, as far back as a sampler looks: a ring buffer. */
#ifndef NIB_SAMPLE_HISTORY_H
#define NIB_SAMPLE_HISTORY_H

#include "nib.h"

#define NIB_SAMPLE_HISTORY_ALL SIZE_MAX
/* A window up to this is allocated at once; a longer one grows as the sequence does. */
#define NIB_SAMPLE_HISTORY_FIXED ((size_t)1 << 16)

typedef struct nib_sample_history {
    nib_token *ring;
    size_t capacity; /* a power of two, or 0 */
    size_t window;   /* tokens that someone looks back */
    uint64_t n_total;
} nib_sample_history;

nib_status nib_sample_history_init(nib_sample_history *history, size_t window, nib_error *err);
void nib_sample_history_fini(nib_sample_history *history);
void nib_sample_history_reset(nib_sample_history *history);

/* Makes room for one more token; allocates only when the window is longer than NIB_SAMPLE_HISTORY_FIXED. */
nib_status nib_sample_history_reserve(nib_sample_history *history, nib_error *err);
/* Appends a token; call reserve before. */
void nib_sample_history_push(nib_sample_history *history, nib_token id);

/* Tokens to look back on, at most the window. */
static inline size_t nib_sample_history_n(const nib_sample_history *history) {
    return history->n_total < history->window ? (size_t)history->n_total : history->window;
}

/* The token i places back, 0 the newest; i < nib_sample_history_n. */
static inline nib_token nib_sample_history_at(const nib_sample_history *history, size_t i) {
    return history->ring[(history->n_total - 1 - i) & (history->capacity - 1)];
}

#endif
