/* cpu/pack_bits.h - private to pack_*.c: codes of one row in words of 4 columns.
 *
 * A chunk of 4 columns of one row is a 32-bit word in a line, so packing is masks and shifts of words whose bytes never
 * mix: it works in either byte order. */
#ifndef NIB_CPU_PACK_BITS_H
#define NIB_CPU_PACK_BITS_H

#include "base/half.h"
#include "cpu/pack.h"

static inline uint16_t pack_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t pack_u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Four bytes as they stand. */
static inline uint32_t pack_word(const void *p) {
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline void pack_put(void *line, unsigned r, uint32_t w) {
    memcpy((uint8_t *)line + 4 * r, &w, sizeof w);
}

/* The same bits of each of four bytes. */
static inline uint32_t pack_bits(const uint8_t *p, unsigned shift, uint32_t mask) {
    return pack_word(p) >> shift & mask * 0x01010101u;
}

/* 16 bytes that are already nibbles of columns j and j + 16. */
static inline void pack_nibbles(uint8_t line[4][64], unsigned r, const uint8_t *qs) {
    for (unsigned s = 0; s < 4; s++) pack_put(line[s], r, pack_word(qs + 4 * s));
}

/* One nibble (shift 0 or 4) of each of 32 bytes. */
static inline void pack_split_nibbles(uint8_t line[4][64], unsigned r, const uint8_t *q, unsigned shift) {
    for (unsigned s = 0; s < 4; s++)
        pack_put(line[s], r, pack_bits(q + 4 * s, shift, 15) | pack_bits(q + 16 + 4 * s, shift, 15) << 4);
}

/* A 2-bit field of each of 32 bytes. */
static inline void pack_pairs(uint8_t line[2][64], unsigned r, const uint8_t *q, unsigned shift) {
    for (unsigned h = 0; h < 2; h++, q += 16)
        pack_put(line[h], r,
                 pack_bits(q, shift, 3) | pack_bits(q + 4, shift, 3) << 2 | pack_bits(q + 8, shift, 3) << 4 |
                     pack_bits(q + 12, shift, 3) << 6);
}

/* A bit of each of 32 bytes. */
static inline void pack_ones(uint8_t line[64], unsigned r, const uint8_t *q, unsigned shift) {
    uint32_t w = 0;
    for (unsigned s = 0; s < 8; s++) w |= pack_bits(q + 4 * s, shift, 1) << s;
    pack_put(line, r, w);
}

/* Column k (of 32) of row r. */
static inline int pack_nibble_at(const uint8_t line[4][64], unsigned r, unsigned k) {
    return line[k % 16 / 4][4 * r + k % 4] >> (k < 16 ? 0 : 4) & 15;
}

static inline int pack_pair_at(const uint8_t line[2][64], unsigned r, unsigned k) {
    return line[k / 16][4 * r + k % 4] >> k % 16 / 4 * 2 & 3;
}

static inline int pack_one_at(const uint8_t line[64], unsigned r, unsigned k) {
    return line[4 * r + k % 4] >> k / 4 & 1;
}

static inline int pack_five_at(const nib_cpu_pack_q5 *b, unsigned r, unsigned k) {
    return pack_nibble_at(b->qs, r, k) | pack_one_at(b->qh, r, k) << 4;
}

#endif
