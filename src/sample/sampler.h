/* sample/sampler.h - the state of a nib_sampler, private to sample/: parameters, candidates, memory of the samplers. */
#ifndef NIB_SAMPLE_SAMPLER_H
#define NIB_SAMPLE_SAMPLER_H

#include "sample/adaptive.h"
#include "sample/dry.h"
#include "sample/history.h"
#include "sample/mirostat.h"
#include "sample/params.h"
#include "sample/penalty.h"
#include "sample/set.h"

struct nib_sampler {
    nib_sampler_params params; /* arrays: bias is a copy, the others were read at construction and are NULL */
    nib_sample_chain chain;
    uint32_t n_steps; /* of the chain, that matter when nobody looks on */
    uint32_t n_vocab, seed;
    nib_sample_set set;
    const float *hint;         /* for the next sample; NULL: none */
    nib_sample_history history; /* for penalty and dry */
    nib_sample_penalty penalty;
    nib_sample_dry dry;
    nib_sample_mirostat mirostat;
    nib_sample_adaptive adaptive;
    nib_token drawn;       /* by the last sample; mirostat and adaptive_p learn from it when it is accepted */
    float drawn_logprob;   /* as mirostat drew it */
    uint64_t pos;          /* of the sample in work */
    uint32_t n_draws;      /* random numbers of pos that samplers took; number 0 is for the token */
    nib_sampler_trace_fn trace;
    void *trace_user;
};

/* The next random number for a sampler of the chain, in [0, 1): a function of seed, pos and how many came before. */
double nib_sample_uniform(nib_sampler *s);

#endif
