/* cpu/isa/avx2_mm_256.h - private: what the 256-bit kernels of types with super-blocks of 256 weights share.
 *
 * A unit that includes this defines tile_block (32 columns into integer sums that have the scales applied) and
 * excess and add_products; the loops around them are here. One half (8 rows) goes over all columns before the other. */
#ifndef NIB_CPU_ISA_AVX2_MM_256_H
#define NIB_CPU_ISA_AVX2_MM_256_H

#include "cpu/isa/avx2_mm.h"
#include "cpu/isa/mm_layout_256.h"

/* Integer scales and minima of 16 rows as bytes; the forms without minima are read in place. */
typedef struct small {
    uint8_t scale[16][16], min[16][16];
} small;

INL void unpack_small(layout l, const uint8_t *w, small *s) {
    const uint8_t *p = w + l.sc;
    if (l.scales == SCALES_4) {
        UNROLL for (int i = 0; i < 8; i++) {
            __m256i x = load(p + 32 * i);
            _mm256_storeu_si256((__m256i *)s->scale[2 * i], shift_and(x, 0, 15));
            _mm256_storeu_si256((__m256i *)s->min[2 * i], shift_and(x, -4, 15));
        }
    }
    if (l.scales == SCALES_6) /* rows of bytes 0-3, 4-7, 8-11 of the packed scales: cpu/pack.h */
        UNROLL for (int i = 0; i < 2; i++) {
            __m256i a = load(p + 32 * i), b = load(p + 64 + 32 * i), c = load(p + 128 + 32 * i);
            __m256i s4 = _mm256_or_si256(shift_and(c, 0, 15), shift_and(a, -2, 48));
            __m256i m4 = _mm256_or_si256(shift_and(c, -4, 15), shift_and(b, -2, 48));
            _mm256_storeu_si256((__m256i *)s->scale[2 * i], shift_and(a, 0, 63));
            _mm256_storeu_si256((__m256i *)s->min[2 * i], shift_and(b, 0, 63));
            _mm256_storeu_si256((__m256i *)s->scale[2 * i + 4], s4);
            _mm256_storeu_si256((__m256i *)s->min[2 * i + 4], m4);
        }
}

/* Scale g (of 16 or 8) of 8 rows as int32. */
INL __m256i scale_at(layout l, const uint8_t *w, const small *s, int g, int half) {
    return has_min(l) ? bytes_u8(s->scale[g], half) : bytes_s8(w + l.sc + 16 * g, half);
}

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes, pairs: 2 c) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d;
    const int16_t *sum16, *sum32, *half32;
    const int32_t *start8, *start16, *start32;
} cursor;

INL cursor cursor_at(const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n = a->n_pad / 256, at16 = nib_cpu_act_at(act, t, 16 * n, 1);
    size_t at8 = nib_cpu_act_at(act, t, 8 * n, 1), at4 = nib_cpu_act_at(act, t, 4 * n, 1);
    return (cursor){.q = a->q + 64 * at4,
                    .d = a->d + nib_cpu_act_at(act, t, n, 1),
                    .sum16 = a->sum16 + 2 * at8,
                    .sum32 = a->sum32 + 2 * at4,
                    .half32 = a->half32 + 2 * at16,
                    .start8 = a->start8 + at8,
                    .start16 = a->start16 + at16,
                    .start32 = a->start32 + nib_cpu_act_at(act, t, 32 * n, 1)};
}

/* On to the next super-block of NP tokens. */
INL void advance(cursor *p, int np) {
    p->q += 256 * np;
    p->d += np;
    p->sum16 += 16 * np;
    p->sum32 += 8 * np;
    p->half32 += 32 * np;
    p->start8 += 8 * np;
    p->start16 += 16 * np;
    p->start32 += 32 * np;
}

/* Adds block j (of 8) to nc integer sums. w: the unit; p: at the super-block. */
INL void tile_block(layout l, int half, int nc, int np, const uint8_t *w, const small *s, int j, const cursor *p,
                    __m256i *isum);
/* Every code of this level stands this much too high (or low) in its integer sum: made good once per super-block with
 * the sums of activations. A power of two or 0. */
INL int excess(layout l);
/* acc + the two products of int16 in each lane. */
INL __m256i add_products(__m256i acc, __m256i x, __m256i y);

INL int n_pairs(layout l) {
    return is_per_32(l) ? 4 : 8;
}

/* Scales (or minima) of neighbouring groups of columns as pairs. */
INL void make_pairs(layout l, const uint8_t *w, const small *s, int half, bool minima, __m256i pairs[8]) {
    const int n = n_pairs(l);
    UNROLL for (int i = 0; i < n; i++) {
        pairs[i] = minima ? pair(bytes_u8(s->min[2 * i], half), bytes_u8(s->min[2 * i + 1], half))
                          : pair(scale_at(l, w, s, 2 * i, half), scale_at(l, w, s, 2 * i + 1, half));
    }
}

/* The pairs times the sums of activations of token c. */
INL __m256i times_sums(layout l, const __m256i pairs[8], const cursor *p, int c, int np) {
    const int16_t *sums = (is_per_32(l) ? p->sum32 : p->sum16) + 2 * c;
    __m256i m = _mm256_setzero_si256();
    const int n = n_pairs(l);
    UNROLL for (int i = 0; i < n; i++) m = add_products(m, pairs[i], broadcast4(sums + 2 * np * i));
    return m;
}

INL __m256i without_excess(layout l, __m256i isum, __m256i sums) {
    int e = excess(l), bits = __builtin_ctz((unsigned)(e < 0 ? -e : e));
    sums = _mm256_slli_epi32(sums, bits);
    return e < 0 ? _mm256_add_epi32(isum, sums) : _mm256_sub_epi32(isum, sums);
}

/* The end of a super-block. d is float16 where there are minima (they follow), else float32. */
INL void finish(layout l, int half, int nc, int np, const uint8_t *w, const small *s, const cursor *p,
                const __m256i *isum, __m256 *acc) {
    __m256i scale_pairs[8], min_pairs[8];
    if (excess(l)) make_pairs(l, w, s, half, false, scale_pairs);
    if (has_min(l)) make_pairs(l, w, s, half, true, min_pairs);
    const uint16_t *h = (const uint16_t *)w;
    __m256 d = has_min(l) ? scales_f16(h, half) : _mm256_load_ps((const float *)w + 8 * half);
    __m256 dmin = has_min(l) ? scales_f16(h + 16, half) : d;
    UNROLL for (int c = 0; c < nc; c++) {
        __m256i i = isum[c];
        if (excess(l)) i = without_excess(l, i, times_sums(l, scale_pairs, p, c, np));
        __m256 f = _mm256_cvtepi32_ps(i), da = _mm256_broadcast_ss(p->d + c);
        if (!has_min(l)) {
            acc[c] = _mm256_fmadd_ps(f, _mm256_mul_ps(d, da), acc[c]);
        } else {
            __m256 m = _mm256_cvtepi32_ps(times_sums(l, min_pairs, p, c, np));
            acc[c] = _mm256_fmadd_ps(_mm256_fnmadd_ps(m, dmin, _mm256_mul_ps(f, d)), da, acc[c]);
        }
    }
}

/* nc tokens of a panel. */
INL void tile_half(layout l, int half, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *tile) {
    cursor p = cursor_at(act, t0);
    __m256 acc[8];
    const size_t block = block_bytes(l.kind);
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm256_setzero_ps();
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        __m256i isum[8];
        unpack_small(l, w, &s);
        UNROLL for (int c = 0; c < nc; c++) isum[c] = _mm256_setzero_si256();
        if (half == 0) prefetch(w + l.unit, (int)(l.at / 64));
        for (int j = 0; j < 8; j++) {
            if (half == 0) prefetch(w + l.unit + l.at + (size_t)j * block, (int)(block / 64));
            tile_block(l, half, nc, NIB_ACT_PANEL, w, &s, j, &p, isum);
        }
        finish(l, half, nc, NIB_ACT_PANEL, w, &s, &p, isum, acc);
        advance(&p, NIB_ACT_PANEL);
    }
    UNROLL for (int c = 0; c < nc; c++) _mm256_store_ps(tile + 16 * c + 8 * half, acc[c]);
}

/* One token: bound by memory, so both halves go together and the next super-block is asked for (two ahead is worse). */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *tile) {
    cursor p = cursor_at(act, 0);
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const size_t block = block_bytes(l.kind), ahead = l.unit < 2048 ? 2 * l.unit : l.unit;
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        unpack_small(l, w, &s);
        prefetch(w + ahead, (int)(l.at / 64));
        __m256i isum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (int j = 0; j < 8; j++) {
            prefetch(w + ahead + l.at + (size_t)j * block, (int)(block / 64));
            UNROLL for (int half = 0; half < 2; half++) tile_block(l, half, 1, 1, w, &s, j, &p, &isum[half]);
        }
        UNROLL for (int half = 0; half < 2; half++) finish(l, half, 1, 1, w, &s, &p, &isum[half], &acc[half]);
        advance(&p, 1);
    }
    _mm256_store_ps(tile, acc[0]);
    _mm256_store_ps(tile + 8, acc[1]);
}

#endif
