/* cpu/isa/avxvnni_q16.c - AVX-VNNI: attention over pages of 16-bit codes. */
#if defined(__AVXVNNI__) && defined(__FMA__)

#include "cpu/isa/avx2_q16.h"

/* Written out: gcc 12 copies the sums of its own function to and fro. */
INL __m256i add_products(__m256i a, __m256i x, __m256i y) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(a) : "x"(x), "x"(y));
    return a;
}

const nib_cpu_page_ops nib_cpu_q16_avxvnni = {scores, values};

#else
typedef int nib_cpu_avxvnni_q16_unavailable; /* a translation unit may not be empty */
#endif
