/* quant/kquant.h - Q2_K to Q6_K: super-blocks of 256 weights with a float16 scale over small integer scales.
 *
 * Groups of 16 (Q2_K, Q3_K, Q6_K) or 32 weights (Q4_K, Q5_K) have an integer scale each. Codes are stored in planes: a
 * byte holds bits of weights that stand 32 (or 64) apart, so that a vector of bytes gives consecutive weights. */
#ifndef NIB_QUANT_KQUANT_H
#define NIB_QUANT_KQUANT_H

#include <stdint.h>

typedef struct nib_quant_q2_k { /* d * (scale & 15) * q - dmin * (scale >> 4) */
    uint8_t scales[16];
    uint8_t qs[64]; /* [2 halves][32]: 2 bits of the weights l, l+32, l+64, l+96 of the half */
    uint8_t d[2], dmin[2];
} nib_quant_q2_k;

typedef struct nib_quant_q3_k { /* d * (scale - 32) * (q - 4), q of three bits */
    uint8_t hmask[32]; /* bit j of byte l: the third bit of weight 32 * j + l */
    uint8_t qs[64];    /* as in q2_k */
    uint8_t scales[12];
    uint8_t d[2];
} nib_quant_q3_k;

typedef struct nib_quant_q4_k { /* d * scale * q - dmin * min */
    uint8_t d[2], dmin[2];
    uint8_t scales[12]; /* 8 scales and 8 minima of 6 bits: nib_quant_kquant_scales */
    uint8_t qs[128];    /* [4][32]: low nibble weight 64 * j + l, high nibble 64 * j + 32 + l */
} nib_quant_q4_k;

typedef struct nib_quant_q5_k { /* as q4_k, q of five bits */
    uint8_t d[2], dmin[2];
    uint8_t scales[12];
    uint8_t qh[32]; /* bit j of byte l: the fifth bit of weight 32 * j + l */
    uint8_t qs[128];
} nib_quant_q5_k;

typedef struct nib_quant_q6_k { /* d * scale * (q - 32) */
    uint8_t ql[128]; /* [2 halves][64]: low nibble weight l of the half, high nibble l + 64 */
    uint8_t qh[64];  /* [2 halves][32]: upper 2 bits of the weights l, l+32, l+64, l+96 of the half */
    int8_t scales[16];
    uint8_t d[2];
} nib_quant_q6_k;

/* The eight scales and minima (0 … 63) of a Q4_K or Q5_K super-block. */
void nib_quant_kquant_scales(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]);
/* The sixteen scales (-32 … 31) of a Q3_K super-block. */
void nib_quant_kquant_scales3(const uint8_t packed[12], int8_t scales[16]);

#endif
