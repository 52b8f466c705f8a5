/* sample/adaptive.h - adaptive_p: favours tokens whose probability is near a target that moves so that the average of
 * the drawn ones stays at the target the user set. The last of the chain, wherever it is named. */
#ifndef NIB_SAMPLE_ADAPTIVE_H
#define NIB_SAMPLE_ADAPTIVE_H

#include "nib.h"

typedef struct nib_sample_adaptive {
    float *prob; /* by id, of the candidates in the last sample before they were changed; NULL: off */
    double weighted_sum, total_weight; /* of the probabilities drawn so far, older ones less */
} nib_sample_adaptive;

nib_status nib_sample_adaptive_init(nib_sampler *s, nib_error *err);
void nib_sample_adaptive_fini(nib_sample_adaptive *adaptive);
void nib_sample_adaptive_reset(nib_sampler *s);
void nib_sample_adaptive_apply(nib_sampler *s);
/* Learns from an accepted token that the last sample drew. */
void nib_sample_adaptive_accept(nib_sampler *s, nib_token id);

#endif
