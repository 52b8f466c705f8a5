/* quant/iq4.h - IQ4_NL and IQ4_XS: 4-bit codes that index a table of 16 values, denser around zero.
 *
 * In each run of 32 weights, byte j of qs holds the codes of weights j (low nibble) and j + 16 (high nibble). */
#ifndef NIB_QUANT_IQ4_H
#define NIB_QUANT_IQ4_H

#include <stdint.h>

typedef struct nib_quant_iq4_nl { /* 32 weights: d * values[q] */
    uint8_t d[2];
    uint8_t qs[16];
} nib_quant_iq4_nl;

typedef struct nib_quant_iq4_xs { /* 256 weights: d * (scale - 32) * values[q], a scale of 6 bits per 32 */
    uint8_t d[2];
    uint8_t scales_h[2]; /* bits 2j, 2j+1: the top two bits of scale j */
    uint8_t scales_l[4]; /* nibble j: its low four bits */
    uint8_t qs[128];
} nib_quant_iq4_xs;

extern const int8_t nib_quant_iq4_values[16];

/* The eight scales (-32 … 31) of an IQ4_XS super-block. */
void nib_quant_iq4_scales(const nib_quant_iq4_xs *block, int8_t scales[8]);

#endif
