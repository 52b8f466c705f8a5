/* cpu/amx_test.h - can the tile registers be used? Decides whether the level `amx` counts (cpu/isa.c). */
#ifndef NIB_CPU_AMX_TEST_H
#define NIB_CPU_AMX_TEST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct nib_cpu_amx_sums {
    int32_t both_signed[16][16], b_unsigned[16][16]; /* [row of a][row of b] */
} nib_cpu_amx_sums;

/* a: 16 rows of 64 bytes, of which the first n_cols (32 or 64) count. b: lines of 4 columns of 16 rows. All 64-byte
 * aligned. */
typedef void (*nib_cpu_amx_product)(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out);
void nib_cpu_amx_multiply(int n_cols, const int8_t *a, const int8_t *b, nib_cpu_amx_sums *out);

/* True if products of each kind are what plain integers give. */
bool nib_cpu_amx_test(nib_cpu_amx_product multiply);

#endif
