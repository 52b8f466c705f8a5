/* cpu/isa/neon_i8mm_mm_256.c - NEON kernels with matrix products of the types with super-blocks of 256 weights.
 *
 * A single token would leave half of every product empty: it goes to the kernels of `neon`. */
#include "cpu/isa/neon_i8mm_dot.h"
#include "cpu/isa/neon_mm_256.h"

#define X(type, ...) KERNEL_NEON(neon_i8mm, type, nib_cpu_mm_neon_##type.mul(w, act, t0, n, out), __VA_ARGS__)
TYPES_256(X)
