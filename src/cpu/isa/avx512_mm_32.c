/* cpu/isa/avx512_mm_32.c - AVX-512 VNNI kernels of the types with a scale per 32 weights.
 *
 * vpdpbusd multiplies unsigned by signed bytes straight into int32, so nothing can overflow. Codes are stored with an
 * offset of 8, 16 or 128 that the start value of a sum takes away. Four tokens side by side keep four chains going. */
#include "cpu/isa/avx512_mm_32.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

/* Where the activations of the first token stand; those of token c are c elements (q: 64 c bytes) on. */
typedef struct cursor {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *start;
} cursor;

INL cursor cursor_at(layout l, const nib_cpu_act *act, uint32_t t) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n32 = a->n_pad / 32, i = nib_cpu_act_at(act, t, n32, 1);
    const int32_t *start = l.kind == CODES_U4                          ? a->start8
                           : l.kind == CODES_S8 || l.kind == CODES_IQ4 ? a->start128
                                                                       : a->start16;
    return (cursor){a->q + nib_cpu_act_at(act, t, n32 / 2, 64), a->d + i, a->sum + i, start + i};
}

/* On to block b + 1 of a unit, for NP tokens. */
INL void advance(cursor *p, int b, int np) {
    p->q += b == 0 ? 32 : 64 * np - 32;
    p->d += np;
    p->sum += np;
    p->start += np;
}

INL __m512i start(layout l, const cursor *p, int c) {
    return l.has_min ? _mm512_setzero_si512() : broadcast4(p->start + c);
}

/* The floating-point part: the integer sum of token c into its accumulator. */
INL __m512 accumulate(layout l, __m512 acc, __m512i sum, __m512 d, __m512 m, const cursor *p, int c) {
    __m512 i = _mm512_cvtepi32_ps(sum), da = _mm512_set1_ps(p->d[c]);
    if (!l.has_min) return _mm512_fmadd_ps(i, _mm512_mul_ps(d, da), acc);
    return _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_set1_ps(p->sum[c]), m, _mm512_mul_ps(i, d)), da, acc);
}

/* nc tokens of a panel. is_far: the weights come from memory; with more panels they are in the L2 cache already. */
INL void tile(layout l, int nc, bool is_far, const uint8_t *w, const nib_cpu_act *act, uint32_t t0, float *out) {
    const int step = nc < 4 ? nc : 4;
    cursor p = cursor_at(l, act, t0);
    __m512 acc[16];
    UNROLL for (int c = 0; c < nc; c++) acc[c] = _mm512_setzero_ps();
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit) {
        if (is_far) prefetch(w + 2048, (int)(l.unit / 64));
        for (int b = 0; b < 2; b++) {
            __m512i v[8];
            unpack(l.kind, w + l.at + (size_t)b * block_bytes(l.kind), v);
            __m512 d = scales(l, w, b), m = l.has_min ? scales(l, w + 64, b) : d;
            const int8_t *q = base(p.q);
            UNROLL for (int c = 0; c < nc; c += step) {
                __m512i t[4];
                UNROLL for (int e = 0; e < step; e++) t[e] = start(l, &p, c + e);
                UNROLL for (int s = 0; s < 8; s++) {
                    UNROLL for (int e = 0; e < step; e++) {
                        t[e] = dot4(t[e], v[s], q + 64 * (c + e) + 4 * s);
                    }
                }
                UNROLL for (int e = 0; e < step; e++) acc[c + e] = accumulate(l, acc[c + e], t[e], d, m, &p, c + e);
            }
            advance(&p, b, NIB_ACT_PANEL);
        }
    }
    UNROLL for (int c = 0; c < nc; c++) _mm512_store_ps(out + 16 * c, acc[c]);
}

/* One token: bound by memory, so lines are asked for 2 KiB ahead. */
INL void decode(layout l, const uint8_t *w, const nib_cpu_act *act, float *out) {
    cursor p = cursor_at(l, act, 0);
    __m512 acc = _mm512_setzero_ps();
    for (size_t n = act->q32.n_pad / 64; n > 0; n--, w += l.unit) {
        prefetch(w + 2048, (int)(l.unit / 64));
        UNROLL for (int b = 0; b < 2; b++) {
            __m512i v[8], t = start(l, &p, 0), u = _mm512_setzero_si512();
            unpack(l.kind, w + l.at + (size_t)b * block_bytes(l.kind), v);
            __m512 d = scales(l, w, b), m = l.has_min ? scales(l, w + 64, b) : d;
            UNROLL for (int s = 0; s < 4; s++) {
                t = dot4(t, v[s], p.q + 4 * s);
                u = dot4(u, v[s + 4], p.q + 16 + 4 * s);
            }
            acc = accumulate(l, acc, _mm512_add_epi32(t, u), d, m, &p, 0);
            advance(&p, b, 1);
        }
    }
    _mm512_store_ps(out, acc);
}

LAYOUTS_32(KERNEL_512)

#endif
