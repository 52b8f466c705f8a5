/* cpu/isa/neon_mm_32.c - NEON kernels with dot products of the types with a scale per 32 weights. */
#include "cpu/isa/neon_dot.h"
#include "cpu/isa/neon_mm_32.h"

#define X(type, ...) KERNEL_NEON(neon, type, decode((layout){__VA_ARGS__}, w, act, out), __VA_ARGS__)
TYPES_32(X)
