/* sample/sampler.c - nib_sampler: logits, mask, position and history -> one token id.
 *
 * bias -> the chain (or temperature and mirostat) -> greedy when temp <= 0, else one draw. Equal input, seed, position
 * and history give equal ids: all sums have a fixed order, all ties go to the lowest id, all random numbers are
 * functions of (seed, position). What a sampler learns, it learns in accept; sample only reads. */
#include "sample/sampler.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

#define TRACE_MAX 16

double nib_sample_uniform(nib_sampler *s) {
    return nib_rng_uniform(s->seed, s->pos, ++s->n_draws);
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

static nib_status init_seed(nib_sampler *s, nib_error *err) {
    s->seed = s->params.seed;
    if (s->seed != UINT32_MAX) return NIB_OK;
    if (!nib_rng_system(&s->seed))
        return nib_fail(err, NIB_E_IO, "the system gave no random number for the seed; set seed to a number");
    if (s->seed == UINT32_MAX) s->seed = 0; /* nib_sampler_seed tells a number that can be passed back in */
    return NIB_OK;
}

static nib_status init_bias(nib_sampler *s, nib_error *err) {
    const nib_logit_bias *bias = s->params.bias;
    size_t n = s->params.n_bias;
    s->params.bias = NULL;
    if (!n) return NIB_OK;
    nib_logit_bias *copy = nib_alloc(n, sizeof *copy);
    if (!copy) return nib_fail_nomem(err, (uint64_t)n * sizeof *copy, "the logit biases");
    memcpy(copy, bias, n * sizeof *copy);
    s->params.bias = copy;
    return NIB_OK;
}

/* The samplers with a memory, as far as chain and parameters want them. */
static nib_status init_memory(nib_sampler *s, nib_error *err) {
    const bool *has = s->chain.has;
    if (s->params.mirostat) { /* the chain does not run */
        nib_sample_mirostat_reset(s);
        return NIB_OK;
    }
    if (has[NIB_SAMPLE_PENALTIES]) NIB_TRY(nib_sample_penalty_init(&s->penalty, &s->params, s->n_vocab, err));
    if (has[NIB_SAMPLE_DRY]) NIB_TRY(nib_sample_dry_init(&s->dry, &s->params, s->n_vocab, err));
    if (has[NIB_SAMPLE_ADAPTIVE_P] && s->params.adaptive_target >= 0 && s->params.temp > 0) {
        NIB_TRY(nib_sample_adaptive_init(s, err));
        nib_sample_adaptive_reset(s);
    }
    size_t window = max_size(nib_sample_penalty_window(&s->penalty), s->dry.last_n);
    NIB_TRY(nib_sample_history_init(&s->history, window, err));
    return nib_sample_dry_reserve(&s->dry, s->history.capacity, err);
}

/* May another candidate be the best after a step than before it? */
static bool changes_best(const nib_sampler *s, nib_sample_id id) {
    switch (id) {
    case NIB_SAMPLE_PENALTIES: return s->penalty.last_n > 0;
    case NIB_SAMPLE_DRY: return s->dry.last_n > 0;
    case NIB_SAMPLE_TYP_P: return s->params.typical_p < 1;
    case NIB_SAMPLE_XTC: return s->params.xtc_probability > 0;
    case NIB_SAMPLE_ADAPTIVE_P: return s->adaptive.prob != NULL;
    default: return false;
    }
}

/* Greedy sampling ends with the last step that changes the best: what later ones drop does not matter. */
static uint32_t count_steps(const nib_sampler *s) {
    uint32_t n = s->chain.n;
    while (n && s->params.temp <= 0 && !changes_best(s, (nib_sample_id)s->chain.ids[n - 1])) n--;
    return n;
}

nib_status nib_sampler_new(nib_sampler **out, const nib_sampler_params *params, uint32_t n_vocab, nib_error *err) {
    *out = NULL;
    nib_sampler_params read;
    nib_sample_chain chain;
    NIB_TRY(nib_sample_params_read(&read, params, n_vocab, err));
    NIB_TRY(nib_sample_params_chain(read.chain, &chain, err));
    nib_sampler *s = nib_calloc(1, sizeof *s);
    if (!s) return nib_fail_nomem(err, sizeof *s, "a sampler");
    s->params = read;
    s->chain = chain;
    s->n_vocab = n_vocab;
    s->drawn = NIB_TOKEN_NONE;
    nib_status status;
    NIB_TRY_OUT(init_bias(s, err)); /* first: from here on params.bias is the sampler's own */
    NIB_TRY_OUT(init_seed(s, err));
    NIB_TRY_OUT(init_memory(s, err));
    NIB_TRY_OUT(nib_sample_set_init(&s->set, n_vocab, err));
    s->n_steps = count_steps(s);
    s->params.chain = NULL;
    s->params.dry_breakers = NULL;
    s->params.dry_breaker_lengths = NULL;
    *out = s;
    return NIB_OK;
out:
    nib_sampler_free(s);
    return status;
}

void nib_sampler_free(nib_sampler *s) {
    if (!s) return;
    nib_free((void *)s->params.bias);
    nib_sample_set_fini(&s->set);
    nib_sample_history_fini(&s->history);
    nib_sample_penalty_fini(&s->penalty);
    nib_sample_dry_fini(&s->dry);
    nib_sample_adaptive_fini(&s->adaptive);
    nib_free(s);
}

uint32_t nib_sampler_seed(const nib_sampler *s) {
    return s->seed;
}

void nib_sampler_trace(nib_sampler *s, nib_sampler_trace_fn fn, void *user) {
    s->trace = fn;
    s->trace_user = user;
}

/* Runs one step under the eyes of the trace function, if there is one. */
static void run_step(nib_sampler *s, const char *name, void (*apply)(nib_sampler *)) {
    if (!s->trace) {
        apply(s);
        return;
    }
    size_t n_before = nib_sample_set_mass(&s->set, -FLT_MAX).n;
    apply(s);
    nib_sample_mass after = nib_sample_set_mass(&s->set, -FLT_MAX);
    nib_logprob top[TRACE_MAX];
    size_t n = nib_sample_set_peek(&s->set, after.z, top, after.n < TRACE_MAX ? after.n : TRACE_MAX);
    s->trace(s->trace_user, name, (uint32_t)n_before, (uint32_t)after.n, top, (uint32_t)n);
}

bool nib_sampler_forbids(const nib_sampler *s, nib_token id) {
    for (uint32_t i = 0; i < s->params.n_bias; i++)
        if (s->params.bias[i].id == id && s->params.bias[i].bias == -INFINITY) return true;
    return false;
}

static float biased(const void *user, nib_token id, float logit) {
    (void)id;
    float bias = *(const float *)user;
    return bias > -INFINITY ? nib_sample_clamp((double)logit + (double)bias) : -INFINITY;
}

static void apply_bias(nib_sampler *s) {
    for (uint32_t i = 0; i < s->params.n_bias; i++)
        nib_sample_set_change(&s->set, &s->params.bias[i].id, 1, biased, &s->params.bias[i].bias);
}

static void run_chain(nib_sampler *s) {
    if (s->params.n_bias) run_step(s, "logit_bias", apply_bias);
    if (s->params.mirostat) {
        const nib_sample_kind *temperature = &nib_sample_kinds[NIB_SAMPLE_TEMPERATURE];
        run_step(s, temperature->name, temperature->apply);
        if (s->params.temp > 0) run_step(s, "mirostat", nib_sample_mirostat_apply);
        return;
    }
    for (uint32_t i = 0; i < (s->trace ? s->chain.n : s->n_steps); i++) {
        const nib_sample_kind *kind = &nib_sample_kinds[s->chain.ids[i]];
        run_step(s, kind->name, kind->apply);
    }
}

/* Why the set is empty. */
static nib_status fail_empty(const nib_sampler *s, const float *logits, nib_error *err) {
    size_t bad = s->set.bad;
    for (size_t i = 0; bad == SIZE_MAX && i < s->n_vocab; i++)
        if (logits[i] > -INFINITY) return nib_fail(err, NIB_E_ARG, "no token is left: mask and bias forbid all that could come next");
    if (bad == SIZE_MAX) return nib_fail(err, NIB_E_NUMERIC, "all %u logits are -inf", s->n_vocab);
    return nib_fail(err, NIB_E_NUMERIC, "the logit of token %zu is %s; a number or -inf expected", bad,
                    logits[bad] != logits[bad] ? "NaN" : "+inf");
}

void nib_sampler_hint(nib_sampler *s, const float *best) {
    s->hint = best;
}

nib_status nib_sampler_sample(nib_sampler *s, const float *logits, const uint32_t *mask, uint64_t pos, nib_token *id,
                              nib_error *err) {
    const float *best = s->hint;
    s->hint = NULL;
    *id = s->drawn = NIB_TOKEN_NONE;
    if (!logits) return nib_fail(err, NIB_E_ARG, "logits is NULL; a row of %u logits expected", s->n_vocab);
    s->pos = pos;
    s->n_draws = 0;
    nib_sample_set_begin(&s->set, logits, best, mask);
    run_chain(s);
    if (nib_sample_set_max(&s->set) == -INFINITY) return fail_empty(s, logits, err);
    if (s->params.temp <= 0) {
        *id = nib_sample_set_best(&s->set);
    } else {
        *id = nib_sample_set_draw(&s->set, nib_rng_uniform(s->seed, pos, 0), &s->drawn_logprob);
        s->drawn = *id;
    }
    return NIB_OK;
}

nib_status nib_sampler_accept(nib_sampler *s, nib_token id, nib_error *err) {
    if (id < 0 || (uint32_t)id >= s->n_vocab)
        return nib_fail(err, NIB_E_ARG, "token %d entered the sequence; ids are 0 to %u", (int)id, s->n_vocab - 1);
    NIB_TRY(nib_sample_history_reserve(&s->history, err));
    NIB_TRY(nib_sample_dry_reserve(&s->dry, s->history.capacity, err));
    nib_sample_penalty_accept(&s->penalty, &s->history, id);
    nib_sample_history_push(&s->history, id);
    if (id == s->drawn) {
        if (s->params.mirostat) nib_sample_mirostat_accept(s, s->drawn_logprob);
        else nib_sample_adaptive_accept(s, id);
    }
    s->drawn = NIB_TOKEN_NONE;
    return NIB_OK;
}

void nib_sampler_reset(nib_sampler *s) {
    s->drawn = NIB_TOKEN_NONE;
    nib_sample_history_reset(&s->history);
    nib_sample_penalty_reset(&s->penalty);
    nib_sample_mirostat_reset(s);
    if (s->adaptive.prob) nib_sample_adaptive_reset(s);
}
