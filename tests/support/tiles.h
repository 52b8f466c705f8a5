/* tests/support/tiles.h - the tile registers of AMX in plain C, so that the kernels can be compared where there are none.
 * Stands in for the intrinsics in src/cpu/isa/amx_mm*.c (NIB_TILES_HEADER). Shapes are taken from the configuration; a tile
 * keeps zeros where a load does not reach, as the hardware does. */
#ifndef NIB_TESTS_SUPPORT_TILES_H
#define NIB_TESTS_SUPPORT_TILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tiles {
    uint8_t rows[8], row_bytes[8];
    union {
        uint8_t b[16][64];
        int32_t i[16][16];
    } tile[8];
} tiles;

extern _Thread_local tiles tiles_of_thread; /* tiles.c: one set for all kernels, as in the processor */

static inline void tiles_configure(const void *config) {
    const uint8_t *c = config;
    memset(&tiles_of_thread, 0, sizeof tiles_of_thread);
    for (int t = 0; t < 8; t++) {
        tiles_of_thread.row_bytes[t] = c[16 + 2 * t];
        tiles_of_thread.rows[t] = c[48 + t];
    }
}

static inline void tiles_zero(int t) {
    memset(&tiles_of_thread.tile[t], 0, sizeof tiles_of_thread.tile[t]);
}

static inline void tiles_load(int t, const void *p, size_t stride) {
    tiles_zero(t);
    for (size_t r = 0; r < tiles_of_thread.rows[t]; r++)
        memcpy(tiles_of_thread.tile[t].b[r], (const uint8_t *)p + r * stride, tiles_of_thread.row_bytes[t]);
}

static inline void tiles_store(int t, void *p, size_t stride) {
    for (size_t r = 0; r < tiles_of_thread.rows[t]; r++)
        memcpy((uint8_t *)p + r * stride, tiles_of_thread.tile[t].b[r], tiles_of_thread.row_bytes[t]);
}

/* c += a (signed) times b (signed, or not). */
static inline void tiles_multiply(int c, int a, int b, int b_is_signed) {
    tiles *t = &tiles_of_thread;
    for (int m = 0; m < t->rows[c]; m++)
        for (int k = 0; k < t->row_bytes[a] / 4; k++)
            for (int n = 0; n < t->row_bytes[c] / 4; n++)
                for (int i = 0; i < 4; i++) {
                    int w = t->tile[b].b[k][4 * n + i];
                    if (b_is_signed) w = (int8_t)w;
                    t->tile[c].i[m][n] += (int8_t)t->tile[a].b[m][4 * k + i] * w;
                }
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_release
#define _tile_zero(t) tiles_zero(t)
#define _tile_loadd(t, p, stride) tiles_load(t, p, stride)
#define _tile_stored(t, p, stride) tiles_store(t, p, stride)
#define _tile_dpbssd(c, a, b) tiles_multiply(c, a, b, 1)
#define _tile_dpbsud(c, a, b) tiles_multiply(c, a, b, 0)
#define _tile_release() ((void)0)
#define LOAD_TILE_CONFIG(c) tiles_configure(&(c))

#endif
