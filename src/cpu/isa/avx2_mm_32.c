/* cpu/isa/avx2_mm_32.c - AVX2 kernels of the types with a scale per 32 weights.
 *
 * Unsigned codes: maddubs products are added in int16, 16 columns a sum, and then widened once. Bounds: Q4 16 * 15 * 127 =
 * 30480 fits; Q5_0 and MXFP4 start from -16 * sum, and then 16 * 16 * 127 = 32512 fits, whatever wraps on the way; Q5_1
 * is widened every 8 columns a sum (8 * 31 * 127 = 31496). Signed codes (Q8_0, IQ4_NL) take |q| times sign(q) * a; a pair
 * of products is at most 2 * 128 * 127 = 32512.
 *
 * One half (8 rows) goes over all columns before the other: 8 codes and 8 accumulators fill the registers. */
#include "cpu/isa/avx2_mm.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

typedef struct layout { /* of a unit of 64 columns; always a constant */
    codes kind;
    bool has_min;
    size_t unit, at; /* bytes of a unit, offset of the codes */
} layout;

/* Scales of block b of a unit. The minima follow the scales. */
INL __m256 scales(layout l, const uint8_t *w, int b, int half) {
    const uint16_t *d = (const uint16_t *)w + 16 * b;
    return l.kind == CODES_FP4 ? scales_bf16(d, half) : scales_f16(d, half);
}

/* Where the activations of one token stand. */
typedef struct cursor {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *start8;
    const int16_t *half16;
} cursor;

INL cursor cursor_at(const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n32 = a->n_pad / 32, i = nib_cpu_act_at(act, t, n32, 1);
    return (cursor){a->q + nib_cpu_act_at(act, t, n32 / 2, 64), a->d + i, a->sum + i, a->start8 + i, a->half16 + 2 * i};
}

/* The exact sum of a block for the token `c` behind the cursor; a: its 32 activations. */
INL __m256i block_sum(layout l, const __m256i v[8], const int8_t *a, const cursor *p, int c) {
    const __m256i one = _mm256_set1_epi16(1);
    if (l.kind == CODES_U5 && l.has_min)
        return _mm256_add_epi32(_mm256_madd_epi16(dot16(v, a), one), _mm256_madd_epi16(dot16(v + 4, a + 16), one));
    if (l.kind == CODES_U4) {
        __m256i t = _mm256_madd_epi16(dot32(v, a), one);
        return l.has_min ? t : _mm256_add_epi32(t, broadcast4(p->start8 + c));
    }
    return _mm256_madd_epi16(_mm256_add_epi16(dot32(v, a), broadcast4(p->half16 + 2 * c)), one);
}

INL __m256 accumulate(layout l, __m256 acc, __m256i sum, __m256 d, __m256 m, const cursor *p, int c) {
    __m256 i = _mm256_cvtepi32_ps(sum), da = _mm256_broadcast_ss(p->d + c);
    if (!l.has_min) return _mm256_fmadd_ps(i, _mm256_mul_ps(d, da), acc);
    return _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_broadcast_ss(p->sum + c), m, _mm256_mul_ps(i, d)), da, acc);
}

/* A block is done for NP tokens: on to the next. */
INL void advance(cursor *p, int np) {
    p->d += np;
    p->sum += np;
    p->start8 += np;
    p->half16 += 2 * np;
}

/* ---- tiles: nc tokens of a panel */

INL void tile_half(layout l, int half, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *tile) {
    cursor p = cursor_at(act, t0);
    __m256 acc[8];
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm256_setzero_ps();
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit, p.q += 64 * NIB_ACT_PANEL)
        for (int b = 0; b < 2; b++) {
            __m256i v[8];
            unpack(l.kind, w + l.at + (size_t)b * block_bytes(l.kind), half, v);
            __m256 d = scales(l, w, b, half), m = l.has_min ? scales(l, w + 64, b, half) : d;
            UNROLL for (int c = 0; c < nc; c++)
                acc[c] = accumulate(l, acc[c], block_sum(l, v, p.q + 64 * c + 32 * b, &p, c), d, m, &p, c);
            advance(&p, NIB_ACT_PANEL);
        }
    UNROLL for (int c = 0; c < nc; c++) _mm256_store_ps(tile + 16 * c + 8 * half, acc[c]);
}

/* Signed codes need two registers each, so a block is taken in two steps. */
INL void tile_half_signed(layout l, int half, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0,
                          float *tile) {
    cursor p = cursor_at(act, t0);
    const __m256i one = _mm256_set1_epi16(1);
    __m256 acc[8];
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm256_setzero_ps();
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit, p.q += 64 * NIB_ACT_PANEL)
        for (int b = 0; b < 2; b++) {
            const uint8_t *lines = w + l.at + (size_t)b * block_bytes(l.kind);
            __m256i first[8], v[8], m[4];
            __m256 d = scales(l, w, b, half);
            UNROLL for (int g = 0; g < 2; g++) {
                unpack(l.kind, lines, half, v);
                UNROLL for (int s = 0; s < 4; s++) m[s] = _mm256_abs_epi8(v[4 * g + s]);
                UNROLL for (int c = 0; c < nc; c++) {
                    __m256i t = dot16_signed(m, v + 4 * g, p.q + 64 * c + 32 * b + 16 * g, one);
                    if (g == 0) first[c] = t;
                    else acc[c] = accumulate(l, acc[c], _mm256_add_epi32(first[c], t), d, d, &p, c);
                }
            }
            advance(&p, NIB_ACT_PANEL);
        }
    UNROLL for (int c = 0; c < nc; c++) _mm256_store_ps(tile + 16 * c + 8 * half, acc[c]);
}

/* ---- one token: bound by memory, so both halves go together and later lines are asked for early */

#define AHEAD 2048 /* bytes: KERNELS measured 10-40 % over none */

INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *tile) {
    cursor p = cursor_at(act, 0);
    const __m256i one = _mm256_set1_epi16(1);
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit, p.q += 64) {
        prefetch(w + AHEAD, (int)(l.unit / 64));
        UNROLL for (int b = 0; b < 2; b++) {
            const uint8_t *lines = w + l.at + (size_t)b * block_bytes(l.kind);
            UNROLL for (int half = 0; half < 2; half++) {
                __m256i v[8], sum;
                unpack(l.kind, lines, half, v);
                if (l.kind == CODES_S8 || l.kind == CODES_IQ4) {
                    __m256i m[8];
                    UNROLL for (int s = 0; s < 8; s++) m[s] = _mm256_abs_epi8(v[s]);
                    sum = _mm256_add_epi32(dot16_signed(m, v, p.q + 32 * b, one),
                                           dot16_signed(m + 4, v + 4, p.q + 32 * b + 16, one));
                } else {
                    sum = block_sum(l, v, p.q + 32 * b, &p, 0);
                }
                __m256 d = scales(l, w, b, half), m = l.has_min ? scales(l, w + 64, b, half) : d;
                acc[half] = accumulate(l, acc[half], sum, d, m, &p, 0);
            }
            advance(&p, 1);
        }
    }
    _mm256_store_ps(tile, acc[0]);
    _mm256_store_ps(tile + 8, acc[1]);
}

#define TILE(NAME, HALF, NC, ...)                                                                                      \
    __attribute__((noinline)) static void NAME##_##NC(const void *w, const nib_cpu_act *act, uint32_t t0, float *tile) { \
        HALF((layout){__VA_ARGS__}, 0, NC, w, act, t0, tile);                                                          \
        HALF((layout){__VA_ARGS__}, 1, NC, w, act, t0, tile);                                                          \
    }
#define KERNEL(TYPE, HALF, ...)                                                                                        \
    TILE(TYPE, HALF, 2, __VA_ARGS__)                                                                                   \
    TILE(TYPE, HALF, 4, __VA_ARGS__)                                                                                   \
    TILE(TYPE, HALF, 6, __VA_ARGS__)                                                                                   \
    TILE(TYPE, HALF, 8, __VA_ARGS__)                                                                                   \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {                    \
        if (act->np == 1) decode((layout){__VA_ARGS__}, w, act, tile);                                                 \
        else if (n <= 2) TYPE##_2(w, act, t0, tile);                                                                   \
        else if (n <= 4) TYPE##_4(w, act, t0, tile);                                                                   \
        else if (n <= 6) TYPE##_6(w, act, t0, tile);                                                                   \
        else TYPE##_8(w, act, t0, tile);                                                                               \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_avx2_##TYPE = {8, TYPE};

#define AT(unit, codes) sizeof(nib_cpu_pack_##unit), offsetof(nib_cpu_pack_##unit, codes)
KERNEL(Q4_0, tile_half, CODES_U4, false, AT(q4, qs))
KERNEL(Q4_1, tile_half, CODES_U4, true, AT(q4_1, qs))
KERNEL(Q5_0, tile_half, CODES_U5, false, AT(q5_0, b))
KERNEL(Q5_1, tile_half, CODES_U5, true, AT(q5_1, b))
KERNEL(MXFP4, tile_half, CODES_FP4, false, AT(q4, qs))
KERNEL(Q8_0, tile_half_signed, CODES_S8, false, AT(q8_0, qs))
KERNEL(IQ4_NL, tile_half_signed, CODES_IQ4, false, AT(q4, qs))

#endif
