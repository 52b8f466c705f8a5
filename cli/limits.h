/* cli/limits.h - what this machine can do at most: bytes read and multiply-accumulates a second, by number of threads
 * and level. Measured through nib_meter in about three seconds and kept in a cache file of the user's; nib limits prints
 * them, and bench, trace and plan judge by them. */
#ifndef NIB_CLI_LIMITS_H
#define NIB_CLI_LIMITS_H

#include "json.h"
#include "options.h"
#include "term.h"

enum { NIB_CLI_MAX_PEAKS = 8, NIB_CLI_MAX_LIMITS = 16, NIB_CLI_N_SETS = 4 };

/* What is read again and again may stay in caches: MiB of the sets that are read; the last is memory for our purpose. */
extern const unsigned nib_cli_set_mib[NIB_CLI_N_SETS];

typedef struct nib_cli_peak { /* of a level; a second */
    char isa[16];
    double int8_macs, f32_macs;
} nib_cli_peak;

typedef struct nib_cli_limit { /* of all threads together; a second */
    int n_threads;
    double read_bytes[NIB_CLI_N_SETS];
    nib_cli_peak peaks[NIB_CLI_MAX_PEAKS]; /* best level first */
    size_t n_peaks;
} nib_cli_limit;

typedef struct nib_cli_limits {
    char cpu[128], allowed[128]; /* model, list of CPUs that this process may use: the machine that these hold for */
    nib_cli_limit rows[NIB_CLI_MAX_LIMITS]; /* by rising number of threads, from 1 on */
    size_t n_rows;
    json_t *kernels;             /* measured shares of kernels, by name: calibrate.c; NULL: none yet */
    bool is_cached;
} nib_cli_limits;

/* How much work to do for them. */
typedef enum nib_cli_limits_how {
    NIB_CLI_LIMITS_KNOWN,   /* take them from the cache; without one there are none (n_rows 0) */
    NIB_CLI_LIMITS_NEEDED,  /* measure them when there is no cache, and say so */
    NIB_CLI_LIMITS_REFRESH, /* measure them in any case */
} nib_cli_limits_how;

/* Up to `n_threads` threads, 0: nib_cpu_count(). What was measured is put into the cache; that this fails is a note. Free
 * *out in any case. */
nib_status nib_cli_limits_get(nib_cli_limits *out, int n_threads, nib_cli_limits_how how, const nib_cli_term *term,
                              nib_error *err);
void nib_cli_limits_free(nib_cli_limits *limits);
/* Writes the cache file; false when it cannot be written. */
bool nib_cli_limits_save(const nib_cli_limits *limits);

/* The limit of a number of threads, between the rows on a straight line; zeros when there are no rows. */
nib_cli_limit nib_cli_limits_at(const nib_cli_limits *limits, int n_threads);
/* How fast a set of so many bytes is read again and again; 0: not known. */
double nib_cli_limit_read(const nib_cli_limit *limit, double set_bytes);
/* The same limit for parts of a set: each is read as fast as the whole. */
nib_cli_limit nib_cli_limit_of_set(const nib_cli_limit *limit, double set_bytes);
/* The peak of a level for bytes or for floats; 0: not known. NULL isa: of the best level. */
double nib_cli_limit_macs(const nib_cli_limit *limit, const char *isa, bool is_float);
/* Weights that are floats meet activations that are floats; all others meet bytes (docs/ARCHITECTURE.md, numerics). */
bool nib_cli_type_is_float(const char *type);
/* The number of threads that gives most: bandwidth and arithmetic count the same, and fewer are better when it makes no
 * difference of 3 %. 0: not known. */
int nib_cli_limits_best_threads(const nib_cli_limits *limits);

/* limits_json.c: the form of the cache, of nib limits --json and of --machine FILE. */
json_t *nib_cli_limits_json(const nib_cli_limits *limits);
/* False when it is not of this form. */
bool nib_cli_limits_parse(nib_cli_limits *out, const json_t *value);
/* A machine that one need not own: what nib limits --json printed there (its most threads and best level count), or just
 * {"read_gb_s": 80, "int8_gmac_s": 2000, "f32_gmac_s": 500}. */
nib_status nib_cli_machine_read(nib_cli_limit *out, const char *path, nib_error *err);

#endif
