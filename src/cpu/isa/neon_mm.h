/* cpu/isa/neon_mm.h - private to the NEON matrix kernels: lines of packed codes to registers.
 *
 * A quarter (0 to 3) of a line is one register: 4 rows of 4 columns, a row in each 32-bit lane. Codes become signed bytes,
 * as sdot and smmla take them. A kernel goes through the columns in slices of 256, and through the four quarters of each
 * slice, so that the codes of a block, 16 accumulators and their activations fill the registers and a line of weights is
 * read from memory once. */
#ifndef NIB_CPU_ISA_NEON_MM_H
#define NIB_CPU_ISA_NEON_MM_H

#include "cpu/isa/mm_inline.h"
#include "cpu/kern/mm.h"
#include "cpu/pack.h"

#include <arm_neon.h>

/* Codes of a block of 32 columns, and how they stand in its lines (cpu/pack.h). */
typedef enum codes {
    CODES_U2,  /* 0 … 3: 2 lines */
    CODES_S3,  /* -4 … 3: 2 lines, 1 line of upper bits */
    CODES_U4,  /* 0 … 15: 4 lines */
    CODES_U5,  /* 0 … 31: 4 lines, 1 line of upper bits */
    CODES_S6,  /* -32 … 31: 4 lines, 2 lines of upper bits */
    CODES_FP4, /* the doubled values of E2M1; 4 lines */
    CODES_IQ4, /* the values of the IQ4 table; 4 lines */
    CODES_S8,  /* signed bytes; 8 lines */
} codes;

/* Bytes from one block of lines to the next. */
INL size_t block_bytes(codes kind) {
    static const uint16_t lines[] = {[CODES_U2] = 2, [CODES_S3] = 3,  [CODES_U4] = 4,  [CODES_U5] = 5,
                                     [CODES_S6] = 6, [CODES_FP4] = 4, [CODES_IQ4] = 4, [CODES_S8] = 8};
    return 64u * lines[kind];
}

/* Bytes moved by bits to the left (right when negative). Operators, because the intrinsics want a literal count. */
INL uint8x16_t shift(uint8x16_t x, int left) {
    return left > 0 ? x << vdupq_n_u8((uint8_t)left) : left < 0 ? x >> vdupq_n_u8((uint8_t)-left) : x;
}

INL uint8x16_t shift_and(uint8x16_t x, int left, int mask) {
    return vandq_u8(shift(x, left), vdupq_n_u8((uint8_t)mask));
}

/* v with the bits of `mask` out of the shifted x. */
INL uint8x16_t insert(uint8x16_t v, uint8x16_t x, int left, int mask) {
    return vbslq_u8(vdupq_n_u8((uint8_t)mask), shift(x, left), v);
}

/* The codes of a block: v[s] is chunk s. */
INL void unpack(codes kind, const uint8_t *b, int quarter, int8x16_t v[8]) {
    uint8x16_t u[8];
    b += 16 * quarter;
    if (kind == CODES_S8) {
        UNROLL for (int s = 0; s < 8; s++) v[s] = vreinterpretq_s8_u8(vld1q_u8(b + 64 * s));
        return;
    }
    if (kind == CODES_U2 || kind == CODES_S3) {
        UNROLL for (int s = 0; s < 8; s++) u[s] = shift_and(vld1q_u8(b + s / 4 * 64), -(s % 4 * 2), 3);
    } else {
        UNROLL for (int s = 0; s < 4; s++) {
            uint8x16_t x = vld1q_u8(b + 64 * s);
            u[s] = vandq_u8(x, vdupq_n_u8(15));
            u[s + 4] = shift(x, -4);
        }
    }
    if (kind == CODES_S3) { /* without its upper bit a code stands 4 too high: two's complement above the other two bits */
        uint8x16_t h = vld1q_u8(b + 128);
        UNROLL for (int s = 0; s < 8; s++) {
            uint8x16_t is_upper = vtstq_u8(h, vdupq_n_u8((uint8_t)(1 << s)));
            u[s] = vorrq_u8(u[s], vbicq_u8(vdupq_n_u8(0xfc), is_upper));
        }
    }
    if (kind == CODES_U5) {
        uint8x16_t h = vld1q_u8(b + 256);
        UNROLL for (int s = 0; s < 8; s++) u[s] = insert(u[s], h, 4 - s, 16);
    }
    if (kind == CODES_S6) {
        uint8x16_t h[2] = {vld1q_u8(b + 256), vld1q_u8(b + 320)};
        UNROLL for (int s = 0; s < 8; s++) {
            u[s] = vsubq_u8(insert(u[s], h[s / 4], 4 - s % 4 * 2, 48), vdupq_n_u8(32));
        }
    }
    UNROLL for (int s = 0; s < 8; s++) v[s] = vreinterpretq_s8_u8(u[s]);
    if (kind == CODES_FP4 || kind == CODES_IQ4) {
        static const int8_t fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
        static const int8_t iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
        const int8x16_t table = vld1q_s8(kind == CODES_FP4 ? fp4 : iq4);
        UNROLL for (int s = 0; s < 8; s++) v[s] = vqtbl1q_s8(table, u[s]);
    }
}

/* Four numbers of 16 bits as floats. */
INL float32x4_t from_f16(const uint16_t *d) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(d)));
}

INL float32x4_t from_bf16(const uint16_t *d) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(d), 16));
}

/* sum + 16 columns of one token, whose activations are a. */
INL int32x4_t dot16(int32x4_t sum, const int8x16_t v[4], int8x16_t a) {
    sum = vdotq_laneq_s32(sum, v[0], a, 0);
    sum = vdotq_laneq_s32(sum, v[1], a, 1);
    sum = vdotq_laneq_s32(sum, v[2], a, 2);
    return vdotq_laneq_s32(sum, v[3], a, 3);
}

/* n lines of memory that a decode kernel will need in a while. */
INL void prefetch(const uint8_t *p, int n) {
    UNROLL for (int i = 0; i < n; i++) __builtin_prefetch(p + 64 * i);
}

/* A kernel is tiles for 2, 4, 8, 12 and 16 tokens of a panel, and DECODE for a single token. tile is that of the unit that
 * uses the macro; the layout is the list of its fields. */
#define TILE_NEON(TYPE, NC, ...)                                                                                       \
    __attribute__((noinline)) static void TYPE##_##NC(const void *w, const nib_cpu_act *act, uint32_t t0,              \
                                                      float *out) {                                                    \
        tile((layout){__VA_ARGS__}, NC, w, act, t0, out);                                                              \
    }
#define KERNEL_NEON(LEVEL, TYPE, DECODE, ...)                                                                          \
    TILE_NEON(TYPE, 2, __VA_ARGS__)                                                                                    \
    TILE_NEON(TYPE, 4, __VA_ARGS__)                                                                                    \
    TILE_NEON(TYPE, 8, __VA_ARGS__)                                                                                    \
    TILE_NEON(TYPE, 12, __VA_ARGS__)                                                                                   \
    TILE_NEON(TYPE, 16, __VA_ARGS__)                                                                                   \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *out) {                     \
        if (act->np == 1)                                                                                              \
            DECODE;                                                                                                    \
        else if (n <= 2)                                                                                               \
            TYPE##_2(w, act, t0, out);                                                                                 \
        else if (n <= 4)                                                                                               \
            TYPE##_4(w, act, t0, out);                                                                                 \
        else if (n <= 8)                                                                                               \
            TYPE##_8(w, act, t0, out);                                                                                 \
        else if (n <= 12)                                                                                              \
            TYPE##_12(w, act, t0, out);                                                                                \
        else                                                                                                           \
            TYPE##_16(w, act, t0, out);                                                                                \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_##LEVEL##_##TYPE = {.max_tok = 16, .mul = TYPE};

#endif
