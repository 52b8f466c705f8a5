/* cpu/isa/neon_peak.c - NEON: sdot for bytes, fmla for floats. */
#include "cpu/isa/neon_peak.h"

#define BYTES(i) "sdot v" i ".4s, v24.16b, v25.16b\n\t"
ROUNDS(int8, BYTES)

const nib_cpu_peak nib_cpu_peak_neon = {N_CHAINS * 16, N_CHAINS * 4, int8, f32};
