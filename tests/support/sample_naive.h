/* tests/support/sample_naive.h - samplers written the plain way: full sorts, doubles, libm. The tests of sample/
 * compare with these. A cut that falls so near a probability that rounding decides it sets is_ambiguous; such cases
 * prove nothing. */
#ifndef NIB_TESTS_SUPPORT_SAMPLE_NAIVE_H
#define NIB_TESTS_SUPPORT_SAMPLE_NAIVE_H

#include "base/rng.h"
#include "nib.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct naive_cand {
    nib_token id;
    double logit, p, key;
} naive_cand;

typedef struct naive_list {
    naive_cand *items;
    size_t n;
    bool is_ambiguous;
} naive_list;

static inline int naive_by_logit(const void *a, const void *b) {
    const naive_cand *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id - y->id;
}

static inline int naive_by_key(const void *a, const void *b) {
    const naive_cand *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return naive_by_logit(a, b);
}

static inline void naive_begin(naive_list *list, const float *logits, const uint32_t *mask, size_t n_vocab) {
    list->n = 0;
    list->is_ambiguous = false;
    for (size_t i = 0; i < n_vocab; i++)
        if (logits[i] > -INFINITY && (!mask || mask[i / 32] >> i % 32 & 1))
            list->items[list->n++] = (naive_cand){(nib_token)i, (double)logits[i], 0, 0};
}

/* The best of each block of 32, as nib_logits_best has them. */
static inline void naive_best(const float *logits, size_t n_vocab, float *best) {
    for (size_t b = 0; b < (n_vocab + 31) / 32; b++) best[b] = -INFINITY;
    for (size_t i = 0; i < n_vocab; i++)
        if (!(logits[i] <= best[i / 32])) best[i / 32] = logits[i] == logits[i] ? logits[i] : INFINITY;
}

/* Sorts by logit and fills in the probabilities. */
static inline void naive_softmax(naive_list *list) {
    qsort(list->items, list->n, sizeof *list->items, naive_by_logit);
    double sum = 0;
    for (size_t i = 0; i < list->n; i++) sum += list->items[i].p = exp(list->items[i].logit - list->items[0].logit);
    for (size_t i = 0; i < list->n; i++) list->items[i].p /= sum;
}

static inline double naive_entropy(const naive_list *list) {
    double h = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].p > 0) h -= list->items[i].p * log(list->items[i].p);
    return h;
}

static inline void naive_near(naive_list *list, double a, double b) {
    if (fabs(a - b) < 2e-6) list->is_ambiguous = true;
}

static inline void naive_top_k(naive_list *list, const nib_sampler_params *p) {
    naive_softmax(list);
    if (p->top_k > 0 && (size_t)p->top_k < list->n) list->n = (size_t)p->top_k;
}

static inline void naive_top_p(naive_list *list, const nib_sampler_params *p) {
    if (p->top_p >= 1) return;
    naive_softmax(list);
    double sum = 0;
    for (size_t i = 0; i < list->n; i++) {
        sum += list->items[i].p;
        naive_near(list, sum, (double)p->top_p);
        if (sum >= (double)p->top_p && i + 1 >= p->min_keep) {
            list->n = i + 1;
            return;
        }
    }
}

static inline void naive_min_p(naive_list *list, const nib_sampler_params *p) {
    if (p->min_p <= 0) return;
    naive_softmax(list);
    size_t n = 0;
    while (n < list->n && (n < p->min_keep || list->items[n].p >= (double)p->min_p * list->items[0].p)) {
        if (n) naive_near(list, list->items[n].logit - list->items[0].logit, log((double)p->min_p));
        n++;
    }
    if (n < list->n) naive_near(list, list->items[n].logit - list->items[0].logit, log((double)p->min_p));
    list->n = n;
}

static inline void naive_typical(naive_list *list, const nib_sampler_params *p) {
    if (p->typical_p >= 1) return;
    naive_softmax(list);
    double h = naive_entropy(list), sum = 0;
    for (size_t i = 0; i < list->n; i++) list->items[i].key = fabs(-log(list->items[i].p) - h);
    qsort(list->items, list->n, sizeof *list->items, naive_by_key);
    for (size_t i = 0; i < list->n; i++) {
        sum += list->items[i].p;
        naive_near(list, sum, (double)p->typical_p);
        if (sum > (double)p->typical_p && i + 1 >= p->min_keep) {
            if (i + 1 < list->n && list->items[i].logit != list->items[i + 1].logit)
                naive_near(list, list->items[i].key, list->items[i + 1].key);
            list->n = i + 1;
            break;
        }
    }
    naive_softmax(list);
}

static inline void naive_top_n_sigma(naive_list *list, const nib_sampler_params *p) {
    if (p->top_n_sigma <= 0) return;
    naive_softmax(list);
    double mean = 0, variance = 0;
    for (size_t i = 0; i < list->n; i++) mean += list->items[i].logit / (double)list->n;
    for (size_t i = 0; i < list->n; i++) variance += pow(list->items[i].logit - mean, 2) / (double)list->n;
    double lowest = list->items[0].logit - (double)p->top_n_sigma * sqrt(variance);
    size_t n = 0;
    while (n < list->n && list->items[n].logit >= lowest) n++;
    for (size_t i = 0; i < list->n; i++)
        if (i) naive_near(list, list->items[i].logit, lowest);
    list->n = n;
}

static inline void naive_xtc(naive_list *list, const nib_sampler_params *p, double u) {
    if (p->xtc_probability <= 0 || p->xtc_threshold > 0.5f || u > (double)p->xtc_probability) return;
    naive_softmax(list);
    size_t n = 0;
    while (n < list->n && list->items[n].p >= (double)p->xtc_threshold) n++;
    for (size_t i = 0; i < list->n; i++) naive_near(list, list->items[i].p, (double)p->xtc_threshold);
    if (n < 2 || list->n - (n - 1) < p->min_keep) return;
    list->n -= n - 1;
    memmove(list->items, list->items + (n - 1), list->n * sizeof *list->items);
}

static inline void naive_temperature(naive_list *list, const nib_sampler_params *p) {
    naive_softmax(list);
    double temp = (double)p->temp;
    if (temp > 0 && p->dynatemp_range > 0) {
        if (list->n < 2) return;
        double low = fmax(0, temp - (double)p->dynatemp_range), high = temp + (double)p->dynatemp_range;
        double even = fmin(1, fmax(0, naive_entropy(list) / log((double)list->n)));
        temp = low + (high - low) * pow(even, (double)p->dynatemp_exponent);
    }
    if (temp <= 0 && list->n) list->n = 1;
    for (size_t i = 0; i < list->n && temp > 0; i++) list->items[i].logit /= temp;
}

/* Normal numbers; every_tie rounds them so that many are equal. */
static inline void naive_logits(float *logits, size_t n, uint32_t seed, double spread, bool with_ties) {
    for (size_t i = 0; i < n; i++) {
        double u = 1 - nib_rng_uniform(seed, i, 100), v = nib_rng_uniform(seed, i, 101);
        double x = spread * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
        logits[i] = (float)(with_ties ? rint(x * 2) / 2 : x);
    }
}

#endif
