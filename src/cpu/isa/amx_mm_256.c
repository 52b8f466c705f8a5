/* cpu/isa/amx_mm_256.c - AMX kernels of the types with super-blocks of 256 weights, for 32 tokens.
 *
 * The integer scale is multiplied into the weight once for all tokens: scale * q = 256 H + L with L an unsigned and H a
 * signed byte. Both are products over whole super-blocks without a store in between; 256 * H's sum + L's is the integer
 * sum of the contract: |H| <= 16, so it stays below 2^28. Q2_K's products (at most 45) need L alone. The products of a
 * super-block run among the additions of the one before. */
#include "cpu/isa/amx_mm.h"
#include "cpu/isa/avx512_mm_256.h"

#if defined(NIB_HAS_AMX)

/* Is H needed? */
INL bool has_high(layout l) {
    return l.kind != CODES_U2;
}

/* A spread super-block: for each 64 columns 16 lines of L and, has_high, 16 of H; then 16 scales; with minima 16 scales of
 * these and their pairs. */
INL size_t code_bytes(layout l) {
    return has_high(l) ? 2048 : 1024;
}

INL size_t spread_bytes(layout l) {
    return 4 * code_bytes(l) + 64 + (has_min(l) ? 64 * (1 + (size_t)n_pairs(l)) : 0);
}

/* What the codes of unpack() stand too high. */
INL int offset(layout l) {
    return l.kind == CODES_U3 ? 4 : l.kind == CODES_U6 ? 32 : l.kind == CODES_IQ4 ? 128 : 0;
}

/* A line of codes times the scales (int16, twice in each lane): to L and H. */
INL void spread_line(layout l, __m512i v, __m512i scale, uint8_t *out) {
    const __m512i low = _mm512_set1_epi16(255);
    __m512i off = _mm512_mullo_epi16(scale, _mm512_set1_epi16((short)offset(l)));
    __m512i even = _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_and_si512(v, low), scale), off);
    __m512i odd = _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(v, 8), scale), off);
    _mm512_store_si512(out, _mm512_ternarylogic_epi32(low, even, _mm512_slli_epi16(odd, 8), 0xca));
    if (has_high(l))
        _mm512_store_si512(out + 1024, _mm512_ternarylogic_epi32(low, _mm512_srli_epi16(even, 8), odd, 0xca));
}

INL void spread_block(layout l, const uint8_t *w, const small *s, int j, uint8_t *out) {
    __m512i v[8];
    unpack(l.kind, w + l.at + (size_t)j * block_bytes(l.kind), v);
    UNROLL for (int g = 0; g < 2; g++) {
        __m512i scale = scale_at(l, w, s, is_per_32(l) ? j : 2 * j + g);
        scale = pair(scale, scale);
        UNROLL for (int e = 4 * g; e < 4 * g + 4; e++) spread_line(l, v[e], scale, out + 64 * e);
    }
}

INL void spread(layout l, const uint8_t *w, size_t n_cols, uint8_t *out) {
    for (; n_cols > 0; n_cols -= 256, w += l.unit) {
        small s;
        unpack_small(l, w, &s);
        for (int j = 0; j < 8; j++) spread_block(l, w, &s, j, out + (size_t)(j / 2) * code_bytes(l) + j % 2 * 512);
        out += 4 * code_bytes(l);
        const uint16_t *h = (const uint16_t *)w;
        _mm512_store_ps(out, has_min(l) ? scales_f16(h) : _mm512_load_ps(w));
        out += 64;
        if (!has_min(l)) continue;
        __m512i pairs[8];
        make_pairs(l, w, &s, true, pairs);
        _mm512_store_ps(out, scales_f16(h + 16));
        UNROLL for (int i = 0; i < n_pairs(l); i++) _mm512_store_si512(out + 64 * (i + 1), pairs[i]);
        out += 64 * (1 + (size_t)n_pairs(l));
    }
}

/* Sums of a super-block: [panel][L, H][token][row]. */
typedef int32_t super_sums[2][2][16][16];

/* The products of 64 columns; w stands at their L. Tiles: L and H of the first panel, then of the second. */
INL void multiply(layout l, bool two, const uint8_t *w, const int8_t *q, size_t panel) {
    _tile_loadd(4, q, 64);
    _tile_loadd(6, w, 64);
    if (has_high(l)) _tile_loadd(7, w + 1024, 64);
    if (two) _tile_loadd(5, q + panel, 64);
    _tile_dpbsud(0, 4, 6);
    if (has_high(l)) _tile_dpbssd(1, 4, 7);
    if (two) _tile_dpbsud(2, 5, 6);
    if (two && has_high(l)) _tile_dpbssd(3, 5, 7);
}

INL void clear_tiles(layout l, bool two) {
    _tile_zero(0);
    if (has_high(l)) _tile_zero(1);
    if (two) _tile_zero(2);
    if (two && has_high(l)) _tile_zero(3);
}

INL void store_tiles(layout l, bool two, super_sums sums) {
    _tile_stored(0, sums[0][0], 64);
    if (has_high(l)) _tile_stored(1, sums[0][1], 64);
    if (two) _tile_stored(2, sums[1][0], 64);
    if (two && has_high(l)) _tile_stored(3, sums[1][1], 64);
}

/* Where the activations of a panel's super-block stand. */
typedef struct cursor {
    const float *d;
    const int16_t *pairs;
} cursor;

/* The end of a super-block for 8 tokens from c of a panel; w stands at the scales. */
INL void finish(layout l, const uint8_t *w, const cursor *p, const int32_t (*sums)[16][16], int c, float *tile) {
    __m512 d = _mm512_load_ps(w), dmin = has_min(l) ? _mm512_load_ps(w + 64) : d;
    UNROLL for (int e = 0; e < 8; e++, c++) {
        __m512i i = load(sums[0][c]);
        if (has_high(l)) i = _mm512_add_epi32(i, _mm512_slli_epi32(load(sums[1][c]), 8));
        __m512 f = _mm512_cvtepi32_ps(i), da = _mm512_set1_ps(p->d[c]), acc = _mm512_load_ps(tile + 16 * c);
        if (has_min(l)) {
            __m512i m = _mm512_setzero_si512();
            UNROLL for (int k = 0; k < n_pairs(l); k++)
                m = add_pair(m, load(w + 128 + 64 * k), p->pairs + 2 * (NIB_ACT_PANEL * k + c));
            f = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(m), dmin, _mm512_mul_ps(f, d));
            acc = _mm512_fmadd_ps(f, da, acc);
        } else {
            acc = _mm512_fmadd_ps(f, _mm512_mul_ps(d, da), acc);
        }
        _mm512_store_ps(tile + 16 * c, acc);
    }
}

INL cursor cursor_at(layout l, const nib_cpu_act *act, uint32_t t, size_t block) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t n = a->n_pad / 256, n2 = 2 * (size_t)n_pairs(l);
    const int16_t *pairs = is_per_32(l) ? a->sum32 : a->sum16;
    return (cursor){a->d + nib_cpu_act_at(act, t, n, 1) + block * NIB_ACT_PANEL,
                    pairs + nib_cpu_act_at(act, t, n, n2) + block * NIB_ACT_PANEL * n2};
}

INL void mul_panels(layout l, bool two, const uint8_t *w, const nib_cpu_act *act, nib_cpu_mm_range r, float *tile) {
    const size_t block = spread_bytes(l), n = (r.k1 - r.k0) / 256, panel = (size_t)act->q256.n_pad * NIB_ACT_PANEL;
    const int8_t *q = act->q256.q + r.t0 / NIB_ACT_PANEL * panel + r.k0 * NIB_ACT_PANEL;
    _Alignas(64) super_sums sums[2];
    if (r.k0 == 0) memset(tile, 0, (two ? 32 : 16) * 16 * sizeof *tile);
    for (size_t b = 0; b <= n; b++) { /* the products of b, the additions of b - 1 */
        if (b < n) clear_tiles(l, two);
        UNROLL for (int h = 0; h < 4; h++) {
            if (b < n)
                multiply(l, two, w + b * block + (size_t)h * code_bytes(l), q + (b * 4 + (size_t)h) * 1024, panel);
            if (b > 0 && (two || h < 2)) {
                cursor p = cursor_at(l, act, r.t0 + (uint32_t)(h / 2) * NIB_ACT_PANEL, r.k0 / 256 + b - 1);
                const int32_t (*s)[16][16] = (const int32_t (*)[16][16])sums[(b - 1) % 2][h / 2];
                finish(l, w + (b - 1) * block + 4 * code_bytes(l), &p, s, h % 2 * 8, tile + h / 2 * 256);
            }
        }
        if (b < n) store_tiles(l, two, sums[b % 2]);
    }
}

static void begin(void) {
    configure(64);
}

static void end(void) {
    _tile_release();
}

#define SPREAD_256(TYPE, ...)                                                                                          \
    static size_t TYPE##_bytes(size_t n_cols) {                                                                        \
        return n_cols / 256 * spread_bytes((layout){__VA_ARGS__});                                                     \
    }                                                                                                                  \
    static void TYPE##_spread(const void *w, size_t n_cols, void *out) {                                               \
        spread((layout){__VA_ARGS__}, w, n_cols, out);                                                                 \
    }                                                                                                                  \
    __attribute__((noinline)) static void TYPE##_two(const void *w, const nib_cpu_act *act, nib_cpu_mm_range r,        \
                                                     float *tile) {                                                    \
        mul_panels((layout){__VA_ARGS__}, true, w, act, r, tile);                                                      \
    }                                                                                                                  \
    __attribute__((noinline)) static void TYPE##_one(const void *w, const nib_cpu_act *act, nib_cpu_mm_range r,        \
                                                     float *tile) {                                                    \
        mul_panels((layout){__VA_ARGS__}, false, w, act, r, tile);                                                     \
    }                                                                                                                  \
    static void TYPE##_mul(const void *w, const nib_cpu_act *act, nib_cpu_mm_range r, float *tile) {                   \
        if (r.n > NIB_ACT_PANEL)                                                                                       \
            TYPE##_two(w, act, r, tile);                                                                               \
        else                                                                                                           \
            TYPE##_one(w, act, r, tile);                                                                               \
    }                                                                                                                  \
    const nib_cpu_mm_spread nib_cpu_mm_amx_##TYPE = {NIB_AMX_MIN_TOK, 32,         TYPE##_bytes, begin,                 \
                                                     TYPE##_spread,   TYPE##_mul, end};
LAYOUTS_256(SPREAD_256)

#endif
