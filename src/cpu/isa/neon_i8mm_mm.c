/* cpu/isa/neon_i8mm_mm.c - the table of the level NEON with i8mm: own kernels for integers, those of `neon` for the rest. */
#include "cpu/kern/mm.h"

#define OWN(name) [NIB_QUANT_##name] = &nib_cpu_mm_neon_i8mm_##name,
#define NEON(name) [NIB_QUANT_##name] = &nib_cpu_mm_neon_##name,

const nib_cpu_mm nib_cpu_mm_neon_i8mm = {
    .quantize = &nib_cpu_mm_quantize_neon,
    .peak = &nib_cpu_peak_neon_i8mm,
    .kernel = {NEON(F32) NEON(F16) NEON(BF16) OWN(Q4_0) OWN(Q4_1) OWN(Q5_0) OWN(Q5_1) OWN(Q8_0) OWN(IQ4_NL) OWN(MXFP4)
                   OWN(Q2_K) OWN(Q3_K) OWN(Q4_K) OWN(Q5_K) OWN(Q6_K) OWN(IQ4_XS)},
};
