/* cli/trace.h - what happened to one token on its way through the engine. Filled by cmd_trace.c, shown by trace.c. */
#ifndef NIB_CLI_TRACE_H
#define NIB_CLI_TRACE_H

#include "cost.h"
#include "json.h"
#include "list.h"
#include "session.h"

enum { NIB_CLI_TRACE_CANDIDATES = 16 };

typedef struct nib_cli_trace_sampler {
    char name[32];
    uint32_t n_before, n_after, n;
    nib_logprob candidates[NIB_CLI_TRACE_CANDIDATES]; /* the n best that were left */
} nib_cli_trace_sampler;

typedef struct nib_cli_trace_token {
    const nib_token *ids; /* the batch */
    nib_cli_batch_shape shape;
    double batch_ms, sample_ms;
    nib_cli_list step_ms, wait_ms; /* double, one per step of the plan; waiting at barriers is part of a step */
    uint64_t logits_hash; /* of the one row */
    nib_logprob *top;
    uint32_t n_top;
    nib_cli_list samplers; /* nib_cli_trace_sampler */
    nib_token id;
    float logprob;
    nib_buf text; /* that the id adds to the output */
    const nib_cli_limit *limit; /* of this machine, with as many threads; zeros: not known */
    nib_cli_cache cache;
} nib_cli_trace_token;

/* Both begin with the prompt: its text and ids. */
void nib_cli_trace_print_prompt(nib_cli_out *out, const nib_cli_session *s, nib_str text, const nib_token_list *ids);
void nib_cli_trace_print(nib_cli_out *out, const nib_cli_session *s, const nib_cli_trace_token *t);
json_t *nib_cli_trace_json(const nib_cli_session *s, const nib_cli_trace_token *t);

#endif
