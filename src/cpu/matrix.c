/* cpu/matrix.c - packed matrices: sizes, packing, single rows, and the loops of the product around the kernels.
 *
 * The product goes through the groups in chunks that stay in the L2 cache while every panel of tokens passes them, so
 * that memory is read once. The kernels, one per type and level, are behind isa->mm. */
#include "cpu/matrix.h"

#include "base/status.h"
#include "cpu/kern/mm.h"

#include <string.h>

/* Weights of a chunk: with a panel of activations and the chunk that is fetched next it fits 1 MiB of L2. */
#define CHUNK_BYTES (256u << 10)
#define LINE 64

nib_status nib_cpu_matrix_init(nib_cpu_matrix *m, const nib_quant_type *type, uint32_t n_rows, uint32_t n_cols,
                               nib_error *err) {
    if (n_rows == 0 || n_cols == 0 || n_cols % type->block_size != 0)
        return nib_fail(err, NIB_E_FORMAT, "a %s matrix of %u rows and %u columns: columns come in blocks of %u",
                        type->name, n_rows, n_cols, type->block_size);
    *m = (nib_cpu_matrix){.type = type, .form = nib_cpu_pack_form_of(type->id), .n_rows = n_rows, .n_cols = n_cols};
    /* At most 2^28 groups of 2^32 columns of 64 bytes: 2^66, so the product is checked. */
    uint64_t n_units = ((uint64_t)n_cols + m->form->unit_cols - 1) / m->form->unit_cols;
    uint64_t group_bytes = n_units * m->form->unit_bytes;
    m->n_groups = n_rows / NIB_GROUP_ROWS + (n_rows % NIB_GROUP_ROWS != 0);
    if (group_bytes > PTRDIFF_MAX / m->n_groups)
        return nib_fail(err, NIB_E_LIMIT, "a %s matrix of %u rows and %u columns does not fit memory", type->name,
                        n_rows, n_cols);
    m->group_bytes = (size_t)group_bytes;
    m->act_form = m->form->act_form;
    return NIB_OK;
}

size_t nib_cpu_matrix_bytes(const nib_cpu_matrix *m) {
    return m->n_groups * m->group_bytes;
}

/* Rows of group g that exist. */
static unsigned rows_of(const nib_cpu_matrix *m, uint32_t g) {
    uint32_t rest = m->n_rows - g * NIB_GROUP_ROWS;
    return rest < NIB_GROUP_ROWS ? rest : NIB_GROUP_ROWS;
}

void nib_cpu_matrix_pack(const nib_cpu_matrix *m, uint32_t g0, uint32_t g1, const void *rows) {
    const nib_cpu_pack_form *form = m->form;
    size_t n_blocks = m->n_cols / m->type->block_size, row_bytes = n_blocks * m->type->block_bytes;
    unsigned per_unit = form->unit_cols / m->type->block_size;
    const uint8_t *src = rows;
    for (uint32_t g = g0; g < g1; g++, src += NIB_GROUP_ROWS * row_bytes) {
        uint8_t *unit = m->data + g * m->group_bytes;
        unsigned n_rows = rows_of(m, g);
        for (size_t b = 0; b < n_blocks; b += per_unit, unit += form->unit_bytes) {
            unsigned n = n_blocks - b < per_unit ? (unsigned)(n_blocks - b) : per_unit;
            if (n_rows < NIB_GROUP_ROWS || n < per_unit) memset(unit, 0, form->unit_bytes);
            const uint8_t *block = src + b * m->type->block_bytes;
            for (unsigned r = 0; r < n_rows; r++, block += row_bytes) form->put(unit, r, block, n);
        }
    }
}

/* A row of floats: takes it back out of its lines and leaves the conversion to the type. */
static void float_row(const nib_cpu_matrix *m, const uint8_t *group, unsigned r, float *out) {
    size_t size = m->type->block_bytes;
    for (size_t k = 0; k < m->n_cols; k++) {
        uint32_t le = 0;
        uint8_t bytes[4];
        if (size == 2) {
            uint16_t h;
            memcpy(&h, group + (NIB_GROUP_ROWS * k + r) * 2, 2);
            le = h;
        } else {
            memcpy(&le, group + (NIB_GROUP_ROWS * k + r) * 4, 4);
        }
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(le >> 8 * i);
        m->type->dequantize(bytes, out + k, 1);
    }
}

void nib_cpu_matrix_row(const nib_cpu_matrix *m, uint32_t row, float *out) {
    const nib_cpu_pack_form *form = m->form;
    const uint8_t *unit = m->data + row / NIB_GROUP_ROWS * m->group_bytes;
    unsigned r = row % NIB_GROUP_ROWS;
    if (form->class == NIB_PACK_FLOAT) {
        float_row(m, unit, r, out);
        return;
    }
    nib_cpu_pack_row buf;
    memset(&buf, 0, sizeof buf);
    for (size_t k = 0; k < m->n_cols; k += form->unit_cols, unit += form->unit_bytes) {
        size_t n = m->n_cols - k < form->unit_cols ? m->n_cols - k : form->unit_cols;
        form->get(unit, r, &buf);
        nib_cpu_pack_values(form, &buf, out + k, n);
    }
}

/* Memory that the next calls will need: fetched into L2 a little at a time, between kernel calls. */
typedef struct fetch {
    const uint8_t *at, *end;
    size_t step;
} fetch;

/* The chunk of groups c … e-1 while its forerunner is multiplied by n_calls kernel calls. */
static fetch fetch_begin(const nib_cpu_matrix *m, uint32_t c, uint32_t e, size_t n_calls) {
    fetch f = {m->data + c * m->group_bytes, m->data + e * m->group_bytes, 0};
    f.step = ((size_t)(f.end - f.at) / n_calls + LINE) / LINE * LINE;
    return f;
}

static void fetch_some(fetch *f) {
    for (size_t i = 0; i < f->step && f->at < f->end; i += LINE, f->at += LINE) __builtin_prefetch(f->at, 0, 2);
}

/* One group times n tokens from t0, into the output. */
static void multiply(const nib_cpu_mm_kernel *kernel, const nib_cpu_matrix *m, const nib_cpu_act *act, uint32_t g,
                     uint32_t t0, uint32_t n, float *out, size_t ldo) {
    _Alignas(LINE) float tile[NIB_ACT_PANEL * NIB_GROUP_ROWS];
    kernel->mul(m->data + g * m->group_bytes, act, t0, n, tile);
    size_t row = (size_t)g * NIB_GROUP_ROWS, bytes = rows_of(m, g) * sizeof *out;
    for (uint32_t c = 0; c < n; c++) memcpy(out + (t0 + c) * ldo + row, tile + NIB_GROUP_ROWS * c, bytes);
}

void nib_cpu_matmul(const nib_cpu_isa *isa, const nib_cpu_matrix *m, const nib_cpu_act *act, uint32_t g0, uint32_t g1,
                    float *out, size_t ldo) {
    const nib_cpu_mm_kernel *kernel = isa->mm->kernel[m->type->id];
    uint32_t step = kernel->max_tok, n_tok = act->n_tok;
    uint32_t chunk = m->group_bytes < CHUNK_BYTES ? (uint32_t)(CHUNK_BYTES / m->group_bytes) : 1;
    if (n_tok <= step) chunk = g1 - g0; /* every group is read once anyway */
    for (uint32_t c = g0; c < g1; c += chunk) {
        uint32_t e = g1 - c > chunk ? c + chunk : g1, after = g1 - e > chunk ? e + chunk : g1;
        fetch next = fetch_begin(m, e, after, (size_t)(e - c) * ((n_tok + step - 1) / step));
        for (uint32_t t = 0; t < n_tok; t += step)
            for (uint32_t g = c; g < e; g++) {
                fetch_some(&next);
                multiply(kernel, m, act, g, t, n_tok - t < step ? n_tok - t : step, out, ldo);
            }
    }
}
