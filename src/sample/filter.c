/* sample/filter.c - top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature over the set of candidates. */
#include "sample/filter.h"

#include "sample/lanes.h"
#include "sample/order.h"
#include "sample/sampler.h"

#include <string.h>

static size_t min_keep(const nib_sampler *s) {
    return s->params.min_keep ? s->params.min_keep : 1;
}

void nib_sample_filter_top_n_sigma(nib_sampler *s) {
    float n = s->params.top_n_sigma, max;
    if (n <= 0 || (max = nib_sample_set_max(&s->set)) == -INFINITY) return;
    double mean, deviation;
    nib_sample_set_moments(&s->set, &mean, &deviation);
    nib_sample_set_keep(&s->set, nib_sample_clamp((double)max - (double)n * deviation));
}

void nib_sample_filter_top_k(nib_sampler *s) {
    if (s->params.top_k > 0) nib_sample_set_top(&s->set, (size_t)s->params.top_k);
}

/* Keys of candidate i of a sorted list in the order of typical sampling: smallest deviation from the entropy first.
 * Surprise is log z - d, the entropy log z - zd / z. */
static uint64_t typical_key(const nib_sample_set *set, size_t i, float max, double expected) {
    double d = (double)set->own[i] - (double)max;
    return nib_sample_order_key(-(float)fabs(d - expected), (uint32_t)i);
}

void nib_sample_filter_typical(nib_sampler *s) {
    nib_sample_set *set = &s->set;
    if (s->params.typical_p >= 1 || nib_sample_set_max(set) == -INFINITY) return;
    nib_sample_mass all = nib_sample_set_mass(set, -FLT_MAX);
    double expected = all.zd / all.z, wanted = (double)s->params.typical_p * all.z, sum = 0;
    nib_sample_set_sort(set);
    float max = set->own[0];
    for (size_t i = 0; i < set->n; i++) set->keys[i] = typical_key(set, i, max, expected);
    nib_sample_order_sort(set->keys, set->keys + set->n_vocab, set->n);
    size_t n = 0;
    while (n < set->n && (sum <= wanted || n < min_keep(s)))
        sum += (double)nib_sample_exp(set->own[(uint32_t)set->keys[n++]] - max);
    uint64_t last = set->keys[n - 1];
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (typical_key(set, i, max, expected) > last) continue;
        set->own[kept] = set->own[i];
        set->ids[kept++] = set->ids[i];
    }
    set->n = kept;
    set->has_max = false;
}

void nib_sample_filter_top_p(nib_sampler *s) {
    nib_sample_set *set = &s->set;
    if (s->params.top_p >= 1 || nib_sample_set_max(set) == -INFINITY) return;
    double wanted = (double)s->params.top_p * nib_sample_set_mass(set, -FLT_MAX).z, sum = 0;
    nib_sample_set_head(set, wanted, min_keep(s));
    float max = set->own[0];
    size_t n = 0;
    while (n < set->n && (sum < wanted || n < min_keep(s))) sum += (double)nib_sample_exp(set->own[n++] - max);
    set->n = n;
    set->has_max = false;
}

void nib_sample_filter_min_p(nib_sampler *s) {
    nib_sample_set *set = &s->set;
    float max;
    if (s->params.min_p <= 0 || (max = nib_sample_set_max(set)) == -INFINITY) return;
    float lowest = max + nib_logf(s->params.min_p);
    if (min_keep(s) > 1 && nib_sample_set_mass(set, lowest).n < min_keep(s)) nib_sample_set_top(set, min_keep(s));
    else nib_sample_set_keep(set, lowest);
}

void nib_sample_filter_xtc(nib_sampler *s) {
    nib_sample_set *set = &s->set;
    float threshold = s->params.xtc_threshold;
    if (s->params.xtc_probability <= 0 || threshold > 0.5f) return;
    double u = nib_sample_uniform(s);
    if (u > (double)s->params.xtc_probability || nib_sample_set_max(set) == -INFINITY) return;
    double z = nib_sample_set_mass(set, -FLT_MAX).z;
    nib_sample_set_sort(set);
    float max = set->own[0];
    size_t n = 0; /* candidates that reach the threshold */
    while (n < set->n && (float)((double)nib_sample_exp(set->own[n] - max) / z) >= threshold) n++;
    if (n < 2 || set->n - (n - 1) < min_keep(s)) return;
    set->n -= n - 1;
    memmove(set->own, set->own + (n - 1), set->n * sizeof *set->own);
    memmove(set->ids, set->ids + (n - 1), set->n * sizeof *set->ids);
    set->has_max = false;
}

/* x to the power of y for 0 <= x <= 1, y >= 0. */
static double power(double x, double y) {
    if (y == 0) return 1;
    if (x <= 0) return 0;
    double e = y * nib_log(x);
    return e < -700 ? 0 : nib_exp(e);
}

/* The temperature for the candidates: between temp - range and temp + range, by how even they are. */
static float dynamic_temp(nib_sampler *s) {
    nib_sample_mass all = nib_sample_set_mass(&s->set, -FLT_MAX);
    if (all.n < 2) return 1;
    double entropy = (nib_log(all.z) - all.zd / all.z) / nib_log((double)all.n);
    entropy = entropy < 0 ? 0 : entropy > 1 ? 1 : entropy;
    double temp = (double)s->params.temp, range = (double)s->params.dynatemp_range;
    double low = temp > range ? temp - range : 0, high = temp + range;
    return (float)(low + (high - low) * power(entropy, (double)s->params.dynatemp_exponent));
}

void nib_sample_filter_temperature(nib_sampler *s) {
    float temp = s->params.temp;
    if (temp > 0 && s->params.dynatemp_range > 0) temp = dynamic_temp(s);
    if (temp <= 0) nib_sample_set_top(&s->set, 1);
    else if (temp != 1) nib_sample_set_scale(&s->set, temp);
}
