/* cpu/isa/neon_mm_256.c - NEON kernels with dot products of the types with super-blocks of 256 weights. */
#include "cpu/isa/neon_dot.h"
#include "cpu/isa/neon_mm_256.h"

#define X(type, ...) KERNEL_NEON(neon, type, decode((layout){__VA_ARGS__}, w, act, out), __VA_ARGS__)
TYPES_256(X)
