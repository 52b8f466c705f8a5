/* cpu/pack_256.c - packed forms of the types with super-blocks of 256 weights. Layouts: pack.h; blocks: quant/. */
#include "cpu/pack_bits.h"
#include "quant/iq4.h"
#include "quant/kquant.h"

/* Block j (of 8) of 32 columns: half h = j / 4 and part i = j % 4 of it, as the planes of Q2_K, Q3_K and Q6_K count. */

/* ---- Q2_K */

static void put_q2_k(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_q2_k *u = unit;
    const nib_quant_q2_k *b = blocks;
    u->d[r] = pack_u16(b->d);
    u->m[r] = pack_u16(b->dmin);
    for (unsigned g = 0; g < 16; g++) u->sm[g][r] = b->scales[g];
    for (unsigned j = 0; j < 8; j++) pack_pairs(u->qs[j], r, b->qs + j / 4 * 32, j % 4 * 2);
}

static void get_q2_k(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q2_k *u = unit;
    row->d[0] = nib_f16_to_f32(u->d[r]);
    row->m[0] = nib_f16_to_f32(u->m[r]);
    for (unsigned g = 0; g < 16; g++) {
        row->scale[g] = u->sm[g][r] & 15;
        row->min[g] = (int8_t)(u->sm[g][r] >> 4);
    }
    for (unsigned k = 0; k < 256; k++) row->code[k] = (int8_t)pack_pair_at(u->qs[k / 32], r, k % 32);
}

/* ---- Q3_K */

static void put_q3_k(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_q3_k *u = unit;
    const nib_quant_q3_k *b = blocks;
    int8_t scale[16];
    nib_quant_kquant_scales3(b->scales, scale);
    u->d[r] = nib_f16_to_f32(pack_u16(b->d));
    for (unsigned g = 0; g < 16; g++) u->scale[g][r] = scale[g];
    for (unsigned j = 0; j < 8; j++) {
        pack_pairs(u->b[j].qs, r, b->qs + j / 4 * 32, j % 4 * 2);
        pack_ones(u->b[j].qh, r, b->hmask, j);
    }
}

static void get_q3_k(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q3_k *u = unit;
    row->d[0] = u->d[r];
    for (unsigned g = 0; g < 16; g++) row->scale[g] = u->scale[g][r];
    for (unsigned k = 0; k < 256; k++) {
        int high = pack_one_at(u->b[k / 32].qh, r, k % 32);
        row->code[k] = (int8_t)((pack_pair_at(u->b[k / 32].qs, r, k % 32) | high << 2) - 4);
    }
}

/* ---- Q4_K, Q5_K */

static void get_scales(const uint8_t sm[12][16], unsigned r, nib_cpu_pack_row *row) {
    uint8_t packed[12], scale[8], min[8];
    for (unsigned p = 0; p < 12; p++) packed[p] = sm[p][r];
    nib_quant_kquant_scales(packed, scale, min);
    for (unsigned g = 0; g < 16; g++) {
        row->scale[g] = (int8_t)scale[g / 2];
        row->min[g] = (int8_t)min[g / 2];
    }
}

static void put_q4_k(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_q4_k *u = unit;
    const nib_quant_q4_k *b = blocks;
    u->d[r] = pack_u16(b->d);
    u->m[r] = pack_u16(b->dmin);
    for (unsigned p = 0; p < 12; p++) u->sm[p][r] = b->scales[p];
    for (unsigned j = 0; j < 8; j++) pack_split_nibbles(u->qs[j], r, b->qs + j / 2 * 32, j % 2 * 4);
}

static void get_q4_k(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q4_k *u = unit;
    row->d[0] = nib_f16_to_f32(u->d[r]);
    row->m[0] = nib_f16_to_f32(u->m[r]);
    get_scales(u->sm, r, row);
    for (unsigned k = 0; k < 256; k++) row->code[k] = (int8_t)pack_nibble_at(u->qs[k / 32], r, k % 32);
}

static void put_q5_k(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_q5_k *u = unit;
    const nib_quant_q5_k *b = blocks;
    u->d[r] = pack_u16(b->d);
    u->m[r] = pack_u16(b->dmin);
    for (unsigned p = 0; p < 12; p++) u->sm[p][r] = b->scales[p];
    for (unsigned j = 0; j < 8; j++) {
        pack_split_nibbles(u->b[j].qs, r, b->qs + j / 2 * 32, j % 2 * 4);
        pack_ones(u->b[j].qh, r, b->qh, j);
    }
}

static void get_q5_k(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q5_k *u = unit;
    row->d[0] = nib_f16_to_f32(u->d[r]);
    row->m[0] = nib_f16_to_f32(u->m[r]);
    get_scales(u->sm, r, row);
    for (unsigned k = 0; k < 256; k++) row->code[k] = (int8_t)pack_five_at(&u->b[k / 32], r, k % 32);
}

/* ---- Q6_K */

static void put_q6_k(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_q6_k *u = unit;
    const nib_quant_q6_k *b = blocks;
    u->d[r] = nib_f16_to_f32(pack_u16(b->d));
    for (unsigned g = 0; g < 16; g++) u->scale[g][r] = b->scales[g];
    for (unsigned j = 0; j < 8; j++) {
        unsigned h = j / 4, i = j % 4;
        pack_split_nibbles(u->b[j].qs, r, b->ql + 64 * h + i % 2 * 32, i / 2 * 4);
        pack_pairs(u->b[j].qh, r, b->qh + 32 * h, 2 * i);
    }
}

static void get_q6_k(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q6_k *u = unit;
    row->d[0] = u->d[r];
    for (unsigned g = 0; g < 16; g++) row->scale[g] = u->scale[g][r];
    for (unsigned k = 0; k < 256; k++) {
        int high = pack_pair_at(u->b[k / 32].qh, r, k % 32);
        row->code[k] = (int8_t)((pack_nibble_at(u->b[k / 32].qs, r, k % 32) | high << 4) - 32);
    }
}

/* ---- IQ4_XS */

static void put_iq4_xs(void *unit, unsigned r, const void *blocks, unsigned n) {
    (void)n;
    nib_cpu_pack_iq4_xs *u = unit;
    const nib_quant_iq4_xs *b = blocks;
    int8_t scale[8];
    nib_quant_iq4_scales(b, scale);
    u->d[r] = nib_f16_to_f32(pack_u16(b->d));
    for (unsigned j = 0; j < 8; j++) {
        u->scale[j][r] = scale[j];
        pack_nibbles(u->qs[j], r, b->qs + 16 * j);
    }
}

static void get_iq4_xs(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_iq4_xs *u = unit;
    row->d[0] = u->d[r];
    for (unsigned g = 0; g < 16; g++) row->scale[g] = u->scale[g / 2][r];
    for (unsigned k = 0; k < 256; k++) row->code[k] = nib_quant_iq4_values[pack_nibble_at(u->qs[k / 32], r, k % 32)];
}

const nib_cpu_pack_form nib_cpu_pack_form_Q2_K = {NIB_PACK_256_MIN,          NIB_ACT_Q256, 256,
                                                  sizeof(nib_cpu_pack_q2_k), put_q2_k,     get_q2_k};
const nib_cpu_pack_form nib_cpu_pack_form_Q3_K = {NIB_PACK_256, NIB_ACT_Q256, 256, sizeof(nib_cpu_pack_q3_k),
                                                  put_q3_k,     get_q3_k};
const nib_cpu_pack_form nib_cpu_pack_form_Q4_K = {NIB_PACK_256_MIN,          NIB_ACT_Q256, 256,
                                                  sizeof(nib_cpu_pack_q4_k), put_q4_k,     get_q4_k};
const nib_cpu_pack_form nib_cpu_pack_form_Q5_K = {NIB_PACK_256_MIN,          NIB_ACT_Q256, 256,
                                                  sizeof(nib_cpu_pack_q5_k), put_q5_k,     get_q5_k};
const nib_cpu_pack_form nib_cpu_pack_form_Q6_K = {NIB_PACK_256, NIB_ACT_Q256, 256, sizeof(nib_cpu_pack_q6_k),
                                                  put_q6_k,     get_q6_k};
const nib_cpu_pack_form nib_cpu_pack_form_IQ4_XS = {NIB_PACK_256, NIB_ACT_Q256, 256, sizeof(nib_cpu_pack_iq4_xs),
                                                    put_iq4_xs,   get_iq4_xs};

_Static_assert(sizeof(nib_cpu_pack_q2_k) == 1344 && sizeof(nib_cpu_pack_q3_k) == 1856, "no padding");
_Static_assert(sizeof(nib_cpu_pack_q4_k) == 2304 && sizeof(nib_cpu_pack_q5_k) == 2816, "no padding");
_Static_assert(sizeof(nib_cpu_pack_q6_k) == 3392 && sizeof(nib_cpu_pack_iq4_xs) == 2240, "no padding");
