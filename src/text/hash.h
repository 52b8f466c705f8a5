/* text/hash.h - a hash for short strings and for pairs of numbers. The value is the same on every machine. */
#ifndef NIB_TEXT_HASH_H
#define NIB_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>

#define NIB_TEXT_HASH_K UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t nib_text_hash_mix(uint64_t h) {
    h *= NIB_TEXT_HASH_K;
    return h ^ h >> 29;
}

static inline uint64_t nib_text_hash_load(const char *p, size_t n) { /* n <= 8 bytes, little-endian */
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return w;
}

static inline uint32_t nib_text_hash(const char *p, size_t n) {
    uint64_t h = n;
    for (; n >= 8; p += 8, n -= 8) h = nib_text_hash_mix(h ^ nib_text_hash_load(p, 8));
    h = nib_text_hash_mix(h ^ nib_text_hash_load(p, n));
    return (uint32_t)(nib_text_hash_mix(h) >> 32);
}

static inline uint32_t nib_text_hash_u64(uint64_t key) {
    return (uint32_t)(nib_text_hash_mix(nib_text_hash_mix(key)) >> 32);
}

#endif
