/* cpu/isa/neon_peak.h - private: rounds of independent multiply-accumulates for the NEON levels.
 *
 * Twenty-four chains cover a latency of four clocks on four ports and more. */
#ifndef NIB_CPU_ISA_NEON_PEAK_H
#define NIB_CPU_ISA_NEON_PEAK_H

#include "cpu/kern/peak.h"

/* CHAINS(op) is op("0") … op("23"). */
#define CHAINS(op)                                                                                                     \
    NIB_PEAK_CHAINS(op)                                                                                                \
    op("12") op("13") op("14") op("15") op("16") op("17") op("18") op("19") op("20") op("21") op("22") op("23")
enum { N_CHAINS = 24 };
#define CLOBBERS                                                                                                       \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",       \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25"
#define ZERO(i) "movi v" i ".16b, #0\n\t"
#define ROUNDS(name, op)                                                                                               \
    static void name(size_t n_rounds) {                                                                                \
        __asm__ volatile(CHAINS(ZERO) ZERO("24") ZERO("25")::: CLOBBERS);                                              \
        for (size_t i = 0; i < n_rounds; i++) __asm__ volatile(CHAINS(op)::: CLOBBERS);                                \
    }

#define FLOATS(i) "fmla v" i ".4s, v24.4s, v25.4s\n\t"
ROUNDS(f32, FLOATS)

#endif
