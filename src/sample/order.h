/* sample/order.h - the one order of candidates, as sortable keys and as a bounded list of the best.
 *
 * Higher logit first; equal logits (and the two zeros are equal): lower id first. Everything that sorts, cuts or breaks
 * ties in this folder does it here, so the result never depends on how the candidates were found. */
#ifndef NIB_SAMPLE_ORDER_H
#define NIB_SAMPLE_ORDER_H

#include "base/half.h"
#include "nib.h"

/* Ascending keys are candidates in order. value is not NaN; index < 2^32. */
static inline uint64_t nib_sample_order_key(float value, uint32_t index) {
    uint32_t bits = nib_f32_bits(value + 0.0f); /* -0 becomes +0 */
    uint32_t falling = bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
    return (uint64_t)falling << 32 | index;
}

static inline float nib_sample_order_value(uint64_t key) {
    uint32_t falling = (uint32_t)(key >> 32);
    return nib_f32_from_bits(falling & 0x80000000u ? falling : ~(falling | 0x80000000u));
}

/* Sorts n keys ascending; tmp has room for n. Time is linear in n whatever the keys are. */
void nib_sample_order_sort(uint64_t *keys, uint64_t *tmp, size_t n);

static inline bool nib_sample_order_before(nib_logprob a, nib_logprob b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

/* The k best of what was pushed. items (room for k) belongs to the caller; while pushing it is a heap with the worst in
 * front. */
typedef struct nib_sample_best {
    nib_logprob *items;
    size_t n, k;
} nib_sample_best;

void nib_sample_order_push(nib_sample_best *best, nib_logprob item);
/* Puts the items in order, best first. */
void nib_sample_order_finish(nib_sample_best *best);

/* False when a value up to `value` need not be pushed: it can only lose. */
static inline bool nib_sample_order_wants(const nib_sample_best *best, float value) {
    return best->k && (best->n < best->k || value >= best->items[0].logprob);
}

#endif
