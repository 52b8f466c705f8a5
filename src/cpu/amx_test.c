/* cpu/amx_test.c - compares tile products with plain integers, before anything relies on them.
 *
 * A flag of the processor proves nothing: virtual machines have claimed tiles that they could not run. Where they fault
 * instead, the process gets SIGILL here; a library installs no handlers, the program does (cli/isa.c). */
#include "cpu/amx_test.h"

static bool is_right(nib_cpu_amx_product multiply, int n_cols) {
    _Alignas(64) int8_t a[16][64], b[16][64];
    _Alignas(64) nib_cpu_amx_sums got;
    uint32_t random = 1;
    for (int i = 0; i < 16 * 64; i++) {
        random = random * 1664525u + 1013904223u;
        a[i / 64][i % 64] = (int8_t)(i % 5 ? random >> 24 : 0x7f);
        b[i / 64][i % 64] = (int8_t)(i % 7 ? random >> 16 : 0x80);
    }
    multiply(n_cols, a[0], b[0], &got);
    for (int t = 0; t < 16; t++)
        for (int r = 0; r < 16; r++) {
            int32_t s = 0, u = 0;
            for (int k = 0; k < n_cols; k++) {
                int8_t w = b[k / 4][4 * r + k % 4];
                s += a[t][k] * w;
                u += a[t][k] * (uint8_t)w;
            }
            if (got.both_signed[t][r] != s || got.b_unsigned[t][r] != u) return false;
        }
    return true;
}

bool nib_cpu_amx_test(nib_cpu_amx_product multiply) {
    return is_right(multiply, 32) && is_right(multiply, 64);
}
