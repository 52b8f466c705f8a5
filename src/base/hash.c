/* base/hash.c - a 64-bit checksum of bytes at the speed of memory.
 *
 * Eight lanes, since a multiplication takes three cycles and one can start in each. Every step is a bijection of the
 * lane and of the word, so a single changed word cannot be lost. */
#include "base/hash.h"

#include <string.h>

enum { LANES = 8 };

static inline uint64_t step(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h << 32 | h >> 32; /* a multiplication carries changes upwards only */
}

static inline uint64_t load(const unsigned char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

uint64_t nib_hash64(uint64_t seed, const void *data, size_t n) {
    const unsigned char *p = data;
    uint64_t lane[LANES], h = step(seed, n);
    for (uint64_t i = 0; i < LANES; i++) lane[i] = h + i;
    for (; n >= 8 * LANES; n -= 8 * LANES, p += 8 * LANES)
        for (int i = 0; i < LANES; i++) lane[i] = step(lane[i], load(p + 8 * i));
    for (int i = 0; i < LANES; i++) h = step(h, lane[i]);
    for (; n >= 8; n -= 8, p += 8) h = step(h, load(p));
    uint64_t last = 0;
    if (n) memcpy(&last, p, n);
    return step(step(h, last), 0);
}
