/* sample/mirostat.h - Mirostat 1 and 2: keeps the surprise of the drawn tokens near tau bits by a moving bound mu
 * (Basu et al., "Mirostat: a neural text decoding algorithm that directly controls perplexity", 2020). */
#ifndef NIB_SAMPLE_MIROSTAT_H
#define NIB_SAMPLE_MIROSTAT_H

#include "nib.h"

typedef struct nib_sample_mirostat {
    float mu; /* bits */
} nib_sample_mirostat;

void nib_sample_mirostat_reset(nib_sampler *s);
/* Drops what would surprise too much; then a token is drawn from the rest. */
void nib_sample_mirostat_apply(nib_sampler *s);
/* Learns from an accepted token that was drawn with this log-probability. */
void nib_sample_mirostat_accept(nib_sampler *s, float logprob);

#endif
