/* cpu/isa/avx512_mm.h - private to the 512-bit matrix kernels: lines of packed codes to registers, products by VNNI.
 *
 * A line is one register: 16 rows of 4 columns, a row in each 32-bit lane. */
#ifndef NIB_CPU_ISA_AVX512_MM_H
#define NIB_CPU_ISA_AVX512_MM_H

#include "cpu/fetch.h"
#include "cpu/isa/mm_inline.h"
#include "cpu/kern/mm.h"
#include "cpu/pack.h"

#include <immintrin.h>

/* Unsigned codes of a block of 32 columns, and how they stand in its lines (cpu/pack.h). */
typedef enum codes {
    CODES_U2,  /* 0 … 3: 2 lines */
    CODES_U3,  /* 0 … 7: 2 lines, 1 line of upper bits */
    CODES_U4,  /* 0 … 15: 4 lines */
    CODES_U5,  /* 0 … 31: 4 lines, 1 line of upper bits */
    CODES_U6,  /* 0 … 63: 4 lines, 2 lines of upper bits */
    CODES_FP4, /* the doubled values of E2M1 plus 16; 4 lines */
    CODES_IQ4, /* the values of the IQ4 table plus 128; 4 lines */
    CODES_S8,  /* signed bytes, plus 128; 8 lines */
} codes;

INL __m512i load(const void *p) {
    return _mm512_load_si512(p);
}

typedef int32_t any32 __attribute__((may_alias)); /* four codes, two int16 or one int32 */

/* Four bytes in every lane. */
INL __m512i broadcast4(const void *p) {
    return _mm512_set1_epi32(*(const any32 *)p);
}

INL __m512 scales_f16(const uint16_t *d) {
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)d));
}

INL __m512 scales_bf16(const uint16_t *d) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)d)), 16));
}

/* Integer scales of 16 rows, one byte each, as int32. */
INL __m512i bytes_u8(const void *p) {
    return _mm512_cvtepu8_epi32(_mm_load_si128(p));
}

INL __m512i bytes_s8(const void *p) {
    return _mm512_cvtepi8_epi32(_mm_load_si128(p));
}

/* Lanes of two int16: low and high. */
INL __m512i pair(__m512i low, __m512i high) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_slli_epi32(high, 16));
}

/* Bytes moved by bits to the left (right when negative); bits that cross into a neighbour byte stay in. */
INL __m512i shift(__m512i x, int left) {
    return left > 0 ? _mm512_slli_epi16(x, (unsigned)left) : left < 0 ? _mm512_srli_epi16(x, (unsigned)-left) : x;
}

INL __m512i shift_and(__m512i x, int left, int mask) {
    return _mm512_and_si512(shift(x, left), _mm512_set1_epi8((char)mask));
}

/* v | (shifted x & mask) */
INL __m512i or_bits(__m512i v, __m512i x, int left, int mask) {
    return _mm512_ternarylogic_epi32(v, shift(x, left), _mm512_set1_epi8((char)mask), 0xf8);
}

/* The codes of a block: v[s] is chunk s. */
INL void unpack(codes kind, const uint8_t *b, __m512i v[8]) {
    if (kind == CODES_S8) {
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm512_xor_si512(load(b + 64 * s), _mm512_set1_epi8(-128));
        return;
    }
    if (kind == CODES_U2 || kind == CODES_U3) {
        UNROLL for (int s = 0; s < 8; s++) v[s] = shift_and(load(b + s / 4 * 64), -(s % 4 * 2), 3);
    } else {
        UNROLL for (int s = 0; s < 4; s++) {
            __m512i x = load(b + 64 * s);
            v[s] = shift_and(x, 0, 15);
            v[s + 4] = shift_and(x, -4, 15);
        }
    }
    if (kind == CODES_U3) UNROLL for (int s = 0; s < 8; s++) v[s] = or_bits(v[s], load(b + 128), 2 - s, 4);
    if (kind == CODES_U5) UNROLL for (int s = 0; s < 8; s++) v[s] = or_bits(v[s], load(b + 256), 4 - s, 16);
    if (kind == CODES_U6)
        UNROLL for (int s = 0; s < 8; s++) v[s] = or_bits(v[s], load(b + 256 + s / 4 * 64), 4 - s % 4 * 2, 48);
    if (kind == CODES_FP4 || kind == CODES_IQ4) {
        const __m128i fp4 = _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4);
        const __m128i iq4 = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
        const __m512i table = _mm512_broadcast_i32x4(kind == CODES_FP4 ? fp4 : iq4);
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm512_shuffle_epi8(table, v[s]);
    }
}

/* Bytes from one block of lines to the next. */
INL size_t block_bytes(codes kind) {
    static const uint16_t lines[] = {[CODES_U2] = 2, [CODES_U3] = 3,  [CODES_U4] = 4,  [CODES_U5] = 5,
                                     [CODES_U6] = 6, [CODES_FP4] = 4, [CODES_IQ4] = 4, [CODES_S8] = 8};
    return 64u * lines[kind];
}

/* acc + unsigned v times the signed bytes at a, the same four for every row. The broadcast is part of the instruction:
 * gcc makes a separate one of the intrinsics, which is 15-20 % slower. */
INL __m512i dot4(__m512i acc, __m512i v, const int8_t *a) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(v), "m"(*(const any32 *)a));
    return acc;
}

/* acc + the two products of int16 in each lane; the pair at y is the same for every row. */
INL __m512i add_pair(__m512i acc, __m512i x, const int16_t *y) {
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(x), "m"(*(const any32 *)y));
    return acc;
}

/* One register as an address: an index makes two micro-operations of a product. */
INL const int8_t *base(const int8_t *p) {
    __asm__("" : "+r"(p));
    return p;
}

/* n lines of memory that a decode kernel will need in a while; and those that it will need much later. */
INL void prefetch(const void *p, int n) {
    UNROLL for (int i = 0; i < n; i++) nib_cpu_fetch_in_order((const char *)p + 64 * i);
}

/* A kernel is tiles for 2, 4, 8, 12 and 16 tokens of a panel, and one for a single token. tile and decode are those of
 * the unit that uses the macro; the layout is the list of its fields. */
#define TILE_512(TYPE, NAME, NC, IS_FAR, ...)                                                                          \
    __attribute__((noinline)) static void TYPE##_##NAME(const void *w, const nib_cpu_act *act, uint32_t t0,            \
                                                        float *out) {                                                  \
        tile((layout){__VA_ARGS__}, NC, IS_FAR, w, act, t0, out);                                                      \
    }
#define KERNEL_512(TYPE, ...)                                                                                          \
    TILE_512(TYPE, 2, 2, true, __VA_ARGS__)                                                                            \
    TILE_512(TYPE, 4, 4, true, __VA_ARGS__)                                                                            \
    TILE_512(TYPE, 8, 8, true, __VA_ARGS__)                                                                            \
    TILE_512(TYPE, 12, 12, true, __VA_ARGS__)                                                                          \
    TILE_512(TYPE, 16, 16, false, __VA_ARGS__)                                                                         \
    TILE_512(TYPE, 16_far, 16, true, __VA_ARGS__)                                                                      \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *out) {                     \
        if (act->np == 1)                                                                                              \
            decode((layout){__VA_ARGS__}, w, act, out);                                                                \
        else if (n <= 2)                                                                                               \
            TYPE##_2(w, act, t0, out);                                                                                 \
        else if (n <= 4)                                                                                               \
            TYPE##_4(w, act, t0, out);                                                                                 \
        else if (n <= 8)                                                                                               \
            TYPE##_8(w, act, t0, out);                                                                                 \
        else if (n <= 12)                                                                                              \
            TYPE##_12(w, act, t0, out);                                                                                \
        else if (act->n_tok > NIB_ACT_PANEL)                                                                           \
            TYPE##_16(w, act, t0, out);                                                                                \
        else                                                                                                           \
            TYPE##_16_far(w, act, t0, out);                                                                            \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_avx512_##TYPE = {.max_tok = 16, .mul = TYPE};

#endif
