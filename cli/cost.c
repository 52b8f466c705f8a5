/* cli/cost.c - plan steps and the shape of a batch in -> operations, bytes and the least time out. */
#include "cost.h"

#include "base/status.h"

#include <string.h>

static bool is_attention(const nib_step_info *step) {
    return !strcmp(step->op, "attention");
}

uint64_t nib_cli_step_rows(const nib_step_info *step, nib_cli_batch_shape shape) {
    return strcmp(step->rows, "OUT") ? shape.n_tok : shape.n_out;
}

static uint64_t tokens_of_sequence(nib_cli_batch_shape shape) {
    return shape.n_tok / shape.n_seq;
}

/* Row i of a sequence sees past + i + 1 positions, or as many as the window has. */
static uint64_t positions_seen(const nib_step_info *step, nib_cli_batch_shape shape) {
    uint64_t n = tokens_of_sequence(shape), window = step->window ? step->window : UINT64_MAX, sum = 0;
    uint64_t growing = window > shape.past ? window - shape.past : 0; /* rows that see less than a window, or just one */
    if (growing > n) growing = n;
    sum = growing * shape.past + growing * (growing + 1) / 2;
    if (growing < n) sum += (n - growing) * window;
    return sum * shape.n_seq;
}

uint64_t nib_cli_step_macs(const nib_step_info *step, nib_cli_batch_shape shape) {
    return step->macs * (is_attention(step) ? positions_seen(step, shape) : nib_cli_step_rows(step, shape));
}

/* Positions of the cache that some row of the batch sees. */
static uint64_t positions_read(const nib_step_info *step, nib_cli_batch_shape shape) {
    uint64_t n = tokens_of_sequence(shape), all = shape.past + n;
    uint64_t seen = step->window && n + step->window - 1 < all ? n + step->window - 1 : all;
    return seen * shape.n_seq;
}

nib_cli_work nib_cli_step_work(const nib_step_info *step, nib_cli_batch_shape shape, nib_cli_cache cache) {
    double macs = (double)nib_cli_step_macs(step, shape);
    if (is_attention(step)) {
        double codes = macs * cache.int16_share;
        return (nib_cli_work){(double)positions_read(step, shape) * cache.bytes, 0, codes, macs - codes};
    }
    double bytes = nib_cli_step_rows(step, shape) ? (double)step->bytes : 0;
    bool is_float = nib_cli_type_is_float(step->type);
    return (nib_cli_work){bytes, is_float ? 0 : macs, 0, is_float ? macs : 0};
}

nib_status nib_cli_plan_macs(const nib_model *model, nib_cli_batch_shape shape, uint64_t *macs, nib_error *err) {
    *macs = 0;
    for (size_t i = 0; i < nib_model_n_steps(model); i++) {
        nib_step_info step;
        if (nib_model_step(model, i, &step) != NIB_OK) return nib_fail(err, NIB_E_ARG, "no step %zu in the plan", i);
        *macs += nib_cli_step_macs(&step, shape);
    }
    return NIB_OK;
}

nib_cli_work nib_cli_plan_work(const nib_model *model, nib_cli_batch_shape shape, nib_cli_cache cache) {
    nib_cli_work sum = {0};
    nib_step_info step;
    for (size_t i = 0; nib_model_step(model, i, &step) == NIB_OK; i++) {
        nib_cli_work work = nib_cli_step_work(&step, shape, cache);
        sum.bytes += work.bytes;
        sum.int8_macs += work.int8_macs;
        sum.int16_macs += work.int16_macs;
        sum.f32_macs += work.f32_macs;
    }
    return sum;
}

nib_cli_cache nib_cli_cache_of(const nib_model *model, const char *k_type, const char *v_type) {
    double bytes = (double)nib_model_kv_bytes_per_token(model, k_type, v_type);
    uint32_t n_layer = nib_model_n_layer(model);
    return (nib_cli_cache){bytes / (n_layer ? n_layer : 1), 0.5 * !strcmp(k_type, "q16") + 0.5 * !strcmp(v_type, "q16")};
}

double nib_cli_work_macs(const nib_cli_work *work) {
    return work->int8_macs + work->int16_macs + work->f32_macs;
}

static double read_seconds(const nib_cli_work *work, const nib_cli_limit *limit) {
    double speed = nib_cli_limit_read(limit, work->bytes); /* all of it is read again in the next batch */
    return speed > 0 ? work->bytes / speed : 0;
}

/* A register holds twice as many 16-bit codes as floats. */
static double multiply_seconds(const nib_cli_work *work, const nib_cli_limit *limit, const char *isa) {
    double int8 = nib_cli_limit_macs(limit, isa, false), f32 = nib_cli_limit_macs(limit, isa, true);
    return (int8 > 0 ? work->int8_macs / int8 : 0) + (f32 > 0 ? (work->f32_macs + work->int16_macs / 2) / f32 : 0);
}

double nib_cli_bound(const nib_cli_work *work, const nib_cli_limit *limit, const char *isa) {
    double read = read_seconds(work, limit), multiply = multiply_seconds(work, limit, isa);
    return read > multiply ? read : multiply;
}

bool nib_cli_bound_is_read(const nib_cli_work *work, const nib_cli_limit *limit, const char *isa) {
    return read_seconds(work, limit) >= multiply_seconds(work, limit, isa);
}
