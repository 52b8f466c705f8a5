/* quant/mxfp4.h - MXFP4: 32 weights of four bits (a float of 2 exponent and 1 mantissa bits) under a power of two. */
#ifndef NIB_QUANT_MXFP4_H
#define NIB_QUANT_MXFP4_H

#include <stdint.h>

typedef struct nib_quant_mxfp4 { /* nib_quant_mxfp4_scale(e) * values[q]; nibbles as in IQ4_NL */
    uint8_t e;
    uint8_t qs[16];
} nib_quant_mxfp4;

/* The 16 code values doubled, so that they are integers; the scale is halved for it. */
extern const int8_t nib_quant_mxfp4_values[16];

/* 2^(e - 128), exact; the two smallest are subnormal. e = 255 means NaN in the OCP format, but the reference formula
 * treats it as a number, and so does this. */
float nib_quant_mxfp4_scale(uint8_t e);

#endif
