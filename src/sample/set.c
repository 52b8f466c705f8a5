/* sample/set.c - the candidates in dense and list form, and the passes over their blocks. */
#include "sample/set.h"

#include "base/math.h"
#include "base/mem.h"
#include "base/status.h"
#include "sample/lanes.h"
#include "sample/order.h"

#include <string.h>

#define LANES NIB_SAMPLE_LANES
#define FEW 128          /* candidates that are sorted sooner than narrowed down */
#define MOST_HALVINGS 16 /* of an interval of logits: what is still crowded then is alike */

static size_t n_blocks(size_t n) {
    return (n + LANES - 1) / LANES;
}

nib_status nib_sample_set_init(nib_sample_set *set, uint32_t n_vocab, nib_error *err) {
    size_t n = n_vocab, blocks = n_blocks(n);
    *set = (nib_sample_set){.n_vocab = n};
    set->own = nib_alloc(n, sizeof *set->own);
    set->own_ids = nib_alloc(n, sizeof *set->own_ids);
    set->block_max = nib_alloc(blocks, sizeof *set->block_max);
    set->patched = nib_calloc(blocks, sizeof *set->patched);
    set->patch = nib_alloc(n, sizeof *set->patch);
    set->heap = nib_alloc(blocks, sizeof *set->heap);
    set->keys = nib_alloc(2 * n, sizeof *set->keys);
    bool has_arrays = set->own && set->own_ids && set->block_max && set->patched && set->patch;
    if (has_arrays && set->heap && set->keys) return NIB_OK;
    nib_sample_set_fini(set);
    return nib_fail_nomem(err, (uint64_t)n * 28, "the candidates of a sampler");
}

void nib_sample_set_fini(nib_sample_set *set) {
    nib_free(set->own);
    nib_free(set->own_ids);
    nib_free(set->block_max);
    nib_free(set->patched);
    nib_free(set->patch);
    nib_free(set->heap);
    nib_free(set->keys);
    *set = (nib_sample_set){0};
}

void nib_sample_set_begin(nib_sample_set *set, const float *logits, const float *best, const uint32_t *mask) {
    if (set->is_patched) memset(set->patched, 0, n_blocks(set->n_vocab) * sizeof *set->patched);
    set->values = logits;
    set->best = best;
    set->ids = NULL;
    set->n = set->n_vocab;
    set->mask = mask;
    set->is_patched = set->is_sorted = set->has_max = false;
    set->bad = SIZE_MAX;
}

/* The logits of block b with mask and patch applied and -infinity past the end: in place when that is all of them. */
static const float *block(const nib_sample_set *set, size_t b, float tmp[LANES]) {
    size_t first = b * LANES, len = set->n - first < LANES ? set->n - first : LANES;
    const float *x = set->values + first;
    uint32_t allowed = set->mask ? set->mask[b] : UINT32_MAX, patched = set->is_patched ? set->patched[b] : 0;
    if (len == LANES && allowed == UINT32_MAX && !patched) return x;
    if (len == LANES && !patched) {
        nib_sample_lanes_mask(x, allowed, tmp);
        return tmp;
    }
    for (size_t j = 0; j < LANES; j++) {
        if (j >= len || !(allowed >> j & 1)) tmp[j] = -INFINITY;
        else tmp[j] = patched >> j & 1 ? set->patch[first + j] : x[j];
    }
    return tmp;
}

/* The best of block b; *is_ok becomes false when a logit is no number, be it masked or patched. */
static float scan_block(const nib_sample_set *set, size_t b, bool *is_ok) {
    float tmp[LANES];
    size_t first = b * LANES, len = set->n - first;
    if (set->best || len >= LANES) {
        float max = set->best ? set->best[b] : nib_sample_lanes_max(set->values + first, is_ok);
        *is_ok &= max < INFINITY;
        if (!(set->mask && ~set->mask[b]) && !(set->is_patched && set->patched[b])) return max;
    }
    for (size_t j = 0; j < len && len < LANES; j++)
        if (!(set->values[first + j] < INFINITY)) *is_ok = false;
    if (!*is_ok || (set->mask && !set->mask[b])) return -INFINITY;
    return nib_sample_lanes_max(block(set, b, tmp), is_ok);
}

/* All maxima as the caller knows them; false when they are not known, or a logit is no number. */
static bool scan_hint(nib_sample_set *set) {
    size_t n = n_blocks(set->n), b = 0;
    bool is_ok = set->best && set->block_max && !set->mask && !set->is_patched;
    for (; is_ok && b + LANES <= n; b += LANES) {
        float max = nib_sample_lanes_max(set->best + b, &is_ok);
        if (max > set->max) set->max = max;
    }
    for (; is_ok && b < n; b++) {
        is_ok = set->best[b] < INFINITY;
        if (set->best[b] > set->max) set->max = set->best[b];
    }
    if (is_ok) memcpy(set->block_max, set->best, n * sizeof *set->best);
    return is_ok;
}

/* Finds the maxima of blocks and whole, and numbers that are none. */
static void scan(nib_sample_set *set) {
    set->max = -INFINITY;
    set->has_max = true;
    if (scan_hint(set)) return;
    set->max = -INFINITY;
    for (size_t b = 0; b < n_blocks(set->n); b++) {
        bool is_ok = true;
        float max = scan_block(set, b, &is_ok);
        if (!is_ok) {
            for (set->bad = b * LANES; set->values[set->bad] < INFINITY; set->bad++) {}
            set->n = 0;
            set->max = -INFINITY;
            return;
        }
        if (set->block_max) set->block_max[b] = max;
        if (max > set->max) set->max = max;
    }
}

float nib_sample_set_max(nib_sample_set *set) {
    if (!set->has_max) scan(set);
    return set->max;
}

/* Walks the blocks whose best is at least lowest: NULL at the end. Start with *b = 0; the block is number *b - 1. */
static const float *next_block(const nib_sample_set *set, float lowest, size_t *b, float tmp[LANES]) {
    for (size_t end = n_blocks(set->n); *b < end;) {
        size_t i = (*b)++;
        if (!set->block_max || set->block_max[i] >= lowest) return block(set, i, tmp);
    }
    return NULL;
}

void nib_sample_set_change(nib_sample_set *set, const nib_token *ids, size_t n, nib_sample_change_fn change,
                           const void *user) {
    size_t n_slots = set->ids ? set->n : n;
    for (size_t i = 0; i < n_slots; i++) {
        size_t slot = set->ids ? i : (size_t)ids[i];
        bool is_own = set->values == set->own;
        bool is_patched = set->is_patched && set->patched[slot / LANES] >> slot % LANES & 1;
        float old = is_patched ? set->patch[slot] : set->values[slot];
        if (!(old > -INFINITY)) continue; /* forbidden; or NaN, which the scan has yet to report */
        float now = change(user, set->ids ? set->ids[i] : ids[i], old);
        if (is_own) {
            set->own[slot] = now;
        } else {
            set->patch[slot] = now;
            set->patched[slot / LANES] |= 1u << slot % LANES;
            set->is_patched = true;
        }
        set->is_sorted = set->has_max = false;
    }
}

nib_sample_mass nib_sample_set_mass(nib_sample_set *set, float lowest) {
    float max = nib_sample_set_max(set), tmp[LANES];
    nib_sample_sums sums = {0};
    size_t b = 0;
    for (const float *x; (x = next_block(set, lowest, &b, tmp));) nib_sample_lanes_add_exp(&sums, x, max, lowest);
    return (nib_sample_mass){nib_sample_lanes_total(sums.a), nib_sample_lanes_total(sums.b),
                             nib_sample_lanes_count(&sums)};
}

void nib_sample_set_moments(nib_sample_set *set, double *mean, double *deviation) {
    float max = nib_sample_set_max(set), tmp[LANES];
    nib_sample_sums sums = {0};
    size_t b = 0;
    for (const float *x; (x = next_block(set, -FLT_MAX, &b, tmp));) nib_sample_lanes_add_moments(&sums, x, max);
    double n = (double)nib_sample_lanes_count(&sums);
    *mean = n > 0 ? nib_sample_lanes_total(sums.a) / n : 0;
    double variance = n > 0 ? nib_sample_lanes_total(sums.b) / n - *mean * *mean : 0;
    *deviation = variance > 0 ? sqrt(variance) : 0;
}

/* A list of the candidates with lowest <= logit < limit. */
static void keep_between(nib_sample_set *set, float lowest, float limit) {
    nib_sample_set_max(set);
    size_t n = 0, b = 0;
    float tmp[LANES];
    for (const float *x; (x = next_block(set, lowest, &b, tmp));) {
        size_t first = (b - 1) * LANES;
        for (size_t j = 0; j < LANES && first + j < set->n; j++) {
            if (x[j] < lowest || x[j] >= limit) continue;
            /* In list form x may lie in own: a value moves down, never past one that is still to be read. */
            set->own_ids[n] = set->ids ? set->ids[first + j] : (nib_token)(first + j);
            set->own[n++] = x[j];
        }
    }
    set->values = set->own;
    set->best = NULL;
    set->ids = set->own_ids;
    set->n = n;
    set->mask = NULL;
    if (set->is_patched) memset(set->patched, 0, n_blocks(set->n_vocab) * sizeof *set->patched);
    set->is_patched = set->has_max = false;
}

void nib_sample_set_keep(nib_sample_set *set, float lowest) {
    keep_between(set, lowest, INFINITY);
}

static void sort_list(nib_sample_set *set) {
    if (set->is_sorted) return;
    uint64_t *keys = set->keys;
    for (size_t i = 0; i < set->n; i++) keys[i] = nib_sample_order_key(set->own[i], (uint32_t)set->ids[i]);
    nib_sample_order_sort(keys, keys + set->n_vocab, set->n);
    for (size_t i = 0; i < set->n; i++) {
        set->own[i] = nib_sample_order_value(keys[i]);
        set->ids[i] = (nib_token)(uint32_t)keys[i];
    }
    set->is_sorted = true;
    set->has_max = false;
}

void nib_sample_set_sort(nib_sample_set *set) {
    if (!set->ids) nib_sample_set_keep(set, -FLT_MAX);
    sort_list(set);
}

/* A bound that at least k candidates reach: the k-th best maximum of a block. */
static float bound_of_best(nib_sample_set *set, size_t k) {
    size_t blocks = n_blocks(set->n);
    if (k > blocks) return -FLT_MAX;
    nib_sample_best best = {set->heap, 0, k};
    for (size_t b = 0; b < blocks; b++)
        if (nib_sample_order_wants(&best, set->block_max[b]))
            nib_sample_order_push(&best, (nib_logprob){(nib_token)b, set->block_max[b]});
    float bound = best.items[0].logprob;
    return bound < -FLT_MAX ? -FLT_MAX : bound;
}

void nib_sample_set_top(nib_sample_set *set, size_t k) {
    if (k >= set->n) return;
    if (!set->is_sorted) {
        nib_sample_set_max(set);
        nib_sample_set_keep(set, bound_of_best(set, k));
        if (k >= set->n) return;
        sort_list(set);
    }
    set->n = k;
    set->has_max = false;
}

void nib_sample_set_head(nib_sample_set *set, double mass, size_t at_least) {
    if (set->is_sorted) return;
    float max = nib_sample_set_max(set), lowest = -FLT_MAX;
    /* Widen the cut until enough lies above it. The margin covers that the sorted sum rounds differently. */
    if (set->n > LANES * 4) {
        for (float depth = 4; depth <= 64; depth *= 2) {
            nib_sample_mass above = nib_sample_set_mass(set, max - depth);
            if (above.z <= mass * (1 + 1e-5) || above.n < at_least) continue;
            lowest = max - depth;
            break;
        }
    }
    nib_sample_set_keep(set, lowest);
    sort_list(set);
}

void nib_sample_set_scale(nib_sample_set *set, float temp) {
    float max = nib_sample_set_max(set), tmp[LANES];
    if (max == -INFINITY) return;
    float shift = fabsf(max / temp) <= FLT_MAX ? 0.0f : max;
    for (size_t b = 0; b < n_blocks(set->n); b++) {
        size_t first = b * LANES, len = set->n - first < LANES ? set->n - first : LANES;
        nib_sample_lanes_scale(block(set, b, tmp), tmp, shift, temp);
        memcpy(set->own + first, tmp, len * sizeof *tmp);
    }
    set->values = set->own;
    set->best = NULL;
    set->mask = NULL;
    if (set->is_patched) memset(set->patched, 0, n_blocks(set->n_vocab) * sizeof *set->patched);
    set->is_patched = set->has_max = false;
}

nib_token nib_sample_set_best(nib_sample_set *set) {
    float max = nib_sample_set_max(set), tmp[LANES];
    nib_token best = NIB_TOKEN_NONE;
    size_t b = 0;
    for (const float *x; (x = next_block(set, max, &b, tmp));) {
        for (size_t j = 0; j < LANES; j++) {
            if (x[j] < max) continue;
            nib_token id = (nib_token)((b - 1) * LANES + j);
            if (!set->ids) return id;
            id = set->ids[id];
            if (best < 0 || id < best) best = id;
        }
    }
    return best;
}

/* Keeps some of the candidates, sorted, among them the one at which the sum of exp(logit - max), best first, passes `wanted`; returns
 * the sum of those before them. Sorting all of a flat distribution would take longer than some models take for a token. */
static double narrow(nib_sample_set *set, double wanted) {
    float max = nib_sample_set_max(set), lowest = -FLT_MAX, limit = INFINITY;
    nib_sample_mass above = {0}, all = {0}; /* of what is at least limit, and at least lowest */
    for (float depth = 4; set->n > FEW && all.z <= wanted && depth <= 64; depth *= 2) {
        if (depth > 4) limit = lowest, above = all;
        lowest = max - depth;
        all = nib_sample_set_mass(set, lowest);
    }
    if (all.z <= wanted) lowest = -FLT_MAX, limit = INFINITY, above = (nib_sample_mass){0};
    for (int round = 0; round < MOST_HALVINGS && all.z > wanted && all.n - above.n > FEW; round++) {
        float middle = lowest + ((limit < max ? limit : max) - lowest) / 2;
        if (!(middle > lowest && middle < limit)) break;
        nib_sample_mass upper = nib_sample_set_mass(set, middle);
        if (upper.z > wanted) lowest = middle, all = upper;
        else limit = middle, above = upper;
    }
    keep_between(set, lowest, limit);
    sort_list(set);
    return above.z;
}

nib_token nib_sample_set_draw(nib_sample_set *set, double u, float *logprob) {
    float max = nib_sample_set_max(set);
    double z = nib_sample_set_mass(set, -FLT_MAX).z, sum = set->is_sorted ? 0 : narrow(set, u * z);
    size_t chosen = 0;
    for (size_t i = 0; i < set->n && sum <= u * z; i++) {
        double e = (double)nib_sample_exp(set->own[i] - max);
        if (e == 0) break; /* rounding left the sum short: the last that has any probability */
        sum += e;
        chosen = i;
    }
    *logprob = (float)((double)set->own[chosen] - (double)max - nib_log(z));
    return set->ids[chosen];
}

size_t nib_sample_set_peek(nib_sample_set *set, double z, nib_logprob *top, size_t k) {
    float max = nib_sample_set_max(set), tmp[LANES];
    double log_z = nib_log(z);
    nib_sample_best best = {top, 0, k};
    size_t b = 0;
    for (const float *x; (x = next_block(set, -INFINITY, &b, tmp));) {
        bool is_ok = true;
        if (!nib_sample_order_wants(&best, nib_sample_lanes_max(x, &is_ok))) continue;
        for (size_t j = 0, first = (b - 1) * LANES; j < LANES && first + j < set->n; j++)
            nib_sample_order_push(&best, (nib_logprob){set->ids ? set->ids[first + j] : (nib_token)(first + j), x[j]});
    }
    nib_sample_order_finish(&best);
    for (size_t i = 0; i < best.n; i++)
        if (top[i].logprob > -INFINITY) top[i].logprob = nib_sample_clamp((double)top[i].logprob - (double)max - log_z);
    return best.n;
}
