/* bench/bench_matrix.c - speed of the matrix kernels: bench_matrix [-i ISA] [-k COLUMNS] [-r ROUNDS] [-m MIB] [TYPE …]
 *
 * One thread. For every type: packing in GB/s of file bytes; GMAC/s for 8, 128 and 512 tokens on 8 MiB of weights; one
 * token on MIB (192) of weights in GB/s, and what share that is of a plain read of the same bytes in the same round.
 * Medians over rounds, the best in brackets; levels and sizes alternate within a round, so that a noisy second hits all
 * of them. */
#include "base/half.h"
#include "base/mem.h"
#include "cpu/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_SIZES = 4, MAX_ROUNDS = 32, MAX_LEVELS = 8 };
static const uint32_t sizes[N_SIZES] = {1, 8, 128, 512};

/* CPU time of this thread: other programs on the machine do not count, only the bandwidth that they take. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and best. */
static void report(const char *what, double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, compare);
    printf(" %s %6.1f (%5.1f)", what, v[n / 2], v[n - 1]);
}

static uint32_t rnd(void) {
    static uint64_t s = 88172645463325252u;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 32);
}

/* Sums 64-bit words in eight chains: as fast as this core reads. */
static uint64_t read_all(const uint8_t *p, size_t n) {
    const uint64_t *w = (const uint64_t *)(const void *)p;
    uint64_t s[8] = {0};
    for (size_t i = 0; i + 8 <= n / 8; i += 8) {
        __builtin_prefetch(w + i + 256);
        for (size_t j = 0; j < 8; j++) s[j] += w[i + j];
    }
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static void *must(void *p) {
    if (!p) {
        fprintf(stderr, "bench_matrix: out of memory\n");
        exit(1);
    }
    return p;
}

/* A matrix of about n_bytes packed; random codes, scales that stay finite. Returns seconds for packing. */
static double make(nib_cpu_matrix *m, const nib_quant_type *type, uint32_t n_cols, size_t n_bytes) {
    nib_error err;
    if (nib_cpu_matrix_init(m, type, 16, n_cols, &err) != NIB_OK) {
        fprintf(stderr, "bench_matrix: %s\n", err.message);
        exit(1);
    }
    uint32_t n_groups = (uint32_t)(n_bytes / m->group_bytes);
    nib_cpu_matrix_init(m, type, 16 * (n_groups ? n_groups : 1), n_cols, &err);
    m->data = must(nib_pages_new(nib_cpu_matrix_bytes(m)));
    size_t row = n_cols / type->block_size * type->block_bytes, n = row * m->n_rows;
    uint8_t *rows = must(nib_alloc(n, 1));
    /* No float of such bytes is NaN or subnormal, which would be slow. */
    for (size_t i = 0; i < n; i++) rows[i] = (uint8_t)((rnd() & 0x0f) | 0x30);
    memset(m->data, 1, nib_cpu_matrix_bytes(m));
    double t = now();
    nib_cpu_matrix_pack(m, 0, m->n_groups, rows);
    t = now() - t;
    nib_free(rows);
    return (double)n / t * 1e-9;
}

typedef struct setup {
    const nib_cpu_isa *isa;
    nib_cpu_matrix small, large;
    float *x, *out;
    void *memory, *scratch;
} setup;

/* One run with n tokens: GMAC/s, or GB/s for one token. */
static double run(const setup *s, uint32_t n) {
    const nib_cpu_matrix *m = n == 1 ? &s->large : &s->small;
    nib_cpu_act act;
    nib_cpu_act_bind(&act, s->memory, s->x, m->n_cols, n, m->n_cols, m->act_form);
    nib_cpu_act_quantize(s->isa, &act, 0, n);
    int times = n == 8 ? 8 : 1;
    const nib_cpu_product p = {s->isa, m, &act, s->out, m->n_rows, s->scratch};
    double t = now();
    for (int i = 0; i < times; i++) nib_cpu_product_run(&p, 0, m->n_groups);
    t = (now() - t) / times;
    if (n == 1) return (double)nib_cpu_matrix_bytes(m) / t * 1e-9;
    return (double)m->n_rows * m->n_cols * n / t * 1e-9;
}

static void bench_type(const nib_quant_type *type, uint32_t n_cols, int rounds, size_t n_bytes, const char *only) {
    setup s;
    const nib_cpu_isa *levels[MAX_LEVELS];
    int n_levels = 0;
    for (const char *const *name = nib_isa_names(); *name; name++)
        if (only ? !strcmp(*name, only) : nib_isa_usable(*name) && strcmp(*name, "scalar"))
            n_levels += nib_cpu_isa_find(&levels[n_levels], *name, NULL) == NIB_OK;
    make(&s.small, type, n_cols, 8u << 20);
    double pack = make(&s.large, type, n_cols, n_bytes);
    uint32_t rows = s.large.n_rows > s.small.n_rows * 512 ? s.large.n_rows : s.small.n_rows * 512;
    s.x = must(nib_alloc((size_t)512 * n_cols, sizeof(float)));
    for (size_t i = 0; i < (size_t)512 * n_cols; i++) s.x[i] = (float)(rnd() & 0xffff) / 32768.0f - 1.0f;
    s.out = must(nib_pages_new(rows * sizeof(float)));
    size_t act_bytes = nib_cpu_act_bytes(512, n_cols, s.small.act_form);
    s.memory = must(nib_pages_new(act_bytes));
    size_t scratch_bytes = 0;
    for (int l = 0; l < n_levels; l++) {
        size_t n = nib_cpu_product_scratch(levels[l], &s.small, 512);
        scratch_bytes = n > scratch_bytes ? n : scratch_bytes;
    }
    s.scratch = must(nib_pages_new(scratch_bytes + 1));
    static double v[MAX_LEVELS][N_SIZES][MAX_ROUNDS], share[MAX_LEVELS][MAX_ROUNDS];
    volatile uint64_t sink;
    for (int r = -1; r < rounds; r++) /* one round to warm up */
        for (int l = 0; l < n_levels; l++) {
            s.isa = levels[l];
            double t = now();
            sink = read_all(s.large.data, nib_cpu_matrix_bytes(&s.large));
            double read = (double)nib_cpu_matrix_bytes(&s.large) / (now() - t) * 1e-9;
            for (int i = 0; i < N_SIZES; i++) {
                double x = run(&s, sizes[i]);
                if (r >= 0) v[l][i][r] = x;
                if (r >= 0 && i == 0) share[l][r] = 100 * x / read;
            }
        }
    (void)sink;
    for (int l = 0; l < n_levels; l++) {
        printf("%-7s %-8s pack %4.1f GB/s | N 1", type->name, levels[l]->name, pack);
        report("GB/s", v[l][0], rounds);
        report("% of a read", share[l], rounds);
        printf(" | GMAC/s");
        report("N 8", v[l][1], rounds);
        report("N 128", v[l][2], rounds);
        report("N 512", v[l][3], rounds);
        printf("\n");
    }
    fflush(stdout);
    nib_pages_free(s.scratch, scratch_bytes + 1);
    nib_pages_free(s.memory, act_bytes);
    nib_pages_free(s.out, rows * sizeof(float));
    nib_free(s.x);
    nib_pages_free(s.small.data, nib_cpu_matrix_bytes(&s.small));
    nib_pages_free(s.large.data, nib_cpu_matrix_bytes(&s.large));
}

int main(int argc, char **argv) {
    const char *isa = NULL;
    int rounds = 5, i = 1;
    uint32_t n_cols = 1536;
    size_t mib = 192;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (argv[i][1] == 'i') isa = argv[i + 1];
        if (argv[i][1] == 'k') n_cols = (uint32_t)atoi(argv[i + 1]);
        if (argv[i][1] == 'm') mib = (size_t)atoi(argv[i + 1]);
        if (argv[i][1] == 'r') rounds = atoi(argv[i + 1]);
    }
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = 5;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        bool want = i >= argc;
        for (int j = i; j < argc; j++) want |= !strcmp(argv[j], type->name);
        if (want && n_cols % type->block_size == 0) bench_type(type, n_cols, rounds, mib << 20, isa);
    }
    return 0;
}
