/* cpu/pack.c - the table of packed forms and the floating-point ones. Layouts: pack.h. */
#include "cpu/pack.h"

#include "cpu/pack_bits.h"

static const nib_cpu_pack_form *const forms[NIB_QUANT_COUNT] = {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &nib_cpu_pack_form_##name,
#include "quant/types.def"
#undef X
};

const nib_cpu_pack_form *nib_cpu_pack_form_of(nib_quant_id id) {
    return forms[id];
}

/* The operations of dequantize in the same order: one rounding each. */
void nib_cpu_pack_values(const nib_cpu_pack_form *form, const nib_cpu_pack_row *row, float *out, size_t n) {
    for (size_t k = 0; k < n; k++) {
        float q = (float)row->code[k];
        switch (form->class) {
        case NIB_PACK_32:
            out[k] = row->d[k / 32] * q;
            break;
        case NIB_PACK_32_MIN:
            out[k] = row->d[k / 32] * q + row->m[k / 32];
            break;
        case NIB_PACK_256:
            out[k] = row->d[0] * (float)row->scale[k / 16] * q;
            break;
        case NIB_PACK_256_MIN:
            out[k] = row->d[0] * (float)row->scale[k / 16] * q - row->m[0] * (float)row->min[k / 16];
            break;
        case NIB_PACK_FLOAT:
            break; /* needs no unpacking */
        }
    }
}

/* Floats have no chunks of 4: the 16 rows of a column stand together. Kernels stop at n_cols, so padding is never read.
 */

#define F32_COLS 16
#define F16_COLS 32

static void put_f32(void *unit, unsigned r, const void *blocks, unsigned n) {
    float *w = unit;
    const uint8_t *p = blocks;
    for (unsigned k = 0; k < n; k++) w[16 * k + r] = nib_f32_from_bits(pack_u32(p + 4 * k));
}

static void put_16(void *unit, unsigned r, const void *blocks, unsigned n) {
    uint16_t *w = unit;
    const uint8_t *p = blocks;
    for (unsigned k = 0; k < n; k++) w[16 * k + r] = pack_u16(p + 2 * k);
}

const nib_cpu_pack_form nib_cpu_pack_form_F32 = {NIB_PACK_FLOAT, NIB_ACT_F32, F32_COLS, F32_COLS * 64, put_f32, NULL};
const nib_cpu_pack_form nib_cpu_pack_form_F16 = {NIB_PACK_FLOAT, NIB_ACT_F32, F16_COLS, F16_COLS * 32, put_16, NULL};
const nib_cpu_pack_form nib_cpu_pack_form_BF16 = {NIB_PACK_FLOAT, NIB_ACT_F32, F16_COLS, F16_COLS * 32, put_16, NULL};
