/* cpu/isa/amx_mm.c - the table of the AMX level: tile kernels for many tokens, those of AVX-512 for few and for
 * floating-point weights; and the product that the test of cpu/amx_test.c runs. */
#include "cpu/isa/amx_mm.h"

#include "cpu/amx_test.h"

#if defined(NIB_HAS_AMX)

#define TYPES(X)                                                                                                       \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL) X(MXFP4) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_XS)
#define DECLARE(name) extern const nib_cpu_mm_spread nib_cpu_mm_amx_##name;
TYPES(DECLARE)

#define SPREAD(name) [NIB_QUANT_##name] = &nib_cpu_mm_amx_##name,
static const nib_cpu_mm_spread *const spread[NIB_QUANT_COUNT] = {TYPES(SPREAD)};

const nib_cpu_mm nib_cpu_mm_amx = {
    .quantize = &nib_cpu_mm_quantize_avx2,
    .kernel =
        {
#define X(name, gguf, block, bytes) [NIB_QUANT_##name] = &nib_cpu_mm_avx512_##name,
#include "quant/types.def"
#undef X
        },
    .spread = spread,
    .peak = &nib_cpu_peak_amx,
};

void nib_cpu_amx_multiply(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out) {
    configure(n_cols);
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_zero(0);
    _tile_zero(1);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbsud(1, 4, 6);
    _tile_stored(0, out->both_signed, 64);
    _tile_stored(1, out->b_unsigned, 64);
    _tile_release();
}

#endif
