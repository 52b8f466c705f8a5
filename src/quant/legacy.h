/* quant/legacy.h - Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: 32 weights a block, one float16 scale d, in some a minimum m.
 *
 * In every type of 4 or 5 bits, byte j of qs holds the low four bits of weights j (low nibble) and j + 16 (high
 * nibble), and bit i of qh, read as a little-endian 32-bit number, is the fifth bit of weight i. */
#ifndef NIB_QUANT_LEGACY_H
#define NIB_QUANT_LEGACY_H

#include <stdint.h>

typedef struct nib_quant_q4_0 { /* d * (q - 8) */
    uint8_t d[2];
    uint8_t qs[16];
} nib_quant_q4_0;

typedef struct nib_quant_q4_1 { /* d * q + m */
    uint8_t d[2], m[2];
    uint8_t qs[16];
} nib_quant_q4_1;

typedef struct nib_quant_q5_0 { /* d * (q - 16) */
    uint8_t d[2];
    uint8_t qh[4];
    uint8_t qs[16];
} nib_quant_q5_0;

typedef struct nib_quant_q5_1 { /* d * q + m */
    uint8_t d[2], m[2];
    uint8_t qh[4];
    uint8_t qs[16];
} nib_quant_q5_1;

typedef struct nib_quant_q8_0 { /* d * q */
    uint8_t d[2];
    int8_t qs[32];
} nib_quant_q8_0;

#endif
