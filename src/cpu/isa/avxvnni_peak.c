/* cpu/isa/avxvnni_peak.c - AVX-VNNI: vpdpbusd on 256 bits; floats as AVX2. */
#include "cpu/kern/peak.h"

#if defined(__AVXVNNI__) && defined(__FMA__)

#define BYTES(i) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" i "\n\t"
#define FLOATS(i) "vfmadd231ps %%ymm15, %%ymm14, %%ymm" i "\n\t"
NIB_PEAK_ROUNDS(int8, BYTES)
NIB_PEAK_ROUNDS(f32, FLOATS)

const nib_cpu_peak nib_cpu_peak_avxvnni = {NIB_PEAK_N_CHAINS * 32, NIB_PEAK_N_CHAINS * 8, int8, f32};

#else
typedef int nib_cpu_avxvnni_peak_unavailable; /* a translation unit may not be empty */
#endif
