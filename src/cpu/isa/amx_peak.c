/* cpu/isa/amx_peak.c - AMX: tdpbssd of 16 x 64 by 64 x 16 bytes into four sums; floats as AVX-512. */
#include "cpu/isa/amx_mm.h"

#if defined(NIB_HAS_AMX)

static void int8(size_t n_rounds) {
    configure(64);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (size_t i = 0; i < n_rounds; i++) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_release();
}

#define FLOATS(i) "vfmadd231ps %%zmm15, %%zmm14, %%zmm" i "\n\t"
NIB_PEAK_ROUNDS(f32, FLOATS)

const nib_cpu_peak nib_cpu_peak_amx = {4 * 16 * 64 * 16, NIB_PEAK_N_CHAINS * 16, int8, f32};

#else
typedef int nib_cpu_amx_peak_unavailable; /* a translation unit may not be empty */
#endif
