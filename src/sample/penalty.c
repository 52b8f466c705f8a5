/* sample/penalty.c - counts of the tokens in the window, and their penalties on the logits. */
#include "sample/penalty.h"

#include "base/mem.h"
#include "base/status.h"
#include "sample/sampler.h"

nib_status nib_sample_penalty_init(nib_sample_penalty *penalty, const nib_sampler_params *params, uint32_t n_vocab,
                                   nib_error *err) {
    *penalty = (nib_sample_penalty){.repeat = params->penalty_repeat, .frequency = params->penalty_frequency,
                                    .presence = params->penalty_presence};
    if (penalty->repeat == 1 && penalty->frequency == 0 && penalty->presence == 0) return NIB_OK;
    penalty->last_n = params->penalty_last_n < 0 ? NIB_SAMPLE_HISTORY_ALL : (size_t)params->penalty_last_n;
    if (!penalty->last_n) return NIB_OK;
    penalty->count = nib_calloc(n_vocab, sizeof *penalty->count);
    penalty->place = nib_alloc(n_vocab, sizeof *penalty->place);
    penalty->distinct = nib_alloc(n_vocab, sizeof *penalty->distinct);
    if (penalty->count && penalty->place && penalty->distinct) return NIB_OK;
    nib_sample_penalty_fini(penalty);
    return nib_fail_nomem(err, (uint64_t)n_vocab * 12, "the counts of the penalties");
}

void nib_sample_penalty_fini(nib_sample_penalty *penalty) {
    nib_free(penalty->count);
    nib_free(penalty->place);
    nib_free(penalty->distinct);
    *penalty = (nib_sample_penalty){0};
}

void nib_sample_penalty_reset(nib_sample_penalty *penalty) {
    for (size_t i = 0; i < penalty->n_distinct; i++) penalty->count[penalty->distinct[i]] = 0;
    penalty->n_distinct = 0;
}

size_t nib_sample_penalty_window(const nib_sample_penalty *penalty) {
    return penalty->last_n == NIB_SAMPLE_HISTORY_ALL ? 0 : penalty->last_n;
}

void nib_sample_penalty_accept(nib_sample_penalty *penalty, const nib_sample_history *history, nib_token id) {
    if (!penalty->last_n) return;
    if (penalty->last_n != NIB_SAMPLE_HISTORY_ALL && nib_sample_history_n(history) >= penalty->last_n) {
        nib_token leaving = nib_sample_history_at(history, penalty->last_n - 1);
        if (--penalty->count[leaving] == 0) {
            nib_token moved = penalty->distinct[--penalty->n_distinct];
            penalty->distinct[penalty->place[leaving]] = moved;
            penalty->place[moved] = penalty->place[leaving];
        }
    }
    if (penalty->count[id]++ == 0) {
        penalty->place[id] = (uint32_t)penalty->n_distinct;
        penalty->distinct[penalty->n_distinct++] = id;
    }
}

static float penalised(const void *user, nib_token id, float logit) {
    const nib_sample_penalty *penalty = user;
    uint32_t count = penalty->count[id];
    if (!count) return logit;
    /* The paper (CTRL, 2019) only divides, which makes tokens with a negative logit more probable. */
    double p = logit <= 0 ? (double)logit * (double)penalty->repeat : (double)logit / (double)penalty->repeat;
    return nib_sample_clamp(p - (count * (double)penalty->frequency + (double)penalty->presence));
}

void nib_sample_penalty_apply(nib_sampler *s) {
    if (s->penalty.last_n)
        nib_sample_set_change(&s->set, s->penalty.distinct, s->penalty.n_distinct, penalised, &s->penalty);
}
