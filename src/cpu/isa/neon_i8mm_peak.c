/* cpu/isa/neon_i8mm_peak.c - NEON with i8mm: smmla for bytes, fmla for floats. */
#include "cpu/isa/neon_peak.h"

#define BYTES(i) "smmla v" i ".4s, v24.16b, v25.16b\n\t"
ROUNDS(int8, BYTES)

const nib_cpu_peak nib_cpu_peak_neon_i8mm = {N_CHAINS * 32, N_CHAINS * 4, int8, f32};
