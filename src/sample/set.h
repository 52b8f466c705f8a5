/* sample/set.h - the candidates: first the whole vocabulary as it came from the model, later a short list.
 *
 * Dense form: slot = token id; values are the caller's logits (never written; bias and penalties lie over them as a
 * sparse patch, the mask of the grammar as bits) or, once scaled, own. List form: own values with their ids; all are
 * finite. Every operation walks blocks of 32 slots whose maxima are known and skips those that cannot matter, so its
 * cost is that of what it keeps. Nothing is allocated after init. Filters and sampler.c call it, on one thread. */
#ifndef NIB_SAMPLE_SET_H
#define NIB_SAMPLE_SET_H

#include "nib.h"

#include <float.h>

/* The nearest finite float: a sampler may make a token as unlikely as can be, but never forbid it or break the sums. */
static inline float nib_sample_clamp(double logit) {
    return logit < -(double)FLT_MAX ? -FLT_MAX : logit > (double)FLT_MAX ? FLT_MAX : (float)logit;
}

typedef struct nib_sample_set {
    const float *values;  /* n logits by slot; -infinity: no candidate */
    nib_token *ids;       /* by slot in list form; NULL in dense form */
    size_t n;             /* slots */
    const uint32_t *mask; /* dense form: bit id set = allowed; NULL: all */
    const float *best;    /* dense form: the best of each block of values, +infinity where one is NaN; NULL: not known */
    bool is_patched;      /* `patched` and `patch` lie over values */
    bool is_sorted;       /* a list in the order of sample/order.h */
    bool has_max;         /* max and block_max are right */
    float max;            /* -infinity: no candidate is left */
    size_t bad;           /* the first slot with NaN or +infinity, which empties the set; else SIZE_MAX */
    /* Scratch for n_vocab candidates, touched only as it is used. */
    size_t n_vocab;
    float *own;
    nib_token *own_ids;
    float *block_max;
    uint32_t *patched; /* bits */
    float *patch;      /* by id */
    nib_logprob *heap; /* by block */
    uint64_t *keys;    /* 2 n_vocab */
} nib_sample_set;

nib_status nib_sample_set_init(nib_sample_set *set, uint32_t n_vocab, nib_error *err);
void nib_sample_set_fini(nib_sample_set *set);
/* Starts over with all allowed tokens; logits, mask and best (NULL: not known) stay the caller's and must live as long as they are in
 * use. */
void nib_sample_set_begin(nib_sample_set *set, const float *logits, const float *best, const uint32_t *mask);

/* The best logit; -infinity when there is no candidate (a bad set has none). Looks for NaN when that is due. */
float nib_sample_set_max(nib_sample_set *set);

/* Gives candidates new logits: in dense form those of the n ids, in list form all (change must then return the logit
 * as it is for other ids). The result is finite, in dense form it may be -infinity too. */
typedef float (*nib_sample_change_fn)(const void *user, nib_token id, float logit);
void nib_sample_set_change(nib_sample_set *set, const nib_token *ids, size_t n, nib_sample_change_fn change,
                           const void *user);

/* Softmax over the candidates with logit >= lowest, d = logit - max: sum of exp(d), of exp(d) d, and their number. */
typedef struct nib_sample_mass {
    double z, zd;
    size_t n;
} nib_sample_mass;
nib_sample_mass nib_sample_set_mass(nib_sample_set *set, float lowest);
/* Mean and standard deviation of the candidates' logits, the mean relative to max; both 0 when there are none. */
void nib_sample_set_moments(nib_sample_set *set, double *mean, double *deviation);

/* Drops logits below lowest. The set is a list afterwards. */
void nib_sample_set_keep(nib_sample_set *set, float lowest);
/* Keeps the k best, k >= 1. Sorted afterwards if any were dropped. */
void nib_sample_set_top(nib_sample_set *set, size_t k);
/* Makes a list of all candidates, sorted. */
void nib_sample_set_sort(nib_sample_set *set);
/* A sorted list of the best: so many that their mass exceeds `mass` and they are at least at_least; all, when that is
 * less. Drops the others. */
void nib_sample_set_head(nib_sample_set *set, double mass, size_t at_least);
/* Divides all logits by temp > 0. What exceeds the range of float is taken relative to the best. */
void nib_sample_set_scale(nib_sample_set *set, float temp);

/* The best candidate; the set must have one. */
nib_token nib_sample_set_best(nib_sample_set *set);
/* Draws by probability with 0 <= u < 1, in sorted order: u = 0 is the best. *logprob: of the drawn token in the set.
 * What is left is a window around it, perhaps without the best. */
nib_token nib_sample_set_draw(nib_sample_set *set, double u, float *logprob);
/* The k best with their log-probabilities, best first; returns how many there are. z: the mass of all. Changes
 * nothing. */
size_t nib_sample_set_peek(nib_sample_set *set, double z, nib_logprob *top, size_t k);

#endif
