/* sample/logprob.c - nib_logprobs: raw logits -> log-probabilities of one token and of the k best. */
#include "base/math.h"
#include "base/status.h"
#include "sample/set.h"

nib_status nib_logprobs(const float *logits, uint32_t n_vocab, nib_token id, float *logprob, nib_logprob *top,
                        uint32_t k, nib_error *err) {
    if (!logits || !n_vocab || n_vocab > INT32_MAX)
        return nib_fail(err, NIB_E_ARG, "logits is %s and n_vocab %u; a row of 1 to %d logits expected",
                        logits ? "not NULL" : "NULL", n_vocab, INT32_MAX);
    if (id != NIB_TOKEN_NONE && (id < 0 || (uint32_t)id >= n_vocab || !logprob))
        return nib_fail(err, NIB_E_ARG, "log-probability of token %d asked for; ids are 0 to %u, logprob is %s",
                        (int)id, n_vocab - 1, logprob ? "given" : "NULL");
    if (k > n_vocab || (k && !top))
        return nib_fail(err, NIB_E_ARG, "the %u best of %u tokens are asked for, top is %s", k, n_vocab,
                        top ? "given" : "NULL");
    nib_sample_set set = {.values = logits, .n = n_vocab, .bad = SIZE_MAX}; /* without scratch: passes only read */
    float max = nib_sample_set_max(&set);
    if (set.bad != SIZE_MAX)
        return nib_fail(err, NIB_E_NUMERIC, "the logit of token %zu is %s; a number or -inf expected", set.bad,
                        logits[set.bad] != logits[set.bad] ? "NaN" : "+inf");
    if (max == -INFINITY) return nib_fail(err, NIB_E_NUMERIC, "all %u logits are -inf", n_vocab);
    double z = nib_sample_set_mass(&set, -FLT_MAX).z;
    if (id != NIB_TOKEN_NONE)
        *logprob = logits[id] > -INFINITY ? nib_sample_clamp((double)logits[id] - (double)max - nib_log(z)) : -INFINITY;
    if (k) nib_sample_set_peek(&set, z, top, k);
    return NIB_OK;
}
