/* cli/calibrate.c - kinds of steps in -> shares of the bound that meters see, kept as JSON -> seconds of any batch out.
 *
 * A sample is the share of its bound that a step of some size reaches with some number of tokens. Limits are measured
 * in turn with it, so that a share does not depend on how fast the machine happened to be; the limits that are kept turn it
 * into seconds again. x is the size that the time grows with: weights of a product, positions that attention
 * sees, values of a row. Between samples lines are drawn, over x and over the number of tokens; two sizes tell what grows
 * and what does not, barriers above all. */
#include "calibrate.h"

#include "base/mem.h"
#include "base/status.h"
#include "median.h"
#include "signals.h"

#include <stdio.h>
#include <string.h>

#define WARM_SECONDS 0.05 /* new threads may begin on one CPU; the kernel moves them apart after some 30 ms, mostly */

/* A step takes longer among others than after its like, which leaves it warm code and buffers: 1.13 and 1.14 times as long, means
 * of twice 20 points of three models (bench/plan_accuracy.py). */
#define IN_MODELS 1.1

enum {
    N_WARM = 4,
    N_ROUNDS = 7,
    N_PASSES = 3,
    SET_STEP = 16, /* MiB */
    MAX_SET = 256,
    MAX_POINTS = 16,
    MAX_KINDS = 32,
    KEY_SIZE = 160,
    CHUNKS = 1 << 20, /* as a number of tokens */
};

typedef struct point {
    double n_tok, x, seconds; /* of a step */
} point;

typedef struct kind { /* steps that one set of samples answers for */
    char key[KEY_SIZE];
    point points[MAX_POINTS]; /* by number of tokens (CHUNKS: attention of a prefill), then by x */
    size_t n_points;
} kind;

struct nib_cli_calibration {
    nib_cli_calibration_config config;
    kind kinds[MAX_KINDS];
    size_t n_kinds;
    char row_type[16]; /* of the weights that read most of what steps by row give */
    nib_cli_limit limit;
    unsigned set_mib;  /* about as many weights as the model reads for a token: caches keep part of small ones */
    nib_meter *read, *int8, *f32; /* while something is measured */
};

typedef struct size { /* one sample to take */
    nib_step_info step;
    uint32_t n_seq, n_tok, n_past; /* n_seq 0: it does not matter */
    uint64_t n_bytes;
    double x;
} size;

typedef struct sample {
    double n_seq, n_tok, x;
    double set_bytes, bytes, macs; /* of all steps of a run; of one step */
    double share;                  /* of the bound; of steps by row, which have none, of a multiplication a value */
} sample;

/* ---- which samples */

static size_t matmul_sizes(const nib_cli_calibration *c, const nib_step_info *like, size *out) {
    static const uint32_t n_tok[] = {1, 4, 16, 64, 512};
    static const uint32_t widths[][2] = {{512, 768}, {2048, 4096}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof n_tok / sizeof n_tok[0]; i++)
        for (size_t k = 0; k < 2; k++) {
            out[n] = (size){.step = *like, .n_tok = n_tok[i]};
            out[n].step.n_in = widths[k][0];
            out[n].step.n_out = widths[k][1];
            out[n].x = (double)widths[k][0] * widths[k][1];
            out[n++].n_bytes = n_tok[i] <= 16 ? (uint64_t)c->set_mib << 20 : 4 << 20; /* from 64 on arithmetic decides */
        }
    return n;
}

static size_t row_sizes(const nib_cli_calibration *c, const nib_step_info *like, size *out) {
    static const uint32_t n_tok[] = {1, 16, 512}, widths[] = {512, 4096};
    size_t n = 0;
    for (size_t i = 0; i < sizeof n_tok / sizeof n_tok[0]; i++)
        for (size_t k = 0; k < 2; k++) {
            out[n] = (size){.step = *like, .n_tok = n_tok[i], .x = (double)widths[k] * n_tok[i]};
            out[n].step.type = c->row_type;
            out[n++].step.n_in = widths[k];
        }
    return n;
}

/* One token for decode, where threads share contexts by segments of 512 positions and long ones are shared best; one token of each of
 * many sequences, which threads share as they are; chunks for prefill. A window would only cut positions off. */
static size_t attention_sizes(const nib_step_info *like, size *out) {
    static const struct {
        uint32_t n_seq, n_tok, past;
    } all[] = {{1, 1, 31}, {1, 1, 479}, {1, 1, 1023}, {1, 1, 4095}, {16, 16, 31}, {16, 16, 479}, {1, 16, 0}, {1, 256, 64}, {1, 256, 2048}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double each = all[i].n_tok / all[i].n_seq;
        out[i] = (size){.step = *like, .n_seq = all[i].n_seq, .n_tok = all[i].n_tok, .n_past = all[i].past};
        out[i].n_bytes = each == 1 ? 32 << 20 : 0;
        out[i].step.window = 0;
        out[i].x = all[i].n_seq * (each * all[i].past + each * (each + 1) / 2);
    }
    return sizeof all / sizeof all[0];
}

static bool is_op(const nib_step_info *step, const char *op) {
    return !strcmp(step->op, op);
}

/* The op that stands for a step: those by row differ little from a norm, except where exponentials are taken. */
static const char *measured_op(const nib_step_info *step) {
    return is_op(step, "matmul") || is_op(step, "attention") || is_op(step, "glu") ? step->op : "norm";
}

/* Weights of several types share a step where files mix them; most of it is of the model's main type. */
static const char *measured_type(const nib_cli_calibration *c, const nib_step_info *step) {
    return is_op(step, "matmul") && strcmp(step->type, "mixed") ? step->type : c->row_type;
}

static void key_of(const nib_cli_calibration *c, const nib_step_info *step, char *out) {
    const char *isa = nib_model_isa(c->config.model);
    if (is_op(step, "attention"))
        snprintf(out, KEY_SIZE, "%s %d attention %u/%u/%u %s %s", isa, c->config.n_threads, step->n_head, step->n_head_kv,
                 step->head_dim, c->config.k_type, c->config.v_type);
    else
        snprintf(out, KEY_SIZE, "%s %d %s %s %u", isa, c->config.n_threads, measured_op(step), measured_type(c, step),
                 is_op(step, "matmul") ? c->set_mib : 0);
}

/* ---- samples: measured, or known */

static nib_status open_meters(nib_cli_calibration *c, nib_error *err) {
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    config.isa = nib_model_isa(c->config.model);
    config.n_threads = c->config.n_threads;
    config.n_bytes = (uint64_t)c->set_mib << 20;
    NIB_TRY(nib_meter_new(&c->read, &config, err));
    config.kind = NIB_METER_INT8;
    NIB_TRY(nib_meter_new(&c->int8, &config, err));
    config.kind = NIB_METER_F32;
    return nib_meter_new(&c->f32, &config, err);
}

static void close_meters(nib_cli_calibration *c) {
    nib_meter_free(c->read);
    nib_meter_free(c->int8);
    nib_meter_free(c->f32);
    c->read = c->int8 = c->f32 = NULL;
}

static double rate(const nib_cli_calibration *c, nib_meter *meter, unsigned n_warm) {
    for (unsigned i = 0; i < n_warm; i++) nib_meter_run(meter, c->config.n_threads);
    double seconds = nib_meter_run(meter, c->config.n_threads);
    return (double)(nib_meter_bytes(meter) + nib_meter_macs(meter)) / seconds;
}

/* What bounds a step, at this moment: reading, after the set has come back to the caches that hold it, and one of the peaks. */
static nib_cli_limit limits_now(const nib_cli_calibration *c, bool is_float) {
    nib_cli_limit limit = {.n_threads = c->config.n_threads, .n_peaks = 1};
    double read = rate(c, c->read, 1);
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) limit.read_bytes[i] = read;
    snprintf(limit.peaks[0].isa, sizeof limit.peaks[0].isa, "%s", nib_model_isa(c->config.model));
    *(is_float ? &limit.peaks[0].f32_macs : &limit.peaks[0].int8_macs) = rate(c, is_float ? c->f32 : c->int8, 0);
    return limit;
}

/* The bound of a sample's step: a set that is read again and again reads as fast as its size allows. */
static double bound(const nib_cli_calibration *c, const sample *s, bool is_float, const nib_cli_limit *limit) {
    double peak = nib_cli_limit_macs(limit, nib_model_isa(c->config.model), is_float);
    double read = nib_cli_limit_read(limit, s->set_bytes), multiplying = s->macs / peak, reading = read > 0 ? s->bytes / read : 0;
    return multiplying > reading ? multiplying : reading;
}

static json_t *sample_json(const sample *s) {
    json_t *o = json_object();
    nib_cli_json_set_real(o, "sequences", s->n_seq);
    nib_cli_json_set_real(o, "tokens", s->n_tok);
    nib_cli_json_set_real(o, "x", s->x);
    nib_cli_json_set_real(o, "set_bytes", s->set_bytes);
    nib_cli_json_set_real(o, "bytes", s->bytes);
    nib_cli_json_set_real(o, "macs", s->macs);
    nib_cli_json_set_real(o, "share", s->share);
    return o;
}

/* The share that one meter reaches: the median of some rounds, each right after the limits and after a run that brings back what
 * the limits took from the caches. */
static double share_of(const nib_cli_calibration *c, nib_meter *meter, const sample *s, bool is_float) {
    double shares[N_ROUNDS], spent = 0;
    for (size_t i = 0; i < N_WARM || spent < WARM_SECONDS; i++) spent += nib_meter_run(meter, c->config.n_threads);
    for (size_t i = 0; i < N_ROUNDS; i++) {
        nib_cli_limit now = limits_now(c, is_float);
        nib_meter_run(meter, c->config.n_threads);
        shares[i] = bound(c, s, is_float, &now) / (nib_meter_run(meter, c->config.n_threads) / (double)nib_meter_steps(meter));
    }
    return nib_cli_median(shares, N_ROUNDS);
}

/* Short runs take the best of several passes with new threads: a moment in which another program has a CPU is longer than a pass. */
static nib_status take_sample(const nib_cli_calibration *c, const size *z, bool is_float, json_t *samples, nib_error *err) {
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    sample s = {.n_seq = z->n_seq, .n_tok = z->n_tok, .x = z->x};
    config.kind = NIB_METER_STEP;
    config.isa = nib_model_isa(c->config.model);
    config.n_threads = c->config.n_threads;
    config.step = &z->step;
    config.n_seq = z->n_seq ? z->n_seq : 1;
    config.n_tok = z->n_tok;
    config.n_past = z->n_past;
    config.n_bytes = z->n_bytes;
    config.k_type = c->config.k_type;
    config.v_type = c->config.v_type;
    for (int pass = 0; pass < (z->n_bytes ? 1 : N_PASSES); pass++) {
        nib_meter *meter;
        NIB_TRY(nib_meter_new(&meter, &config, err));
        double n = (double)nib_meter_steps(meter), macs = (double)nib_meter_macs(meter);
        s.set_bytes = (double)nib_meter_bytes(meter);
        s.bytes = s.set_bytes / n;
        s.macs = macs > 0 ? macs / n : z->x;
        double share = share_of(c, meter, &s, is_float);
        if (share > s.share) s.share = share;
        nib_meter_free(meter);
    }
    json_array_append_new(samples, sample_json(&s));
    return nib_cli_interrupted() ? nib_fail(err, NIB_E_CANCELLED, "measuring was stopped") : NIB_OK;
}

/* Whether a step multiplies floats. */
static bool multiplies_floats(const nib_step_info *step) {
    return !is_op(step, "matmul") || nib_cli_type_is_float(step->type);
}

static nib_status measure(const nib_cli_calibration *c, const nib_step_info *step, json_t *samples, nib_error *err) {
    size sizes[MAX_POINTS];
    nib_step_info like = *step;
    like.op = measured_op(step);
    like.type = measured_type(c, step);
    size_t n = is_op(&like, "matmul") ? matmul_sizes(c, &like, sizes)
               : is_op(&like, "attention") ? attention_sizes(&like, sizes) : row_sizes(c, &like, sizes);
    for (size_t i = 0; i < n; i++) NIB_TRY(take_sample(c, &sizes[i], multiplies_floats(&like), samples, err));
    return NIB_OK;
}

static bool parse_sample(const json_t *o, sample *out) {
    const struct {
        const char *key;
        double *value;
    } fields[] = {{"sequences", &out->n_seq}, {"tokens", &out->n_tok}, {"x", &out->x}, {"set_bytes", &out->set_bytes},
                  {"bytes", &out->bytes}, {"macs", &out->macs}, {"share", &out->share}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        *fields[i].value = json_number_value(json_object_get(o, fields[i].key));
        if (*fields[i].value < 0) return false;
    }
    return out->n_tok > 0 && out->x > 0 && out->macs > 0 && out->share > 0;
}

/* No step takes longer than one that is larger in both ways. Where clocks say so the smaller one was disturbed: noise only
 * ever adds. */
static void let_larger_bound_smaller(kind *k) {
    for (point *small = k->points; small < k->points + k->n_points; small++)
        for (const point *large = small; large < k->points + k->n_points; large++)
            if (large->x >= small->x && large->seconds < small->seconds) small->seconds = large->seconds;
}

/* False when there are not at least two sizes for each number of tokens, in order; all chunks of a prefill count as one number. */
static bool read_samples(const nib_cli_calibration *c, kind *k, const nib_step_info *step, const json_t *samples) {
    size_t n = json_array_size(samples), same = 2;
    if (n < 1 || n > MAX_POINTS) return false;
    for (size_t i = 0; i < n; i++) {
        sample s;
        if (!parse_sample(json_array_get(samples, i), &s)) return false;
        double n_tok = s.n_tok > s.n_seq && is_op(step, "attention") ? CHUNKS : s.n_tok;
        const point *last = i ? &k->points[i - 1] : NULL;
        bool is_next = last && n_tok == last->n_tok;
        if (is_next ? s.x <= last->x : (last && n_tok < last->n_tok) || same < 2) return false;
        same = is_next ? same + 1 : 1;
        k->points[i] = (point){n_tok, s.x, bound(c, &s, multiplies_floats(step), &c->limit) / s.share};
    }
    k->n_points = n;
    if (k->points[0].n_tok == CHUNKS || (is_op(step, "attention") && k->points[n - 1].n_tok != CHUNKS)) return false;
    let_larger_bound_smaller(k);
    return same >= 2;
}

static const kind *find_kind(const nib_cli_calibration *c, const char *key) {
    for (size_t i = 0; i < c->n_kinds; i++)
        if (!strcmp(c->kinds[i].key, key)) return &c->kinds[i];
    return NULL;
}

/* Adds the kind of a step when it is new. *is_new: something had to be measured. */
static nib_status add_kind(nib_cli_calibration *c, const nib_step_info *step, json_t *known, bool *is_new, nib_error *err) {
    kind fresh = {0};
    key_of(c, step, fresh.key);
    if (find_kind(c, fresh.key)) return NIB_OK;
    if (c->n_kinds == MAX_KINDS) return nib_fail(err, NIB_E_LIMIT, "the model has more than %d kinds of steps", MAX_KINDS);
    if (!read_samples(c, &fresh, step, json_object_get(known, fresh.key))) {
        if (!c->read) {
            nib_cli_note(c->config.term, "measuring the kernels that this model needs, once, about half a minute");
            NIB_TRY(open_meters(c, err));
        }
        *is_new = true;
        json_t *samples = json_array();
        nib_status status = measure(c, step, samples, err);
        if (status == NIB_OK && !read_samples(c, &fresh, step, samples))
            status = nib_fail(err, NIB_E_NUMERIC, "the clock gave no time for %s", fresh.key);
        if (status == NIB_OK) json_object_set(known, fresh.key, samples);
        json_decref(samples);
        NIB_TRY(status);
    }
    c->kinds[c->n_kinds++] = fresh;
    return NIB_OK;
}

/* The type of weights that takes most bytes; what most rows are quantised for. */
static void find_main_type(nib_cli_calibration *c) {
    uint64_t most = 0;
    nib_step_info step, other;
    for (size_t i = 0; nib_model_step(c->config.model, i, &step) == NIB_OK; i++) {
        uint64_t bytes = 0;
        if (!is_op(&step, "matmul") || !strcmp(step.type, "mixed") || step.layer < 0) continue;
        for (size_t k = 0; nib_model_step(c->config.model, k, &other) == NIB_OK; k++)
            if (is_op(&other, "matmul") && !strcmp(other.type, step.type) && other.layer >= 0) bytes += other.bytes;
        if (bytes <= most) continue;
        most = bytes;
        snprintf(c->row_type, sizeof c->row_type, "%s", step.type);
    }
    if (!most) snprintf(c->row_type, sizeof c->row_type, "F32");
}

nib_status nib_cli_calibration_new(nib_cli_calibration **out, nib_cli_limits *limits,
                                   const nib_cli_calibration_config *config, nib_error *err) {
    nib_cli_calibration *c = nib_calloc(1, sizeof *c);
    nib_step_info step;
    nib_status status = NIB_OK;
    bool is_new = false;
    *out = NULL;
    if (!c) return nib_fail_nomem(err, sizeof *c, "what kernels reach");
    c->config = *config;
    c->limit = nib_cli_limits_at(limits, config->n_threads);
    double steps = (double)nib_model_bytes_per_token(config->model) / 0x1p20 / SET_STEP, most = MAX_SET / SET_STEP;
    c->set_mib = steps < 1 ? SET_STEP : steps < most ? (unsigned)(steps + 0.5) * SET_STEP : MAX_SET;
    find_main_type(c);
    if (!limits->kernels) limits->kernels = json_object();
    nib_cli_signals_catch();
    for (size_t i = 0; status == NIB_OK && nib_model_step(config->model, i, &step) == NIB_OK; i++)
        status = add_kind(c, &step, limits->kernels, &is_new, err);
    close_meters(c);
    if (is_new && !nib_cli_limits_save(limits)) nib_cli_note(config->term, "what was measured could not be kept in the cache");
    if (status == NIB_OK)
        *out = c;
    else
        nib_cli_calibration_free(c);
    return status;
}

void nib_cli_calibration_free(nib_cli_calibration *c) {
    nib_free(c);
}

/* ---- questions */

static double between(double a, double b, double t) {
    return a + (b - a) * t;
}

/* Seconds at x among the points from `first` on that have its number of tokens; the outer lines go on. */
static double at(const kind *k, size_t first, double x) {
    const point *p = &k->points[first];
    while (p + 2 < k->points + k->n_points && p[2].n_tok == p->n_tok && p[1].x < x) p++;
    double seconds = between(p[0].seconds, p[1].seconds, (x - p[0].x) / (p[1].x - p[0].x));
    double least = x < p[0].x ? p[0].seconds * x / p[0].x : 0; /* noise in two points may point below zero */
    return seconds > least ? seconds : least;
}

/* Seconds of a step: between the next smaller and larger number of tokens; beyond the last they grow with it. Lines that
 * go on below the samples may cross: more tokens still never take less. */
static double step_seconds(const kind *k, double n_tok, double x_per_tok, bool x_grows) {
    double n_low = 0, low = 0;
    for (size_t i = 0; i < k->n_points && k->points[i].n_tok != CHUNKS; i++) {
        double n = k->points[i].n_tok;
        if (n == n_low) continue;
        double high = at(k, i, x_grows ? x_per_tok * n : x_per_tok);
        if (high < low) high = low;
        if (n >= n_tok) return n_low ? between(low, high, (n_tok - n_low) / (n - n_low)) : high;
        n_low = n;
        low = high;
    }
    return low * n_tok / n_low;
}

static double seconds_alone(const nib_cli_calibration *c, const nib_step_info *step, nib_cli_batch_shape shape) {
    char key[KEY_SIZE];
    key_of(c, step, key);
    const kind *k = find_kind(c, key);
    double rows = (double)nib_cli_step_rows(step, shape);
    if (!k || rows == 0) return 0;
    if (is_op(step, "attention")) {
        double positions = (double)nib_cli_step_macs(step, shape) / (double)step->macs;
        size_t first = 0;
        if (shape.n_tok == shape.n_seq) return step_seconds(k, (double)shape.n_seq, positions / (double)shape.n_seq, true);
        while (k->points[first].n_tok != CHUNKS) first++;
        return at(k, first, positions);
    }
    if (is_op(step, "matmul")) return step_seconds(k, rows, (double)step->macs, false);
    return step_seconds(k, rows, (double)(step->n_in > step->n_out ? step->n_in : step->n_out), true);
}

static double seconds_of(const nib_cli_calibration *c, const nib_step_info *step, nib_cli_batch_shape shape) {
    return IN_MODELS * seconds_alone(c, step, shape);
}

double nib_cli_calibration_seconds(const nib_cli_calibration *c, nib_cli_batch_shape shape) {
    nib_step_info step;
    double sum = 0;
    for (size_t i = 0; nib_model_step(c->config.model, i, &step) == NIB_OK; i++) sum += seconds_of(c, &step, shape);
    return sum;
}

json_t *nib_cli_calibration_json(const nib_cli_calibration *c, nib_cli_batch_shape shape) {
    nib_step_info step;
    json_t *o = json_object();
    for (size_t i = 0; nib_model_step(c->config.model, i, &step) == NIB_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", step.op, is_op(&step, "matmul") ? " " : "", is_op(&step, "matmul") ? step.type : "");
        double ms = json_number_value(json_object_get(o, name)) + 1e3 * seconds_of(c, &step, shape);
        nib_cli_json_set_real(o, name, ms);
    }
    return o;
}
