/* cpu/isa/avx512_mm_256.c - AVX-512 VNNI kernels of the types with super-blocks of 256 weights.
 *
 * vpdpbusd sums as many columns as fit int16, then one vpdpwssd multiplies by the integer scale and adds. Bounds: Q2_K
 * and Q3_K 16 columns, 16 * 7 * 127 = 14224; Q4_K 32 columns from -8 * sum, 32 * 8 * 127 = 32512; Q5_K 16 columns from
 * -16 * sum, 16 * 16 * 127; Q6_K 8 columns from -32 * sum, 8 * 32 * 127. What the starts took away of Q4_K and Q5_K is
 * given back at the end. IQ4_XS does not fit: its sums of 32 columns are multiplied as int32. */
#include "cpu/isa/avx512_mm_256.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes, pairs: 2 c) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d;
    const int16_t *sums; /* pairs: of 32 columns or of 16, as the scales have it */
    const int32_t *start8, *start16, *start32;
} cursor;

INL cursor cursor_at(layout l, const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n = a->n_pad / 256, at8 = nib_cpu_act_at(act, t, 8 * n, 1), at4 = nib_cpu_act_at(act, t, 4 * n, 1);
    return (cursor){.q = a->q + 64 * at4,
                    .d = a->d + nib_cpu_act_at(act, t, n, 1),
                    .sums = is_per_32(l) ? a->sum32 + 2 * at4 : a->sum16 + 2 * at8,
                    .start8 = a->start8 + at8,
                    .start16 = a->start16 + nib_cpu_act_at(act, t, 16 * n, 1),
                    .start32 = a->start32 + nib_cpu_act_at(act, t, 32 * n, 1)};
}

/* On to the next super-block of NP tokens. */
INL void advance(layout l, cursor *p, int np) {
    p->q += 256 * np;
    p->d += np;
    p->sums += 2 * n_pairs(l) * np;
    p->start8 += 8 * np;
    p->start16 += 16 * np;
    p->start32 += 32 * np;
}

/* Q4_K and IQ4_XS have a sum per block of 32 columns, the others two or, Q6_K, four. */
INL int sums_per_block(layout l) {
    return l.kind == CODES_U4 || l.kind == CODES_IQ4 ? 1 : l.kind == CODES_U6 ? 4 : 2;
}

/* Where sum i of a super-block starts. */
INL __m512i start(layout l, const cursor *p, int i, int c, int np) {
    const int32_t *s = l.kind == CODES_U4 ? p->start8 : l.kind == CODES_U5 ? p->start16 : p->start32;
    bool has_start = l.kind == CODES_U4 || l.kind == CODES_U5 || l.kind == CODES_U6;
    return has_start ? broadcast4(s + i * np + c) : _mm512_setzero_si512();
}

/* isum + t * scale. Of the intrinsic gcc keeps two copies of isum across the loop. */
INL __m512i add_scaled(layout l, __m512i isum, __m512i t, __m512i scale) {
    if (l.kind == CODES_IQ4) return _mm512_add_epi32(isum, _mm512_mullo_epi32(t, scale));
    __asm__("vpdpwssd %2, %1, %0" : "+v"(isum) : "v"(t), "v"(scale));
    return isum;
}

/* Adds block j (of 8) to nc integer sums, the scales applied. Four tokens side by side keep four chains going; the
 * short chains of Q6_K need no help. */
INL void tile_block(layout l, int nc, int np, const uint8_t *w, const small *s, int j, const cursor *p, __m512i *isum) {
    const int n = sums_per_block(l), m = 8 / n, step = n == 4 ? 1 : nc < 4 ? nc : 4;
    const int8_t *q = base(p->q + j / 2 * 64 * np + j % 2 * 32);
    __m512i v[8], t[4];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), v);
    __m512i s0 = scale_at(l, w, s, is_per_32(l) ? j : 2 * j), s1 = is_per_32(l) ? s0 : scale_at(l, w, s, 2 * j + 1);
    if (l.kind == CODES_U3 || l.kind == CODES_U6) { /* signed scales: the high int16 of a lane must be 0 */
        s0 = _mm512_and_si512(s0, _mm512_set1_epi32(0xffff));
        s1 = _mm512_and_si512(s1, _mm512_set1_epi32(0xffff));
    }
    UNROLL for (int c = 0; c < nc; c += step) {
        UNROLL for (int i = 0; i < n; i++) {
            UNROLL for (int e = 0; e < step; e++) t[e] = start(l, p, n * j + i, c + e, np);
            UNROLL for (int k = 0; k < m; k++) {
                UNROLL for (int e = 0; e < step; e++) t[e] =
                    dot4(t[e], v[m * i + k], q + 64 * (c + e) + 4 * (m * i + k));
            }
            UNROLL for (int e = 0; e < step; e++) isum[c + e] = add_scaled(l, isum[c + e], t[e], 2 * i < n ? s0 : s1);
        }
    }
}

/* The pairs times the sums of activations of token c. */
INL __m512i times_sums(layout l, const __m512i pairs[8], const cursor *p, int c, int np) {
    __m512i m = _mm512_setzero_si512();
    const int n = n_pairs(l);
    UNROLL for (int i = 0; i < n; i++) m = add_pair(m, pairs[i], p->sums + 2 * (np * i + c));
    return m;
}

INL __m512i without_excess(layout l, __m512i isum, __m512i sums) {
    int e = excess(l);
    sums = _mm512_slli_epi32(sums, (unsigned)__builtin_ctz((unsigned)(e < 0 ? -e : e)));
    return e < 0 ? _mm512_add_epi32(isum, sums) : _mm512_sub_epi32(isum, sums);
}

/* The end of a super-block: into the accumulators, which live in the tile so that the registers are free for the
 * integer sums. d is float16 where there are minima (they follow), else float32. */
INL void finish(layout l, int nc, int np, const uint8_t *w, const small *s, const cursor *p, const __m512i *isum,
                float *out) {
    __m512i scale_pairs[8], min_pairs[8];
    if (excess(l)) make_pairs(l, w, s, false, scale_pairs);
    if (has_min(l)) make_pairs(l, w, s, true, min_pairs);
    const uint16_t *h = (const uint16_t *)w;
    __m512 d = has_min(l) ? scales_f16(h) : _mm512_load_ps(w), dmin = has_min(l) ? scales_f16(h + 16) : d;
    UNROLL for (int c = 0; c < nc; c++) {
        __m512i i = isum[c];
        if (excess(l)) i = without_excess(l, i, times_sums(l, scale_pairs, p, c, np));
        __m512 f = _mm512_cvtepi32_ps(i), da = _mm512_set1_ps(p->d[c]), acc = _mm512_load_ps(out + 16 * c);
        if (!has_min(l)) {
            acc = _mm512_fmadd_ps(f, _mm512_mul_ps(d, da), acc);
        } else {
            __m512 m = _mm512_cvtepi32_ps(times_sums(l, min_pairs, p, c, np));
            acc = _mm512_fmadd_ps(_mm512_fnmadd_ps(m, dmin, _mm512_mul_ps(f, d)), da, acc);
        }
        _mm512_store_ps(out + 16 * c, acc);
    }
}

/* nc tokens of a panel. is_far: the weights come from memory; with more panels they are in the L2 cache already. */
INL void tile(layout l, int nc, bool is_far, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    cursor p = cursor_at(l, act, t0);
    const size_t block = block_bytes(l.kind);
    UNROLL for (int c = 0; c < nc; c++) _mm512_store_ps(out + 16 * c, _mm512_setzero_ps());
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        __m512i isum[16];
        unpack_small(l, w, &s);
        UNROLL for (int c = 0; c < nc; c++) isum[c] = _mm512_setzero_si512();
        if (is_far) prefetch(w + l.unit, (int)(l.at / 64));
        for (int j = 0; j < 8; j++) {
            if (is_far) prefetch(w + l.unit + l.at + (size_t)j * block, (int)(block / 64));
            tile_block(l, nc, NIB_ACT_PANEL, w, &s, j, &p, isum);
        }
        finish(l, nc, NIB_ACT_PANEL, w, &s, &p, isum, out);
        advance(l, &p, NIB_ACT_PANEL);
    }
}

/* One token: bound by memory, so the next super-block is asked for (two ahead is worse). */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *out) {
    cursor p = cursor_at(l, act, 0);
    const size_t block = block_bytes(l.kind), ahead = l.unit < 2048 ? 2 * l.unit : l.unit;
    _mm512_store_ps(out, _mm512_setzero_ps());
    for (size_t n = act->q256.n_pad / 256; n > 0; n--, w += l.unit) {
        small s;
        __m512i isum = _mm512_setzero_si512();
        unpack_small(l, w, &s);
        prefetch(w + ahead, (int)(l.at / 64));
        UNROLL for (int j = 0; j < 8; j++) {
            prefetch(w + ahead + l.at + (size_t)j * block, (int)(block / 64));
            tile_block(l, 1, 1, w, &s, j, &p, &isum);
        }
        finish(l, 1, 1, w, &s, &p, &isum, out);
        advance(l, &p, 1);
    }
}

LAYOUTS_256(KERNEL_512)

#endif
