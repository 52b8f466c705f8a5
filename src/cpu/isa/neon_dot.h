/* cpu/isa/neon_dot.h - private: how the tiles of the level `neon` multiply: sdot, four rows of one token in a register.
 *
 * neon_i8mm_dot.h has the same functions for smmla. Sums are made for a pair of tokens in a pair of registers, `e` below;
 * here register e belongs to token e. What a row (or a token) has must come in the order of the sums: in_order. */
#ifndef NIB_CPU_ISA_NEON_DOT_H
#define NIB_CPU_ISA_NEON_DOT_H

#include "cpu/isa/neon_mm.h"

enum { ARRANGED_BYTES = 1 }; /* of activations for one token and slice: they are read in place */

INL void arrange(int nc, size_t n_blocks, const int8_t *q, int8_t *buf) {
    (void)nc, (void)n_blocks, (void)q, (void)buf;
}

/* Block j of the slice at q, pair of tokens c and c + 1. */
INL const int8_t *arranged(int nc, const int8_t *q, const int8_t *buf, size_t j, int c) {
    (void)nc, (void)buf;
    return q + j / 2 * 64 * NIB_ACT_PANEL + j % 2 * 32 + 64 * c;
}

INL void arrange_codes(int8x16_t v[8]) {
    (void)v;
}

/* Adds half h (16 columns) of a block to the sums of a pair. */
INL void add_half(int32x4_t t[2], const int8x16_t v[8], const int8_t *a, int h) {
    t[0] = dot16(t[0], v + 4 * h, vld1q_s8(a + 16 * h));
    t[1] = dot16(t[1], v + 4 * h, vld1q_s8(a + 64 + 16 * h));
}

/* Sums of four rows for each of two tokens. */
INL void in_order(int32x4_t t[2]) {
    (void)t;
}

INL void finish_tile(int nc, float *out) {
    (void)nc, (void)out;
}

/* A number of each of four rows, for register e. */
INL int32x4_t rows_s32(int32x4_t x, int e) {
    (void)e;
    return x;
}

INL float32x4_t rows_f32(float32x4_t x, int e) {
    (void)e;
    return x;
}

/* A number of each of two tokens, for register e. */
INL int32x4_t tokens_s32(const int32_t *p, int e) {
    return vdupq_n_s32(p[e]);
}

/* x times p; acc + x times p, where p has a number of each of two tokens. */
INL float32x4_t mul_tokens(float32x4_t x, const float *p, int e) {
    return vmulq_n_f32(x, p[e]);
}

INL float32x4_t fma_tokens(float32x4_t acc, float32x4_t x, const float *p, int e) {
    return vfmaq_n_f32(acc, x, p[e]);
}

#endif
