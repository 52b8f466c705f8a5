/* cpu/pack_32.c - packed forms of the types with a scale per 32 weights. Layouts: pack.h; blocks: quant/. */
#include "cpu/pack_bits.h"
#include "quant/iq4.h"
#include "quant/legacy.h"
#include "quant/mxfp4.h"

/* ---- four bits */

static void put_q4_0(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q4 *u = unit;
    const nib_quant_q4_0 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = pack_u16(b[i].d);
        pack_nibbles(u->qs[i], r, b[i].qs);
    }
}

static void get_q4_0(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q4 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = (int8_t)(pack_nibble_at(u->qs[i], r, k) - 8);
    }
}

static void put_q4_1(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q4_1 *u = unit;
    const nib_quant_q4_1 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = pack_u16(b[i].d);
        u->m[i][r] = pack_u16(b[i].m);
        pack_nibbles(u->qs[i], r, b[i].qs);
    }
}

static void get_q4_1(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q4_1 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        row->m[i] = nib_f16_to_f32(u->m[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = (int8_t)pack_nibble_at(u->qs[i], r, k);
    }
}

static void get_iq4_nl(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q4 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = nib_quant_iq4_values[pack_nibble_at(u->qs[i], r, k)];
    }
}

static void put_mxfp4(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q4 *u = unit;
    const nib_quant_mxfp4 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = (uint16_t)(nib_f32_bits(nib_quant_mxfp4_scale(b[i].e)) >> 16);
        pack_nibbles(u->qs[i], r, b[i].qs);
    }
}

static void get_mxfp4(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q4 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_bf16_to_f32(u->d[i][r]);
        for (unsigned k = 0; k < 32; k++)
            row->code[32 * i + k] = nib_quant_mxfp4_values[pack_nibble_at(u->qs[i], r, k)];
    }
}

/* ---- five bits */

/* The eight bits i, i + 4, … of qh: byte i of the line of fifth bits. */
static uint32_t every_fourth(uint32_t qh, unsigned i) {
    uint32_t x = qh >> i & 0x11111111;
    x = (x | x >> 3) & 0x03030303;
    x = (x | x >> 6) & 0x000f000f;
    return (x | x >> 12) & 0xff;
}

static void put_q5(nib_cpu_pack_q5 *b, unsigned r, const uint8_t *qs, const uint8_t *qh) {
    pack_nibbles(b->qs, r, qs);
    uint32_t bits = pack_u32(qh);
    for (unsigned i = 0; i < 4; i++) b->qh[4 * r + i] = (uint8_t)every_fourth(bits, i);
}

static void put_q5_0(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q5_0 *u = unit;
    const nib_quant_q5_0 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = pack_u16(b[i].d);
        put_q5(&u->b[i], r, b[i].qs, b[i].qh);
    }
}

static void get_q5_0(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q5_0 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = (int8_t)(pack_five_at(&u->b[i], r, k) - 16);
    }
}

static void put_q5_1(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q5_1 *u = unit;
    const nib_quant_q5_1 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = pack_u16(b[i].d);
        u->m[i][r] = pack_u16(b[i].m);
        put_q5(&u->b[i], r, b[i].qs, b[i].qh);
    }
}

static void get_q5_1(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q5_1 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        row->m[i] = nib_f16_to_f32(u->m[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = (int8_t)pack_five_at(&u->b[i], r, k);
    }
}

/* ---- eight bits */

static void put_q8_0(void *unit, unsigned r, const void *blocks, unsigned n) {
    nib_cpu_pack_q8_0 *u = unit;
    const nib_quant_q8_0 *b = blocks;
    for (unsigned i = 0; i < n; i++) {
        u->d[i][r] = pack_u16(b[i].d);
        for (unsigned s = 0; s < 8; s++) pack_put(u->qs[i][s], r, pack_word(b[i].qs + 4 * s));
    }
}

static void get_q8_0(const void *unit, unsigned r, nib_cpu_pack_row *row) {
    const nib_cpu_pack_q8_0 *u = unit;
    for (unsigned i = 0; i < 2; i++) {
        row->d[i] = nib_f16_to_f32(u->d[i][r]);
        for (unsigned k = 0; k < 32; k++) row->code[32 * i + k] = u->qs[i][k / 4][4 * r + k % 4];
    }
}

const nib_cpu_pack_form nib_cpu_pack_form_Q4_0 = {NIB_PACK_32, NIB_ACT_Q32, 64, sizeof(nib_cpu_pack_q4),
                                                  put_q4_0,    get_q4_0};
/* An IQ4_NL block is laid out as one of Q4_0; only the meaning of a nibble differs. */
const nib_cpu_pack_form nib_cpu_pack_form_IQ4_NL = {NIB_PACK_32, NIB_ACT_Q32, 64, sizeof(nib_cpu_pack_q4),
                                                    put_q4_0,    get_iq4_nl};
const nib_cpu_pack_form nib_cpu_pack_form_MXFP4 = {NIB_PACK_32, NIB_ACT_Q32, 64, sizeof(nib_cpu_pack_q4),
                                                   put_mxfp4,   get_mxfp4};
const nib_cpu_pack_form nib_cpu_pack_form_Q4_1 = {NIB_PACK_32_MIN,           NIB_ACT_Q32, 64,
                                                  sizeof(nib_cpu_pack_q4_1), put_q4_1,    get_q4_1};
const nib_cpu_pack_form nib_cpu_pack_form_Q5_0 = {NIB_PACK_32, NIB_ACT_Q32, 64, sizeof(nib_cpu_pack_q5_0),
                                                  put_q5_0,    get_q5_0};
const nib_cpu_pack_form nib_cpu_pack_form_Q5_1 = {NIB_PACK_32_MIN,           NIB_ACT_Q32, 64,
                                                  sizeof(nib_cpu_pack_q5_1), put_q5_1,    get_q5_1};
const nib_cpu_pack_form nib_cpu_pack_form_Q8_0 = {NIB_PACK_32, NIB_ACT_Q32, 64, sizeof(nib_cpu_pack_q8_0),
                                                  put_q8_0,    get_q8_0};

_Static_assert(sizeof(nib_cpu_pack_q4) == 576 && sizeof(nib_cpu_pack_q4_1) == 640, "no padding");
_Static_assert(sizeof(nib_cpu_pack_q5_0) == 704 && sizeof(nib_cpu_pack_q5_1) == 768, "no padding");
_Static_assert(sizeof(nib_cpu_pack_q8_0) == 1088, "no padding");
