/* cpu/kern/peak_ref.c - peaks of the scalar level: plain multiply-accumulates in eight chains. */
#include "cpu/kern/peak.h"

#include <math.h>
#include <stdint.h>

enum { CHAINS = 8 };

/* An empty asm keeps each value in a register of its own and the loop as it is. */
static void int8(size_t n_rounds) {
    int32_t sum[CHAINS] = {0}, x = 3, w = 5;
    for (size_t i = 0; i < n_rounds; i++)
        for (int c = 0; c < CHAINS; c++) {
            __asm__ volatile("" : "+r"(x), "+r"(w));
            sum[c] += x * w;
        }
    for (int c = 0; c < CHAINS; c++) __asm__ volatile("" ::"r"(sum[c]));
}

static void f32(size_t n_rounds) {
    float sum[CHAINS] = {0}, x = 0.5f, w = 0.25f;
    for (size_t i = 0; i < n_rounds; i++)
        for (int c = 0; c < CHAINS; c++) {
            __asm__ volatile("" : "+m"(x), "+m"(w));
            sum[c] = fmaf(x, w, sum[c]);
        }
    for (int c = 0; c < CHAINS; c++) __asm__ volatile("" ::"m"(sum[c]));
}

const nib_cpu_peak nib_cpu_peak_scalar = {CHAINS, CHAINS, int8, f32};
