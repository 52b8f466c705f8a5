/* cpu/isa/mm_layout_32.h - private to the matrix kernels of types with a scale per 32 weights: how a unit is laid out
 * (cpu/pack.h). Included behind the header of a level, which names the kinds of codes that it tells apart. */
#ifndef NIB_CPU_ISA_MM_LAYOUT_32_H
#define NIB_CPU_ISA_MM_LAYOUT_32_H

typedef struct layout { /* of a unit of 64 columns; always a constant */
    codes kind;
    bool has_min;
    size_t unit, at; /* bytes of a unit, offset of the codes */
} layout;

/* The last two fields of a layout. */
#define AT(unit, codes) sizeof(nib_cpu_pack_##unit), offsetof(nib_cpu_pack_##unit, codes)

#endif
