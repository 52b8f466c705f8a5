/* base/rng.c - Philox4x32-10, numbers in [0, 1) made of it, and the system's random source. */
#define _DEFAULT_SOURCE /* getentropy */
#include "base/rng.h"

#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#define ROUNDS 10
#define MUL_0 0xD2511F53u
#define MUL_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u
#define WEYL_1 0xBB67AE85u

void nib_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MUL_0 * c0, p1 = (uint64_t)MUL_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

double nib_rng_uniform(uint32_t seed, uint64_t position, uint32_t draw) {
    uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), draw, 0}, key[2] = {seed, 0}, out[4];
    nib_rng_philox(counter, key, out);
    uint64_t bits = (uint64_t)out[1] << 32 | out[0];
    return (double)(bits >> 11) * 0x1p-53;
}

bool nib_rng_system(uint32_t *out) {
    return getentropy(out, sizeof *out) == 0;
}
