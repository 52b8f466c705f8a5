/* cli/sampling.c - options and GGUF hints in -> nib_sampler out: values, chain, biases, breakers of DRY.
 * What is wrong with an option is NIB_E_ARG; what is wrong with a file's hint is a warning. Called by run and trace. */
#include "sampling.h"

#include "base/mem.h"
#include "base/status.h"
#include "input.h"
#include "metadata.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    size_t offset; /* in nib_cli_options */
    bool is_int;
} hints[] = {
#define HINT(key, field)                                                                                               \
    {"general.sampling." #key, offsetof(nib_cli_options, sampling.field),                                              \
     _Generic(((nib_sampler_params *)0)->field, int32_t: true, float: false)},
#include "hints.def"
#undef HINT
};

/* Whether a sampler can be made of what the file recommends. */
static bool are_valid(const nib_sampler_params *params, nib_error *err) {
    nib_sampler *sampler;
    nib_status status = nib_sampler_new(&sampler, params, 1, err);
    nib_sampler_free(sampler);
    return status == NIB_OK;
}

nib_status nib_cli_sampling_check(const nib_cli_options *opt, nib_error *err) {
    nib_sampler_params params = opt->sampling;
    nib_sampler *sampler = NULL;
    nib_buf chain = {0};
    for (const char *c = opt->sampler_letters; c && *c; c++) nib_buf_printf(&chain, "%s%c", chain.len ? ";" : "", *c);
    if (!opt->sampler_letters) nib_buf_str(&chain, opt->samplers);
    params.chain = nib_buf_cstr(&chain);
    nib_status status = params.chain ? nib_sampler_new(&sampler, &params, 1, err) : nib_fail_nomem(err, 0, "the chain of samplers");
    nib_sampler_free(sampler);
    nib_buf_free(&chain);
    return status;
}

/* ---- the chain */

static nib_status make_chain(const nib_cli_session *s, nib_buf *chain, nib_error *err) {
    const nib_cli_options *opt = s->opt;
    const nib_gguf_value *hint = nib_gguf_find(s->file, "general.sampling.sequence");
    bool given = nib_cli_given(opt, offsetof(nib_cli_options, samplers));
    if (given && opt->sampler_letters)
        return nib_fail(err, NIB_E_ARG, "--samplers and --sampler-seq say the same: leave one out");
    for (const char *c = opt->sampler_letters; c && *c; c++) nib_buf_printf(chain, "%s%c", chain->len ? ";" : "", *c);
    if (opt->sampler_letters) return NIB_OK;
    if (!given && hint && hint->type == NIB_GGUF_STRING) {
        nib_error bad;
        nib_sampler_params trial = NIB_SAMPLER_PARAMS_INIT;
        nib_buf_append(chain, hint->as.str.ptr, hint->as.str.len);
        trial.chain = nib_buf_cstr(chain);
        if (!trial.chain) return nib_fail_nomem(err, hint->as.str.len, "the chain of samplers");
        if (are_valid(&trial, &bad)) return NIB_OK;
        nib_cli_warning(s->term, "general.sampling.sequence of the file is not used: %s", bad.message);
        chain->len = 0;
    }
    nib_buf_str(chain, opt->samplers);
    return NIB_OK;
}

/* ---- values */

static void set_hint(nib_sampler_params *params, size_t i, double x) {
    void *field = (char *)params + (hints[i].offset - offsetof(nib_cli_options, sampling));
    if (hints[i].is_int)
        *(int32_t *)field = (int32_t)x;
    else
        *(float *)field = (float)x;
}

void nib_cli_sampling_hints(const nib_cli_session *s, nib_sampler_params *params) {
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        const nib_gguf_value *value = nib_gguf_find(s->file, hints[i].key);
        nib_sampler_params trial = NIB_SAMPLER_PARAMS_INIT;
        nib_error bad;
        double x;
        if (!value || nib_cli_given(s->opt, hints[i].offset)) continue;
        if (!nib_cli_metadata_number(value, &x) || !(fabs(x) <= 1e9)) {
            nib_cli_warning(s->term, "%s of the file is not used: not a sensible number", hints[i].key);
            continue;
        }
        set_hint(&trial, i, x);
        if (!are_valid(&trial, &bad)) {
            nib_cli_warning(s->term, "%s of the file is not used: %s", hints[i].key, bad.message);
            continue;
        }
        set_hint(params, i, x);
        if (s->opt->verbose) nib_cli_line(s->term, "sampling: %s = %.6g (from the file)", hints[i].key, x);
    }
}

static bool forbid(nib_cli_list *biases, nib_token id) {
    nib_logit_bias bias = {id, -INFINITY};
    return nib_cli_list_append(biases, &bias, 1, sizeof bias);
}

/* Every bias: the user's, tokens that the file forbids, and with --ignore-eos those that end the text. */
static bool make_biases(const nib_cli_session *s, nib_cli_list *out) {
    const nib_cli_list *user = &s->opt->biases;
    const nib_gguf_value *forbidden = nib_gguf_find(s->file, "tokenizer.ggml.suppress_tokens");
    uint32_t n_tokens = nib_tokenizer_n_tokens(s->tok);
    uint64_t n_forbidden = forbidden && forbidden->type == NIB_GGUF_ARRAY ? forbidden->n : 0;
    if (n_forbidden > n_tokens) n_forbidden = n_tokens;
    bool ok = nib_cli_list_append(out, user->items, user->n, sizeof(nib_logit_bias));
    for (uint64_t i = 0; i < n_forbidden && ok; i++) {
        double id = nib_gguf_number_at(forbidden, i);
        if (id >= 0 && id < n_tokens) ok = forbid(out, (nib_token)id);
    }
    for (nib_token id = 0; s->opt->ignore_eos && id < (nib_token)n_tokens && ok; id++)
        if (nib_tokenizer_is_eog(s->tok, id)) ok = forbid(out, id);
    return ok;
}

/* ---- breakers */

/* texts: the breakers one after the other, each with a NUL. "none" stands for no breakers. */
static nib_status make_breakers(const nib_cli_session *s, nib_sampler_params *params, nib_token **ids,
                                uint32_t **lengths, nib_error *err) {
    const nib_str *items = s->opt->dry_breakers.items;
    size_t n = s->opt->dry_breakers.n;
    bool given = nib_cli_given(s->opt, offsetof(nib_cli_options, dry_breakers));
    if (params->dry_multiplier == 0 || (n == 1 && items[0].len == 4 && !memcmp(items[0].ptr, "none", 4))) return NIB_OK;
    nib_buf texts = {0};
    const char **starts = nib_calloc(n, sizeof *starts);
    nib_status status = NIB_OK;
    for (size_t i = 0; i < n; i++) { /* the table writes its newline as \n, whatever --no-escape says of the user's */
        if (s->opt->escape || !given)
            nib_cli_unescape(items[i], &texts);
        else
            nib_buf_append(&texts, items[i].ptr, items[i].len);
        nib_buf_char(&texts, 0);
    }
    if (!starts || texts.failed) {
        status = nib_fail_nomem(err, texts.len, "breakers of DRY");
    } else {
        for (size_t i = 0, at = 0; i < n; at += strlen(texts.ptr + at) + 1) starts[i++] = texts.ptr + at;
        status = nib_sampler_breakers(s->tok, starts, n, ids, lengths, &params->n_dry_breakers, err);
    }
    params->dry_breakers = *ids;
    params->dry_breaker_lengths = *lengths;
    nib_free(starts);
    nib_buf_free(&texts);
    return status;
}

nib_status nib_cli_sampler_new(nib_sampler **out, const nib_cli_session *s, nib_error *err) {
    nib_sampler_params params = s->opt->sampling;
    nib_cli_list biases = {0};
    nib_buf chain = {0};
    nib_token *ids = NULL;
    uint32_t *lengths = NULL;
    nib_status status;
    *out = NULL;
    nib_cli_sampling_hints(s, &params);
    NIB_TRY_OUT(make_chain(s, &chain, err));
    NIB_TRY_OUT(make_breakers(s, &params, &ids, &lengths, err));
    params.chain = nib_buf_cstr(&chain);
    if (!make_biases(s, &biases) || !params.chain) {
        status = nib_fail_nomem(err, 0, "the sampler");
        goto out;
    }
    params.bias = biases.items;
    params.n_bias = (uint32_t)biases.n;
    status = nib_sampler_new(out, &params, nib_model_n_vocab(s->model), err);
    if (status == NIB_OK && s->opt->verbose)
        nib_cli_line(s->term, "sampling: seed %u, %s, temperature %.4g, top_k %d, top_p %.4g, min_p %.4g",
                     nib_sampler_seed(*out), params.chain, (double)params.temp, params.top_k, (double)params.top_p,
                     (double)params.min_p);
out:
    nib_cli_list_free(&biases);
    nib_buf_free(&chain);
    free(ids);
    free(lengths);
    return status;
}
