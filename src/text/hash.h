/* text/hash.h - a hash for short strings and for numbers, the same on every machine of one byte order. For tables in
 * memory only. */
#ifndef NIB_TEXT_HASH_H
#define NIB_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t nib_text_hash_mix(uint64_t h) {
    h *= UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

/* n < 8 bytes, some of them twice: with n, all that is in them. */
static inline uint64_t nib_text_hash_load(const char *p, size_t n) {
    if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        return (uint64_t)first << 32 | last;
    }
    if (n == 0) return 0;
    const unsigned char *b = (const unsigned char *)p;
    return (uint64_t)b[0] | (uint64_t)b[n / 2] << 8 | (uint64_t)b[n - 1] << 16;
}

static inline uint32_t nib_text_hash(const char *p, size_t n) {
    uint64_t h = n;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = nib_text_hash_mix(h ^ w);
    }
    h = nib_text_hash_mix(h ^ nib_text_hash_load(p, n));
    return (uint32_t)(nib_text_hash_mix(h) >> 32);
}

static inline uint32_t nib_text_hash_u64(uint64_t key) {
    return (uint32_t)(nib_text_hash_mix(nib_text_hash_mix(key)) >> 32);
}

#endif
