/* cpu/isa/avx2_peak.c - AVX2: products of bytes have no accumulating instruction; vpmaddubsw and an addition of 16-bit
 * sums is the shortest way there is (codes of 4 to 6 bits). Floats: vfmadd. */
#include "cpu/kern/peak.h"

#if defined(__AVX2__) && defined(__FMA__)

#define BYTES(i) "vpmaddubsw %%ymm15, %%ymm14, %%ymm12\n\tvpaddw %%ymm12, %%ymm" i ", %%ymm" i "\n\t"
#define FLOATS(i) "vfmadd231ps %%ymm15, %%ymm14, %%ymm" i "\n\t"
NIB_PEAK_ROUNDS(int8, BYTES)
NIB_PEAK_ROUNDS(f32, FLOATS)

const nib_cpu_peak nib_cpu_peak_avx2 = {NIB_PEAK_N_CHAINS * 32, NIB_PEAK_N_CHAINS * 8, int8, f32};

#else
typedef int nib_cpu_avx2_peak_unavailable; /* a translation unit may not be empty */
#endif
