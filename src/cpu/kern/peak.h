/* cpu/kern/peak.h - the bound of a level's arithmetic: independent multiply-accumulates that stay in registers.
 *
 * What a kernel of the level could reach at most if nothing had to be loaded, unpacked or converted. Measured through
 * nib_meter (decode/meter.c); no kernel calls it. */
#ifndef NIB_CPU_KERN_PEAK_H
#define NIB_CPU_KERN_PEAK_H

#include <stddef.h>

typedef struct nib_cpu_peak {
    unsigned int8_macs, f32_macs; /* of one round */
    void (*int8)(size_t n_rounds);
    void (*f32)(size_t n_rounds);
} nib_cpu_peak;

extern const nib_cpu_peak nib_cpu_peak_scalar, nib_cpu_peak_avx2, nib_cpu_peak_avxvnni, nib_cpu_peak_avx512,
    nib_cpu_peak_amx, nib_cpu_peak_neon, nib_cpu_peak_neon_i8mm;

/* Twelve chains cover the latency on two ports: NIB_PEAK_CHAINS(op) is op("0") … op("11"), a line of assembly each. */
#define NIB_PEAK_CHAINS(op) \
    op("0") op("1") op("2") op("3") op("4") op("5") op("6") op("7") op("8") op("9") op("10") op("11")
enum { NIB_PEAK_N_CHAINS = 12 };
/* Registers that the chains use: a zmm or ymm is named by its low part. */
#define NIB_PEAK_CLOBBERS                                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",         \
        "xmm13", "xmm14", "xmm15"
#define NIB_PEAK_ROUNDS(name, op)                                                                                      \
    static void name(size_t n_rounds) {                                                                                \
        __asm__ volatile("vzeroall" ::: NIB_PEAK_CLOBBERS); /* no subnormal number may be in the way */                \
        for (size_t i = 0; i < n_rounds; i++) __asm__ volatile(NIB_PEAK_CHAINS(op)::: NIB_PEAK_CLOBBERS);              \
    }

#endif
