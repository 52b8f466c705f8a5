/* cpu/isa/avxvnni_mm.c - the table of the level AVX-VNNI: own kernels for integers, those of AVX2 for the rest. */
#include "cpu/kern/mm.h"

#if defined(__AVXVNNI__) && defined(__FMA__) && defined(__F16C__)

#define OWN(name) [NIB_QUANT_##name] = &nib_cpu_mm_avxvnni_##name,
#define AVX2(name) [NIB_QUANT_##name] = &nib_cpu_mm_avx2_##name,

const nib_cpu_mm nib_cpu_mm_avxvnni = {
    .quantize = &nib_cpu_mm_quantize_avx2,
    .peak = &nib_cpu_peak_avxvnni,
    .kernel = {AVX2(F32) AVX2(F16) AVX2(BF16) OWN(Q4_0) OWN(Q4_1) OWN(Q5_0) OWN(Q5_1) OWN(Q8_0) OWN(IQ4_NL) OWN(MXFP4)
                   OWN(Q2_K) OWN(Q3_K) OWN(Q4_K) OWN(Q5_K) OWN(Q6_K) OWN(IQ4_XS)},
};

#endif
