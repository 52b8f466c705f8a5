/* cpu/isa/amx_mm.h - private to the tile kernels: how the tile registers are shaped.
 *
 * Tiles 0-3 are sums (16 tokens of 16 rows), 4-5 activations (16 tokens), 6-7 weights (lines of 4 columns of 16 rows).
 * A product takes max(rows of 4, rows of 6) clocks, so that 32 columns cost as much as 64 (16 clocks). Stores take 16
 * more each and are not hidden behind products, loads are; with tiles in flight vectors have one port instead of two. */
#ifndef NIB_CPU_ISA_AMX_MM_H
#define NIB_CPU_ISA_AMX_MM_H

#include "cpu/isa/avx512_mm.h"

#if (defined(__AMX_INT8__) || defined(__AMXINT8__)) && defined(__AVX512VNNI__) /* as gcc and clang 14 say it */
#define NIB_HAS_AMX
#endif

#if defined(NIB_TILES_HEADER) /* tiles in plain C, for tests on machines without them */
#include NIB_TILES_HEADER
#else
/* gcc 12 says of _tile_loadconfig that it reads 8 of the 64 bytes and drops the rest, hence the instruction itself. */
#define LOAD_TILE_CONFIG(c) __asm__ volatile("ldtilecfg %0" : : "m"(c))
#endif

/* Below this many tokens the kernels of AVX-512 are as fast: spreading the weights would not pay. */
#define NIB_AMX_MIN_TOK 24

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* For products over n_cols (32 or 64) columns. */
INL void configure(int n_cols) {
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(i < 6 ? 16 : n_cols / 4);
        c.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? n_cols : 64);
    }
    LOAD_TILE_CONFIG(c);
}

#endif
