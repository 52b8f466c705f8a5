/* cpu/isa/avx2_mm_32.h - private: what the 256-bit kernels of types with a scale per 32 weights share.
 *
 * A unit that includes this defines tile_block, the integer part; the loops around it are here. One half (8 rows) goes
 * over all columns before the other, so that the codes of a block and 8 accumulators fill the registers. */
#ifndef NIB_CPU_ISA_AVX2_MM_32_H
#define NIB_CPU_ISA_AVX2_MM_32_H

#include "cpu/isa/avx2_mm.h"
#include "cpu/isa/mm_layout_32.h"

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *start8, *start16, *start128;
    const int16_t *half16;
} cursor;

/* Adds a block to nc accumulators. lines: its codes; d, m: its scales and minima; p->q: its first activation. */
INL void tile_block(layout l, int half, int nc, const uint8_t *lines, __m256 d, __m256 m, const cursor *p, __m256 *acc);

INL cursor cursor_at(const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n32 = a->n_pad / 32, i = nib_cpu_act_at(act, t, n32, 1);
    return (cursor){.q = a->q + nib_cpu_act_at(act, t, n32 / 2, 64),
                    .d = a->d + i,
                    .sum = a->sum + i,
                    .start8 = a->start8 + i,
                    .start16 = a->start16 + i,
                    .start128 = a->start128 + i,
                    .half16 = a->half16 + 2 * i};
}

/* On to block b + 1 of a unit, for NP tokens. */
INL void advance(cursor *p, int b, int np) {
    p->q += b == 0 ? 32 : 64 * np - 32;
    p->d += np;
    p->sum += np;
    p->start8 += np;
    p->start16 += np;
    p->start128 += np;
    p->half16 += 2 * np;
}

/* Scales of block b of a unit. The minima follow the scales. */
INL __m256 scales(layout l, const uint8_t *w, int b, int half) {
    const uint16_t *d = (const uint16_t *)w + 16 * b;
    return l.kind == CODES_FP4 ? scales_bf16(d, half) : scales_f16(d, half);
}

/* The floating-point part: the integer sum of token c into its accumulator. */
INL __m256 accumulate(layout l, __m256 acc, __m256i sum, __m256 d, __m256 m, const cursor *p, int c) {
    __m256 i = _mm256_cvtepi32_ps(sum), da = _mm256_broadcast_ss(p->d + c);
    if (!l.has_min) return _mm256_fmadd_ps(i, _mm256_mul_ps(d, da), acc);
    return _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_broadcast_ss(p->sum + c), m, _mm256_mul_ps(i, d)), da, acc);
}

/* nc tokens of a panel. */
INL void tile_half(layout l, int half, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *tile) {
    cursor p = cursor_at(act, t0);
    __m256 acc[8];
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm256_setzero_ps();
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit) {
        if (half == 0) prefetch(w + 2048, (int)(l.unit / 64));
        for (int b = 0; b < 2; b++) {
            __m256 d = scales(l, w, b, half), m = l.has_min ? scales(l, w + 64, b, half) : d;
            tile_block(l, half, nc, w + l.at + (size_t)b * block_bytes(l.kind), d, m, &p, acc);
            advance(&p, b, NIB_ACT_PANEL);
        }
    }
    UNROLL for (int c = 0; c < nc; c++) _mm256_store_ps(tile + 16 * c + 8 * half, acc[c]);
}

/* One token: bound by memory, so both halves go together and lines are asked for 2 KiB ahead (10-40 % over none). */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *tile) {
    cursor p = cursor_at(act, 0);
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit) {
        prefetch(w + 2048, (int)(l.unit / 64));
        UNROLL for (int b = 0; b < 2; b++) {
            UNROLL for (int half = 0; half < 2; half++) {
                __m256 d = scales(l, w, b, half), m = l.has_min ? scales(l, w + 64, b, half) : d;
                tile_block(l, half, 1, w + l.at + (size_t)b * block_bytes(l.kind), d, m, &p, &acc[half]);
            }
            advance(&p, b, 1);
        }
    }
    _mm256_store_ps(tile, acc[0]);
    _mm256_store_ps(tile + 8, acc[1]);
}

/* The last two fields of a layout. */

#endif
