/* sample/params.h - checks the parameters of a sampler and reads its chain. */
#ifndef NIB_SAMPLE_PARAMS_H
#define NIB_SAMPLE_PARAMS_H

#include "nib.h"

typedef enum nib_sample_id {
#define X(id, letter, name, others, function) NIB_SAMPLE_##id,
#include "sample/samplers.def"
#undef X
    NIB_SAMPLE_COUNT
} nib_sample_id;

typedef struct nib_sample_kind {
    char letter;
    const char *name, *others; /* others: joined by spaces */
    void (*apply)(nib_sampler *s);
} nib_sample_kind;
extern const nib_sample_kind nib_sample_kinds[NIB_SAMPLE_COUNT];

#define NIB_SAMPLE_CHAIN_MAX 32

typedef struct nib_sample_chain {
    uint8_t ids[NIB_SAMPLE_CHAIN_MAX]; /* nib_sample_id, in order; adaptive_p comes last whatever its place was */
    uint32_t n;
    bool has[NIB_SAMPLE_COUNT];
} nib_sample_chain;

/* Copies *in (NULL: defaults) over *out and checks every field; pointers in it stay the caller's. NIB_E_ARG names the
 * field, its value and what is allowed. */
nib_status nib_sample_params_read(nib_sampler_params *out, const nib_sampler_params *in, uint32_t n_vocab,
                                  nib_error *err);
/* Names joined by ';': a name or the letter of a sampler, '-' as good as '_'. NULL: the default;
 * "": no samplers. */
nib_status nib_sample_params_chain(const char *text, nib_sample_chain *out, nib_error *err);

#endif
