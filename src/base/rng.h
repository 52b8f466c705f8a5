/* base/rng.h - random numbers without a state: each is a pure function of (seed, position, draw).
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): ten rounds of a keyed
 * bijection over a 128-bit counter. Whoever knows seed, position and draw gets the same number, in any order, on any
 * machine. */
#ifndef NIB_BASE_RNG_H
#define NIB_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

/* The bijection itself: 128 bits of counter under a 64-bit key. */
void nib_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A multiple of 2^-53 in [0, 1). draw tells several numbers for one position apart. */
double nib_rng_uniform(uint32_t seed, uint64_t position, uint32_t draw);

/* 32 bits from the system's random source; false when it has none. */
bool nib_rng_system(uint32_t *out);

#endif
