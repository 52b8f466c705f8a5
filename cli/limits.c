/* cli/limits.c - meters in -> limits of this machine out, through the cache file.
 *
 * A limit is what the machine does when nobody disturbs it. On shared machines rates swing by half within seconds, so every meter
 * runs once a round, for as many rounds as the time allows, and what one round in four reaches counts. */
#include "limits.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "cache.h"
#include "median.h"
#include "signals.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROUNDS = 64, MIN_ROUNDS = 3, BUDGET_MS = 2300, N_WARM = 4, ALL_COUNTS_TO = 8 };

const unsigned nib_cli_set_mib[NIB_CLI_N_SETS] = {32, 64, 128, 256};

#define REACHED 0.75 /* the part of the rounds that are slower */

typedef struct cell { /* a meter at one number of threads, and where its limit goes */
    nib_meter *meter;
    int n_threads;
    unsigned n_before; /* runs that do not count: a cache takes its time to keep a set */
    uint64_t work;
    double *target;
    double samples[MAX_ROUNDS];
} cell;

typedef struct bench {
    nib_meter *meters[NIB_CLI_N_SETS + 2 * NIB_CLI_MAX_PEAKS];
    size_t n_meters;
    nib_cli_list cells; /* cell */
} bench;

static nib_status add_meter(bench *b, const nib_meter_config *config, nib_error *err) {
    nib_meter *meter;
    NIB_TRY(nib_meter_new(&meter, config, err));
    b->meters[b->n_meters++] = meter;
    return NIB_OK;
}

/* The last meter at every number of threads; offset: of the target in a row. */
static nib_status add_cells(bench *b, nib_cli_limits *out, size_t offset, unsigned n_before, nib_error *err) {
    nib_meter *meter = b->meters[b->n_meters - 1];
    uint64_t work = nib_meter_bytes(meter) + nib_meter_macs(meter); /* one of them is 0 */
    for (size_t i = 0; i < out->n_rows; i++) {
        double *target = (double *)(void *)((char *)&out->rows[i] + offset);
        cell c = {.meter = meter, .n_threads = out->rows[i].n_threads, .n_before = n_before, .work = work, .target = target};
        if (!nib_cli_list_append(&b->cells, &c, 1, sizeof c)) return nib_fail_nomem(err, sizeof c, "the limits");
    }
    return NIB_OK;
}

/* 1 to n, or in doubling steps when these are many. */
static void choose_counts(nib_cli_limits *out, int n) {
    for (int i = 1; out->n_rows < NIB_CLI_MAX_LIMITS; i = n <= ALL_COUNTS_TO ? i + 1 : 2 * i) {
        out->rows[out->n_rows++].n_threads = i < n ? i : n;
        if (i >= n) return;
    }
}

static nib_status add_level(bench *b, nib_cli_limits *out, nib_meter_config *config, nib_error *err) {
    size_t k = out->rows[0].n_peaks;
    for (size_t i = 0; i < out->n_rows; i++) {
        snprintf(out->rows[i].peaks[k].isa, sizeof out->rows[i].peaks[k].isa, "%s", config->isa);
        out->rows[i].n_peaks = k + 1;
    }
    config->kind = NIB_METER_INT8;
    NIB_TRY(add_meter(b, config, err));
    NIB_TRY(add_cells(b, out, offsetof(nib_cli_limit, peaks[0].int8_macs) + k * sizeof(nib_cli_peak), 0, err));
    config->kind = NIB_METER_F32;
    NIB_TRY(add_meter(b, config, err));
    return add_cells(b, out, offsetof(nib_cli_limit, peaks[0].f32_macs) + k * sizeof(nib_cli_peak), 0, err);
}

static nib_status prepare(bench *b, nib_cli_limits *out, int n_threads, nib_error *err) {
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    config.n_threads = n_threads;
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) {
        config.n_bytes = (uint64_t)nib_cli_set_mib[i] << 20;
        NIB_TRY(add_meter(b, &config, err));
        NIB_TRY(add_cells(b, out, offsetof(nib_cli_limit, read_bytes[0]) + i * sizeof(double), i + 1 < NIB_CLI_N_SETS ? N_WARM : 0, err));
    }
    for (const char *const *isa = nib_isa_names(); *isa && out->rows[0].n_peaks < NIB_CLI_MAX_PEAKS; isa++) {
        config.isa = *isa;
        if (nib_isa_usable(*isa)) NIB_TRY(add_level(b, out, &config, err));
    }
    return NIB_OK;
}

static nib_status run_rounds(bench *b, nib_error *err) {
    cell *cells = b->cells.items;
    double start = nib_cli_now_ms();
    size_t n = 0;
    while (n < MAX_ROUNDS && (n < MIN_ROUNDS || nib_cli_now_ms() - start < BUDGET_MS)) {
        for (size_t i = 0; i < b->cells.n; i++) {
            if (nib_cli_interrupted()) return nib_fail(err, NIB_E_CANCELLED, "measuring was stopped");
            for (unsigned k = 0; k < cells[i].n_before; k++) nib_meter_run(cells[i].meter, cells[i].n_threads);
            cells[i].samples[n] = (double)cells[i].work / nib_meter_run(cells[i].meter, cells[i].n_threads);
        }
        n++;
    }
    for (size_t i = 0; i < b->cells.n; i++) {
        nib_cli_median(cells[i].samples, n); /* sorts */
        *cells[i].target = nib_cli_percentile(cells[i].samples, n, REACHED);
    }
    return NIB_OK;
}

static nib_status measure(nib_cli_limits *out, int n_threads, nib_error *err) {
    bench b = {0};
    nib_cli_signals_catch();
    choose_counts(out, n_threads);
    nib_status status = prepare(&b, out, n_threads, err);
    if (status == NIB_OK) status = run_rounds(&b, err);
    while (b.n_meters) nib_meter_free(b.meters[--b.n_meters]);
    nib_cli_list_free(&b.cells);
    return status;
}

#define FORM "3" /* of what is kept: raised when figures mean something else */

/* The file of this machine: another processor (an emulated one has the name of the real one, but other levels), other CPUs
 * allowed, another version of nib or form have another one. */
static void cache_name(const nib_cli_limits *limits, char *out, size_t size) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    const char *const parts[] = {limits->cpu, "\n", limits->allowed, "\n", nib_isa_names()[0], "\n", nib_version(), "\n", FORM};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const char *p = parts[i]; *p; p++) h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    snprintf(out, size, "limits-%016llx.json", (unsigned long long)h);
}

static bool load(nib_cli_limits *out, int n_threads) {
    char name[64];
    nib_cli_limits found = {0};
    cache_name(out, name, sizeof name);
    json_t *value = nib_cli_cache_load(name);
    /* What was kept must be of this very machine, not of one whose name hashes alike. */
    bool ok = value && nib_cli_limits_parse(&found, value) && !strcmp(found.cpu, out->cpu) &&
              !strcmp(found.allowed, out->allowed) && found.rows[found.n_rows - 1].n_threads >= n_threads;
    json_decref(value);
    if (!ok) {
        nib_cli_limits_free(&found);
        return false;
    }
    *out = found;
    out->is_cached = true;
    return true;
}

bool nib_cli_limits_save(const nib_cli_limits *limits) {
    char name[64];
    cache_name(limits, name, sizeof name);
    json_t *value = nib_cli_limits_json(limits);
    bool ok = nib_cli_cache_save(name, value);
    json_decref(value);
    return ok;
}

nib_status nib_cli_limits_get(nib_cli_limits *out, int n_threads, nib_cli_limits_how how, const nib_cli_term *term,
                              nib_error *err) {
    *out = (nib_cli_limits){0};
    nib_sys_cpu_model(out->cpu, sizeof out->cpu);
    nib_sys_cpus_allowed(out->allowed, sizeof out->allowed);
    if (n_threads <= 0) n_threads = nib_cpu_count(NULL);
    nib_cli_limits known = *out;
    if (load(&known, how == NIB_CLI_LIMITS_REFRESH ? 1 : n_threads) && how != NIB_CLI_LIMITS_REFRESH) {
        *out = known;
        return NIB_OK;
    }
    if (how == NIB_CLI_LIMITS_KNOWN) return NIB_OK;
    out->kernels = known.kernels; /* shares of the limits, whatever these are now */
    if (how == NIB_CLI_LIMITS_NEEDED) nib_cli_note(term, "measuring this machine once, about 3 s (nib limits shows it)");
    NIB_TRY(measure(out, n_threads, err));
    if (!nib_cli_limits_save(out)) nib_cli_note(term, "what was measured could not be kept in the cache");
    return NIB_OK;
}

void nib_cli_limits_free(nib_cli_limits *limits) {
    json_decref(limits->kernels);
    limits->kernels = NULL;
}

/* ---- questions */

static double between(double a, double b, double t) {
    return a + (b - a) * t;
}

nib_cli_limit nib_cli_limits_at(const nib_cli_limits *limits, int n_threads) {
    if (!limits->n_rows) return (nib_cli_limit){0};
    size_t i = 0;
    while (i + 1 < limits->n_rows && limits->rows[i].n_threads < n_threads) i++;
    nib_cli_limit out = limits->rows[i];
    if (i == 0 || out.n_threads <= n_threads) return out;
    const nib_cli_limit *low = &limits->rows[i - 1];
    double t = (double)(n_threads - low->n_threads) / (out.n_threads - low->n_threads);
    out.n_threads = n_threads;
    for (size_t k = 0; k < NIB_CLI_N_SETS; k++) out.read_bytes[k] = between(low->read_bytes[k], out.read_bytes[k], t);
    for (size_t k = 0; k < out.n_peaks && k < low->n_peaks; k++) {
        out.peaks[k].int8_macs = between(low->peaks[k].int8_macs, out.peaks[k].int8_macs, t);
        out.peaks[k].f32_macs = between(low->peaks[k].f32_macs, out.peaks[k].f32_macs, t);
    }
    return out;
}

double nib_cli_limit_read(const nib_cli_limit *limit, double set_bytes) {
    double mib = set_bytes / 0x1p20;
    if (mib <= nib_cli_set_mib[0]) return limit->read_bytes[0];
    for (size_t i = 1; i < NIB_CLI_N_SETS; i++)
        if (mib <= nib_cli_set_mib[i])
            return between(limit->read_bytes[i - 1], limit->read_bytes[i],
                           log2(mib / nib_cli_set_mib[i - 1]) / log2((double)nib_cli_set_mib[i] / nib_cli_set_mib[i - 1]));
    return limit->read_bytes[NIB_CLI_N_SETS - 1];
}

nib_cli_limit nib_cli_limit_of_set(const nib_cli_limit *limit, double set_bytes) {
    nib_cli_limit out = *limit;
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) out.read_bytes[i] = nib_cli_limit_read(limit, set_bytes);
    return out;
}

double nib_cli_limit_macs(const nib_cli_limit *limit, const char *isa, bool is_float) {
    for (size_t i = 0; i < limit->n_peaks; i++)
        if (!isa || !strcmp(limit->peaks[i].isa, isa))
            return is_float ? limit->peaks[i].f32_macs : limit->peaks[i].int8_macs;
    return 0;
}

bool nib_cli_type_is_float(const char *type) {
    return !strcmp(type, "F32") || !strcmp(type, "F16") || !strcmp(type, "BF16");
}

/* Bandwidth is what decoding wants, products are what prefill wants. */
static double score(const nib_cli_limit *row) {
    double read = row->read_bytes[NIB_CLI_N_SETS - 1];
    return sqrt(read * (row->n_peaks ? row->peaks[0].int8_macs : read));
}

int nib_cli_limits_best_threads(const nib_cli_limits *limits) {
    const double worth = 1.10; /* fewer threads must win clearly: a neighbour may have been there while it was measured */
    const nib_cli_limit *best = NULL;
    for (size_t i = limits->n_rows; i-- > 0;)
        if (!best || score(&limits->rows[i]) > worth * score(best)) best = &limits->rows[i];
    return best ? best->n_threads : 0;
}
