/* sample/dry.c - finds what the end of the history repeats (Z-algorithm on the reversed window) and penalises it. */
#include "sample/dry.h"

#include "base/mem.h"
#include "base/status.h"
#include "sample/order.h"
#include "sample/sampler.h"

#include <string.h>

static bool has_bit(const uint32_t *bits, nib_token id) {
    return bits[id / 32] >> id % 32 & 1;
}

static void set_bit(uint32_t *bits, nib_token id) {
    bits[id / 32] |= 1u << id % 32;
}

/* Puts breakers of one token into the bits and the longer ones into the list, ordered by their first token. */
static bool read_breakers(nib_sample_dry *dry, const nib_sampler_params *params) {
    size_t n = 0, n_ids = 0; /* of those that are longer than a token: a vocabulary has many of the others */
    for (size_t i = 0; i < params->n_dry_breakers; i++)
        if (params->dry_breaker_lengths[i] > 1) n++, n_ids += params->dry_breaker_lengths[i];
    struct nib_sample_dry_breaker *found = nib_alloc(n, sizeof *found);
    uint64_t *keys = nib_alloc(n, 2 * sizeof *keys);
    dry->breakers = nib_alloc(n, sizeof *dry->breakers);
    dry->ids = nib_alloc(n_ids, sizeof *dry->ids);
    bool is_ok = found && keys && dry->breakers && dry->ids && n_ids <= UINT32_MAX;
    if (is_ok) {
        const nib_token *ids = params->dry_breakers;
        uint32_t first = 0;
        for (size_t i = 0; i < params->n_dry_breakers; i++) {
            uint32_t length = params->dry_breaker_lengths[i];
            set_bit(length == 1 ? dry->single : dry->is_head, ids[0]);
            if (length > 1) {
                memcpy(dry->ids + first, ids, length * sizeof *ids);
                keys[dry->n_breakers] = (uint64_t)(uint32_t)ids[0] << 32 | dry->n_breakers;
                found[dry->n_breakers].first = first;
                found[dry->n_breakers++].length = length;
                first += length;
            }
            ids += length;
        }
        nib_sample_order_sort(keys, keys + n, dry->n_breakers);
        for (size_t i = 0; i < dry->n_breakers; i++) dry->breakers[i] = found[(uint32_t)keys[i]];
    }
    nib_free(found);
    nib_free(keys);
    return is_ok;
}

nib_status nib_sample_dry_init(nib_sample_dry *dry, const nib_sampler_params *params, uint32_t n_vocab,
                               nib_error *err) {
    *dry = (nib_sample_dry){.multiplier = (double)params->dry_multiplier, .base = (double)params->dry_base,
                            .allowed_length = (size_t)params->dry_allowed_length};
    if (dry->multiplier == 0 || params->dry_penalty_last_n == 0) return NIB_OK;
    size_t words = (n_vocab + 31) / 32;
    dry->single = nib_calloc(words, sizeof *dry->single);
    dry->is_head = nib_calloc(words, sizeof *dry->is_head);
    dry->longest = nib_calloc(n_vocab, sizeof *dry->longest);
    if (!dry->single || !dry->is_head || !dry->longest || !read_breakers(dry, params)) {
        nib_sample_dry_fini(dry);
        return nib_fail_nomem(err, (uint64_t)n_vocab * 5, "the tables of DRY");
    }
    dry->last_n = params->dry_penalty_last_n < 0 ? NIB_SAMPLE_HISTORY_ALL : (size_t)params->dry_penalty_last_n;
    return NIB_OK;
}

void nib_sample_dry_fini(nib_sample_dry *dry) {
    nib_free(dry->single);
    nib_free(dry->is_head);
    nib_free(dry->ids);
    nib_free(dry->breakers);
    nib_free(dry->match);
    nib_free(dry->touched);
    nib_free(dry->longest);
    *dry = (nib_sample_dry){0};
}

nib_status nib_sample_dry_reserve(nib_sample_dry *dry, size_t n, nib_error *err) {
    if (!dry->last_n) return NIB_OK;
    if (nib_grow(&dry->match, &dry->match_capacity, n, sizeof *dry->match) &&
        nib_grow(&dry->touched, &dry->touched_capacity, n, sizeof *dry->touched))
        return NIB_OK;
    return nib_fail_nomem(err, (uint64_t)n * 8, "the window of DRY");
}

/* Length of the longest breaker of several tokens that begins i places back and fits there; 0 when none does. */
static size_t longer_breaker(const nib_sample_dry *dry, const nib_sample_history *history, size_t i) {
    nib_token head = nib_sample_history_at(history, i);
    if (!has_bit(dry->is_head, head)) return 0;
    size_t low = 0, high = dry->n_breakers, longest = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (dry->ids[dry->breakers[middle].first] < head) low = middle + 1;
        else high = middle;
    }
    for (; low < dry->n_breakers && dry->ids[dry->breakers[low].first] == head; low++) {
        const nib_token *ids = dry->ids + dry->breakers[low].first;
        size_t length = dry->breakers[low].length, j = 1;
        if (length <= longest || length > i + 1) continue;
        while (j < length && ids[j] == nib_sample_history_at(history, i - j)) j++;
        if (j == length) longest = length;
    }
    return longest;
}

/* How many tokens lie behind the last breaker of the window of n; n when there is none. */
static size_t length_after_breaker(const nib_sample_dry *dry, const nib_sample_history *history, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t length = longer_breaker(dry, history, i);
        if (!length && has_bit(dry->single, nib_sample_history_at(history, i))) length = 1;
        if (length) return i + 1 - length;
    }
    return n;
}

/* match[k]: how many of the last tokens also stand k places further back. [left, right) is the rightmost stretch known
 * to equal the start, so every token is compared once. */
static void find_matches(nib_sample_dry *dry, const nib_sample_history *history, size_t n) {
    size_t left = 0, right = 0;
    for (size_t k = 1; k < n; k++) {
        size_t m = 0;
        if (k < right) {
            m = dry->match[k - left];
            if (m > right - k) m = right - k;
        }
        while (k + m < n && nib_sample_history_at(history, m) == nib_sample_history_at(history, k + m)) m++;
        dry->match[k] = (uint32_t)m;
        if (k + m > right) left = k, right = k + m;
    }
}

static double power(double base, uint32_t exponent) {
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

static float penalised(const void *user, nib_token id, float logit) {
    const nib_sample_dry *dry = user;
    if (!dry->longest[id]) return logit;
    uint32_t exponent = dry->longest[id] - 1 - (uint32_t)dry->allowed_length;
    return nib_sample_clamp((double)logit - dry->multiplier * power(dry->base, exponent));
}

void nib_sample_dry_apply(nib_sampler *s) {
    nib_sample_dry *dry = &s->dry;
    size_t n = nib_sample_history_n(&s->history);
    if (n > dry->last_n) n = dry->last_n;
    if (n <= dry->allowed_length) return;
    size_t limit = length_after_breaker(dry, &s->history, n);
    if (limit < dry->allowed_length) return;
    find_matches(dry, &s->history, n);
    dry->n_touched = 0;
    for (size_t k = 1; k < n; k++) {
        size_t length = dry->match[k] < limit ? dry->match[k] : limit;
        nib_token next = nib_sample_history_at(&s->history, k - 1);
        if (length < dry->allowed_length || has_bit(dry->single, next)) continue;
        if (!dry->longest[next]) dry->touched[dry->n_touched++] = next;
        if (length + 1 > dry->longest[next]) dry->longest[next] = (uint32_t)(length + 1); /* 0 means none */
    }
    nib_sample_set_change(&s->set, dry->touched, dry->n_touched, penalised, dry);
    for (size_t i = 0; i < dry->n_touched; i++) dry->longest[dry->touched[i]] = 0;
}
