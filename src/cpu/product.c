/* cpu/product.c - the loops of a matrix product around the kernels, one per type and level, behind isa->mm.
 *
 * The groups pass in chunks that stay in the L2 cache while every panel of tokens meets them, so that memory is read
 * once. Where a level has a matrix unit (cpu/kern/mm.h, spread) and there are tokens enough, a slice of columns of a
 * chunk is first spread into scratch, and accumulators wait in scratch between slices; the order of additions is the
 * same. */
#include "cpu/product.h"

#include "cpu/kern/mm.h"

#include <string.h>

/* Weights of a chunk: with a panel of activations and the chunk that is fetched next it fits 1 MiB of L2. */
#define CHUNK_BYTES (256u << 10)
#define LINE 64

/* Spread products: groups of a chunk, columns of a slice, tokens whose accumulators are held. 8 groups of 1024 columns in
 * at most 2 bytes a weight are 256 KiB, the activations of 512 tokens 512 KiB, accumulators 256 KiB. */
#define SPREAD_GROUPS 8
#define SPREAD_COLS 1024
#define SPREAD_TOK 512

/* Memory that the next calls will need: fetched into L2 a little at a time, between kernel calls. */
typedef struct fetch {
    const uint8_t *at, *end;
    size_t step;
} fetch;

/* The chunk of groups c … e-1 while its forerunner is multiplied by n_calls kernel calls. */
static fetch fetch_begin(const nib_cpu_matrix *m, uint32_t c, uint32_t e, size_t n_calls) {
    fetch f = {m->data + c * m->group_bytes, m->data + e * m->group_bytes, 0};
    if (c == e) return f;
    f.step = ((size_t)(f.end - f.at) / n_calls + LINE) / LINE * LINE;
    return f;
}

static void fetch_some(fetch *f, size_t n_calls) {
    for (size_t i = 0; i < n_calls * f->step && f->at < f->end; i += LINE, f->at += LINE) __builtin_prefetch(f->at, 0, 2);
}

/* One group's tile of sums for n tokens from t, into the output. */
static void store(const nib_cpu_product *p, uint32_t g, uint32_t t, uint32_t n, const float *tile) {
    enum { ROW = NIB_GROUP_ROWS * sizeof *p->out };
    size_t bytes = nib_cpu_matrix_rows_of(p->m, g) * sizeof *p->out;
    float *out = p->out + t * p->ldo + (size_t)(g - p->first_group) * NIB_GROUP_ROWS;
    if (bytes == ROW) /* a length that is known is copied in registers */
        for (uint32_t c = 0; c < n; c++) memcpy(out + c * p->ldo, tile + NIB_GROUP_ROWS * c, ROW);
    else
        for (uint32_t c = 0; c < n; c++) memcpy(out + c * p->ldo, tile + NIB_GROUP_ROWS * c, bytes);
}

/* Group g times n tokens from t. */
static void multiply(const nib_cpu_product *p, const nib_cpu_mm_kernel *kernel, uint32_t g, uint32_t t, uint32_t n) {
    _Alignas(LINE) float tile[NIB_ACT_PANEL * NIB_GROUP_ROWS];
    for (uint32_t end = t + n; t < end; t += kernel->max_tok) {
        uint32_t n_now = end - t < kernel->max_tok ? end - t : kernel->max_tok;
        kernel->mul(p->m->data + g * p->m->group_bytes, p->act, t, n_now, tile);
        store(p, g, t, n_now, tile);
    }
}

/* The same for n_wide groups from g. */
static void multiply_wide(const nib_cpu_product *p, const nib_cpu_mm_kernel *kernel, uint32_t g, uint32_t t, uint32_t n) {
    _Alignas(LINE) float tiles[NIB_MM_WIDE * NIB_GROUP_ROWS];
    kernel->mul_wide(p->m->data + g * p->m->group_bytes, p->act, t, n, tiles);
    for (uint32_t i = 0; i < kernel->n_wide; i++) store(p, g + i, t, n, tiles + i * kernel->wide_tok * NIB_GROUP_ROWS);
}

/* Tokens that meet a group together, of those that are left: more than max_tok where the wide kernel takes them. */
static uint32_t step_of(const nib_cpu_mm_kernel *kernel, uint32_t n_left) {
    uint32_t most = kernel->max_tok;
    if (kernel->mul_wide && n_left >= 2 * most) most = n_left < kernel->wide_tok ? n_left / most * most : kernel->wide_tok;
    return n_left < most ? n_left : most;
}

static void run_packed(const nib_cpu_product *p, uint32_t g0, uint32_t g1) {
    const nib_cpu_matrix *m = p->m;
    const nib_cpu_mm_kernel *kernel = p->isa->mm->kernel[m->type->id];
    uint32_t n_tok = p->act->n_tok, step = step_of(kernel, n_tok);
    uint32_t chunk = m->group_bytes < CHUNK_BYTES ? (uint32_t)(CHUNK_BYTES / m->group_bytes) : 1;
    if (step > kernel->max_tok) chunk = (chunk + kernel->n_wide - 1) / kernel->n_wide * kernel->n_wide;
    if (n_tok <= kernel->max_tok) chunk = g1 - g0; /* every group is read once anyway */
    for (uint32_t c = g0; c < g1; c += chunk) {
        uint32_t e = g1 - c > chunk ? c + chunk : g1, after = g1 - e > chunk ? e + chunk : g1;
        fetch next = fetch_begin(m, e, after, (size_t)(e - c) * ((n_tok + step - 1) / step));
        for (uint32_t t = 0, n_now; t < n_tok; t += n_now) {
            n_now = step_of(kernel, n_tok - t);
            for (uint32_t g = c, n_groups; g < e; g += n_groups) {
                n_groups = n_now > kernel->max_tok && e - g >= kernel->n_wide ? kernel->n_wide : 1;
                fetch_some(&next, n_groups);
                if (n_groups > 1) multiply_wide(p, kernel, g, t, n_now);
                else multiply(p, kernel, g, t, n_now);
            }
        }
    }
}

/* ---- through spread weights */

static const nib_cpu_mm_spread *spread_of(const nib_cpu_isa *isa, const nib_cpu_matrix *m) {
    return isa->mm->spread ? isa->mm->spread[m->type->id] : NULL;
}

static size_t padded_cols(const nib_cpu_matrix *m) {
    return m->group_bytes / m->form->unit_bytes * m->form->unit_cols;
}

static size_t slice_bytes(const nib_cpu_mm_spread *spread, const nib_cpu_matrix *m) {
    size_t cols = padded_cols(m);
    return spread->bytes(cols < SPREAD_COLS ? cols : SPREAD_COLS);
}

size_t nib_cpu_product_scratch(const nib_cpu_isa *isa, const nib_cpu_matrix *m, uint32_t n_tok) {
    const nib_cpu_mm_spread *spread = spread_of(isa, m);
    if (!spread || n_tok < spread->min_tok) return 0;
    size_t tok = n_tok < SPREAD_TOK ? (n_tok + spread->max_tok - 1) / spread->max_tok * spread->max_tok : SPREAD_TOK;
    return SPREAD_GROUPS * (slice_bytes(spread, m) + tok * NIB_GROUP_ROWS * sizeof(float));
}

/* Groups c … e-1 times tokens t0 … t1-1. */
static void run_chunk(const nib_cpu_product *p, const nib_cpu_mm_spread *spread, uint32_t c, uint32_t e,
                      const uint32_t tok[2]) {
    const nib_cpu_matrix *m = p->m;
    size_t bytes = slice_bytes(spread, m), cols = padded_cols(m);
    uint8_t *weights = p->scratch;
    float *sums = (float *)(void *)(weights + SPREAD_GROUPS * bytes);
    uint32_t step = spread->max_tok;
    for (size_t k = 0; k < cols; k += SPREAD_COLS) {
        size_t k1 = cols - k < SPREAD_COLS ? cols : k + SPREAD_COLS;
        for (uint32_t g = c; g < e; g++) {
            const uint8_t *units = m->data + g * m->group_bytes + k / m->form->unit_cols * m->form->unit_bytes;
            spread->spread(units, (k1 - k), weights + (g - c) * bytes);
        }
        float *tile = sums;
        for (uint32_t t = tok[0]; t < tok[1]; t += step)
            for (uint32_t g = c; g < e; g++, tile += step * NIB_GROUP_ROWS) {
                uint32_t n = tok[1] - t < step ? tok[1] - t : step;
                spread->mul(weights + (g - c) * bytes, p->act, (nib_cpu_mm_range){t, n, k, k1}, tile);
                if (k1 == cols) store(p, g, t, n, tile);
            }
    }
}

static void run_spread(const nib_cpu_product *p, const nib_cpu_mm_spread *spread, uint32_t g0, uint32_t g1) {
    uint32_t n_tok = p->act->n_tok;
    spread->begin();
    for (uint32_t c = g0; c < g1; c += SPREAD_GROUPS) {
        uint32_t e = g1 - c > SPREAD_GROUPS ? c + SPREAD_GROUPS : g1;
        for (uint32_t t = 0; t < n_tok; t += SPREAD_TOK)
            run_chunk(p, spread, c, e, (const uint32_t[2]){t, n_tok - t < SPREAD_TOK ? n_tok : t + SPREAD_TOK});
    }
    spread->end();
}

void nib_cpu_product_run(const nib_cpu_product *p, uint32_t g0, uint32_t g1) {
    const nib_cpu_mm_spread *spread = spread_of(p->isa, p->m);
    if (spread && p->act->n_tok >= spread->min_tok)
        run_spread(p, spread, g0, g1);
    else
        run_packed(p, g0, g1);
}
