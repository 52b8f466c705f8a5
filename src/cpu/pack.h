/* cpu/pack.h - the packed form R16 of every weight type: units of 16 rows, and how rows enter and leave them.
 *
 * A group of 16 rows is a sequence of units along the columns. A *line* of 64 bytes holds 4 columns (a chunk) of 16
 * rows: line[4 * r + i] is row r, column 4 s + i. Codes of less than a byte share lines within a block of 32 columns:
 *   nibbles  line s (of 4): low nibble chunk s, high nibble chunk s + 4
 *   2 bits   line h (of 2): field s (bits 2s, 2s+1) is chunk 4 h + s
 *   1 bit    one line: bit s is chunk s
 * Every field is a multiple of 64 bytes or stands in one with its neighbour; scales come first, then codes in the order
 * in which kernels read them. The form is the same on every machine. Numbers are of the host's byte order. */
#ifndef NIB_CPU_PACK_H
#define NIB_CPU_PACK_H

#include "cpu/act.h"
#include "quant/type.h"

#define NIB_GROUP_ROWS 16

/* Raise it with every change of a packed form: packed weights that were kept on disk are then made anew
 * (model/pack_cache.c). tests/test_cpu_pack.c notices changes. */
#define NIB_CPU_PACK_VERSION 1

/* ---- units: 64 columns (two blocks of 32) */

typedef struct nib_cpu_pack_q4 { /* Q4_0, IQ4_NL: d is float16; MXFP4: d is bfloat16, which holds 2^-128 … 2^127 */
    uint16_t d[2][16];
    uint8_t qs[2][4][64];
} nib_cpu_pack_q4;

typedef struct nib_cpu_pack_q4_1 {
    uint16_t d[2][16], m[2][16];
    uint8_t qs[2][4][64];
} nib_cpu_pack_q4_1;

typedef struct nib_cpu_pack_q5 { /* 32 codes of five bits */
    uint8_t qs[4][64], qh[64];
} nib_cpu_pack_q5;

typedef struct nib_cpu_pack_q5_0 {
    uint16_t d[2][16];
    nib_cpu_pack_q5 b[2];
} nib_cpu_pack_q5_0;

typedef struct nib_cpu_pack_q5_1 {
    uint16_t d[2][16], m[2][16];
    nib_cpu_pack_q5 b[2];
} nib_cpu_pack_q5_1;

typedef struct nib_cpu_pack_q8_0 {
    uint16_t d[2][16];
    int8_t qs[2][8][64];
} nib_cpu_pack_q8_0;

/* ---- units: 256 columns (eight blocks of 32) */

typedef struct nib_cpu_pack_q2_k {
    uint16_t d[16], m[16];
    uint8_t sm[16][16]; /* [16 columns][row]: low nibble scale, high nibble minimum */
    uint8_t qs[8][2][64];
} nib_cpu_pack_q2_k;

typedef struct nib_cpu_pack_q3_k {
    float d[16];
    int8_t scale[16][16]; /* [16 columns][row] */
    struct {
        uint8_t qs[2][64], qh[64];
    } b[8];
} nib_cpu_pack_q3_k;

typedef struct nib_cpu_pack_q4_k {
    uint16_t d[16], m[16];
    uint8_t sm[12][16]; /* the 12 bytes of scales and minima of each row, transposed */
    uint8_t qs[8][4][64];
} nib_cpu_pack_q4_k;

typedef struct nib_cpu_pack_q5_k {
    uint16_t d[16], m[16];
    uint8_t sm[12][16];
    nib_cpu_pack_q5 b[8];
} nib_cpu_pack_q5_k;

typedef struct nib_cpu_pack_q6_k {
    float d[16];
    int8_t scale[16][16];
    struct {
        uint8_t qs[4][64], qh[2][64]; /* low four bits, upper two */
    } b[8];
} nib_cpu_pack_q6_k;

typedef struct nib_cpu_pack_iq4_xs {
    float d[16];
    int8_t scale[8][16]; /* [32 columns][row] */
    uint8_t qs[8][4][64];
} nib_cpu_pack_iq4_xs;

/* ---- how a type is computed with */

typedef enum nib_cpu_pack_class { /* value of a weight; docs/ARCHITECTURE.md has the arithmetic of the product */
                                  NIB_PACK_FLOAT,   /* itself */
                                  NIB_PACK_32,      /* d * q, a scale per 32 */
                                  NIB_PACK_32_MIN,  /* d * q + m */
                                  NIB_PACK_256,     /* d * scale * q, an integer scale per 16 or 32, d per 256 */
                                  NIB_PACK_256_MIN, /* d * scale * q - m * min */
} nib_cpu_pack_class;

/* One row's share of a unit, unpacked: what the scalar kernels and nib_cpu_matrix_row work with. */
typedef struct nib_cpu_pack_row {
    float d[2], m[2];          /* per 32 columns, or [0] for all 256 */
    int8_t code[256];          /* q, offset subtracted */
    int8_t scale[16], min[16]; /* per 16 columns (256-weight classes) */
} nib_cpu_pack_row;

typedef struct nib_cpu_pack_form {
    nib_cpu_pack_class class;
    unsigned act_form; /* the NIB_ACT_ form that the product reads */
    uint16_t unit_cols, unit_bytes;
    /* Puts n blocks (at most those of a unit) of one row into row r of a unit. What they do not reach must be zero. */
    void (*put)(void *unit, unsigned r, const void *blocks, unsigned n);
    /* Takes row r out of a unit. NULL for NIB_PACK_FLOAT. */
    void (*get)(const void *unit, unsigned r, nib_cpu_pack_row *row);
} nib_cpu_pack_form;

const nib_cpu_pack_form *nib_cpu_pack_form_of(nib_quant_id id);
/* n weights (at most those of a unit) of an unpacked row, bit-equal to the type's dequantize. */
void nib_cpu_pack_values(const nib_cpu_pack_form *form, const nib_cpu_pack_row *row, float *out, size_t n);

/* The rows of the table, by type: pack_float.c, pack_32.c, pack_256.c. */
#define X(name, gguf, block, bytes) extern const nib_cpu_pack_form nib_cpu_pack_form_##name;
#include "quant/types.def"
#undef X

#endif
