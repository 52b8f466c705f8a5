/* sample/adaptive.c - the bell of adaptive_p around its moving target, and the average that moves it. */
#include "sample/adaptive.h"

#include "base/mem.h"
#include "base/status.h"
#include "sample/lanes.h"
#include "sample/sampler.h"

/* Logit by distance x from the target in widths: PEAK - SHARPNESS x^2 / (1 + x), a parabola with straight tails. */
#define WIDTH 0.3
#define PEAK 5.0
#define SHARPNESS 10.0

nib_status nib_sample_adaptive_init(nib_sampler *s, nib_error *err) {
    s->adaptive.prob = nib_alloc(s->n_vocab, sizeof *s->adaptive.prob);
    if (!s->adaptive.prob) return nib_fail_nomem(err, (uint64_t)s->n_vocab * 4, "the probabilities of adaptive_p");
    return NIB_OK;
}

void nib_sample_adaptive_fini(nib_sample_adaptive *adaptive) {
    nib_free(adaptive->prob);
    *adaptive = (nib_sample_adaptive){0};
}

/* As if the average had been on target for ever. */
void nib_sample_adaptive_reset(nib_sampler *s) {
    double weight = 1 / (1 - (double)s->params.adaptive_decay);
    s->adaptive.total_weight = weight;
    s->adaptive.weighted_sum = weight * (double)s->params.adaptive_target;
}

void nib_sample_adaptive_apply(nib_sampler *s) {
    nib_sample_set *set = &s->set;
    if (!s->adaptive.prob || nib_sample_set_max(set) == -INFINITY) return;
    double target = 2 * (double)s->params.adaptive_target - s->adaptive.weighted_sum / s->adaptive.total_weight;
    target = target < 0 ? 0 : target > 1 ? 1 : target;
    double z = nib_sample_set_mass(set, -FLT_MAX).z;
    nib_sample_set_keep(set, -FLT_MAX);
    float max = nib_sample_set_max(set);
    for (size_t i = 0; i < set->n; i++) {
        double p = (double)nib_sample_exp(set->own[i] - max) / z, x = fabs(p - target) / WIDTH;
        s->adaptive.prob[set->ids[i]] = (float)p;
        set->own[i] = (float)(PEAK - SHARPNESS * x * x / (1 + x));
    }
    set->is_sorted = set->has_max = false;
}

void nib_sample_adaptive_accept(nib_sampler *s, nib_token id) {
    nib_sample_adaptive *adaptive = &s->adaptive;
    if (!adaptive->prob) return;
    double decay = (double)s->params.adaptive_decay;
    adaptive->weighted_sum = (double)adaptive->prob[id] + decay * adaptive->weighted_sum;
    adaptive->total_weight = 1 + decay * adaptive->total_weight;
}
