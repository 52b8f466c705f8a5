/* sample/params.c - the table of samplers, the ranges of parameters, the text of a chain. */
#include "sample/params.h"

#include "base/status.h"
#include "sample/adaptive.h"
#include "sample/dry.h"
#include "sample/filter.h"
#include "sample/penalty.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define DEFAULT_CHAIN "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"

const nib_sample_kind nib_sample_kinds[NIB_SAMPLE_COUNT] = {
#define X(id, letter, name, others, function) {letter, name, others, function},
#include "sample/samplers.def"
#undef X
};

typedef struct float_rule {
    const char *name;
    size_t offset;
    float lowest, highest;
    const char *allowed;
} float_rule;

#define RULE(field, lowest, highest, allowed)                                                                          \
    {#field, offsetof(nib_sampler_params, field), lowest, highest, allowed}
static const float_rule float_rules[] = {
    RULE(temp, -FLT_MAX, FLT_MAX, "a finite number (0 or less: the most probable token)"),
    RULE(dynatemp_range, 0, FLT_MAX, "a finite number of at least 0 (0: off)"),
    RULE(dynatemp_exponent, 0, FLT_MAX, "a finite number of at least 0"),
    RULE(top_p, 0, FLT_MAX, "a finite number of at least 0 (1 or more: off)"),
    RULE(min_p, -FLT_MAX, 1, "a number up to 1 (0 or less: off)"),
    RULE(typical_p, 0, FLT_MAX, "a finite number of at least 0 (1 or more: off)"),
    RULE(top_n_sigma, -FLT_MAX, FLT_MAX, "a finite number (0 or less: off)"),
    RULE(xtc_probability, -FLT_MAX, 1, "a number up to 1 (0 or less: off)"),
    RULE(xtc_threshold, 0, FLT_MAX, "a finite number of at least 0 (more than 0.5: off)"),
    RULE(penalty_repeat, FLT_MIN, FLT_MAX, "a finite number above 0 (1: off)"),
    RULE(penalty_frequency, -FLT_MAX, FLT_MAX, "a finite number (0: off)"),
    RULE(penalty_presence, -FLT_MAX, FLT_MAX, "a finite number (0: off)"),
    RULE(dry_multiplier, 0, FLT_MAX, "a finite number of at least 0 (0: off)"),
    RULE(dry_base, 1, FLT_MAX, "a finite number of at least 1"),
    RULE(mirostat_tau, 0, FLT_MAX, "a finite number of at least 0"),
    RULE(mirostat_eta, 0, FLT_MAX, "a finite number of at least 0"),
    RULE(adaptive_target, -FLT_MAX, 1, "a number up to 1 (less than 0: off)"),
    RULE(adaptive_decay, 0, 0.99f, "a number from 0 to 0.99"),
};

typedef struct int_rule {
    const char *name;
    size_t offset;
    int32_t lowest, highest;
    const char *allowed;
} int_rule;

static const int_rule int_rules[] = {
    RULE(penalty_last_n, -1, INT32_MAX, "at least -1 (-1: the whole history, 0: off)"),
    RULE(dry_penalty_last_n, -1, INT32_MAX, "at least -1 (-1: the whole history, 0: off)"),
    RULE(dry_allowed_length, 0, INT32_MAX, "at least 0"),
    RULE(mirostat, 0, 2, "0 (off), 1 or 2"),
};

static nib_status check_numbers(const nib_sampler_params *params, nib_error *err) {
    for (size_t i = 0; i < sizeof float_rules / sizeof *float_rules; i++) {
        const float_rule *rule = &float_rules[i];
        float value;
        memcpy(&value, (const char *)params + rule->offset, sizeof value);
        if (!(value >= rule->lowest && value <= rule->highest))
            return nib_fail(err, NIB_E_ARG, "%s is %g; allowed: %s", rule->name, (double)value, rule->allowed);
    }
    for (size_t i = 0; i < sizeof int_rules / sizeof *int_rules; i++) {
        const int_rule *rule = &int_rules[i];
        int32_t value;
        memcpy(&value, (const char *)params + rule->offset, sizeof value);
        if (value < rule->lowest || value > rule->highest)
            return nib_fail(err, NIB_E_ARG, "%s is %d; allowed: %s", rule->name, (int)value, rule->allowed);
    }
    return NIB_OK;
}

static nib_status check_bias(const nib_sampler_params *params, uint32_t n_vocab, nib_error *err) {
    if (params->n_bias && !params->bias)
        return nib_fail(err, NIB_E_ARG, "n_bias is %u but bias is NULL", params->n_bias);
    for (uint32_t i = 0; i < params->n_bias; i++) {
        nib_logit_bias bias = params->bias[i];
        if (bias.id < 0 || (uint32_t)bias.id >= n_vocab)
            return nib_fail(err, NIB_E_ARG, "bias for token %d; allowed: ids from 0 to %u", (int)bias.id, n_vocab - 1);
        if (!(bias.bias < INFINITY)) /* NaN too */
            return nib_fail(err, NIB_E_ARG, "bias of token %d is %g; allowed: a finite number or -inf", (int)bias.id,
                            (double)bias.bias);
    }
    return NIB_OK;
}

static nib_status check_breakers(const nib_sampler_params *params, uint32_t n_vocab, nib_error *err) {
    if (params->n_dry_breakers && (!params->dry_breakers || !params->dry_breaker_lengths))
        return nib_fail(err, NIB_E_ARG, "n_dry_breakers is %u but dry_breakers or dry_breaker_lengths is NULL",
                        params->n_dry_breakers);
    const nib_token *ids = params->dry_breakers;
    for (uint32_t i = 0; i < params->n_dry_breakers; i++) {
        uint32_t length = params->dry_breaker_lengths[i];
        if (!length) return nib_fail(err, NIB_E_ARG, "dry_breaker_lengths[%u] is 0; allowed: at least 1", i);
        for (uint32_t j = 0; j < length; j++, ids++)
            if (*ids < 0 || (uint32_t)*ids >= n_vocab)
                return nib_fail(err, NIB_E_ARG, "dry_breakers has token %d; allowed: ids from 0 to %u", (int)*ids,
                                n_vocab - 1);
    }
    return NIB_OK;
}

nib_status nib_sample_params_read(nib_sampler_params *out, const nib_sampler_params *in, uint32_t n_vocab,
                                  nib_error *err) {
    *out = (nib_sampler_params)NIB_SAMPLER_PARAMS_INIT;
    if (n_vocab == 0 || n_vocab > INT32_MAX)
        return nib_fail(err, NIB_E_ARG, "n_vocab is %u; allowed: 1 to %d", n_vocab, INT32_MAX);
    if (in) {
        if (in->size < sizeof in->size || in->size > sizeof *in)
            return nib_fail(err, NIB_E_ARG, "size of nib_sampler_params is %zu; this library knows %zu: start from "
                            "NIB_SAMPLER_PARAMS_INIT", in->size, sizeof *in);
        memcpy(out, in, in->size);
        out->size = sizeof *out;
    }
    NIB_TRY(check_numbers(out, err));
    NIB_TRY(check_bias(out, n_vocab, err));
    return check_breakers(out, n_vocab, err);
}

/* True when text is one of the words in names; its '-' may stand for '_'. */
static bool is_among(const char *text, size_t len, const char *names) {
    for (size_t word; (word = strcspn(names, " ")) > 0; names += word + (names[word] == ' ')) {
        size_t i = 0;
        while (i < len && i < word && (text[i] == '-' ? '_' : text[i]) == names[i]) i++;
        if (i == len && i == word) return true;
    }
    return false;
}

static nib_status find_kind(const char *text, size_t len, nib_sample_id *id, nib_error *err) {
    for (int i = 0; i < NIB_SAMPLE_COUNT; i++) {
        const nib_sample_kind *kind = &nib_sample_kinds[i];
        bool is_letter = len == 1 && text[0] == kind->letter;
        if (is_letter || is_among(text, len, kind->name) || is_among(text, len, kind->others)) {
            *id = (nib_sample_id)i;
            return NIB_OK;
        }
    }
    return nib_fail(err, NIB_E_ARG, "no sampler is named '%.*s'; there are (with their letters)"
#define X(id, letter, name, others, function) " " name "(%c)"
#include "sample/samplers.def"
#undef X
                    "; names are joined by ';'", len > 40 ? 40 : (int)len, text
#define X(id, letter, name, others, function) , letter
#include "sample/samplers.def"
#undef X
    );
}

nib_status nib_sample_params_chain(const char *text, nib_sample_chain *out, nib_error *err) {
    *out = (nib_sample_chain){.n = 0};
    if (!text) text = DEFAULT_CHAIN;
    while (*text) {
        size_t len = strcspn(text, ";");
        nib_sample_id id = NIB_SAMPLE_COUNT;
        NIB_TRY(find_kind(text, len, &id, err));
        text += len + (text[len] == ';');
        out->has[id] = true;
        if (id == NIB_SAMPLE_ADAPTIVE_P) continue;
        if (out->n == NIB_SAMPLE_CHAIN_MAX - 1) /* the last place is kept for adaptive_p */
            return nib_fail(err, NIB_E_ARG, "the chain has more than %d samplers", NIB_SAMPLE_CHAIN_MAX - 1);
        out->ids[out->n++] = (uint8_t)id;
    }
    if (out->has[NIB_SAMPLE_ADAPTIVE_P]) out->ids[out->n++] = NIB_SAMPLE_ADAPTIVE_P;
    return NIB_OK;
}
