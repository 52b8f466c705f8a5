/* cli/bench_kernels.c - types, levels and numbers of tokens in -> speed of each kernel and its share of the bound out.
 *
 * One thread. A kernel's round stands between rounds of the meters that bound it, reading and multiplying, so that a
 * noisy second hits all of them; shares are medians over rounds, not quotients of medians. */
#include "bench_kernels.h"

#include "base/status.h"
#include "cost.h"
#include "median.h"
#include "signals.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROUNDS = 100, N_IN = 1536, N_OUT = 2432 };
static const struct {
    uint32_t n_tok;
    uint64_t n_bytes; /* weights that no cache holds, while they are what bounds it */
} sizes[] = {{1, 128 << 20}, {8, 128 << 20}, {512, 8 << 20}};

typedef struct bounds {
    nib_meter *read, *int8, *f32; /* of the level */
    const char *isa;
} bounds;

typedef struct result {
    const char *type, *isa;
    uint32_t n_tok;
    double gb_s, gmac_s, share;
    bool is_read;
} result;

static nib_cli_limit measure_bounds(const bounds *b) {
    nib_cli_limit limit = {.n_threads = 1, .n_peaks = 1};
    snprintf(limit.peaks[0].isa, sizeof limit.peaks[0].isa, "%s", b->isa);
    double read = (double)nib_meter_bytes(b->read) / nib_meter_run(b->read, 1);
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) limit.read_bytes[i] = read;
    limit.peaks[0].int8_macs = (double)nib_meter_macs(b->int8) / nib_meter_run(b->int8, 1);
    limit.peaks[0].f32_macs = (double)nib_meter_macs(b->f32) / nib_meter_run(b->f32, 1);
    return limit;
}

static nib_status measure(const bounds *b, size_t size, uint32_t n_rounds, result *out, nib_error *err) {
    double seconds[MAX_ROUNDS], shares[MAX_ROUNDS];
    nib_step_info step = {.op = "matmul", .type = out->type, .n_in = N_IN, .n_out = N_OUT};
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    nib_meter *meter;
    config.kind = NIB_METER_STEP;
    config.isa = out->isa;
    config.n_threads = 1;
    config.step = &step;
    config.n_tok = out->n_tok = sizes[size].n_tok;
    config.n_bytes = sizes[size].n_bytes;
    NIB_TRY(nib_meter_new(&meter, &config, err));
    bool is_float = nib_cli_type_is_float(out->type);
    double macs = (double)nib_meter_macs(meter), bytes = (double)nib_meter_bytes(meter);
    nib_cli_work work = {bytes, is_float ? 0 : macs, 0, is_float ? macs : 0};
    nib_status status = NIB_OK;
    nib_meter_run(meter, 1);
    for (uint32_t r = 0; r < n_rounds && status == NIB_OK; r++) {
        nib_cli_limit limit = measure_bounds(b);
        seconds[r] = nib_meter_run(meter, 1);
        shares[r] = nib_cli_bound(&work, &limit, b->isa) / seconds[r];
        out->is_read = nib_cli_bound_is_read(&work, &limit, b->isa);
        if (nib_cli_interrupted()) status = nib_fail(err, NIB_E_CANCELLED, "measuring was stopped");
    }
    nib_meter_free(meter);
    NIB_TRY(status);
    out->share = nib_cli_median(shares, n_rounds);
    double median = nib_cli_median(seconds, n_rounds);
    out->gb_s = bytes / median / 1e9;
    out->gmac_s = macs / median / 1e9;
    return NIB_OK;
}

static void report(nib_cli_out *out, json_t *list, const result *r) {
    if (list) {
        json_t *o = json_object();
        nib_cli_json_set_str(o, "type", r->type);
        nib_cli_json_set_str(o, "isa", r->isa);
        nib_cli_json_set_int(o, "tokens", r->n_tok);
        nib_cli_json_set_real(o, "gb_s", r->gb_s);
        nib_cli_json_set_real(o, "gmac_s", r->gmac_s);
        nib_cli_json_set_real(o, "share", r->share);
        nib_cli_json_set_str(o, "bound", r->is_read ? "read" : "macs");
        json_array_append_new(list, o);
        return;
    }
    nib_cli_out_printf(out, "%-8s %-8s %6u %9.2f %9.1f  %5.1f %% of %s\n", r->type, r->isa, r->n_tok, r->gb_s, r->gmac_s,
                       100 * r->share, r->is_read ? "read" : "MACs");
    nib_cli_out_flush(out);
}

static bool is_wanted(const nib_cli_list *names, const char *name) {
    const nib_str *list = names->items;
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(list[i].ptr, name)) return true;
    return names->n == 0;
}

static nib_status run_level(const bounds *b, nib_cli_out *out, const nib_cli_options *opt, json_t *list, nib_error *err) {
    for (const char *const *type = nib_type_names(); *type; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && is_wanted(&opt->types, *type); i++) {
            result r = {.type = *type, .isa = b->isa};
            NIB_TRY(measure(b, i, opt->repetitions < MAX_ROUNDS ? opt->repetitions : MAX_ROUNDS, &r, err));
            report(out, list, &r);
        }
    return NIB_OK;
}

static nib_status open_bounds(bounds *b, nib_error *err) {
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    config.n_threads = 1;
    config.isa = b->isa;
    NIB_TRY(nib_meter_new(&b->read, &config, err));
    config.kind = NIB_METER_INT8;
    NIB_TRY(nib_meter_new(&b->int8, &config, err));
    config.kind = NIB_METER_F32;
    return nib_meter_new(&b->f32, &config, err);
}

static bool is_in(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name)) names++;
    return *names;
}

static nib_status check_names(const nib_cli_options *opt, nib_error *err) {
    const nib_str *list = opt->types.items;
    for (size_t i = 0; i < opt->types.n; i++)
        if (!is_in(nib_type_names(), list[i].ptr))
            return nib_fail(err, NIB_E_ARG, "--type %s: no tensor type of that name, as Q4_K is one", list[i].ptr);
    if (opt->isa && !nib_isa_usable(opt->isa))
        return nib_fail(err, NIB_E_ARG, "--isa %s: this machine has no such level", opt->isa);
    return NIB_OK;
}

nib_status nib_cli_bench_kernels(nib_cli_out *out, const nib_cli_options *opt, nib_error *err) {
    json_t *list = opt->json ? json_array() : NULL;
    nib_status status = check_names(opt, err);
    nib_cli_signals_catch();
    if (!list && status == NIB_OK)
        nib_cli_out_printf(out, "%-8s %-8s %6s %9s %9s  %s\n", "type", "level", "tokens", "GB/s", "GMAC/s", "of the limit");
    for (const char *const *isa = nib_isa_names(); *isa && status == NIB_OK; isa++) {
        if (opt->isa ? strcmp(opt->isa, *isa) : !nib_isa_usable(*isa)) continue;
        bounds b = {.isa = *isa};
        status = open_bounds(&b, err);
        if (status == NIB_OK) status = run_level(&b, out, opt, list, err);
        nib_meter_free(b.read);
        nib_meter_free(b.int8);
        nib_meter_free(b.f32);
    }
    if (list && status == NIB_OK) nib_cli_json_write(out, json_incref(list));
    json_decref(list);
    return status;
}
