/* cpu/isa/amx_mm_32.c - AMX kernels of the types with a scale per 32 weights, for 16 tokens.
 *
 * Weights are spread to signed bytes once for all tokens. A block of 32 columns is one tile product whose sums are stored,
 * converted and added with the block's scales: the products of one unit run while the sums of the one before are added. */
#include "cpu/isa/amx_mm.h"
#include "cpu/isa/avx512_mm_32.h"

#if defined(NIB_HAS_AMX)

/* A spread block: 8 lines of codes, 16 scales, 16 minima. */
enum { CODE_BYTES = 512, SCALE_BYTES = 64 };

INL size_t spread_bytes(layout l) {
    return CODE_BYTES + SCALE_BYTES * (l.has_min ? 2 : 1);
}

/* What the codes of unpack() stand too high; with minima they are meant as they are. */
INL int offset(layout l) {
    return l.has_min ? 0 : l.kind == CODES_U4 ? 8 : l.kind == CODES_S8 || l.kind == CODES_IQ4 ? 128 : 16;
}

INL void spread(layout l, const uint8_t *w, size_t n_cols, uint8_t *out) {
    const __m512i off = _mm512_set1_epi8((char)offset(l));
    for (; n_cols > 0; n_cols -= 64, w += l.unit)
        for (int b = 0; b < 2; b++, out += spread_bytes(l)) {
            __m512i v[8];
            unpack(l.kind, w + l.at + (size_t)b * block_bytes(l.kind), v);
            UNROLL for (int s = 0; s < 8; s++) _mm512_store_si512(out + 64 * s, _mm512_sub_epi8(v[s], off));
            _mm512_store_ps(out + CODE_BYTES, scales(l, w, b));
            if (l.has_min) _mm512_store_ps(out + CODE_BYTES + SCALE_BYTES, scales(l, w + 64, b));
        }
}

/* Sums of a unit's two blocks: [block][token][row]. */
typedef int32_t unit_sums[2][16][16];

INL void multiply(layout l, const uint8_t *w, const int8_t *q, unit_sums sums) {
    _tile_zero(0);
    _tile_loadd(4, q, 64);
    _tile_loadd(6, w, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_zero(1);
    _tile_loadd(5, q + 32, 64);
    _tile_loadd(7, w + spread_bytes(l), 64);
    _tile_dpbssd(1, 5, 7);
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
}

INL __m512 accumulate(layout l, __m512 acc, __m512 i, const uint8_t *w, const float *d, const float *sum) {
    __m512 da = _mm512_set1_ps(*d), dw = _mm512_load_ps(w + CODE_BYTES);
    if (!l.has_min) return _mm512_fmadd_ps(i, _mm512_mul_ps(dw, da), acc);
    __m512 m = _mm512_load_ps(w + CODE_BYTES + SCALE_BYTES);
    return _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_set1_ps(*sum), m, _mm512_mul_ps(i, dw)), da, acc);
}

INL void mul(layout l, const uint8_t *w, const nib_cpu_act *act, nib_cpu_mm_range r, float *tile) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t n32 = a->n_pad / 32, at = nib_cpu_act_at(act, r.t0, n32, 1) + r.k0 / 32 * NIB_ACT_PANEL;
    const float *d = a->d + at, *sum = a->sum + at;
    const int8_t *q = a->q + nib_cpu_act_at(act, r.t0, n32 / 2, 64) + r.k0 * NIB_ACT_PANEL;
    const size_t unit = 2 * spread_bytes(l), n_units = (r.k1 - r.k0) / 64;
    _Alignas(64) unit_sums sums[2];
    __m512 acc[16];
    UNROLL for (int c = 0; c < 16; c++) acc[c] = r.k0 ? _mm512_load_ps(tile + 16 * c) : _mm512_setzero_ps();
    multiply(l, w, q, sums[0]);
    for (size_t u = 0; u < n_units; u++, w += unit) {
        q += 64 * NIB_ACT_PANEL;
        if (u + 1 < n_units) multiply(l, w + unit, q, sums[(u + 1) % 2]);
        UNROLL for (int b = 0; b < 2; b++) {
            UNROLL for (int c = 0; c < 16; c++) {
                __m512 i = _mm512_cvtepi32_ps(load(sums[u % 2][b][c]));
                acc[c] = accumulate(l, acc[c], i, w + (size_t)b * spread_bytes(l), d + c, sum + c);
            }
            d += NIB_ACT_PANEL;
            sum += NIB_ACT_PANEL;
        }
    }
    UNROLL for (int c = 0; c < 16; c++) _mm512_store_ps(tile + 16 * c, acc[c]);
}

static void begin(void) {
    configure(32);
}

static void end(void) {
    _tile_release();
}

#define SPREAD_32(TYPE, ...)                                                                                           \
    static size_t TYPE##_bytes(size_t n_cols) {                                                                        \
        return n_cols / 32 * spread_bytes((layout){__VA_ARGS__});                                                      \
    }                                                                                                                  \
    static void TYPE##_spread(const void *w, size_t n_cols, void *out) {                                               \
        spread((layout){__VA_ARGS__}, w, n_cols, out);                                                                 \
    }                                                                                                                  \
    static void TYPE##_mul(const void *w, const nib_cpu_act *act, nib_cpu_mm_range r, float *tile) {                   \
        mul((layout){__VA_ARGS__}, w, act, r, tile);                                                                   \
    }                                                                                                                  \
    const nib_cpu_mm_spread nib_cpu_mm_amx_##TYPE = {NIB_AMX_MIN_TOK, 16,         TYPE##_bytes, begin,                 \
                                                     TYPE##_spread,   TYPE##_mul, end};
LAYOUTS_32(SPREAD_32)

#endif
