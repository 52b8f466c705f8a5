/* cpu/matrix.c - packed matrices: sizes, packing, single rows. */
#include "cpu/matrix.h"

#include "base/status.h"
#include <string.h>

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

void nib_cpu_matrix_pack(const nib_cpu_matrix *m, uint32_t g0, uint32_t g1, const void *rows) {
    const nib_cpu_pack_form *form = m->form;
    size_t n_blocks = m->n_cols / m->type->block_size, row_bytes = n_blocks * m->type->block_bytes;
    unsigned per_unit = form->unit_cols / m->type->block_size;
    const uint8_t *src = rows;
    for (uint32_t g = g0; g < g1; g++, src += NIB_GROUP_ROWS * row_bytes) {
        uint8_t *unit = m->data + g * m->group_bytes;
        unsigned n_rows = nib_cpu_matrix_rows_of(m, g);
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
