/* cpu/isa/mm_layout_256.h - private to the matrix kernels of types with super-blocks of 256 weights: how a unit is laid out
 * (cpu/pack.h). Included behind the header of a level, which names the kinds of codes that it tells apart. */
#ifndef NIB_CPU_ISA_MM_LAYOUT_256_H
#define NIB_CPU_ISA_MM_LAYOUT_256_H

typedef enum scale_form {
    SCALES_4,   /* Q2_K: nibbles, scale and minimum, per 16 columns */
    SCALES_6,   /* Q4_K, Q5_K: 6 bits, scale and minimum, per 32 */
    SCALES_8,   /* Q3_K, Q6_K: int8 per 16 */
    SCALES_8_32 /* IQ4_XS: int8 per 32 */
} scale_form;

typedef struct layout { /* of a unit; always a constant */
    codes kind;
    scale_form scales;
    size_t unit, sc, at; /* bytes of a unit, offsets of scales and codes */
} layout;

INL bool has_min(layout l) {
    return l.scales == SCALES_4 || l.scales == SCALES_6;
}

INL bool is_per_32(layout l) {
    return l.scales == SCALES_6 || l.scales == SCALES_8_32;
}

/* The last three fields of a layout. */
#define AT(unit, scales, codes)                                                                                        \
    sizeof(nib_cpu_pack_##unit), offsetof(nib_cpu_pack_##unit, scales), offsetof(nib_cpu_pack_##unit, codes)

#endif
