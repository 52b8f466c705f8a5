/* decode/meter.c - the bounds of the machine, one run at a time: reading memory, multiplying in registers; and runs of
 * single kinds of steps (decode/probe.c). Called through nib.h by whoever takes the samples and their median.
 *
 * Work is cut into pieces that threads claim, as the engine's own work is: a thread that loses its CPU for a moment does
 * not hold up the others. */
#include "decode/meter.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "base/team.h"
#include "cpu/fetch.h"
#include "cpu/kern/mm.h"

#include <stdatomic.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECE_SECONDS 100e-6
#define PIECES_PER_THREAD 24 /* of arithmetic: 2.4 ms */
#define MOST_THREADS_TIMES 8 /* with more threads a run gets shorter */

struct nib_meter {
    nib_meter_kind kind;
    int n_threads;
    nib_team *team;
    unsigned char *memory;
    size_t n_bytes, n_pieces;
    void (*multiply)(size_t n_rounds);
    size_t n_rounds; /* of a piece */
    uint64_t macs;
    atomic_size_t claimed;
    nib_decode_probe probe;
};

/* One word of each line, and lines ahead asked for as the kernels do: the lines travel whole, and the core has nothing else to do.
 * Adding up all of their words takes a quarter longer. */
static void read_piece(const unsigned char *p, size_t n_bytes) {
    const uint64_t *w = (const uint64_t *)(const void *)p;
    uint64_t sum = 0;
    for (size_t i = 0; i < n_bytes / sizeof *w; i += 8) {
        nib_cpu_fetch_in_order(w + i + 256);
        sum ^= w[i];
    }
    __asm__ volatile("" ::"r"(sum));
}

static void work(void *arg, int index, int n_threads) {
    (void)index;
    (void)n_threads;
    nib_meter *m = arg;
    for (size_t i; (i = atomic_fetch_add_explicit(&m->claimed, 1, memory_order_relaxed)) < m->n_pieces;)
        if (m->kind == NIB_METER_READ) read_piece(m->memory + i * PIECE_BYTES, PIECE_BYTES);
        else m->multiply(m->n_rounds);
}

static void touch(void *arg, int index, int n_threads) {
    nib_meter *m = arg;
    for (size_t i = (size_t)index; i < m->n_pieces; i += (size_t)n_threads)
        memset(m->memory + i * PIECE_BYTES, 1, PIECE_BYTES);
}

static void wake(void *arg, int index, int n_threads) {
    (void)arg;
    (void)index;
    (void)n_threads;
}

static nib_status prepare_read(nib_meter *m, uint64_t n_bytes, nib_error *err) {
    uint64_t spare = nib_sys_free_memory() / 2; /* measuring shall not push others out of memory */
    m->n_pieces = (size_t)((n_bytes < spare ? n_bytes : spare) / PIECE_BYTES);
    if (m->n_pieces < 1) return nib_fail(err, NIB_E_NOMEM, "no memory is left to measure with");
    m->n_bytes = m->n_pieces * PIECE_BYTES;
    m->memory = nib_pages_new(m->n_bytes);
    if (!m->memory) return nib_fail_nomem(err, m->n_bytes, "measuring how fast memory is read");
    nib_team_run(m->team, touch, m);
    return NIB_OK;
}

static nib_status prepare_multiply(nib_meter *m, const nib_cpu_isa *isa, nib_error *err) {
    const nib_cpu_peak *peak = isa->mm->peak;
    if (!peak) return nib_fail(err, NIB_E_UNSUPPORTED, "the peak of the level %s is not known", isa->name);
    bool is_int8 = m->kind == NIB_METER_INT8;
    m->multiply = is_int8 ? peak->int8 : peak->f32;
    m->n_rounds = 256;
    for (double seconds = 0; seconds < PIECE_SECONDS; m->n_rounds *= 2) {
        double start = nib_sys_now();
        m->multiply(m->n_rounds);
        seconds = nib_sys_now() - start;
    }
    int times = m->n_threads < MOST_THREADS_TIMES ? m->n_threads : MOST_THREADS_TIMES;
    m->n_pieces = PIECES_PER_THREAD * (size_t)times;
    m->macs = (uint64_t)m->n_pieces * m->n_rounds * (is_int8 ? peak->int8_macs : peak->f32_macs);
    return NIB_OK;
}

static nib_status check_config(const nib_meter_config *c, nib_error *err) {
    if (c->size != sizeof *c)
        return nib_fail(err, NIB_E_ARG, "nib_meter_config is %zu bytes, this library expects %zu", c->size, sizeof *c);
    if (c->n_threads < 0 || c->n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "n_threads is %d, expected 0 to 1024", c->n_threads);
    if (c->kind > NIB_METER_STEP) return nib_fail(err, NIB_E_ARG, "kind is %d, expected 0 to %d", (int)c->kind, NIB_METER_STEP);
    if (c->kind == NIB_METER_STEP && !c->step) return nib_fail(err, NIB_E_ARG, "a meter of steps needs a step");
    return NIB_OK;
}

nib_status nib_meter_new(nib_meter **out, const nib_meter_config *config, nib_error *err) {
    static const nib_meter_config defaults = NIB_METER_CONFIG_INIT;
    const nib_cpu_isa *isa;
    nib_status status;
    *out = NULL;
    if (!config) config = &defaults;
    NIB_TRY(check_config(config, err));
    NIB_TRY(nib_cpu_isa_find(&isa, config->isa, err));
    nib_meter_config c = *config;
    if (c.n_threads == 0) c.n_threads = nib_cpu_count(NULL);
    nib_meter *m = nib_calloc(1, sizeof *m);
    if (!m) return nib_fail_nomem(err, sizeof *m, "a meter");
    m->kind = c.kind;
    m->n_threads = c.n_threads;
    if (c.kind == NIB_METER_STEP) {
        NIB_TRY_OUT(nib_decode_probe_init(&m->probe, &c, isa, err));
    } else {
        NIB_TRY_OUT(nib_team_new(&m->team, c.n_threads, nib_cpu_count(NULL), err));
        NIB_TRY_OUT(c.kind == NIB_METER_READ ? prepare_read(m, c.n_bytes, err) : prepare_multiply(m, isa, err));
    }
    *out = m;
    m = NULL;
out:
    nib_meter_free(m);
    return status;
}

void nib_meter_free(nib_meter *m) {
    if (!m) return;
    nib_decode_probe_fini(&m->probe);
    nib_team_free(m->team);
    nib_pages_free(m->memory, m->n_bytes);
    nib_free(m);
}

double nib_meter_run(nib_meter *m, int n_threads) {
    int n = n_threads < 1 ? 1 : n_threads > m->n_threads ? m->n_threads : n_threads;
    if (m->kind == NIB_METER_STEP) {
        nib_cpu_limit_threads(m->probe.cpu, n);
        double start = nib_sys_now();
        (void)nib_cpu_run(m->probe.cpu, &m->probe.batch, NULL); /* no step of a probe can fail */
        return nib_sys_now() - start;
    }
    nib_team_limit(m->team, n);
    atomic_store(&m->claimed, 0);
    nib_team_run(m->team, wake, m);
    double start = nib_sys_now();
    nib_team_run(m->team, work, m);
    return nib_sys_now() - start;
}

uint64_t nib_meter_bytes(const nib_meter *m) {
    return m->kind == NIB_METER_STEP ? m->probe.bytes : m->n_bytes;
}

uint64_t nib_meter_macs(const nib_meter *m) {
    return m->kind == NIB_METER_STEP ? m->probe.macs : m->macs;
}

uint64_t nib_meter_steps(const nib_meter *m) {
    return m->kind == NIB_METER_STEP ? m->probe.n_steps : 0;
}
