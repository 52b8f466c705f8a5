/* cpu/isa/avx512_peak.c - AVX-512: vpdpbusd and vfmadd on 512 bits. */
#include "cpu/kern/peak.h"

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

#define BYTES(i) "vpdpbusd %%zmm15, %%zmm14, %%zmm" i "\n\t"
#define FLOATS(i) "vfmadd231ps %%zmm15, %%zmm14, %%zmm" i "\n\t"
NIB_PEAK_ROUNDS(int8, BYTES)
NIB_PEAK_ROUNDS(f32, FLOATS)

const nib_cpu_peak nib_cpu_peak_avx512 = {NIB_PEAK_N_CHAINS * 64, NIB_PEAK_N_CHAINS * 16, int8, f32};

#else
typedef int nib_cpu_avx512_peak_unavailable; /* a translation unit may not be empty */
#endif
