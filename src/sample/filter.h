/* sample/filter.h - the samplers without a memory: each drops or rescales candidates by the parameters alone.
 *
 * All leave the set as it is when their parameter has its off value, and never empty it. */
#ifndef NIB_SAMPLE_FILTER_H
#define NIB_SAMPLE_FILTER_H

#include "nib.h"

void nib_sample_filter_top_n_sigma(nib_sampler *s); /* within n standard deviations of the best logit */
void nib_sample_filter_top_k(nib_sampler *s);       /* the k best */
void nib_sample_filter_typical(nib_sampler *s);     /* surprise nearest to the entropy, until their mass exceeds p */
void nib_sample_filter_top_p(nib_sampler *s);       /* the best, until their mass reaches p */
void nib_sample_filter_min_p(nib_sampler *s);       /* at least p times as probable as the best */
void nib_sample_filter_xtc(nib_sampler *s);         /* sometimes drops all that reach a threshold but the last */
/* Divides by temp, or with dynatemp_range by a temperature that grows with the entropy; temp <= 0: the best only. */
void nib_sample_filter_temperature(nib_sampler *s);

#endif
