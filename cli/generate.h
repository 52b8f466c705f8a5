/* cli/generate.h - the loop of the whole project: prompt ids -> batch -> decode -> logits -> sample -> id -> text, and
 * the id goes into the next batch. */
#ifndef NIB_CLI_GENERATE_H
#define NIB_CLI_GENERATE_H

#include "session.h"

typedef struct nib_cli_generate_params {
    const nib_token *prompt; /* at least one */
    size_t n_prompt, n_cached; /* n_cached < n_prompt: the first ones are in the sequence already */
    int32_t n_predict;       /* -1: no limit */
    const nib_str *stops;
    size_t n_stops;
    uint32_t n_top;          /* best tokens to keep at each step */
    bool keep_logprobs, special;
    const nib_chat *chat; /* whose tokens end the text, and whose marks are written, of all special tokens; NULL: none */
    nib_matcher *matcher; /* what the text must look like; NULL: anything. It follows the generated tokens */
    bool jump_ahead;      /* tokens of text that the matcher leaves no choice about are taken at once, without logits */
    bool (*write)(void *user, nib_str text); /* gets the text as it comes; false: nobody reads any more */
    void *user;
} nib_cli_generate_params;

typedef struct nib_cli_generation {
    nib_token_list ids;        /* generated, the one that ended the text included */
    nib_cli_list logprobs;     /* float, one per id, when kept */
    nib_cli_list tops;         /* nib_logprob, n_top per id */
    const char *finish_reason; /* "stop", "length", "interrupted" */
    int stop;                  /* index of the stop string that ended the text, or -1 */
    size_t n_prompt, n_cached;
    double prefill_ms, ttft_ms, decode_ms; /* ttft: from the call to the first token; decode: from there to the last */
    uint64_t kv_positions;     /* cached positions that the steps of decode read, summed */
} nib_cli_generation;

/* Generates in sequence 0, which must hold the n_cached first tokens of the prompt. Ctrl-C and a reader that goes away end
 * the text as "interrupted"; that is no error. On an error *out holds what came before it. Free *out in any case. */
nib_status nib_cli_generate(nib_cli_session *s, nib_sampler *sampler, const nib_cli_generate_params *params,
                            nib_cli_generation *out, nib_error *err);
void nib_cli_generation_free(nib_cli_generation *g);

#endif
