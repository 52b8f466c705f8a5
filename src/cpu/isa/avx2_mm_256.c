/* cpu/isa/avx2_mm_256.c - AVX2 kernels of the types with super-blocks of 256 weights.
 *
 * Products are added in int16 and the widening multiplication applies the integer scale, so that a super-block is one
 * int32 sum. Bounds of a sum: Q2_K 8 * 3 * 127, Q3_K 8 * 7 * 127 = 7112, Q4_K 16 * 15 * 127 = 30480, Q5_K 8 * 31 * 127 =
 * 31496; Q6_K starts from -32 * sum, and then 8 * 32 * 127 = 32512 fits. The 4 that Q3_K subtracts from every code is
 * made good at the end: -4 * sum of scale_g * sum16_g. IQ4_XS is signed: |q| times sign(q) * a. */
#include "cpu/isa/avx2_mm.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

typedef enum scale_form {
    SCALES_4,   /* Q2_K: nibbles, scale and minimum, per 16 columns */
    SCALES_6,   /* Q4_K, Q5_K: 6 bits, scale and minimum, per 32 */
    SCALES_8,   /* Q3_K, Q6_K: int8 per 16 */
    SCALES_8_32 /* IQ4_XS: int8 per 32 */
} scale_form;

typedef struct layout { /* of a unit; always a constant */
    codes kind;
    scale_form scales;
    size_t unit, sc, at; /* bytes of a unit, offsets of scales and codes */
} layout;

INL bool has_min(layout l) {
    return l.scales == SCALES_4 || l.scales == SCALES_6;
}

/* Integer scales and minima of 16 rows as bytes; the forms without minima are read in place. */
typedef struct small {
    uint8_t scale[16][16], min[16][16];
} small;

INL void unpack_small(layout l, const uint8_t *w, small *s) {
    const uint8_t *p = w + l.sc;
    if (l.scales == SCALES_4)
        UNROLL for (int i = 0; i < 8; i++) {
            __m256i x = load(p + 32 * i);
            _mm256_storeu_si256((__m256i *)s->scale[2 * i], shift_and(x, 0, 15));
            _mm256_storeu_si256((__m256i *)s->min[2 * i], shift_and(x, -4, 15));
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

/* Where the activations of one token stand. */
typedef struct cursor {
    const int8_t *q;
    const float *d;
    const int16_t *sum16, *sum32, *half32;
} cursor;

INL cursor cursor_at(const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n = a->n_pad / 256;
    return (cursor){a->q + nib_cpu_act_at(act, t, 4 * n, 64), a->d + nib_cpu_act_at(act, t, n, 1),
                    a->sum16 + nib_cpu_act_at(act, t, 8 * n, 2), a->sum32 + nib_cpu_act_at(act, t, 4 * n, 2),
                    a->half32 + nib_cpu_act_at(act, t, 16 * n, 2)};
}

INL void advance(cursor *p, int np) {
    p->q += 256 * np;
    p->d += np;
    p->sum16 += 16 * np;
    p->sum32 += 8 * np;
    p->half32 += 32 * np;
}

/* What block j adds to the sum of token c: a are its 32 activations; s0, s1 the scale pairs of its halves. */
INL __m256i block_sum(layout l, const __m256i v[8], __m256i s0, __m256i s1, const int8_t *a, const int16_t *half32,
                      int np) {
    if (l.kind == CODES_U4) return _mm256_madd_epi16(dot32(v, a), s0);
    __m256i x = dot16(v, a), y = dot16(v + 4, a + 16);
    if (l.kind == CODES_U6) {
        x = _mm256_add_epi16(x, broadcast4(half32));
        y = _mm256_add_epi16(y, broadcast4(half32 + 2 * np));
    }
    return _mm256_add_epi32(_mm256_madd_epi16(x, s0), _mm256_madd_epi16(y, s1));
}

/* Pairs of minima (or of the scales of Q3_K) times the pairs of sums: of 16 columns (8 pairs) or 32 (4 pairs). */
INL __m256i pairs_sum(const __m256i *pairs, int n, const int16_t *sums, int np) {
    __m256i m = _mm256_setzero_si256();
    UNROLL for (int i = 0; i < n; i++)
        m = _mm256_add_epi32(m, _mm256_madd_epi16(pairs[i], broadcast4(sums + (size_t)i * 2 * (size_t)np)));
    return m;
}

/* The pairs that pairs_sum takes; returns their number. */
INL int make_pairs(layout l, const uint8_t *w, const small *s, int half, __m256i pairs[8]) {
    int n = l.scales == SCALES_6 ? 4 : 8;
    UNROLL for (int i = 0; i < n; i++)
        pairs[i] = has_min(l) ? pair(bytes_u8(s->min[2 * i], half), bytes_u8(s->min[2 * i + 1], half))
                              : pair(scale_at(l, w, s, 2 * i, half), scale_at(l, w, s, 2 * i + 1, half));
    return n;
}

/* The end of a super-block: isum and what the pairs add. d is float16 where there are minima (they follow), else f32. */
INL __m256 accumulate(layout l, __m256 acc, __m256i isum, const __m256i *pairs, int n, const uint8_t *w, int half,
                      const cursor *p, int c, int np) {
    __m256 da = _mm256_broadcast_ss(p->d + c);
    if (l.kind == CODES_U3)
        isum = _mm256_sub_epi32(isum, _mm256_slli_epi32(pairs_sum(pairs, n, p->sum16 + 2 * c, np), 2));
    if (!has_min(l)) {
        __m256 d = _mm256_load_ps((const float *)w + 8 * half);
        return _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(d, da), acc);
    }
    __m256 d = scales_f16((const uint16_t *)w, half), dmin = scales_f16((const uint16_t *)w + 16, half);
    __m256 m = _mm256_cvtepi32_ps(pairs_sum(pairs, n, (l.scales == SCALES_6 ? p->sum32 : p->sum16) + 2 * c, np));
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(m, dmin, _mm256_mul_ps(_mm256_cvtepi32_ps(isum), d)), da, acc);
}

INL bool needs_pairs(layout l) {
    return has_min(l) || l.kind == CODES_U3;
}

/* ---- tiles: nc tokens of a panel */

/* One block into the sums; the scale pairs are made here. */
INL void tile_block(layout l, int half, int nc, const uint8_t *w, const small *s, int j, const cursor *p,
                    __m256i isum[8]) {
    const int np = NIB_ACT_PANEL;
    const uint8_t *lines = w + l.at + (size_t)j * block_bytes(l.kind);
    const int8_t *a = p->q + (size_t)(j / 2) * 64 * np + j % 2 * 32;
    __m256i v[8];
    unpack(l.kind, lines, half, v);
    if (l.kind == CODES_IQ4) {
        __m256i m[4], sc = scale_at(l, w, s, j, half);
        sc = pair(sc, sc);
        UNROLL for (int g = 0; g < 2; g++) {
            UNROLL for (int e = 0; e < 4; e++) m[e] = _mm256_abs_epi8(v[4 * g + e]);
            UNROLL for (int c = 0; c < nc; c++)
                isum[c] = _mm256_add_epi32(isum[c], dot16_signed(m, v + 4 * g, a + 64 * c + 16 * g, sc));
        }
        return;
    }
    __m256i s0 = scale_at(l, w, s, l.scales == SCALES_6 ? j : 2 * j, half), s1 = s0;
    if (l.scales != SCALES_6) s1 = scale_at(l, w, s, 2 * j + 1, half);
    s0 = pair(s0, s0);
    s1 = pair(s1, s1);
    const int16_t *half32 = p->half32 + 4 * j * np;
    UNROLL for (int c = 0; c < nc; c++)
        isum[c] = _mm256_add_epi32(isum[c], block_sum(l, v, s0, s1, a + 64 * c, half32 + 2 * c, np));
}

INL void tile_half(layout l, int half, int nc, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *tile) {
    cursor p = cursor_at(act, t0);
    __m256 acc[8];
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm256_setzero_ps();
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        __m256i isum[8], pairs[8];
        unpack_small(l, w, &s);
        UNROLL for (int c = 0; c < nc; c++) isum[c] = _mm256_setzero_si256();
        for (int j = 0; j < 8; j++) tile_block(l, half, nc, w, &s, j, &p, isum);
        int n_pairs = needs_pairs(l) ? make_pairs(l, w, &s, half, pairs) : 0;
        UNROLL for (int c = 0; c < nc; c++)
            acc[c] = accumulate(l, acc[c], isum[c], pairs, n_pairs, w, half, &p, c, NIB_ACT_PANEL);
        advance(&p, NIB_ACT_PANEL);
    }
    UNROLL for (int c = 0; c < nc; c++) _mm256_store_ps(tile + 16 * c + 8 * half, acc[c]);
}

/* ---- one token: bound by memory, so both halves go together and the next super-block is asked for early */

INL __m256i decode_block(layout l, int half, const uint8_t *w, const small *s, int j, const cursor *p) {
    const int8_t *a = p->q + 32 * j;
    __m256i v[8];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), half, v);
    __m256i s0 = scale_at(l, w, s, l.scales == SCALES_6 || l.scales == SCALES_8_32 ? j : 2 * j, half), s1 = s0;
    if (l.scales == SCALES_4 || l.scales == SCALES_8) s1 = scale_at(l, w, s, 2 * j + 1, half);
    s0 = pair(s0, s0);
    s1 = pair(s1, s1);
    if (l.kind != CODES_IQ4) return block_sum(l, v, s0, s1, a, p->half32 + 4 * j, 1);
    __m256i m[8];
    UNROLL for (int e = 0; e < 8; e++) m[e] = _mm256_abs_epi8(v[e]);
    return _mm256_add_epi32(dot16_signed(m, v, a, s0), dot16_signed(m + 4, v + 4, a + 16, s0));
}

INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *tile) {
    cursor p = cursor_at(act, 0);
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const int block_lines = (int)(block_bytes(l.kind) / 64);
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        unpack_small(l, w, &s);
        prefetch(w + l.unit, (int)(l.at / 64));
        __m256i isum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, pairs[8];
        for (int j = 0; j < 8; j++) {
            prefetch(w + l.unit + l.at + (size_t)j * block_bytes(l.kind), block_lines);
            UNROLL for (int half = 0; half < 2; half++)
                isum[half] = _mm256_add_epi32(isum[half], decode_block(l, half, w, &s, j, &p));
        }
        UNROLL for (int half = 0; half < 2; half++) {
            int n_pairs = needs_pairs(l) ? make_pairs(l, w, &s, half, pairs) : 0;
            acc[half] = accumulate(l, acc[half], isum[half], pairs, n_pairs, w, half, &p, 0, 1);
        }
        advance(&p, 1);
    }
    _mm256_store_ps(tile, acc[0]);
    _mm256_store_ps(tile + 8, acc[1]);
}

#define TILE(NAME, NC, ...)                                                                                            \
    __attribute__((noinline)) static void NAME##_##NC(const void *w, const nib_cpu_act *act, uint32_t t0, float *tile) { \
        tile_half((layout){__VA_ARGS__}, 0, NC, w, act, t0, tile);                                                     \
        tile_half((layout){__VA_ARGS__}, 1, NC, w, act, t0, tile);                                                     \
    }
#define KERNEL(TYPE, ...)                                                                                              \
    TILE(TYPE, 2, __VA_ARGS__)                                                                                         \
    TILE(TYPE, 4, __VA_ARGS__)                                                                                         \
    TILE(TYPE, 6, __VA_ARGS__)                                                                                         \
    TILE(TYPE, 8, __VA_ARGS__)                                                                                         \
    static void TYPE(const void *w, const nib_cpu_act *act, uint32_t t0, uint32_t n, float *tile) {                    \
        if (act->np == 1) decode((layout){__VA_ARGS__}, w, act, tile);                                                 \
        else if (n <= 2) TYPE##_2(w, act, t0, tile);                                                                   \
        else if (n <= 4) TYPE##_4(w, act, t0, tile);                                                                   \
        else if (n <= 6) TYPE##_6(w, act, t0, tile);                                                                   \
        else TYPE##_8(w, act, t0, tile);                                                                               \
    }                                                                                                                  \
    const nib_cpu_mm_kernel nib_cpu_mm_avx2_##TYPE = {8, TYPE};

#define AT(unit, scales, codes)                                                                                        \
    sizeof(nib_cpu_pack_##unit), offsetof(nib_cpu_pack_##unit, scales), offsetof(nib_cpu_pack_##unit, codes)
KERNEL(Q2_K, CODES_U2, SCALES_4, AT(q2_k, sm, qs))
KERNEL(Q3_K, CODES_U3, SCALES_8, AT(q3_k, scale, b))
KERNEL(Q4_K, CODES_U4, SCALES_6, AT(q4_k, sm, qs))
KERNEL(Q5_K, CODES_U5, SCALES_6, AT(q5_k, sm, b))
KERNEL(Q6_K, CODES_U6, SCALES_8, AT(q6_k, scale, b))
KERNEL(IQ4_XS, CODES_IQ4, SCALES_8_32, AT(iq4_xs, scale, qs))

#endif
