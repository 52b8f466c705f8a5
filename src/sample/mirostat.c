/* sample/mirostat.c - the cut of Mirostat 1 (by an estimated Zipf exponent) and 2 (by surprise), and their feedback. */
#include "sample/mirostat.h"

#include "base/math.h"
#include "sample/sampler.h"

#define LN2 0.6931471805599453
#define ESTIMATE_FROM 100 /* tokens that the exponent is estimated from */

void nib_sample_mirostat_reset(nib_sampler *s) {
    s->mirostat.mu = 2 * s->params.mirostat_tau;
}

/* The slope of log p over log rank, by least squares through the best candidates. */
static double zipf_exponent(const nib_logprob *top, size_t n) {
    double tb = 0, tt = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double t = nib_log((double)(i + 2) / (double)(i + 1));
        tb += t * ((double)top[i].logprob - (double)top[i + 1].logprob);
        tt += t * t;
    }
    return tb / tt;
}

/* The number of tokens whose mean surprise is mu: (e 2^mu / (1 - N^-e))^(1/s) with e = s - 1, for a vocabulary of N. */
static size_t rank_bound(double s, double mu, double n_vocab) {
    double e = s - 1, log_n = nib_log(n_vocab), log_k;
    if (fabs(e) * log_n < 1e-6) { /* the limit for e -> 0 */
        log_k = mu * LN2 - nib_log(log_n);
    } else {
        double exponent = -e * log_n; /* at most log_n, since s >= 0 */
        double tail = exponent < -700 ? 0 : nib_exp(exponent);
        log_k = mu * LN2 + nib_log(e / (1 - tail));
    }
    if (log_k <= 0 || n_vocab < 2) return 1;
    if (log_k >= s * log_n) return (size_t)n_vocab;
    return (size_t)nib_exp(log_k / s);
}

static void cut_by_rank(nib_sampler *s) {
    nib_logprob top[ESTIMATE_FROM];
    nib_sample_mass all = nib_sample_set_mass(&s->set, -FLT_MAX);
    if (all.n < 2) return;
    size_t n = nib_sample_set_peek(&s->set, all.z, top, all.n < ESTIMATE_FROM ? all.n : ESTIMATE_FROM);
    size_t k = rank_bound(zipf_exponent(top, n), (double)s->mirostat.mu, (double)s->n_vocab);
    nib_sample_set_top(&s->set, k ? k : 1);
}

static void cut_by_surprise(nib_sampler *s) {
    float max = nib_sample_set_max(&s->set);
    double log_z = nib_log(nib_sample_set_mass(&s->set, -FLT_MAX).z);
    float lowest = nib_sample_clamp((double)max + log_z - (double)s->mirostat.mu * LN2);
    nib_sample_set_keep(&s->set, lowest < max ? lowest : max);
    if (lowest > max) nib_sample_set_top(&s->set, 1); /* even the best surprises too much: of equals, one */
}

void nib_sample_mirostat_apply(nib_sampler *s) {
    if (nib_sample_set_max(&s->set) == -INFINITY) return;
    if (s->params.mirostat == 1) cut_by_rank(s);
    else cut_by_surprise(s);
}

void nib_sample_mirostat_accept(nib_sampler *s, float logprob) {
    double surprise = -(double)logprob / LN2;
    s->mirostat.mu = nib_sample_clamp((double)s->mirostat.mu -
                                      (double)s->params.mirostat_eta * (surprise - (double)s->params.mirostat_tau));
}
