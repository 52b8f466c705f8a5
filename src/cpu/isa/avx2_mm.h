/* cpu/isa/avx2_mm.h - private to the 256-bit matrix kernels: lines of packed codes to registers, small dot products.
 *
 * A half (0 or 1) of a line is one register: 8 rows of 4 columns, a row in each 32-bit lane. */
#ifndef NIB_CPU_ISA_AVX2_MM_H
#define NIB_CPU_ISA_AVX2_MM_H

#include "cpu/fetch.h"
#include "cpu/isa/mm_inline.h"
#include "cpu/kern/mm.h"
#include "cpu/pack.h"

#include <immintrin.h>

/* Pins a value to a register, so that the compiler keeps a balanced tree of additions instead of one chain. */
#define KEEP(x) __asm__("" : "+x"(x))

/* Codes of a block of 32 columns as bytes, and how they stand in its lines (cpu/pack.h). */
typedef enum codes {
    CODES_U2,    /* 0 … 3: 2 lines */
    CODES_U3,    /* 0 … 7: 2 lines, 1 line of upper bits */
    CODES_U4,    /* 0 … 15: 4 lines */
    CODES_U5,    /* 0 … 31: 4 lines, 1 line of upper bits */
    CODES_U6,    /* 0 … 63: 4 lines, 2 lines of upper bits */
    CODES_FP4,   /* 4 … 28: the doubled values of E2M1 plus 16; 4 lines */
    CODES_IQ4,   /* signed values of the IQ4 table; 4 lines */
    CODES_S8,    /* signed bytes; 8 lines */
    CODES_IQ4_U, /* the same plus 128, as unsigned bytes */
    CODES_S8_U,
} codes;

INL __m256i load(const void *p) {
    return _mm256_load_si256(p);
}

typedef int32_t any32 __attribute__((may_alias)); /* four codes, two int16 or one int32 */

/* Four bytes in every lane. */
INL __m256i broadcast4(const void *p) {
    return _mm256_set1_epi32(*(const any32 *)p);
}

INL __m256 scales_f16(const uint16_t *d, int half) {
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)d + half));
}

INL __m256 scales_bf16(const uint16_t *d, int half) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)d + half)), 16));
}

/* Integer scales of 8 rows, one byte each, as int32. */
INL __m256i bytes_u8(const void *p, int half) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)((const uint8_t *)p + 8 * half)));
}

INL __m256i bytes_s8(const void *p, int half) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)((const uint8_t *)p + 8 * half)));
}

/* Lanes of two int16: low and high. */
INL __m256i pair(__m256i low, __m256i high) {
    return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
}

/* Bits `mask` after a shift to the left (right when negative); bits of neighbour bytes are masked away. */
INL __m256i shift_and(__m256i x, int left, int mask) {
    __m256i m = _mm256_set1_epi8((char)mask);
    if (left > 0) return _mm256_and_si256(_mm256_slli_epi16(x, left), m);
    if (left < 0) return _mm256_and_si256(_mm256_srli_epi16(x, -left), m);
    return _mm256_and_si256(x, m);
}

/* The codes of a block: v[s] is chunk s. */
INL void unpack(codes kind, const uint8_t *b, int half, __m256i v[8]) {
    b += 32 * half;
    if (kind == CODES_S8 || kind == CODES_S8_U) {
        UNROLL for (int s = 0; s < 8; s++) {
            v[s] = load(b + 64 * s);
            if (kind == CODES_S8_U) v[s] = _mm256_xor_si256(v[s], _mm256_set1_epi8(-128));
        }
        return;
    }
    if (kind == CODES_U2 || kind == CODES_U3) {
        UNROLL for (int s = 0; s < 8; s++) v[s] = shift_and(load(b + s / 4 * 64), -(s % 4 * 2), 3);
    } else {
        UNROLL for (int s = 0; s < 4; s++) {
            __m256i x = load(b + 64 * s);
            v[s] = shift_and(x, 0, 15);
            v[s + 4] = shift_and(x, -4, 15);
        }
    }
    if (kind == CODES_U3) {
        __m256i h = load(b + 128);
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm256_or_si256(v[s], shift_and(h, 2 - s, 4));
    }
    if (kind == CODES_U5) {
        __m256i h = load(b + 256);
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm256_or_si256(v[s], shift_and(h, 4 - s, 16));
    }
    if (kind == CODES_U6) {
        __m256i h[2] = {load(b + 256), load(b + 320)};
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm256_or_si256(v[s], shift_and(h[s / 4], 4 - s % 4 * 2, 48));
    }
    if (kind == CODES_FP4 || kind == CODES_IQ4 || kind == CODES_IQ4_U) {
        const __m128i fp4 = _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4);
        const __m128i iq4 = _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
        __m256i table = _mm256_broadcastsi128_si256(kind == CODES_FP4 ? fp4 : iq4);
        if (kind == CODES_IQ4_U) table = _mm256_xor_si256(table, _mm256_set1_epi8(-128));
        UNROLL for (int s = 0; s < 8; s++) v[s] = _mm256_shuffle_epi8(table, v[s]);
    }
}

/* Bytes from one block of lines to the next. */
INL size_t block_bytes(codes kind) {
    static const uint16_t lines[] = {
        [CODES_U2] = 2,  [CODES_U3] = 3,  [CODES_U4] = 4, [CODES_U5] = 5,    [CODES_U6] = 6,
        [CODES_FP4] = 4, [CODES_IQ4] = 4, [CODES_S8] = 8, [CODES_IQ4_U] = 4, [CODES_S8_U] = 8};
    return 64u * lines[kind];
}

/* 4 columns, unsigned codes times activations: two int16 sums in each lane. */
INL __m256i dot4(__m256i v, const int8_t *a) {
    return _mm256_maddubs_epi16(v, broadcast4(a));
}

/* 16 columns. Sums may wrap: see the bounds of the users. */
INL __m256i dot16(const __m256i v[4], const int8_t *a) {
    __m256i x = _mm256_add_epi16(dot4(v[0], a), dot4(v[1], a + 4));
    __m256i y = _mm256_add_epi16(dot4(v[2], a + 8), dot4(v[3], a + 12));
    KEEP(x);
    KEEP(y);
    return _mm256_add_epi16(x, y);
}

/* 32 columns. */
INL __m256i dot32(const __m256i v[8], const int8_t *a) {
    __m256i x = dot16(v, a), y = dot16(v + 4, a + 16);
    KEEP(x);
    KEEP(y);
    return _mm256_add_epi16(x, y);
}

/* 16 columns of signed codes v with magnitudes m, each pair of products times a pair of int16: int32 sums. */
INL __m256i dot16_signed(const __m256i m[4], const __m256i v[4], const int8_t *a, __m256i scale) {
    __m256i t[4];
    UNROLL for (int s = 0; s < 4; s++) {
        __m256i x = _mm256_sign_epi8(broadcast4(a + 4 * s), v[s]);
        t[s] = _mm256_madd_epi16(_mm256_maddubs_epi16(m[s], x), scale);
    }
    return _mm256_add_epi32(_mm256_add_epi32(t[0], t[1]), _mm256_add_epi32(t[2], t[3]));
}

/* n lines of memory that a decode kernel will need in a while; and those that it will need much later. */
INL void prefetch(const void *p, int n) {
    UNROLL for (int i = 0; i < n; i++) nib_cpu_fetch_in_order((const char *)p + 64 * i);
}

/* A kernel is tiles for 2, 4, 6 and 8 tokens of a panel, and one for a single token. tile_half and decode are those of
 * the unit that uses the macro; the layout is the list of its fields. */
#define TILE_256(TYPE, NC, ...)                                                                                        \
    __attribute__((noinline)) static void TYPE##_##NC(const void *w, const nib_cpu_act *act, uint32_t t0,              \
                                                      float *tile) {                                                   \
        for (int half = 0; half < 2; half++) tile_half((layout){__VA_ARGS__}, half, NC, w, act, t0, tile);             \
    }
#define KERNEL_256(LEVEL, TYPE, ...)                                                                                   \
    TILE_256(TYPE, 2, __VA_ARGS__)                                                                                     \
    TILE_256(TYPE, 4, __VA_ARGS__)                                                                                     \
    TILE_256(TYPE, 6, __VA_ARGS__)                                                                                     \
    TILE_256(TYPE, 8, __VA_ARGS__)                                                                                     \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {                    \
        if (act->np == 1)                                                                                              \
            decode((layout){__VA_ARGS__}, w, act, tile);                                                               \
        else if (n <= 2)                                                                                               \
            TYPE##_2(w, act, t0, tile);                                                                                \
        else if (n <= 4)                                                                                               \
            TYPE##_4(w, act, t0, tile);                                                                                \
        else if (n <= 6)                                                                                               \
            TYPE##_6(w, act, t0, tile);                                                                                \
        else                                                                                                           \
            TYPE##_8(w, act, t0, tile);                                                                                \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_##LEVEL##_##TYPE = {.max_tok = 8, .mul = TYPE};

#endif
