/* cpu/isa.h - instruction set levels: which this build has, which this machine can run, and their kernels.
 *
 * A level is a const table of function pointers that a backend handle keeps; nothing is global or mutable. Every level
 * gives the same bits as `scalar` (docs/ARCHITECTURE.md, numerics). */
#ifndef NIB_CPU_ISA_H
#define NIB_CPU_ISA_H

#include "nib.h"

typedef struct nib_cpu_isa {
    const char *name;              /* "scalar", "avx2", … */
    bool (*usable)(void);          /* CPU and operating system can run it */
    const struct nib_cpu_ops *ops; /* vector operations: cpu/ops.h */
    const struct nib_cpu_mm *mm;   /* quantisation and matrix kernels: cpu/kern/mm.h */
    const struct nib_cpu_page_ops *q16; /* attention over pages of 16-bit codes: cpu/q16.h */
} nib_cpu_isa;

/* The level of that name; NULL name: the best usable one. NIB_E_ARG lists what there is; NIB_E_UNSUPPORTED when this
 * machine cannot run it. */
nib_status nib_cpu_isa_find(const nib_cpu_isa **out, const char *name, nib_error *err);
const nib_cpu_isa *nib_cpu_isa_scalar(void);

#endif
